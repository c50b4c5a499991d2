//! Time, as the shell sees it. Everything below the shell takes time as an argument; only threads ask a [`Clock`].
//! [`ManualClock`] is public so that users' tests need no sleeps either.
//!
//! Every sleep of the library is one call of [`Clock::sleep_until`], with a [`ClockWake`] to end it early. A wake that comes
//! before the sleep is kept, so none is lost between a check and a sleep.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Wake;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wal_format::{Instant, Now, WallTime};

/// A source of time, and a way to sleep by it.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Monotonic time since an origin of the clock's own.
    fn now(&self) -> Instant;

    /// Time of day; may jump either way, nothing depends on its order.
    fn wall(&self) -> WallTime;

    /// Blocks the calling thread until `due` (for ever if `None`) or until `wake` says so, whichever is first. May return early.
    fn sleep_until(&self, due: Option<Instant>, wake: &Arc<ClockWake>);

    /// Both times.
    fn both(&self) -> Now {
        Now { instant: self.now(), wall: self.wall() }
    }
}

/// What ends a [`Clock::sleep_until`] early. A wake before the sleep is kept. Also a [`std::task::Waker`].
#[derive(Debug, Default)]
pub struct ClockWake {
    permit: Mutex<bool>,
    woken: Condvar,
}

impl ClockWake {
    /// Nobody woken yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Ends the sleep that is on, or the next one.
    pub fn wake(&self) {
        *locked(&self.permit) = true;
        self.woken.notify_all();
    }

    /// Blocks until woken, at most `timeout`.
    fn wait(&self, timeout: Option<Duration>) {
        let mut permit = locked(&self.permit);
        if !*permit {
            permit = match timeout {
                None => self.woken.wait(permit).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    self.woken.wait_timeout(permit, timeout).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *permit = false;
    }
}

impl Wake for ClockWake {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
    /// Time of day less monotonic time, in nanoseconds, as of `looked_at`.
    offset: AtomicU64,
    looked_at: AtomicU64,
}

/// How old the offset of the time of day may be. Every append asks for both times; one look at the machine's clocks is half of two.
const OFFSET_AGE_MAX: Duration = Duration::from_millis(1);

impl SystemClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: std::time::Instant::now(),
            offset: AtomicU64::new(0),
            looked_at: AtomicU64::new(u64::MAX),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::ZERO.saturating_add(self.origin.elapsed())
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn sleep_until(&self, due: Option<Instant>, wake: &Arc<ClockWake>) {
        wake.wait(due.map(|due| due.saturating_since(self.now())));
    }

    fn both(&self) -> Now {
        let instant = self.now();
        let looked_at = self.looked_at.load(Ordering::Acquire);
        let age = instant.saturating_since(Instant::from_nanos(looked_at));
        if looked_at == u64::MAX || age > OFFSET_AGE_MAX {
            let wall = self.wall();
            self.offset.store(wall.nanos().wrapping_sub(instant.nanos()), Ordering::Release);
            self.looked_at.store(instant.nanos(), Ordering::Release);
            return Now { instant, wall };
        }
        let wall = self.offset.load(Ordering::Acquire).wrapping_add(instant.nanos());
        Now { instant, wall: WallTime::from_nanos(wall) }
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<Manual>,
}

#[derive(Debug)]
struct Manual {
    now: Instant,
    wall: WallTime,
    sleepers: Vec<(Instant, Weak<ClockWake>)>,
}

impl ManualClock {
    /// A clock at instant 0 and the given time of day.
    #[must_use]
    pub fn new(wall: WallTime) -> Self {
        Self { state: Mutex::new(Manual { now: Instant::ZERO, wall, sleepers: Vec::new() }) }
    }

    /// Moves both times ahead and wakes whoever was to sleep no longer than that.
    pub fn advance(&self, by: Duration) {
        let mut state = locked(&self.state);
        state.now = state.now.saturating_add(by);
        state.wall = WallTime::from_unix(state.wall.since_unix().saturating_add(by));
        let now = state.now;
        let (due, later) = state.sleepers.drain(..).partition(|(due, _)| *due <= now);
        state.sleepers = later;
        drop(state);
        for (_, sleeper) in due {
            if let Some(sleeper) = sleeper.upgrade() {
                sleeper.wake();
            }
        }
    }

    /// Sets the time of day alone, either way.
    pub fn set_wall(&self, wall: WallTime) {
        locked(&self.state).wall = wall;
    }

    /// How many sleeps with a due time are on or were cut short since the last `advance`.
    #[must_use]
    pub fn sleepers_count(&self) -> usize {
        locked(&self.state).sleepers.len()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(WallTime::EPOCH)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        locked(&self.state).now
    }

    fn wall(&self) -> WallTime {
        locked(&self.state).wall
    }

    fn sleep_until(&self, due: Option<Instant>, wake: &Arc<ClockWake>) {
        if let Some(due) = due {
            let mut state = locked(&self.state);
            if due <= state.now {
                return;
            }
            state.sleepers.retain(|(_, sleeper)| sleeper.upgrade().is_some_and(|s| !Arc::ptr_eq(&s, wake)));
            state.sleepers.push((due, Arc::downgrade(wake)));
        }
        wake.wait(None);
    }
}

#[cfg(all(test, not(loom)))]
#[path = "clock_tests.rs"]
mod tests;

/// Locks; a panic of another holder is no reason to stop, the values are plain.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
