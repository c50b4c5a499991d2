//! What a log tells its surroundings. It is not a message bus: five calls, each made outside every short lock.
//!
//! Order at a rotation: `readable(old end)`, then `rotated`, and only then the first batch of the new segment is
//! published (`readable` again). A listener that stores what it is told never reads a seq from the wrong segment.

use wal_format::{Instant, SegmentId, Seq, StreamId};

/// Told by a log of what its surroundings may have to act on. Implementations must not block and must not call back
/// into the log.
pub trait Events: Send + Sync {
    /// Somebody waits for a commit, or a limit was reached: put the stream on its lane. Called often; coalesce.
    fn enlist(&self, stream: StreamId);
    /// Something is due by time: a batch was begun, or a round left a retry, a probe, a sync or a rotation to be done. Call
    /// [`Log::commit`](crate::Log::commit) at `at`, unless [`Log::due`](crate::Log::due) says then that nothing is due.
    fn due(&self, _stream: StreamId, _at: Instant) {}
    /// An append was refused for want of space on the disk, or little is left and dropping the oldest is the policy:
    /// [`Log::space_pressure`](crate::Log::space_pressure) tells. Told once until something is given back.
    fn short_of_space(&self, _stream: StreamId) {}
    /// Records below `end` may be read now.
    fn readable(&self, stream: StreamId, end: Seq);
    /// What readers saw at or above `end` was only written, and is given up: until `readable` is told again there is nothing there,
    /// and then a gap.
    fn given_up(&self, _stream: StreamId, _end: Seq) {}
    /// The segment that was open ends at `old_end`, for good; `new_open` is the one being or to be written.
    fn rotated(&self, stream: StreamId, old_end: Seq, new_open: SegmentId);
}

/// For a log used alone: nobody listens. Blocked waiters then commit for each other; a future needs somebody who calls
/// [`Log::commit`](crate::Log::commit).
#[derive(Debug, Default, Clone, Copy)]
pub struct NoEvents;

impl Events for NoEvents {
    fn enlist(&self, _stream: StreamId) {}
    fn readable(&self, _stream: StreamId, _end: Seq) {}
    fn rotated(&self, _stream: StreamId, _old_end: Seq, _new_open: SegmentId) {}
}
