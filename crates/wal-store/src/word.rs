//! The wake word of one batch: its outcome, and who waits for it. It is not a lock: after the wake-up nobody takes one.
//!
//! ```text
//!   WRITTEN, DURABLE, FAILED   the outcome; bits are only added; none: pending
//!   SLEEPERS                   a thread sleeps here, or is about to
//!   WAKERS                     a future's waker stands in `slow`, or is about to
//!   bits 8..                   kicks: changed to make sleepers look again although the outcome is the same
//! ```
//! Invariants: registering and testing again are one step (a sleeper sleeps only on the value it registered with;
//! a waker is stored under the lock under which the outcome is tested); a word is used again only when no ticket holds
//! it, so a ticket never sees another batch's outcome.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::shared::Shared;
use crate::sync::{Cell, Mutex, lock};
use crate::{CommitError, Level};

const PENDING: u32 = 0;
const WRITTEN: u32 = 1;
const DURABLE: u32 = 1 << 1;
const FAILED: u32 = 1 << 2;
const SLEEPERS: u32 = 1 << 3;
const WAKERS: u32 = 1 << 4;
const KICK: u32 = 1 << 8;

/// The outcome of one batch, and its waiters.
pub(crate) struct Word {
    state: Cell,
    slow: Mutex<Slow>,
    log: Weak<Shared>,
}

/// What only futures and failures need.
#[derive(Default)]
struct Slow {
    wakers: Vec<Waker>,
    /// Counts the times `wakers` was emptied, so that a ticket knows whether its place is still its own.
    round: u64,
    error: Option<CommitError>,
}

/// Where a future's waker stands, so that polling again replaces it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WakerPlace {
    round: u64,
    index: usize,
}

/// A registered sleeper's view of the word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered(u32);

impl Word {
    pub(crate) fn new(log: Weak<Shared>) -> Self {
        Self { state: Cell::new(PENDING), slow: Mutex::default(), log }
    }

    /// The log whose batch this is, if it still exists.
    pub(crate) fn log(&self) -> &Weak<Shared> {
        &self.log
    }

    /// Makes an unused word pending again, for another batch. `&mut` proves that no ticket holds it.
    pub(crate) fn reset(&mut self) {
        self.state.store(PENDING);
        let slow = &mut *lock(&self.slow);
        slow.error = None;
        slow.wakers.clear();
        slow.round += 1;
    }

    /// What is known for a ticket of this batch that waits for `level`.
    pub(crate) fn outcome(&self, level: Level) -> Option<Result<(), CommitError>> {
        self.read(self.state.load(), level)
    }

    /// Registers the calling thread; it must test [`Word::outcome`] again before it sleeps.
    pub(crate) fn register(&self) -> Registered {
        Registered(self.state.fetch_or(SLEEPERS) | SLEEPERS)
    }

    /// Sleeps unless anything happened since `registered`.
    pub(crate) fn sleep(&self, registered: Registered, timeout: Option<Duration>) {
        self.state.wait(registered.0, timeout);
    }

    /// Registers a future, unless the outcome is known: then that.
    pub(crate) fn register_waker(
        &self,
        place: &mut Option<WakerPlace>,
        level: Level,
        cx: &mut Context<'_>,
    ) -> Option<Result<(), CommitError>> {
        let mut slow = lock(&self.slow);
        let state = self.state.fetch_or(WAKERS);
        if reached(state, level) {
            return Some(Ok(()));
        }
        if state & FAILED != 0 {
            return Some(Err(slow.failure()));
        }
        let known = place.filter(|place| place.round == slow.round);
        match known.and_then(|place| slow.wakers.get_mut(place.index)) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => {
                *place = Some(WakerPlace { round: slow.round, index: slow.wakers.len() });
                slow.wakers.push(cx.waker().clone());
            }
        }
        None
    }

    /// Whether a thread sleeps here or is about to. It writes, so that it is ordered among the registrations: one that
    /// comes later finds the gate free.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.state.fetch_or(0) & SLEEPERS != 0
    }

    /// Makes one sleeper look again: it may commit now.
    pub(crate) fn kick_one(&self) {
        self.state.fetch_add(KICK);
        self.state.wake_one();
    }

    /// Makes everybody look again, futures too.
    pub(crate) fn kick_all(&self, scratch: &mut Vec<Waker>) {
        let before = self.state.fetch_add(KICK);
        self.wake(before, scratch);
    }

    /// The batch reached the operating system.
    pub(crate) fn written(&self, scratch: &mut Vec<Waker>) {
        self.settle(WRITTEN, scratch);
    }

    /// The batch is on the medium.
    pub(crate) fn durable(&self, scratch: &mut Vec<Waker>) {
        self.settle(DURABLE, scratch);
    }

    /// The batch was given up.
    pub(crate) fn failed(&self, error: CommitError, scratch: &mut Vec<Waker>) {
        lock(&self.slow).error = Some(error);
        self.settle(FAILED, scratch);
    }

    fn settle(&self, outcome: u32, scratch: &mut Vec<Waker>) {
        let before = self.state.fetch_or(outcome);
        self.wake(before, scratch);
    }

    fn wake(&self, before: u32, scratch: &mut Vec<Waker>) {
        if before & SLEEPERS != 0 {
            self.state.wake_all();
        }
        if before & WAKERS == 0 {
            return;
        }
        {
            let mut slow = lock(&self.slow);
            slow.round += 1;
            mem::swap(&mut slow.wakers, scratch);
        }
        for waker in scratch.drain(..) {
            // A waker is foreign code: whatever it does, the others are woken too.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    fn read(&self, state: u32, level: Level) -> Option<Result<(), CommitError>> {
        // A level once reached stays so, whatever became of the next.
        if reached(state, level) {
            return Some(Ok(()));
        }
        (state & FAILED != 0).then(|| Err(lock(&self.slow).failure()))
    }
}

impl Slow {
    fn failure(&self) -> CommitError {
        // The error is stored before FAILED is set.
        self.error.clone().unwrap_or(CommitError::Closed)
    }
}

fn reached(state: u32, level: Level) -> bool {
    match level {
        Level::Buffered => true,
        Level::Written => state & (WRITTEN | DURABLE) != 0,
        Level::Durable => state & DURABLE != 0,
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Word").field("state", &self.state.load()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "word_tests.rs"]
mod tests;
