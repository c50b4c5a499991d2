//! The stream as it really is, and the steps of its writer that need no lock.

use crate::cache::*;
use crate::{Bound, Lease};

/// What the writer does next: a commit of one record, a rotation, or a rotation away from a file whose write failed,
/// which leaves one seq behind that is never used again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Op {
    Commit,
    Rotate,
    Poisoned,
}

/// A protocol broken on purpose.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Fault {
    None,
    ReaderLoadsBeforeItSetsAsleep,
    WriterSwapsBeforeItPublishes,
    FirstBatchIsPublishedBeforeTheRotation,
    SeekDoesNotReachTheCache,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    Op,
    Publish,
    Swap,
    Mark,
    Rotated,
}

/// The stream as it really is, and the wake-up cell.
#[derive(Clone)]
pub(super) struct Truth {
    pub(super) ops: &'static [Op],
    pub(super) fault: Fault,
    pub(super) done: usize,
    pub(super) step: Step,
    /// First seq and exclusive end of each segment; the id is the index + 1.
    pub(super) segments: Vec<(u64, Option<u64>)>,
    pub(super) readable_end: u64,
    pub(super) asleep: bool,
    /// Whether a swap found `asleep` before the publication it belongs to.
    pub(super) owes_mark: bool,
    pub(super) unlinked_below: u64,
}

impl Truth {
    /// One step of the writer that needs no lock, if that is what comes next.
    pub(super) fn lock_free_step(&mut self) -> bool {
        let swaps_first = self.fault == Fault::WriterSwapsBeforeItPublishes;
        match self.step {
            Step::Op => match self.ops.get(self.done) {
                None => return false,
                Some(Op::Commit) => self.step = if swaps_first { Step::Swap } else { Step::Publish },
                Some(Op::Rotate | Op::Poisoned) => self.close_segment(),
            },
            Step::Publish => {
                // A seq that was lost with a poisoned file is skipped.
                let first = self.segments.last().map_or(1, |segment| segment.0);
                self.readable_end = self.readable_end.max(first) + 1;
                self.step = match (swaps_first, self.owes_mark) {
                    (false, _) => Step::Swap,
                    (true, true) => Step::Mark,
                    (true, false) => self.next_op(),
                };
            }
            Step::Swap => {
                let was_asleep = std::mem::replace(&mut self.asleep, false);
                self.owes_mark = was_asleep;
                self.step = match (swaps_first, was_asleep) {
                    (true, _) => Step::Publish,
                    (false, true) => Step::Mark,
                    (false, false) => self.next_op(),
                };
            }
            Step::Mark | Step::Rotated => return false,
        }
        true
    }

    pub(super) fn close_segment(&mut self) {
        let ghosts = u64::from(self.ops[self.done] == Op::Poisoned);
        let end = self.readable_end;
        if let Some(last) = self.segments.last_mut() {
            last.1 = Some(end);
        }
        self.segments.push((end + ghosts, None));
        if self.fault == Fault::FirstBatchIsPublishedBeforeTheRotation {
            self.readable_end = end + ghosts + 1;
        }
        self.step = Step::Rotated;
    }

    pub(super) fn next_op(&mut self) -> Step {
        self.done += 1;
        self.owes_mark = false;
        Step::Op
    }

    pub(super) fn segment(&self, id: SegmentId) -> (u64, Option<u64>) {
        self.segments[id.get() as usize - 1]
    }

    /// What is wrong with a lease given to a reader at `cursor`.
    pub(super) fn object(&self, lease: &Lease, cursor: u64) -> Option<String> {
        let (first, end) = self.segment(lease.reading);
        let before = self.segments[..lease.reading.get() as usize - 1].last().and_then(|segment| segment.1);
        let bound = lease.bound.end().get();
        if lease.from.get() != cursor {
            return Some(format!("{lease:?} starts elsewhere than the cursor {cursor}"));
        }
        if bound > self.readable_end {
            return Some(format!("{lease:?} goes beyond readable_end {}", self.readable_end));
        }
        if end.is_some_and(|end| bound > end) {
            return Some(format!("{lease:?} goes beyond its segment's end {end:?}"));
        }
        if matches!(lease.bound, Bound::Rotated { .. }) && end != Some(bound) {
            return Some(format!("{lease:?} is drained below its segment's end {end:?}"));
        }
        if before.is_some_and(|before| cursor < before) && !lease.is_empty() {
            return Some(format!("{lease:?} leaves out the records from {cursor} to {first}"));
        }
        if !lease.is_empty() && lease.reading.get() < self.unlinked_below {
            return Some(format!("{lease:?} opens an unlinked file"));
        }
        None
    }
}
