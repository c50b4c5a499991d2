//! Time, as the shell sees it. Everything below the shell takes time as an argument; only threads ask a [`Clock`].
//! [`ManualClock`] is public so that users' tests need no sleeps either.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Instant, WallTime};

/// A source of time, and a way to sleep by it.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Monotonic time since an origin of the clock's own.
    fn now(&self) -> Instant;
    /// Time of day; may jump either way, nothing depends on its order.
    fn wall(&self) -> WallTime;
    /// Blocks the calling thread until `due` (for ever if `None`) or until `wake` says so, whichever is first.
    fn sleep_until(&self, due: Option<Instant>, wake: &Arc<ClockWake>);
}

/// What ends a [`Clock::sleep_until`] early. A wake before the sleep is kept.
#[derive(Debug, Default)]
pub struct ClockWake {}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock {}

impl SystemClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        todo!()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        todo!()
    }
    fn wall(&self) -> WallTime {
        todo!()
    }
    fn sleep_until(&self, _due: Option<Instant>, _wake: &Arc<ClockWake>) {
        todo!()
    }
}

/// A clock that moves only when told to.
#[derive(Debug, Default)]
pub struct ManualClock {}

impl ManualClock {
    /// A clock at instant 0 and the given time of day.
    #[must_use]
    pub fn new(_wall: WallTime) -> Self {
        todo!()
    }
    /// Moves both times ahead and wakes whoever was to sleep no longer than that.
    pub fn advance(&self, _by: Duration) {
        todo!()
    }
    /// Sets the time of day alone, either way.
    pub fn set_wall(&self, _wall: WallTime) {
        todo!()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        todo!()
    }
    fn wall(&self) -> WallTime {
        todo!()
    }
    fn sleep_until(&self, _due: Option<Instant>, _wake: &Arc<ClockWake>) {
        todo!()
    }
}
