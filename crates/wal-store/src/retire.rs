//! Retirement: unlinking what is below the floor.

use wal_format::{SegmentId, Seq};

use crate::Log;

/// The floor a stream may move to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetirePoint {
    /// First seq that must still exist.
    pub seq: Seq,
    /// First segment that must still exist.
    pub segment: SegmentId,
}

/// Why retirement stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetireError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
}

impl Log {
    /// The floor that nothing below `below` is needed allows, if it moves.
    pub fn plan_retire(&self, below: Seq) -> Option<RetirePoint> {
        let _ = below;
        todo!()
    }

    /// Unlinks segments below `below`, ascending, stopping at the first failure; one directory sync.
    ///
    /// # Errors
    /// What was unlinked stays unlinked; call again.
    pub fn retire(&self, below: SegmentId) -> Result<usize, RetireError> {
        let _ = below;
        todo!()
    }
}
