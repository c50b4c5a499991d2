//! Retirement: unlinking what nobody needs any more.
//!
//! The order is the caller's: cursors durable, then the floor with its segment id durable, and only then
//! [`Log::retire`]. A crash between any two steps costs nothing: what the floor's id is above of is unlinked again at
//! the next recovery, whatever is in it.
//!
//! ```text
//!   plan_retire(cursor) ─> floor durable (elsewhere) ─> retire(floor's id): list, unlink 1, unlink 2, … sync directory
//! ```
//!
//! Invariants: the open segment is never retired; unlinks go in ascending order and stop at the first failure; a
//! segment leaves the list before its file does, so that no reader takes a retired file for a lost one.

use disk::{DiskError, ErrorClass, SyncSite};
use wal_format::{SegmentId, Seq};

use crate::segments::segment_path;
use crate::sync::lock;
use crate::{Log, SegmentList, SegmentState};

/// Syncs of the stream's directory after unlinking.
const RETIRE_SITE: SyncSite = SyncSite::new("retire.dir");

/// The floor a stream may move to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetirePoint {
    /// First seq that must still exist.
    pub seq: Seq,
    /// First segment that must still exist; the next to be created if none has to.
    pub segment: SegmentId,
}

/// Why retirement stopped. What was unlinked stays unlinked and is listed no more; the rest is still listed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RetireError {
    /// The disk failed. Call again.
    #[error("{unlinked_count} segments retired, then: {source}")]
    Disk {
        /// How many files were unlinked before.
        unlinked_count: usize,
        /// What the disk said; it names the file.
        source: DiskError,
    },
}

impl RetireError {
    /// How many segments went all the same.
    pub fn unlinked_count(&self) -> usize {
        let Self::Disk { unlinked_count, .. } = self;
        *unlinked_count
    }

    /// Whether trying again may succeed: always, sooner or later. Recovery does the same.
    pub fn is_retryable(&self) -> bool {
        true
    }
}

impl Log {
    /// The floor that the stream may move to if nothing below `below` is needed; `None` if no segment would go.
    ///
    /// `below` is the least durable cursor, or where a trim ends. Make the floor durable before [`Log::retire`].
    pub fn plan_retire(&self, below: Seq) -> Option<RetirePoint> {
        plan(&lock(&self.shared.segments), below)
    }

    /// Unlinks the rotated segments with ids below `below`, then syncs the directory once. Returns how many went; with
    /// nothing to do it makes no call.
    ///
    /// # Errors
    /// What was unlinked stays unlinked; call again for the rest. If only the sync failed there is no rest, and whatever
    /// the power brings back recovery unlinks again.
    pub fn retire(&self, below: SegmentId) -> Result<usize, RetireError> {
        let ctx = self.context();
        let gone = lock(&self.shared.segments).take_below(below);
        for (unlinked_count, segment) in gone.iter().enumerate() {
            let path = segment_path(&ctx.dir, segment.id);
            ctx.files.remove(&path);
            match ctx.disk.remove_file(&path) {
                Err(source) if source.class() != ErrorClass::NotFound => {
                    lock(&self.shared.segments).put_back(gone.get(unlinked_count..).unwrap_or_default());
                    return Err(RetireError::Disk { unlinked_count, source });
                }
                _ => {}
            }
        }
        if !gone.is_empty() {
            // If it fails the files may come back with the power; recovery unlinks what is below the floor's id.
            let synced = ctx.disk.sync_dir(&ctx.dir, RETIRE_SITE);
            synced.map_err(|source| RetireError::Disk { unlinked_count: gone.len(), source })?;
        }
        Ok(gone.len())
    }
}

fn plan(segments: &SegmentList, below: Seq) -> Option<RetirePoint> {
    let gone = segments.iter().take_while(|s| s.end_seq <= below && s.state == SegmentState::Rotated);
    let last = gone.last()?;
    let first_kept = segments.iter().map(|s| s.id).find(|id| *id > last.id);
    let segment = first_kept.or_else(|| last.id.checked_next())?;
    Some(RetirePoint { seq: below, segment })
}

#[cfg(test)]
#[path = "retire_tests.rs"]
mod tests;
