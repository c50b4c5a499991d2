//! A budget of open files: how many descriptors may be open at once, counted before they are opened.
//!
//! It is not a pool: it holds no files. [`FileCache`](crate::FileCache) keeps idle ones and gives them up on shortage.
//!
//! ```text
//!   limit = [ reserved: lock, journals, directory, one writer, one new segment | common ]
//!             acquire_reserved takes here first, then there ──────────────────────^
//!             acquire, try_acquire take only from the common share ───────────────^
//! ```
//!
//! Invariants: used <= limit at all times; several permits are taken in one step or not at all; waiters are served
//! in the order they came, the reserved class first; a released permit is handed to its waiter under the lock, so
//! that no wake-up is lost; no file-system call and no wake-up happens under the lock.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use crate::sync::{self, Condvar, Mutex, MutexGuard};

/// How many files may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    /// All together.
    pub total: usize,
    /// Of these only for [`FdBudget::acquire_reserved`].
    pub reserved: usize,
}

/// Something that can close an idle file to give its permit back.
pub(crate) trait Evict: Send + Sync {
    /// Closes the oldest idle file; `None` if there is none.
    fn evict_oldest(&self) -> Option<()>;
}

/// A shared count of open files with a limit.
pub struct FdBudget {
    limit: FdLimit,
    state: Mutex<State>,
    evictors: Mutex<Vec<Weak<dyn Evict>>>,
}

#[derive(Default)]
struct State {
    common_used: usize,
    reserved_used: usize,
    peak: usize,
    reserved_waiters: VecDeque<Arc<Waiter>>,
    common_waiters: VecDeque<Arc<Waiter>>,
}

/// One blocked caller; `granted` is set under the budget's lock and read under its own.
struct Waiter {
    wanted: usize,
    class: Class,
    granted: Mutex<Option<Share>>,
    wake: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Common,
    Reserved,
}

/// What a permit took from each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    common: usize,
    reserved: usize,
}

impl FdBudget {
    /// A budget of `limit.total` files.
    ///
    /// # Panics
    /// If nothing is left for the common share.
    #[must_use]
    pub fn new(limit: FdLimit) -> Arc<Self> {
        assert!(limit.total > limit.reserved, "no descriptor left beside the reserved ones: {limit:?}");
        Arc::new(Self { limit, state: Mutex::default(), evictors: Mutex::default() })
    }

    /// Takes `n` permits in one step; closes idle files, then waits, in turn, until they are there.
    ///
    /// Blocks: not for async code. A caller that already holds permits and waits for more can wait for itself; take
    /// all you need at once.
    ///
    /// # Panics
    /// If `n` is more than the common share will ever have.
    pub fn acquire(self: &Arc<Self>, n: NonZeroUsize) -> Permit {
        assert!(n.get() <= self.common_limit(), "{n} permits asked of {:?}", self.limit);
        self.acquire_class(n.get(), Class::Common)
    }

    /// As [`acquire`](Self::acquire), from the reserved share first: for the lock, journals, directories, one
    /// writer and one new segment, so that the queue can always save, sync and delete.
    ///
    /// # Panics
    /// If `n` is more than the limit.
    pub fn acquire_reserved(self: &Arc<Self>, n: NonZeroUsize) -> Permit {
        assert!(n.get() <= self.limit.total, "{n} permits asked of {:?}", self.limit);
        self.acquire_class(n.get(), Class::Reserved)
    }

    /// Takes `n` permits if they are there, or there after closing idle files, and nobody waits before.
    #[must_use]
    pub fn try_acquire(self: &Arc<Self>, n: NonZeroUsize) -> Option<Permit> {
        self.try_class(n.get(), Class::Common)
    }

    /// As [`try_acquire`](Self::try_acquire), from the reserved share first.
    #[must_use]
    pub fn try_acquire_reserved(self: &Arc<Self>, n: NonZeroUsize) -> Option<Permit> {
        self.try_class(n.get(), Class::Reserved)
    }

    /// Permits out now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    /// The most permits that were ever out at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.lock().peak
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> FdLimit {
        self.limit
    }

    /// Callers blocked now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let state = self.lock();
        state.reserved_waiters.len() + state.common_waiters.len()
    }

    /// Closes idle files until one was closed; `false` if none was idle.
    pub(crate) fn evict_one(&self) -> Option<()> {
        let evictors = sync::lock(&self.evictors).clone();
        evictors.iter().filter_map(Weak::upgrade).find_map(|evictor| evictor.evict_oldest())
    }

    pub(crate) fn register(&self, evictor: Weak<dyn Evict>) {
        let mut evictors = sync::lock(&self.evictors);
        evictors.retain(|known| known.strong_count() > 0);
        evictors.push(evictor);
    }

    fn try_class(self: &Arc<Self>, n: usize, class: Class) -> Option<Permit> {
        loop {
            let taken = {
                let mut state = self.lock();
                if state.must_queue(class) {
                    return None;
                }
                state.take(n, class, self.limit)
            };
            match taken {
                Some(share) => return Some(Permit { budget: Arc::clone(self), share }),
                None => self.evict_one()?,
            }
        }
    }

    fn acquire_class(self: &Arc<Self>, n: usize, class: Class) -> Permit {
        let waiter = {
            let mut state = self.lock();
            let taken = if state.must_queue(class) { None } else { state.take(n, class, self.limit) };
            if let Some(share) = taken {
                return Permit { budget: Arc::clone(self), share };
            }
            let waiter =
                Arc::new(Waiter { wanted: n, class, granted: Mutex::new(None), wake: Condvar::new() });
            state.waiters(class).push_back(Arc::clone(&waiter));
            waiter
        };
        // In the queue first, idle files second: whoever puts a file into the cache looks for waiters after that,
        // so one of the two sees the other.
        loop {
            if let Some(share) = *sync::lock(&waiter.granted) {
                return Permit { budget: Arc::clone(self), share };
            }
            if self.evict_one().is_none() {
                break;
            }
        }
        let mut granted = sync::lock(&waiter.granted);
        loop {
            if let Some(share) = *granted {
                return Permit { budget: Arc::clone(self), share };
            }
            granted = sync::wait(&waiter.wake, granted);
        }
    }

    fn release(&self, share: Share) {
        let served = {
            let mut state = self.lock();
            state.common_used -= share.common;
            state.reserved_used -= share.reserved;
            state.serve(self.limit)
        };
        served.iter().for_each(|waiter| waiter.wake.notify_one());
    }

    fn common_limit(&self) -> usize {
        self.limit.total - self.limit.reserved
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}

impl State {
    fn used(&self) -> usize {
        self.common_used + self.reserved_used
    }

    fn waiters(&mut self, class: Class) -> &mut VecDeque<Arc<Waiter>> {
        match class {
            Class::Common => &mut self.common_waiters,
            Class::Reserved => &mut self.reserved_waiters,
        }
    }

    /// Whether a newcomer of this class must stand behind others.
    fn must_queue(&self, class: Class) -> bool {
        !self.reserved_waiters.is_empty() || (class == Class::Common && !self.common_waiters.is_empty())
    }

    fn take(&mut self, n: usize, class: Class, limit: FdLimit) -> Option<Share> {
        let common_free = limit.total - limit.reserved - self.common_used;
        let reserved = match class {
            Class::Common => 0,
            Class::Reserved => n.min(limit.reserved - self.reserved_used),
        };
        let share = Share { common: n - reserved, reserved };
        if share.common > common_free {
            return None;
        }
        self.common_used += share.common;
        self.reserved_used += share.reserved;
        self.peak = self.peak.max(self.used());
        Some(share)
    }

    /// Hands what is free to the waiters, in order; the first that does not fit stops all behind it. Returns those to
    /// be woken; without waiters it allocates nothing.
    fn serve(&mut self, limit: FdLimit) -> Vec<Arc<Waiter>> {
        let mut served = Vec::new();
        for class in [Class::Reserved, Class::Common] {
            while let Some(waiter) = self.waiters(class).front().map(Arc::clone) {
                let Some(share) = self.take(waiter.wanted, waiter.class, limit) else { return served };
                self.waiters(class).pop_front();
                *sync::lock(&waiter.granted) = Some(share);
                served.push(waiter);
            }
        }
        served
    }
}

impl std::fmt::Debug for FdBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("FdBudget")
            .field("limit", &self.limit)
            .field("used", &state.used())
            .field("peak", &state.peak)
            .finish_non_exhaustive()
    }
}

/// The right to hold some files open; given back when dropped. Drop the file first.
#[derive(Debug)]
#[must_use = "a permit is given back when dropped"]
pub struct Permit {
    budget: Arc<FdBudget>,
    share: Share,
}

impl Permit {
    /// How many files it covers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.share.common + self.share.reserved
    }

    /// Splits off one file's part, so that several taken in one step can be given back one by one.
    ///
    /// Returns `None` if this permit covers only one file.
    #[must_use]
    pub fn split_one(&mut self) -> Option<Permit> {
        if self.count() <= 1 {
            return None;
        }
        let share = if self.share.common > 0 {
            self.share.common -= 1;
            Share { common: 1, reserved: 0 }
        } else {
            self.share.reserved -= 1;
            Share { common: 0, reserved: 1 }
        };
        Some(Permit { budget: Arc::clone(&self.budget), share })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.release(self.share);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
