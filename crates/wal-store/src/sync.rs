//! The crate's blocking primitives, in one place: std and futexes on Linux, a lock and a condition variable elsewhere
//! and under `cfg(loom)`. Nothing else in the crate names one; plain atomics are no blocking primitives.
//!
//! Invariant: [`Cell::wait`] never sleeps once the cell's value differs from the expected one, and a value changed
//! before [`Cell::wake_all`] is seen by everybody it wakes; so change first, wake second, and no wake-up is lost.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, Ordering},
};
#[cfg(all(not(loom), target_os = "linux"))]
use std::time::Duration;

/// Gives the processor to whoever else may run.
pub(crate) fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// Locks, ignoring poison: what these locks guard is consistent at every point where code of others could panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A 32-bit value threads can sleep on.
#[derive(Debug)]
pub(crate) struct Cell {
    value: AtomicU32,
    #[cfg(any(loom, not(target_os = "linux")))]
    sleepers: fallback::Sleepers,
}

/// All operations are sequentially consistent: registration and release meet as in Dekker's algorithm (see `gate.rs`).
impl Cell {
    pub(crate) fn new(value: u32) -> Self {
        Self {
            value: AtomicU32::new(value),
            #[cfg(any(loom, not(target_os = "linux")))]
            sleepers: fallback::Sleepers::new(),
        }
    }

    pub(crate) fn load(&self) -> u32 {
        self.value.load(Ordering::SeqCst)
    }

    pub(crate) fn store(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
    }

    pub(crate) fn swap(&self, value: u32) -> u32 {
        self.value.swap(value, Ordering::SeqCst)
    }

    pub(crate) fn fetch_or(&self, bits: u32) -> u32 {
        self.value.fetch_or(bits, Ordering::SeqCst)
    }

    /// Wraps around.
    pub(crate) fn fetch_add(&self, count: u32) -> u32 {
        self.value.fetch_add(count, Ordering::SeqCst)
    }

    pub(crate) fn replace(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.value.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }
}

#[cfg(all(not(loom), target_os = "linux"))]
impl Cell {
    /// Sleeps while the value is `expected`, at most `timeout`. May return early for no reason: test again.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        use rustix::thread::futex;
        let timeout = timeout.and_then(|wait| rustix::time::Timespec::try_from(wait).ok());
        // Every error (changed value, interrupted, timed out) means the same here: look again.
        let _ = futex::wait(&self.value, futex::Flags::PRIVATE, expected, timeout.as_ref());
    }

    /// Wakes one sleeper.
    pub(crate) fn wake_one(&self) {
        use rustix::thread::futex;
        let _ = futex::wake(&self.value, futex::Flags::PRIVATE, 1);
    }

    /// Wakes everybody who sleeps.
    pub(crate) fn wake_all(&self) {
        use rustix::thread::futex;
        let _ = futex::wake(&self.value, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
    }
}

#[cfg(any(loom, not(target_os = "linux")))]
mod fallback {
    //! The same over a lock and a condition variable.

    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(not(loom))]
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::{Cell, lock};

    #[derive(Debug)]
    pub(super) struct Sleepers {
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Sleepers {
        pub(super) fn new() -> Self {
            Self { lock: Mutex::new(()), woken: Condvar::new() }
        }
    }

    impl Cell {
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            let guard = lock(&self.sleepers.lock);
            if self.load() != expected {
                return;
            }
            match timeout {
                // loom has no time: a timeout is then a spurious wake-up.
                Some(_) if cfg!(loom) => {}
                Some(wait) => drop(self.sleepers.woken.wait_timeout(guard, wait)),
                None => drop(self.sleepers.woken.wait(guard)),
            }
        }

        pub(crate) fn wake_one(&self) {
            // Between a sleeper's test and its sleep the lock is held, so that this does not fall between.
            drop(lock(&self.sleepers.lock));
            self.sleepers.woken.notify_one();
        }

        pub(crate) fn wake_all(&self) {
            drop(lock(&self.sleepers.lock));
            self.sleepers.woken.notify_all();
        }
    }
}
