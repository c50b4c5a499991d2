//! When a sleeping thread is needed next. Anybody may make it earlier; only its owner disarms it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wal_format::Instant;

use crate::clock::ClockWake;

/// A due time somebody sleeps for, moved earlier by anybody.
#[derive(Debug)]
pub(crate) struct Alarm {
    due: AtomicU64,
    requested: AtomicBool,
    pub(crate) wake: Arc<ClockWake>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { due: AtomicU64::new(u64::MAX), requested: AtomicBool::new(false), wake: ClockWake::new() }
    }

    /// To ring at `due` at the latest.
    pub(crate) fn arm(&self, due: Instant) {
        if self.due.fetch_min(due.nanos(), Ordering::SeqCst) > due.nanos() {
            self.wake.wake();
        }
    }

    /// To ring when its owner thinks fit; the owner is told once.
    pub(crate) fn request(&self) {
        if !self.requested.load(Ordering::Relaxed) && !self.requested.swap(true, Ordering::SeqCst) {
            self.wake.wake();
        }
    }

    /// Whether somebody asked.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    /// Whether somebody asked since the last call.
    pub(crate) fn take_request(&self) -> bool {
        self.requested.swap(false, Ordering::SeqCst)
    }

    /// When it rings; `None`: it is not armed.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.due.load(Ordering::SeqCst) {
            u64::MAX => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }

    /// Whether it rings now; disarms it if so.
    pub(crate) fn take(&self, now: Instant) -> bool {
        self.due
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |due| (due <= now.nanos()).then_some(u64::MAX))
            .is_ok()
    }
}
