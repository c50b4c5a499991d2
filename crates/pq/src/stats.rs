//! Counters and gauges, as data.

use serde::Serialize;

/// A snapshot of a queue.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueueStats {
    /// By stream, in the order of names.
    pub streams: Vec<StreamStats>,
    /// Descriptors.
    pub fds: FdStats,
    /// Bytes of records not yet written, now.
    pub buffer_bytes: u64,
    /// Their limit.
    pub buffer_bytes_max: u64,
    /// Bytes of all streams; with a limit, those of the journals, the reserve and quarantine too.
    pub bytes_used: u64,
    /// Their limit.
    pub bytes_max: Option<u64>,
    /// Saves of cursors, each one write and one sync.
    pub cursor_saves_count: u64,
    /// Turns taken by sinks.
    pub turns_count: u64,
    /// Wake-ups of the timer thread.
    pub timer_wakes_count: u64,
}

/// A snapshot of the descriptor budget.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct FdStats {
    /// Held now.
    pub used: usize,
    /// Held at most since the open.
    pub peak: usize,
    /// The budget.
    pub limit: usize,
}

/// A snapshot of a stream.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamStats {
    /// Its name.
    pub name: String,
    /// Oldest kept seq.
    pub first: u64,
    /// End of what was accepted.
    pub appended_end: u64,
    /// End of what was written.
    pub written_end: u64,
    /// End of what is durable.
    pub durable_end: u64,
    /// End of what readers see.
    pub readable_end: u64,
    /// Records appended in this run.
    pub records_count: u64,
    /// Bytes of payload appended in this run.
    pub payload_bytes: u64,
    /// Bytes written to segments in this run.
    pub written_bytes: u64,
    /// Write calls in this run.
    pub writes_count: u64,
    /// Data syncs in this run.
    pub syncs_count: u64,
    /// Batches in this run.
    pub batches_count: u64,
    /// Segments that exist.
    pub segments_count: usize,
    /// Segments created in this run.
    pub segments_created_count: u64,
    /// Segments unlinked in this run.
    pub segments_retired_count: u64,
    /// Files given up after a failed write or sync in this run.
    pub poisoned_files_count: u64,
    /// Records known to be lost, ever.
    pub lost_records_count: u64,
    /// Bytes of its segment files, with what is accepted and not yet written.
    pub bytes_used: u64,
    /// Their limit; `None`: there is none but the queue's.
    pub bytes_max: Option<u64>,
    /// Appends refused in this run because the stream or the queue was full.
    pub full_count: u64,
    /// Records dropped in this run because the stream or the queue was full and drops the newest; they were never accepted.
    pub dropped_records_count: u64,
    /// Records dropped to stay under a byte limit before every consumer had them, ever.
    pub trimmed_records_count: u64,
    /// Records dropped because they were too old before every consumer had them, ever.
    pub expired_records_count: u64,
    /// Its consumers.
    pub consumers: Vec<ConsumerStats>,
}

/// A snapshot of a consumer.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConsumerStats {
    /// Its name.
    pub name: String,
    /// Seq of the next record not acknowledged.
    pub cursor: u64,
    /// The same as saved.
    pub saved: u64,
    /// Records readers see and this consumer did not acknowledge.
    pub lag_records: u64,
    /// Somebody reads it now.
    pub attached: bool,
    /// Records delivered in this run, repeats counted.
    pub delivered_count: u64,
    /// Records acknowledged in this run.
    pub acked_count: u64,
    /// Records dropped by choice in this run.
    pub dropped_count: u64,
    /// Records lost (delivered as gaps) in this run.
    pub lost_count: u64,
    /// Records dropped to stay under a byte limit (delivered as gaps) in this run.
    pub trimmed_count: u64,
    /// Records dropped because they were too old (delivered as gaps) in this run.
    pub expired_count: u64,
    /// Failed turns in this run.
    pub failures_count: u64,
    /// The last failure, in words.
    pub last_failure: Option<String>,
}
