//! The state cache.

use std::time::Duration;

use wal_format::{Instant, SegmentId, Seq, StreamId};

use crate::backoff::Backoff;
use crate::policy::Policy;
use crate::types::{
    Counters, Detached, Key, Lease, Mode, Outcome, SeekNumber, TurnEnd, View, WalState, Woken,
};

/// The state cache.
#[derive(Debug)]
pub struct Cache {}

impl Cache {
    /// An empty cache. `seed` feeds the jitter of the back-off and nothing else.
    #[must_use]
    pub fn new(policy: Policy, backoff: Backoff, seed: u64) -> Self {
        let _ = (policy, backoff, seed);
        todo!()
    }

    /// With `Policy::Signal`: look at caught-up consumers every `every` all the same, and count what that finds.
    #[must_use]
    pub fn with_safety_poll(self, every: Duration) -> Self {
        let _ = every;
        todo!()
    }

    /// Makes a stream known.
    pub fn open_stream(&mut self, stream: StreamId, segments: &[(SegmentId, Seq)], open_segment: SegmentId) {
        let _ = (stream, segments, open_segment);
        todo!()
    }

    /// Forgets a stream and its consumers.
    pub fn close_stream(&mut self, stream: StreamId) {
        let _ = stream;
        todo!()
    }

    /// Registers a reader; due now.
    pub fn attach(&mut self, key: Key, cursor: Seq, mode: Mode, now: Instant) -> Woken {
        let _ = (key, cursor, mode, now);
        todo!()
    }

    /// Forgets a reader.
    pub fn detach(&mut self, key: Key) -> Detached {
        let _ = key;
        todo!()
    }

    /// A commit became readable: all caught-up consumers of the stream are due now.
    pub fn signal(&mut self, stream: StreamId, now: Instant) -> Woken {
        let _ = (stream, now);
        todo!()
    }

    /// The writer closed the open segment at `old_end` and will write `new_open` next.
    pub fn rotated(&mut self, stream: StreamId, old_end: Seq, new_open: SegmentId, now: Instant) -> Woken {
        let _ = (stream, old_end, new_open, now);
        todo!()
    }

    /// Segments below `below` are unlinked.
    pub fn retired(&mut self, stream: StreamId, below: SegmentId) {
        let _ = (stream, below);
        todo!()
    }

    /// Moves a reader; due now.
    pub fn seek(&mut self, key: Key, to: Seq, now: Instant) -> Woken {
        let _ = (key, to, now);
        todo!()
    }

    /// Settings or resume: due now, out of any back-off.
    pub fn kick(&mut self, key: Key, now: Instant) -> Woken {
        let _ = (key, now);
        todo!()
    }

    /// The oldest due pool turn.
    pub fn lease(&mut self, now: Instant, readable: &dyn Fn(StreamId) -> Seq) -> Option<Lease> {
        let _ = (now, readable);
        todo!()
    }

    /// The turn of one consumer, if it is due.
    pub fn lease_key(&mut self, key: Key, now: Instant, readable: &dyn Fn(StreamId) -> Seq) -> Option<Lease> {
        let _ = (key, now, readable);
        todo!()
    }

    /// Takes a lease back.
    pub fn end_turn(
        &mut self,
        lease: Lease,
        outcome: Outcome,
        now: Instant,
        asleep: &dyn Fn(StreamId) -> Seq,
    ) -> TurnEnd {
        let _ = (lease, outcome, now, asleep);
        todo!()
    }

    /// What became due by the passing of time alone. Whoever keeps the timer calls this when `next_due` has come: pool
    /// turns stay due (and are counted again) until they are leased, pull consumers are named once.
    pub fn wake_due(&mut self, now: Instant) -> Woken {
        let _ = now;
        todo!()
    }

    /// The earliest instant at which a pool turn, or a pull consumer not yet named, is due. In the past if one is.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        todo!()
    }

    /// How many pool turns are due. Linear in the answer.
    #[must_use]
    pub fn due_count(&self, now: Instant) -> usize {
        let _ = now;
        todo!()
    }

    /// Whether any pool turn is due.
    #[must_use]
    pub fn has_due(&self, now: Instant) -> bool {
        let _ = now;
        todo!()
    }

    /// The log as `key` sees it.
    #[must_use]
    pub fn state(&self, key: Key) -> Option<WalState> {
        let _ = key;
        todo!()
    }

    /// All about one consumer.
    #[must_use]
    pub fn view(&self, key: Key) -> Option<View> {
        let _ = key;
        todo!()
    }

    /// The number a lease or an ack of `key` must carry to count.
    #[must_use]
    pub fn seek_number(&self, key: Key) -> Option<SeekNumber> {
        let _ = key;
        todo!()
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        todo!()
    }
}
