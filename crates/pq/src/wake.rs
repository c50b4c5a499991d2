//! The wake-up cell of one stream: how its writer learns, without a lock, whether a reader went to sleep.
//!
//! It is not the scheduler: who sleeps, and who is due, stands in the cache. Here are one number and one flag.
//!
//! ```text
//!   reader, under the cache's lock          writer
//!   asleep := true                          readable := end
//!   fence                                   fence
//!   end := readable                         if asleep.swap(false):
//!   due now if end moved above what it read     under the cache's lock: mark all caught-up consumers
//! ```
//!
//! Invariants: a reader never clears `asleep`; at least one of the two sees the other. So a busy stream costs no lock, and no
//! wake-up is lost. Checked under loom (`wake_loom.rs`).

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// `readable_end` of a stream, and whether somebody sleeps on it.
#[derive(Debug)]
pub(crate) struct Cell {
    readable: AtomicU64,
    asleep: AtomicBool,
}

impl Cell {
    /// A cell of a stream readable up to `end`, nobody asleep.
    pub(crate) fn new(end: u64) -> Self {
        Self { readable: AtomicU64::new(end), asleep: AtomicBool::new(false) }
    }

    /// Writer: readers may see up to `end`. `true`: the caller must now mark all caught-up consumers.
    #[must_use]
    pub(crate) fn publish(&self, end: u64) -> bool {
        self.readable.fetch_max(end, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        // The load keeps a busy stream from writing to the line at each commit.
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel)
    }

    /// Writer: what stood at or above `end` is given up. Whoever is asleep stays so; who is not finds nothing there.
    pub(crate) fn fall_back(&self, end: u64) {
        self.readable.fetch_min(end, Ordering::AcqRel);
    }

    /// Reader, under the cache's lock, about to sleep: the end it must compare with what it read.
    #[must_use]
    pub(crate) fn fall_asleep(&self) -> u64 {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.readable.load(Ordering::Acquire)
    }

    /// How far readers may see.
    #[must_use]
    pub(crate) fn readable(&self) -> u64 {
        self.readable.load(Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
#[path = "wake_loom.rs"]
mod loom_tests;

#[cfg(all(test, not(loom)))]
#[path = "wake_tests.rs"]
mod tests;
