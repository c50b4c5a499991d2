//! The gate of a log: at most one thread commits at a time. It is a lock that may be given up by another thread's
//! look: a waiter that finds it taken registers on its batch's word and tries once more before it sleeps, and whoever
//! leaves the gate looks for registered waiters afterwards. One of the two sees the other, so nobody is left asleep.
//!
//! ```text
//!   waiter: register on the word ─► try the gate ─(taken)─► sleep on the word
//!   holder: leave the gate ─► look at the words not yet resolved ─► wake one that is registered
//! ```

use crate::sync::Cell;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WANTED: u32 = 2;

/// Exclusive right to commit.
#[derive(Debug)]
pub(crate) struct Gate(Cell);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Cell::new(FREE))
    }

    /// Takes it if it is free.
    pub(crate) fn try_enter(&self) -> bool {
        self.0.replace(FREE, TAKEN).is_ok()
    }

    /// Takes it, sleeping while another thread commits.
    pub(crate) fn enter(&self) {
        if self.try_enter() {
            return;
        }
        while self.0.swap(WANTED) != FREE {
            self.0.wait(WANTED, None);
        }
    }

    /// Gives it back and wakes one thread that waits to enter.
    pub(crate) fn leave(&self) {
        if self.0.swap(FREE) == WANTED {
            self.0.wake_one();
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
