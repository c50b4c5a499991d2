//! What a log counted since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of a log's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Records accepted.
    pub records: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Bytes given to the disk, headers and padding included.
    pub written_bytes: u64,
    /// Batches written, each by one vectored write.
    pub writes: u64,
    /// Syncs of segment files.
    pub syncs: u64,
    /// Syncs of the stream's directory.
    pub dir_syncs: u64,
    /// Batches published.
    pub batches: u64,
    /// Segments created.
    pub segments_created: u64,
    /// Segments closed by size, age or request.
    pub rotations: u64,
    /// Files left because a write or sync of them failed.
    pub poisoned_files: u64,
    /// Records that were given up after the last attempt (`Indeterminate` or `NotWritten`).
    pub records_failed: u64,
    /// Appends refused for want of room.
    pub busy: u64,
    /// Appends refused for want of space on the disk.
    pub full: u64,
    /// Records dropped by [`OnFull::DropNewest`](crate::OnFull::DropNewest); they were never accepted.
    pub dropped_records: u64,
    /// Commits done by a thread that waited for a ticket.
    pub inline_commits: u64,
    /// Chunks allocated because the pool had none, by all logs that share the room.
    pub chunks_allocated: u64,
}

/// One counter of the committer's.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters that are not kept under the tail's lock.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written_bytes: Count,
    pub(crate) writes: Count,
    pub(crate) syncs: Count,
    pub(crate) dir_syncs: Count,
    pub(crate) batches: Count,
    pub(crate) segments_created: Count,
    pub(crate) rotations: Count,
    pub(crate) poisoned_files: Count,
    pub(crate) records_failed: Count,
    pub(crate) busy: Count,
    pub(crate) full: Count,
    pub(crate) dropped_records: Count,
    pub(crate) inline_commits: Count,
}
