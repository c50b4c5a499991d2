//! Who is due when, in order. Not why: the cache knows that.
//!
//! ```text
//!   ready    pool turns that were marked due          oldest first, leasable whatever the caller's `now`
//!   timed    pool turns due at an instant to come     polls, back-off
//!   waiting  pull consumers due at an instant to come until their caller was told
//! ```
//!
//! `ready` does not compare with the clock: two threads read it before they take the lock, in either order, and a turn
//! marked at 100 must not be missed by a worker that looked at its watch at 99 and is about to park.
//!
//! Every operation is O(log n) but the count.

use std::collections::BTreeSet;
use std::ops::Bound;

use wal_format::{ConsumerId, Instant, StreamId};

use crate::types::{Key, Mode};

/// A place in the order: by instant, then by who came first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot {
    pub(crate) at: Instant,
    order: u64,
}

type Line = BTreeSet<(Slot, Key)>;

const KEY_MAX: Key = Key::new(StreamId::new(u64::MAX), ConsumerId::new(u64::MAX));

#[derive(Default, Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Dues {
    ready: Line,
    timed: Line,
    waiting: Line,
    order: u64,
}

impl Dues {
    /// A turn is worth it now. A pull consumer has no place in line: its caller is told by the return value of the
    /// operation that made it due.
    pub(crate) fn mark(&mut self, key: Key, mode: Mode, now: Instant) -> Slot {
        let slot = self.slot(now);
        if mode == Mode::Pool {
            self.ready.insert((slot, key));
        }
        slot
    }

    /// A turn is worth it at `at`.
    pub(crate) fn schedule(&mut self, key: Key, mode: Mode, at: Instant) -> Slot {
        let slot = self.slot(at);
        match mode {
            Mode::Pool => self.timed.insert((slot, key)),
            Mode::Pull => self.waiting.insert((slot, key)),
        };
        slot
    }

    /// Takes `key` out of whatever line it stands in.
    pub(crate) fn remove(&mut self, key: Key, slot: Slot) {
        let place = (slot, key);
        let _ = self.ready.remove(&place) || self.timed.remove(&place) || self.waiting.remove(&place);
    }

    /// The pool turn that has been due longest.
    pub(crate) fn oldest(&self, now: Instant) -> Option<Key> {
        let timed = self.timed.first().filter(|(slot, _)| slot.at <= now);
        [self.ready.first(), timed].into_iter().flatten().min().map(|&(_, key)| key)
    }

    /// The pull consumers whose time has come and who were not told yet.
    pub(crate) fn told(&mut self, now: Instant) -> Vec<Key> {
        let mut keys = Vec::new();
        while let Some(&(slot, key)) = self.waiting.first() {
            if slot.at > now {
                break;
            }
            self.waiting.pop_first();
            keys.push(key);
        }
        keys
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let firsts = [self.ready.first(), self.timed.first(), self.waiting.first()];
        firsts.into_iter().flatten().map(|(slot, _)| slot.at).min()
    }

    /// The first instant that needs a timer: of the pool's turns one that is not due yet, of the pull consumers one that
    /// was not told yet.
    pub(crate) fn next_timer(&self, now: Instant) -> Option<Instant> {
        let passed = (Bound::Excluded((Slot { at: now, order: u64::MAX }, KEY_MAX)), Bound::Unbounded);
        let firsts = [self.timed.range(passed).next(), self.waiting.first()];
        firsts.into_iter().flatten().map(|(slot, _)| slot.at).min()
    }

    pub(crate) fn count(&self, now: Instant) -> usize {
        self.ready.len() + self.timed.iter().take_while(|(slot, _)| slot.at <= now).count()
    }

    /// How many stand in any line.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.timed.len() + self.waiting.len()
    }

    const fn slot(&mut self, at: Instant) -> Slot {
        self.order += 1;
        Slot { at, order: self.order }
    }
}
