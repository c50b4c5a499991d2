//! Reading a live or a rotated segment.

use bytes::Bytes;
use wal_format::{Marks, SegmentId, Seq, WallTime};

use crate::Log;

/// Where a batch's bytes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The segment.
    pub segment: SegmentId,
    /// Bytes from the start of its file.
    pub offset: u64,
}

/// Where to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFrom {
    /// The first seq wanted.
    pub seq: Seq,
    /// Where it stood, if known; checked, never trusted.
    pub hint: Option<Position>,
}

/// How much one read may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of batches; at least one batch is returned whatever its size.
    pub bytes_max: usize,
}

/// Buffers a reader keeps between reads.
#[derive(Debug, Default)]
pub struct ReadBuffers {}

/// What a read returned, in order.
#[derive(Debug)]
pub struct Chunk {
    /// Runs of records, and gaps.
    pub items: Vec<Item>,
    /// The seq to read next.
    pub next: Seq,
    /// Where it will stand.
    pub next_hint: Option<Position>,
}

/// One part of a chunk.
#[derive(Debug)]
pub enum Item {
    /// Records, dense.
    Records(Run),
    /// Seqs that will never come.
    Gap {
        /// First missing.
        from: Seq,
        /// The seq after the last missing.
        to: Seq,
        /// Why.
        reason: GapReason,
    },
}

/// Why seqs are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// Never stored: the writer skipped them after a failure, or they were not durable at a crash.
    NotDurable,
    /// Damaged or missing.
    Lost,
}

/// A run of whole batches.
#[derive(Debug)]
pub struct Run {
    /// The bytes, shared.
    pub bytes: Bytes,
}

/// One record of a run.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    /// Its seq.
    pub seq: Seq,
    /// When its batch was begun.
    pub appended_at: WallTime,
    /// The caller's marks.
    pub marks: Marks,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
}

impl Log {
    /// Reads whole batches from `from` up to `bound`.
    ///
    /// # Errors
    /// Nothing is lost; read again.
    pub fn read(
        &self,
        from: ReadFrom,
        bound: Seq,
        limits: ReadLimits,
        buffers: &mut ReadBuffers,
    ) -> Result<Chunk, ReadError> {
        let _ = (from, bound, limits, buffers);
        todo!()
    }
}
