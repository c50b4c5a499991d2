//! The ear of one stream's log: it hears that somebody waits, that records became readable, that a segment was rotated, and tells the
//! hub. Called by the log outside its short locks; it never blocks and never calls back.
//!
//! ```text
//!   lane:  idle ──enlist──> queued ──begins──> running ──ends──> idle
//!                              └────── enlist: again <──┘ ends: queued once more
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use wal_format::{Instant, SegmentId, Seq, StreamId};
use wal_store::Events;

use crate::wake::Cell;

use super::hub::{Hub, LaneJob};

/// Where a stream is on its way through the lanes.
mod lane {
    pub(super) const IDLE: u8 = 0;
    pub(super) const QUEUED: u8 = 1;
    pub(super) const RUNNING: u8 = 2;
    pub(super) const AGAIN: u8 = 3;
}

/// The ear of one stream's log.
pub(crate) struct Listener {
    pub(super) stream: StreamId,
    hub: Arc<Hub>,
    pub(crate) cell: Cell,
    lane: AtomicU8,
    moved: AtomicBool,
    /// The stream has an age limit, and all there is of it has a mark: the tick is to hear of more.
    marked: AtomicBool,
    /// The instant its earliest commit timer stands for.
    armed_for: AtomicU64,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("stream", &self.stream)
            .field("cell", &self.cell)
            .finish_non_exhaustive()
    }
}

impl Listener {
    pub(crate) fn new(stream: StreamId, hub: Arc<Hub>, readable: Seq) -> Self {
        Self {
            stream,
            hub,
            cell: Cell::new(readable.get()),
            lane: AtomicU8::new(lane::IDLE),
            moved: AtomicBool::new(false),
            marked: AtomicBool::new(false),
            armed_for: AtomicU64::new(u64::MAX),
        }
    }

    /// A commit is worth it from `due` on.
    pub(crate) fn arm(&self, due: Instant) {
        let nanos = due.nanos();
        if nanos < self.armed_for.load(Ordering::SeqCst)
            && self.armed_for.fetch_min(nanos, Ordering::SeqCst) > nanos
        {
            self.hub.arm_commit(self.stream, due);
        }
    }

    /// Its commit timer rang; to be called before the log is asked what is due.
    pub(crate) fn timer_over(&self) {
        self.armed_for.store(u64::MAX, Ordering::SeqCst);
    }

    /// Puts the stream on its lane: at most once, and once more behind a commit that is on.
    pub(crate) fn enlist(&self) {
        let next = |state| match state {
            lane::IDLE => Some(lane::QUEUED),
            lane::RUNNING => Some(lane::AGAIN),
            _ => None,
        };
        if self.lane.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(lane::IDLE) {
            self.hub.push_lane(LaneJob::Stream(self.stream));
        }
    }

    /// A lane took the stream: from now on an `enlist` means once more. Before the commit swaps its buffers.
    pub(crate) fn lane_begins(&self) {
        self.lane.store(lane::RUNNING, Ordering::SeqCst);
    }

    /// The lane is through; whoever asked meanwhile is served at the end of the line.
    pub(crate) fn lane_ends(&self) {
        if self.lane.compare_exchange(lane::RUNNING, lane::IDLE, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            self.lane.store(lane::QUEUED, Ordering::Release);
            self.hub.push_lane(LaneJob::Stream(self.stream));
        }
    }

    /// All there is has a mark of its age: the tick is to hear of the next records. Before the end is looked at.
    pub(crate) fn all_marked(&self) {
        self.marked.store(true, Ordering::SeqCst);
    }

    /// There is more to mark, and the tick knows.
    pub(crate) fn more_to_mark(&self) {
        self.marked.store(false, Ordering::SeqCst);
    }

    /// The durable end was looked at: the next move is news again.
    pub(crate) fn end_seen(&self) {
        self.moved.store(false, Ordering::SeqCst);
    }
}

impl Events for Listener {
    fn enlist(&self, _stream: StreamId) {
        Self::enlist(self);
    }

    fn due(&self, _stream: StreamId, at: Instant) {
        self.arm(at);
    }

    fn readable(&self, stream: StreamId, end: Seq) {
        self.hub.moved();
        if !self.moved.load(Ordering::Relaxed) && !self.moved.swap(true, Ordering::SeqCst) {
            self.hub.ends_moved(stream);
        }
        if self.marked.load(Ordering::SeqCst) && self.marked.swap(false, Ordering::SeqCst) {
            self.hub.touch(stream);
        }
        if self.cell.publish(end.get()) && self.hub.signals {
            let woken = self.hub.with_cache(|cache| cache.signal(stream, self.hub.now()));
            self.hub.wake(woken);
        }
    }

    fn short_of_space(&self, stream: StreamId) {
        self.hub.touch(stream);
        // At once: somebody waits for it, or will.
        self.hub.saver.arm(self.hub.now());
    }

    fn given_up(&self, _stream: StreamId, end: Seq) {
        self.cell.fall_back(end.get());
    }

    fn rotated(&self, stream: StreamId, old_end: Seq, new_open: SegmentId) {
        let woken = self.hub.with_cache(|cache| cache.rotated(stream, old_end, new_open, self.hub.now()));
        self.hub.wake(woken);
        self.hub.touch(stream);
    }
}
