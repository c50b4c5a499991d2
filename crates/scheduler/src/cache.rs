//! The state cache: for each (stream, consumer), when it is next worth a turn. It owns no time, no lock and no file;
//! its caller wraps it in one mutex and carries out what it returns after unlocking.
//!
//! ```text
//!          attach          lease              end_turn
//!   (none) ──────► due now ─────► leased ─┬─────────────► due now      more to read, drained, moved, dirty
//!             ▲       ▲                   ├─────────────► caught up    until a signal, a rotation or a poll
//!             │       └── signal, rotate, ┼───────────────┘
//!             │           seek, kick, time└─────────────► in back-off  until time, seek or kick
//! ```
//!
//! Invariants: at most one lease per key (I3); `open_segment` only grows, `reading` only grows but by seek (I4); a
//! consumer that sleeps reads the open segment and was told `readable_end` after `asleep` was set; every consumer but
//! a leased or a sleeping one stands in exactly one line of `due`.

mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use wal_format::{ConsumerId, Instant, SegmentId, Seq, StreamId};

use crate::backoff::{Backoff, Draws};
use crate::due::{Dues, Slot};
use crate::event::{Doing, Effect, Event, effect};
use crate::policy::Policy;
use crate::stream::StreamState;
use crate::turn::Note;
use crate::types::{Counters, Detached, Key, Mode, Phase, SeekNumber, View, WalState, Woken};

/// The state cache. See the crate's documentation for how to wrap it, and the picture there for a consumer's life.
///
/// Unknown keys and streams are not errors: whoever deletes a stream and whoever signals it need not agree first. Such
/// an operation does nothing. Every operation is O(log n) in consumers and segments but where it says otherwise.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Cache {
    policy: Policy,
    backoff: Backoff,
    safety_poll: Option<Duration>,
    draws: Draws,
    streams: BTreeMap<StreamId, StreamState>,
    consumers: BTreeMap<Key, Consumer>,
    dues: Dues,
    last_seek: u64,
    counters: Counters,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Consumer {
    mode: Mode,
    reading: SegmentId,
    /// The next seq to read.
    at: Seq,
    seek_number: SeekNumber,
    failures: u32,
    standing: Standing,
    /// The stream's signal count when the safety poll, and nothing else, started this turn and found something.
    found_by_poll: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Standing {
    Due(Slot),
    CaughtUp(Option<Slot>),
    BackOff(Slot),
    Leased(Note),
}

impl Consumer {
    const fn doing(&self) -> Doing {
        match self.standing {
            Standing::Due(_) => Doing::Due,
            Standing::CaughtUp(_) => Doing::CaughtUp,
            Standing::BackOff(_) => Doing::BackOff,
            Standing::Leased(note) => Doing::Leased(note),
        }
    }

    fn phase(&self) -> Phase {
        match self.standing {
            Standing::Due(slot) => Phase::Due(slot.at),
            Standing::CaughtUp(slot) => Phase::CaughtUp(slot.map(|slot| slot.at)),
            Standing::BackOff(slot) => Phase::BackOff { until: slot.at, failures: self.failures },
            Standing::Leased(_) => Phase::Leased,
        }
    }

    const fn is_leaving(&self) -> bool {
        matches!(self.standing, Standing::Leased(Note::Leaving))
    }
}

impl Woken {
    fn add(&mut self, key: Key, mode: Mode) {
        match mode {
            Mode::Pool => self.pool_count += 1,
            Mode::Pull => self.pull.push(key),
        }
    }

    fn merge(&mut self, mut other: Self) {
        self.pool_count += other.pool_count;
        self.pull.append(&mut other.pull);
    }
}

impl Cache {
    /// An empty cache. `seed` feeds the jitter of the back-off and nothing else.
    #[must_use]
    pub fn new(policy: Policy, backoff: Backoff, seed: u64) -> Self {
        Self {
            policy,
            backoff,
            safety_poll: None,
            draws: Draws::new(seed),
            streams: BTreeMap::new(),
            consumers: BTreeMap::new(),
            dues: Dues::default(),
            last_seek: 0,
            counters: Counters::default(),
        }
    }

    /// With [`Policy::Signal`], looks at caught-up consumers every `every` all the same and counts what that finds, see
    /// [`Counters::safety_find_count`]. Shorter than 1 ms counts as 1 ms. Changes nothing with [`Policy::Poll`].
    #[must_use]
    pub const fn with_safety_poll(mut self, every: Duration) -> Self {
        self.safety_poll = Some(every);
        self
    }

    /// Makes a stream known: its rotated segments with their final, exclusive ends, ascending, and the segment that is
    /// being written or will be at the first append. Opening an open stream again changes nothing.
    pub fn open_stream(&mut self, stream: StreamId, segments: &[(SegmentId, Seq)], open_segment: SegmentId) {
        self.streams.entry(stream).or_insert_with(|| StreamState::new(segments, open_segment));
    }

    /// Forgets a stream and its consumers, those with a lease when their turn ends. Linear in its consumers.
    pub fn close_stream(&mut self, stream: StreamId) {
        let all = Key::new(stream, ConsumerId::new(0))..=Key::new(stream, ConsumerId::new(u64::MAX));
        let keys: Vec<Key> = self.consumers.range(all).map(|(&key, _)| key).collect();
        for key in keys {
            let _ = self.detach(key);
        }
        self.streams.remove(&stream);
    }

    /// Registers a reader whose next record is `cursor`. It is due now, so that it finds what is there already.
    ///
    /// Attaching a key again moves it like [`seek`](Self::seek). If a lease of an earlier attachment is still out, the
    /// first turn waits for its end, whose outcome counts for nothing. On an unknown stream nothing happens.
    pub fn attach(&mut self, key: Key, cursor: Seq, mode: Mode, now: Instant) -> Woken {
        let mut woken = Woken::default();
        let Some(stream) = self.streams.get(&key.stream) else { return woken };
        let reading = stream.segment_of(cursor);
        let seek_number = self.next_seek_number();
        let leased =
            self.consumers.get(&key).map(Consumer::doing).is_some_and(|d| matches!(d, Doing::Leased(_)));
        if !leased {
            self.forget(key);
        }
        let standing = if leased {
            Standing::Leased(Note::Dirty)
        } else {
            woken.add(key, mode);
            Standing::Due(self.dues.mark(key, mode, now))
        };
        let consumer =
            Consumer { mode, reading, at: cursor, seek_number, failures: 0, standing, found_by_poll: None };
        self.consumers.insert(key, consumer);
        woken
    }

    /// Forgets a reader, at once or, if its lease is out, when the turn ends. The answer says which.
    pub fn detach(&mut self, key: Key) -> Detached {
        let Some(consumer) = self.consumers.get(&key).filter(|c| !c.is_leaving()) else {
            return Detached::Unknown;
        };
        let after_turn = matches!(consumer.standing, Standing::Leased(_));
        let _ = self.apply(Event::Leave, key, Instant::ZERO);
        if after_turn { Detached::AfterTurn } else { Detached::Forgotten }
    }

    /// A commit became readable: *all* caught-up consumers of the stream are due now. Others see it at the end of their
    /// turn, or when their back-off is over. Linear in those made due.
    pub fn signal(&mut self, stream: StreamId, now: Instant) -> Woken {
        self.wake_caught_up(Event::Signal, stream, now)
    }

    /// The writer closed the open segment: its final, exclusive end is `old_end`, the next one is `new_open`, and the
    /// caught-up consumers are due now.
    ///
    /// Call it after `old_end` was published as `readable_end` and before the first batch of `new_open` is. An id that
    /// does not grow changes nothing.
    pub fn rotated(&mut self, stream: StreamId, old_end: Seq, new_open: SegmentId, now: Instant) -> Woken {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.rotate(old_end, new_open);
        }
        self.wake_caught_up(Event::Rotate, stream, now)
    }

    /// Segments below `below` are unlinked; their ends are forgotten. A consumer that had read one of them to its end
    /// without another turn yet goes on to the next at its next lease.
    pub fn retired(&mut self, stream: StreamId, below: SegmentId) {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.retire(below);
        }
    }

    /// Moves a reader to `to`, forwards or backwards, and raises its seek number: a lease that is out counts for
    /// nothing. Due now, out of any back-off; the count of failures starts again.
    pub fn seek(&mut self, key: Key, to: Seq, now: Instant) -> Woken {
        let seek_number = self.next_seek_number();
        let Some(stream) = self.streams.get(&key.stream) else { return Woken::default() };
        let Some(consumer) = self.consumers.get_mut(&key).filter(|c| !c.is_leaving()) else {
            return Woken::default();
        };
        consumer.at = to;
        consumer.reading = stream.segment_of(to);
        consumer.seek_number = seek_number;
        consumer.failures = 0;
        self.apply(Event::Kick, key, now)
    }

    /// Settings changed, or the consumer was resumed: due now, out of any back-off, whatever the outcome of a turn that
    /// is running; the count of failures starts again.
    pub fn kick(&mut self, key: Key, now: Instant) -> Woken {
        let Some(consumer) = self.consumers.get_mut(&key).filter(|c| !c.is_leaving()) else {
            return Woken::default();
        };
        consumer.failures = 0;
        self.apply(Event::Kick, key, now)
    }

    /// The log as `key` sees it; `None` if it is not attached.
    #[must_use]
    pub fn state(&self, key: Key) -> Option<WalState> {
        self.view(key).map(|view| view.state)
    }

    /// All about one consumer; `None` if it is not attached.
    #[must_use]
    pub fn view(&self, key: Key) -> Option<View> {
        let consumer = self.consumers.get(&key).filter(|c| !c.is_leaving())?;
        let phase = consumer.phase();
        let state = if consumer.reading < self.streams.get(&key.stream)?.open() {
            WalState::Rotated
        } else {
            WalState::NextReadAt(match phase {
                Phase::Due(at) | Phase::BackOff { until: at, .. } => Some(at),
                Phase::CaughtUp(at) => at,
                Phase::Leased => None,
            })
        };
        let &Consumer { reading, at, seek_number, failures, .. } = consumer;
        Some(View { phase, state, reading, at, seek_number, failures })
    }

    /// The number that a lease or an ack of `key` must carry to count.
    #[must_use]
    pub fn seek_number(&self, key: Key) -> Option<SeekNumber> {
        self.view(key).map(|view| view.seek_number)
    }

    /// The segment of `stream` that is being written or will be.
    #[must_use]
    pub fn open_segment(&self, stream: StreamId) -> Option<SegmentId> {
        self.streams.get(&stream).map(StreamState::open)
    }

    /// What was counted since the cache was made.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    fn wake_caught_up(&mut self, event: Event, stream: StreamId, now: Instant) -> Woken {
        let mut woken = Woken::default();
        let Some(state) = self.streams.get_mut(&stream) else { return woken };
        state.signal_count += 1;
        for consumer in std::mem::take(&mut state.caught_up) {
            woken.merge(self.apply(event, Key::new(stream, consumer), now));
        }
        woken
    }

    /// Carries out the table of events for one consumer.
    fn apply(&mut self, event: Event, key: Key, now: Instant) -> Woken {
        let mut woken = Woken::default();
        let Some(consumer) = self.consumers.get_mut(&key) else { return woken };
        match effect(event, consumer.doing()) {
            Effect::Unchanged => {}
            Effect::Leave(note) => consumer.standing = Standing::Leased(note),
            Effect::Forget => self.forget(key),
            Effect::DueNow => self.make_due(key, now, &mut woken),
        }
        woken
    }

    /// Due now, from whatever it was doing.
    fn make_due(&mut self, key: Key, now: Instant, woken: &mut Woken) {
        self.leave_line(key);
        if let Some(consumer) = self.consumers.get_mut(&key) {
            consumer.standing = Standing::Due(self.dues.mark(key, consumer.mode, now));
            woken.add(key, consumer.mode);
        }
    }

    fn forget(&mut self, key: Key) {
        self.leave_line(key);
        self.consumers.remove(&key);
    }

    /// Takes a consumer out of the line its standing put it in. The standing must be set anew.
    fn leave_line(&mut self, key: Key) {
        match self.consumers.get(&key).map(|consumer| consumer.standing) {
            None | Some(Standing::Leased(_)) => {}
            Some(Standing::Due(slot) | Standing::BackOff(slot)) => self.dues.remove(key, slot),
            Some(Standing::CaughtUp(slot)) => {
                if let Some(slot) = slot {
                    self.dues.remove(key, slot);
                }
                if let Some(stream) = self.streams.get_mut(&key.stream) {
                    stream.caught_up.remove(&key.consumer);
                }
            }
        }
    }

    const fn next_seek_number(&mut self) -> SeekNumber {
        self.last_seek += 1;
        SeekNumber::new(self.last_seek)
    }
}

#[cfg(test)]
mod tests;
