//! What a log counted since it was opened.

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
    /// Vectored writes of batches.
    pub writes: u64,
    /// Syncs of segment files.
    pub syncs: u64,
    /// Syncs of the stream's directory.
    pub dir_syncs: u64,
    /// Batches written.
    pub batches: u64,
    /// Segments created.
    pub segments_created: u64,
    /// Segments closed by size, age or request.
    pub rotations: u64,
    /// Writes and syncs that failed, each of which cost its file.
    pub poisoned_files: u64,
    /// Records that were given up after the last attempt (`Indeterminate` or `NotWritten`).
    pub records_failed: u64,
    /// Appends refused for want of room.
    pub busy: u64,
    /// Times a record was committed by the thread that waited for it.
    pub inline_commits: u64,
    /// Buffers allocated because the pool had none.
    pub buffers_allocated: u64,
}
