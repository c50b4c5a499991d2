//! Recovery of a stream's segments: the table of decisions.

use wal_format::{Predecessor, SegmentId, Seq};

use crate::{Gap, OwnedTag, SegmentList, StoreContext};

/// What is known from outside before the files are looked at.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// First seq and first segment that must still exist.
    pub floor: Option<(Seq, SegmentId)>,
    /// A saved durable end.
    pub durable_end: Option<Seq>,
    /// The highest cursor of any consumer.
    pub cursors_max: Option<Seq>,
    /// The tags saved with the floor.
    pub floor_tags: Vec<OwnedTag>,
    /// Whether the last run stopped cleanly, with this durable end.
    pub clean: bool,
}

/// What recovery found, and where the log goes on.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// The segments kept, all rotated.
    pub segments: SegmentList,
    /// The first seq to give.
    pub next_seq: Seq,
    /// The last seq stored before it; 0: none.
    pub prev_seq: u64,
    /// The id of the next segment.
    pub next_segment: SegmentId,
    /// What the next segment's header names.
    pub predecessor: Option<Predecessor>,
    /// Seqs lost.
    pub gaps: Vec<Gap>,
    /// Last tag of every producer.
    pub tags: Vec<OwnedTag>,
    /// What was found and done.
    pub report: RecoveryReport,
}

impl Recovery {
    /// Of a stream that was just created.
    pub fn fresh() -> Self {
        Self {
            segments: SegmentList::new(),
            next_seq: Seq::FIRST,
            prev_seq: 0,
            next_segment: SegmentId::FIRST,
            predecessor: None,
            gaps: Vec::new(),
            tags: Vec::new(),
            report: RecoveryReport::default(),
        }
    }
}

/// Counts of what recovery found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {}

/// Why a stream could not be recovered now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
}

/// Classifies what the stream's directory holds and mends it.
///
/// # Errors
/// Nothing was classified; try again later.
pub fn recover(ctx: &StoreContext, evidence: &Evidence) -> Result<Recovery, RecoverError> {
    let _ = (ctx, evidence);
    todo!()
}
