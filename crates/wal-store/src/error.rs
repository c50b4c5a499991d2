//! What can go wrong, one enum a verb; each says what is durable and whether trying again makes sense.

use disk::DiskError;
use wal_format::{SegmentId, Seq};

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A setting cannot be.
    #[error(transparent)]
    Settings(#[from] crate::SettingsError),
    /// The stream's seqs are used up.
    #[error("no seq is left in this stream")]
    SeqsUsedUp,
    /// The largest record does not fit into the room.
    #[error("a record of record_bytes_max takes {needed} bytes, the room has {limit}")]
    RoomTooSmall {
        /// Bytes the largest record takes.
        needed: usize,
        /// The room's limit.
        limit: usize,
    },
}

/// Whose byte limit an append met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FullOf {
    /// The stream's own, [`Limits::bytes_max`](crate::Limits::bytes_max).
    Stream,
    /// That of all streams of the queue.
    Queue,
}

impl std::fmt::Display for FullOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stream => "stream",
            Self::Queue => "queue",
        })
    }
}

/// Why an append was refused. The payload was not taken; no seq was used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// No room in `buffer_bytes_max`: wait for room, or try later.
    #[error("no room for {needed} bytes: {used} of {limit} are held by records not yet written")]
    Busy {
        /// Bytes the frames need.
        needed: usize,
        /// Bytes held now.
        used: usize,
        /// The limit.
        limit: usize,
    },
    /// The byte limit is reached. Room comes back as records are delivered, or dropped by policy, and their segments unlinked.
    #[error("the {of} is full: {needed} bytes do not fit beside {used} of {limit}")]
    Full {
        /// Bytes the records may take on the disk.
        needed: u64,
        /// Bytes held now.
        used: u64,
        /// The limit.
        limit: u64,
        /// Whose limit.
        of: FullOf,
    },
    /// The byte limit is reached, and the policy is to drop the newest: the records were counted and dropped.
    #[error("the {of} is full, the records were dropped: {needed} bytes do not fit beside {used} of {limit}")]
    Dropped {
        /// Bytes the records may take on the disk.
        needed: u64,
        /// Bytes held now.
        used: u64,
        /// The limit.
        limit: u64,
        /// Whose limit.
        of: FullOf,
    },
    /// A record is longer than the settings allow.
    #[error("record of {bytes} bytes is over the limit of {limit}")]
    RecordTooLarge {
        /// Its payload bytes.
        bytes: usize,
        /// `record_bytes_max`.
        limit: usize,
    },
    /// The records of one call do not fit in one batch.
    #[error(
        "batch of {bytes} bytes in {count} records is over the limit of {bytes_max} bytes or {records_max} records"
    )]
    BatchTooLarge {
        /// Bytes of frames.
        bytes: usize,
        /// Number of records.
        count: usize,
        /// `batch_bytes_max`.
        bytes_max: usize,
        /// `batch_records_max`.
        records_max: u32,
    },
    /// An `append_batch` without a record.
    #[error("a batch needs at least one record")]
    Empty,
    /// The disk failed too often; the log probes it and resumes by itself.
    #[error("the log is paused after a disk failure")]
    Paused,
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
    /// The stream's seqs are used up.
    #[error("no seq is left in this stream")]
    SeqsUsedUp,
}

impl AppendError {
    /// Whether the same append may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Paused => true,
            // What is larger than the limit never fits.
            Self::Full { needed, limit, .. } => needed <= limit,
            _ => false,
        }
    }
}

/// Why a commit, or a wait for one, did not reach its level.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The disk refused for now (full, no descriptors, read-only, being retried). The records are still buffered and
    /// the next commit tries them again: do not append them again, wait again.
    #[error("records are kept in memory, the disk refused for now: {source}")]
    Stalled {
        /// What the disk said.
        source: DiskError,
    },
    /// The records were given up, and no byte of them can come back.
    #[error("records {first}..{end} were not written")]
    NotWritten {
        /// First seq given up.
        first: Seq,
        /// The seq after the last.
        end: Seq,
        /// What the disk said, if it was the disk.
        source: Option<DiskError>,
    },
    /// The records were given up, and after a crash some may be there and some not.
    #[error("records {first}..{end} may or may not be stored")]
    Indeterminate {
        /// First seq given up.
        first: Seq,
        /// The seq after the last.
        end: Seq,
        /// The last segment they were written to.
        segment: Option<SegmentId>,
        /// What the disk said, if it was the disk.
        source: Option<DiskError>,
    },
    /// The log was closed, or its last handle dropped, before this.
    #[error("the log is closed")]
    Closed,
}

impl CommitError {
    /// Whether waiting again on the same ticket, or committing again, may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Stalled { .. })
    }
}
