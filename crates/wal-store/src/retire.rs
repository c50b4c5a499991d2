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
use crate::shared::Shared;
use crate::sync::lock;
use crate::{Log, ReadLevel, SegmentInfo, SegmentList, SegmentState};

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
        self.plan(|s| s.end_seq <= below).map(|point| RetirePoint { seq: below, ..point })
    }

    /// The floor that the stream moves to if the rotated segments are dropped whose records are all below `below`; `None`
    /// if there are none. Its seq is the end of the last one dropped.
    pub fn plan_drop_below(&self, below: Seq) -> Option<RetirePoint> {
        self.plan(|s| s.end_seq <= below)
    }

    /// The floor that the stream moves to if rotated segments are dropped, oldest first, until `bytes` or more are free;
    /// all that may go if that is less. `None` if there is none.
    pub fn plan_drop_bytes(&self, bytes: u64) -> Option<RetirePoint> {
        let mut freed = 0;
        self.plan(|s| {
            let wanted = freed < bytes;
            freed += self.shared.meter.bytes_of([s.id].into_iter());
            wanted
        })
    }

    /// The floor behind the rotated segments, oldest first, that may go; the one rule for whoever retires or drops.
    fn plan(&self, mut goes: impl FnMut(&SegmentInfo) -> bool) -> Option<RetirePoint> {
        let keeps_last = self.keeps_last();
        let segments = lock(&self.shared.segments);
        let keep = segments.last().filter(|_| keeps_last).map(|last| last.id);
        let may_go = segments.iter().take_while(|s| s.state == SegmentState::Rotated && keep != Some(s.id));
        let last = may_go.take_while(|s| goes(s)).last()?;
        Some(RetirePoint { seq: last.end_seq, segment: next_kept(&segments, last.id)? })
    }

    /// Whether the newest segment stays because seqs behind it were shown and given up: the next run learns from it how far that may have
    /// gone. Not while appends are refused for its space: they alone could end this, so they would wait for ever. The next run then takes
    /// its own settings for it.
    fn keeps_last(&self) -> bool {
        let space = self.shared.space();
        self.has_given_up()
            && self.shared.settings.read_level == ReadLevel::Written
            && !space.is_short()
            && !self.shared.meter.pressure(space).refused
    }

    /// Bytes of the files of the rotated segments with ids below `below`.
    pub fn bytes_below(&self, below: SegmentId) -> u64 {
        let segments = lock(&self.shared.segments);
        let gone = segments.iter().take_while(|s| s.id < below && s.state == SegmentState::Rotated);
        self.shared.meter.bytes_of(gone.map(|s| s.id))
    }

    /// Whether files of failed writes are there that could not be unlinked: they count against limits until a retirement unlinks them.
    pub fn has_void_files(&self) -> bool {
        !lock(&self.shared.void_files).is_empty()
    }

    /// Unlinks the rotated segments with ids below `below`, then syncs the directory once; and what failed writes left. Returns how many
    /// segments went; with nothing to do it makes no call.
    ///
    /// # Errors
    /// What was unlinked stays unlinked; call again for the rest. If only the sync failed there is no rest, and whatever
    /// the power brings back recovery unlinks again.
    pub fn retire(&self, below: SegmentId) -> Result<usize, RetireError> {
        let ctx = self.context();
        let unlinked = self.shared.unlink_void_files();
        let gone = lock(&self.shared.segments).take_below(below);
        for (unlinked_count, segment) in gone.iter().enumerate() {
            let path = segment_path(&ctx.dir, segment.id);
            ctx.files.remove(&path);
            match ctx.disk.remove_file(&path) {
                Err(source) if source.class() != ErrorClass::NotFound => {
                    lock(&self.shared.segments).put_back(gone.get(unlinked_count..).unwrap_or_default());
                    return Err(RetireError::Disk { unlinked_count, source });
                }
                _ => self.shared.meter.gone(segment.id, self.shared.space()),
            }
        }
        if !gone.is_empty() {
            // If it fails the files may come back with the power; recovery unlinks what is below the floor's id.
            let synced = ctx.disk.sync_dir(&ctx.dir, RETIRE_SITE);
            synced.map_err(|source| RetireError::Disk { unlinked_count: gone.len(), source })?;
        }
        unlinked.map_err(|source| RetireError::Disk { unlinked_count: gone.len(), source })?;
        Ok(gone.len())
    }
}

impl Shared {
    /// Unlinks a file of which nothing counts. Left behind it is void by the chain, so failing here loses nothing; it takes its space then,
    /// until the next retirement.
    pub(crate) fn unlink_void(&self, segment: SegmentId) -> Result<(), DiskError> {
        let path = segment_path(&self.ctx.dir, segment);
        self.ctx.files.remove(&path);
        match self.ctx.disk.remove_file(&path) {
            Err(error) if error.class() != ErrorClass::NotFound => {
                lock(&self.void_files).push(segment);
                Err(error)
            }
            _ => {
                self.meter.gone(segment, self.space());
                Ok(())
            }
        }
    }

    /// Tries all that are left; the first error if any stays.
    fn unlink_void_files(&self) -> Result<(), DiskError> {
        let left = std::mem::take(&mut *lock(&self.void_files));
        let mut unlinked = Ok(());
        for segment in left {
            unlinked = unlinked.and(self.unlink_void(segment));
        }
        unlinked
    }
}

fn next_kept(segments: &SegmentList, last_gone: SegmentId) -> Option<SegmentId> {
    let first_kept = segments.iter().map(|s| s.id).find(|id| *id > last_gone);
    first_kept.or_else(|| last_gone.checked_next())
}

#[cfg(test)]
#[path = "retire_tests.rs"]
mod tests;
