//! What the cache knows of one stream: which segments are rotated, where each ends for good, and who has caught up.
//! Not where bytes stand, and not how far the stream is readable: that is asked for under the lock.
//!
//! ```text
//!  rotated: (3, end 40) (4, end 40) (6, end 75)        open: 7
//!            ^ 4 is empty; 5 never held a record
//! ```
//!
//! Invariants: ids rise strictly and stay below `open`; ends never fall; `open` only grows.

use std::collections::{BTreeSet, VecDeque};

use wal_format::{ConsumerId, SegmentId, Seq};

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct StreamState {
    rotated: VecDeque<(SegmentId, Seq)>,
    open: SegmentId,
    /// The consumers that a signal or a rotation makes due.
    pub(crate) caught_up: BTreeSet<ConsumerId>,
    /// How often the writer spoke up. Tells a safety poll that found something from one that was merely first.
    pub(crate) signal_count: u64,
}

impl StreamState {
    pub(crate) fn new(rotated: &[(SegmentId, Seq)], open: SegmentId) -> Self {
        debug_assert!(rotated.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "segments ascend");
        debug_assert!(rotated.last().is_none_or(|&(id, _)| id < open), "the open segment is the newest");
        Self { rotated: rotated.iter().copied().collect(), open, caught_up: BTreeSet::new(), signal_count: 0 }
    }

    pub(crate) const fn open(&self) -> SegmentId {
        self.open
    }

    /// Stores the final end of the open segment and goes on to `new_open`. An id that does not grow is ignored.
    pub(crate) fn rotate(&mut self, old_end: Seq, new_open: SegmentId) {
        debug_assert!(new_open > self.open, "open_segment only grows");
        debug_assert!(self.rotated.back().is_none_or(|&(_, end)| end <= old_end), "ends never fall");
        if new_open > self.open {
            self.rotated.push_back((self.open, old_end));
            self.open = new_open;
        }
    }

    /// Forgets the segments below `below`.
    pub(crate) fn retire(&mut self, below: SegmentId) {
        while self.rotated.front().is_some_and(|&(id, _)| id < below) {
            self.rotated.pop_front();
        }
    }

    /// The segment in which `seq` stands or will stand.
    pub(crate) fn segment_of(&self, seq: Seq) -> SegmentId {
        let at = self.rotated.partition_point(|&(_, end)| end <= seq);
        self.rotated.get(at).map_or(self.open, |&(id, _)| id)
    }

    /// The segment that follows `id`.
    pub(crate) fn after(&self, id: SegmentId) -> SegmentId {
        let at = self.rotated.partition_point(|&(other, _)| other <= id);
        self.rotated.get(at).map_or(self.open, |&(next, _)| next)
    }

    /// `id` itself or, if it was retired or never existed, the segment that follows it, with its final end; no end
    /// means the open segment.
    pub(crate) fn at_or_after(&self, id: SegmentId) -> (SegmentId, Option<Seq>) {
        let at = self.rotated.partition_point(|&(other, _)| other < id);
        self.rotated.get(at).map_or((self.open, None), |&(next, end)| (next, Some(end)))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
