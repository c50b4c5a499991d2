//! A line of those who wait for something to be given back: threads and futures, all woken by each release.
//!
//! ```text
//!   waiter:   register ─► try again ─► sleep, or return pending
//!   releaser: give back ─► advance: anybody registered? ─► change the count, wake all
//! ```
//!
//! Invariant: a waiter registers, then tries again, then sleeps; so no release between is missed.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::sync::{Cell, Mutex, lock};

const WAITERS: u32 = 1;
const STEP: u32 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    /// Counts releases in steps of two; the lowest bit says that somebody waits.
    released: Cell,
    wakers: Mutex<Vec<Waker>>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { released: Cell::new(0), wakers: Mutex::new(Vec::new()) }
    }

    /// Something was given back: wakes whoever waits.
    pub(crate) fn advance(&self) {
        if self.released.load() & WAITERS == 0 {
            return;
        }
        let wakers = {
            let mut wakers = lock(&self.wakers);
            // Cleared under the lock under which futures register; threads register again on each turn.
            let now = self.released.load();
            self.released.store((now & !WAITERS).wrapping_add(STEP));
            mem::take(&mut *wakers)
        };
        self.released.wake_all();
        for waker in wakers {
            // A waker is foreign code: whatever it does, the others are woken too.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// Registers the calling thread: try again, then [`Line::sleep`] with what this returned.
    pub(crate) fn register(&self) -> u32 {
        let _wakers = lock(&self.wakers);
        self.released.fetch_or(WAITERS) | WAITERS
    }

    /// Sleeps unless something was given back since `registered`.
    pub(crate) fn sleep(&self, registered: u32) {
        self.released.wait(registered, None);
    }

    /// Registers a future: try again after this.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        let mut wakers = lock(&self.wakers);
        self.released.fetch_or(WAITERS);
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}
