//! Turns: who may read next, and what follows when a turn ends. The rules are the table in `turn`.

use wal_format::{Instant, Seq, StreamId};

use super::{Cache, Standing};
use crate::policy::{Policy, next_poll};
use crate::turn::{Age, Next, Note, Place, end_of_turn};
use crate::types::{Bound, Key, Lease, Outcome, TurnEnd, Woken};

impl Cache {
    /// The pool turn that has been due longest, if any is due.
    ///
    /// `readable` loads `readable_end` of a stream. It is called at most once, for a consumer of the open segment; that
    /// this happens under the caller's lock is what makes the lease's bound lie in the segment.
    pub fn lease(&mut self, now: Instant, readable: &dyn Fn(StreamId) -> Seq) -> Option<Lease> {
        let key = self.dues.oldest(now)?;
        self.take(key, readable)
    }

    /// The turn of one consumer, of either mode, if it is due and not leased. `readable` as for [`lease`](Self::lease).
    pub fn lease_key(&mut self, key: Key, now: Instant, readable: &dyn Fn(StreamId) -> Seq) -> Option<Lease> {
        let due = match self.consumers.get(&key)?.standing {
            Standing::Due(_) => true,
            Standing::CaughtUp(slot) => slot.is_some_and(|slot| slot.at <= now),
            Standing::BackOff(slot) => slot.at <= now,
            Standing::Leased(_) => false,
        };
        if due { self.take(key, readable) } else { None }
    }

    /// Takes a lease back and decides when its consumer is due next.
    ///
    /// `asleep` is called at most once, and only when the consumer is about to fall asleep. Under [`Policy::Signal`] it
    /// must, in this order, **set** the stream's `asleep` flag, **fence**, and **load** `readable_end`; see the wake-up
    /// cell in the crate's documentation. Under [`Policy::Poll`] a plain load will do.
    pub fn end_turn(
        &mut self,
        lease: Lease,
        outcome: Outcome,
        now: Instant,
        asleep: &dyn Fn(StreamId) -> Seq,
    ) -> TurnEnd {
        let Some(consumer) = self.consumers.get_mut(&lease.key) else { return TurnEnd::default() };
        let Standing::Leased(note) = consumer.standing else {
            debug_assert!(false, "a lease that is not out was returned");
            return TurnEnd::default();
        };
        let age = if lease.seek_number == consumer.seek_number { Age::Current } else { Age::Older };
        let place = match self.streams.get(&lease.key.stream) {
            Some(stream) if consumer.reading == stream.open() => Place::AtOpen,
            _ => Place::Behind,
        };
        let next = end_of_turn(note, age, lease.bound, outcome, place);
        let found_by_poll = consumer.found_by_poll.take();
        if !matches!(next, Next::Forget | Next::Void) {
            consumer.at = read_to(&lease, outcome);
            consumer.failures = failures_after(consumer.failures, &lease, outcome, note);
            self.count_find(lease.key.stream, found_by_poll);
        }
        self.counters.failed_count += u64::from(matches!(outcome, Outcome::Failed { .. }));
        self.carry_out(next, &lease, outcome, now, asleep)
    }

    /// What became due by the passing of time alone. Whoever keeps the timer calls this when [`next_due`](Self::next_due)
    /// or [`next_timer`](Self::next_timer) has come. Pull consumers are named once; pool turns are all that are due, told before or not. Linear in both.
    pub fn wake_due(&mut self, now: Instant) -> Woken {
        let mut woken = Woken::default();
        for key in self.dues.told(now) {
            self.suspect(key);
            self.make_due(key, now, &mut woken);
        }
        woken.pool_count = self.due_count(now);
        woken
    }

    /// The earliest instant at which a pool turn is due, or a pull consumer that nobody told yet. It lies in the past if
    /// one is due already. `None`: an idle queue. For a single-threaded driver; threads want
    /// [`next_timer`](Self::next_timer).
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.dues.next()
    }

    /// The earliest instant for which somebody must keep a timer, because time alone will make someone due: unlike
    /// [`next_due`](Self::next_due) it does not see the pool's turns that are due at `now`, which the workers take one
    /// after the other, so a busy pool does not hide a back-off that ends. It lies in the past only if a pull consumer
    /// waits for [`wake_due`](Self::wake_due). `None`: no timer is needed.
    #[must_use]
    pub fn next_timer(&self, now: Instant) -> Option<Instant> {
        self.dues.next_timer(now)
    }

    /// How many pool turns are due. Linear in those that came due by time; to know whether any is,
    /// [`has_due`](Self::has_due) is cheap.
    #[must_use]
    pub fn due_count(&self, now: Instant) -> usize {
        self.dues.count(now)
    }

    /// Whether a pool turn is due.
    #[must_use]
    pub fn has_due(&self, now: Instant) -> bool {
        self.dues.oldest(now).is_some()
    }

    fn take(&mut self, key: Key, readable: &dyn Fn(StreamId) -> Seq) -> Option<Lease> {
        let stream = self.streams.get(&key.stream)?;
        let consumer = self.consumers.get_mut(&key)?;
        let (reading, end) = stream.at_or_after(consumer.reading);
        consumer.reading = reading;
        let bound = match end {
            Some(end) => Bound::Rotated { end },
            None => Bound::Open { to: readable(key.stream) },
        };
        let lease = Lease { key, reading, from: consumer.at, bound, seek_number: consumer.seek_number };
        self.suspect(key);
        self.leave_line(key);
        let consumer = self.consumers.get_mut(&key)?;
        consumer.standing = Standing::Leased(Note::Clean);
        if lease.is_empty() {
            consumer.found_by_poll = None;
            self.counters.empty_lease_count += 1;
        }
        self.counters.lease_count += 1;
        Some(lease)
    }

    fn carry_out(
        &mut self,
        next: Next,
        lease: &Lease,
        outcome: Outcome,
        now: Instant,
        asleep: &dyn Fn(StreamId) -> Seq,
    ) -> TurnEnd {
        let key = lease.key;
        let mut completed = None;
        match next {
            Next::Forget => {
                self.consumers.remove(&key);
                return TurnEnd::default();
            }
            Next::Void => self.counters.void_count += 1,
            Next::DueNow => {}
            Next::Complete => {
                self.go_on_from(lease);
                self.counters.completed_count += 1;
                completed = Some(lease.reading);
            }
            Next::SleepUnlessMoved => {
                let read_to = lease.from.max(lease.bound.end());
                if asleep(key.stream) <= read_to {
                    return self.fall_asleep(key, now);
                }
            }
            Next::BackOff => return self.back_off(key, outcome, now),
        }
        let mut woken = Woken::default();
        self.make_due(key, now, &mut woken);
        TurnEnd { woken, completed, due: Some(now) }
    }

    fn go_on_from(&mut self, lease: &Lease) {
        if let (Some(stream), Some(consumer)) =
            (self.streams.get(&lease.key.stream), self.consumers.get_mut(&lease.key))
        {
            consumer.reading = stream.after(lease.reading);
        }
    }

    fn fall_asleep(&mut self, key: Key, now: Instant) -> TurnEnd {
        let every = match self.policy {
            Policy::Signal => self.safety_poll,
            Policy::Poll { push_back } => Some(push_back),
        };
        let due = every.map(|every| next_poll(now, every));
        if let (Some(consumer), Some(stream)) =
            (self.consumers.get_mut(&key), self.streams.get_mut(&key.stream))
        {
            let slot = due.map(|at| self.dues.schedule(key, consumer.mode, at));
            consumer.standing = Standing::CaughtUp(slot);
            stream.caught_up.insert(key.consumer);
        }
        TurnEnd { due, ..TurnEnd::default() }
    }

    fn back_off(&mut self, key: Key, outcome: Outcome, now: Instant) -> TurnEnd {
        let Some(consumer) = self.consumers.get_mut(&key) else { return TurnEnd::default() };
        let retry_at = self.backoff.retry_at(now, consumer.failures, self.draws.draw());
        let until = match outcome {
            Outcome::Failed { wait_min, .. } => retry_at.max(now.saturating_add(wait_min)),
            Outcome::MoreToRead { .. } | Outcome::AtBound => retry_at,
        };
        consumer.standing = Standing::BackOff(self.dues.schedule(key, consumer.mode, until));
        TurnEnd { due: Some(until), ..TurnEnd::default() }
    }

    /// Remembers, of a consumer that is asleep and only by its poll due, how often the writer had spoken up by now.
    fn suspect(&mut self, key: Key) {
        if let (Policy::Signal, Some(stream), Some(consumer)) =
            (self.policy, self.streams.get(&key.stream), self.consumers.get_mut(&key))
            && matches!(consumer.standing, Standing::CaughtUp(_))
        {
            consumer.found_by_poll = Some(stream.signal_count);
        }
    }

    /// Counts a find of the safety poll for which the writer has still not spoken up.
    fn count_find(&mut self, stream: StreamId, found_by_poll: Option<u64>) {
        let spoken = self.streams.get(&stream).map(|stream| stream.signal_count);
        if found_by_poll.is_some() && found_by_poll == spoken {
            self.counters.safety_find_count += 1;
        }
    }
}

/// The next seq to read. An outcome outside the lease is a bug of the caller; no record is skipped for it.
fn read_to(lease: &Lease, outcome: Outcome) -> Seq {
    let end = lease.from.max(lease.bound.end());
    match outcome {
        Outcome::AtBound => end,
        Outcome::MoreToRead { at } | Outcome::Failed { at, .. } => {
            debug_assert!(lease.from <= at && at <= end, "a turn reads within its lease");
            at.clamp(lease.from, end)
        }
    }
}

fn failures_after(before: u32, lease: &Lease, outcome: Outcome, note: Note) -> u32 {
    match outcome {
        // Settings changed or the consumer was resumed: what failed under the old ones says nothing.
        Outcome::Failed { .. } if note == Note::Dirty => 0,
        Outcome::Failed { at, .. } if at > lease.from => 1,
        Outcome::Failed { .. } => before.saturating_add(1),
        Outcome::MoreToRead { .. } | Outcome::AtBound => 0,
    }
}
