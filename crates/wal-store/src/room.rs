//! Room: how much memory all streams of a queue may hold in records that are not yet written, and who waits for it.
//!
//! It is not the memory itself (that is `pool.rs`). An append reserves room before anything else; without room it is
//! refused. Whoever waits for room, and each refusal, puts the streams that hold the room on their lanes.
//!
//! Invariant: `used <= limit`; a waiter registers, then tries again, then sleeps, so no release is missed.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use crate::pool::ChunkPool;
use crate::sync::{Cell, Mutex, lock};

/// Idle chunks kept at most, in bytes, whatever the room.
const IDLE_BYTES_MAX: usize = 64 << 20;
const WAITERS: u32 = 1;
const STEP: u32 = 2;

/// Somebody whose buffered records hold room.
pub(crate) trait Holder: Send + Sync {
    /// Asks to be committed if it holds any.
    fn give_up_room(&self);
}

/// A byte budget shared by the logs of a queue.
pub struct Room {
    limit: usize,
    used: AtomicUsize,
    /// Counts releases in steps of two; the lowest bit says that somebody waits.
    released: Cell,
    slow: Mutex<Slow>,
    chunks: ChunkPool,
}

#[derive(Default)]
struct Slow {
    wakers: Vec<Waker>,
    holders: Vec<Weak<dyn Holder>>,
}

impl Room {
    /// Room for `limit` bytes of frames.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
            released: Cell::new(0),
            slow: Mutex::default(),
            chunks: ChunkPool::new(limit.min(IDLE_BYTES_MAX)),
        }
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    pub(crate) fn chunks(&self) -> &ChunkPool {
        &self.chunks
    }

    /// Reserves `bytes` in one step, or says how many are held.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), usize> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).map(drop)
    }

    /// Gives room back and wakes whoever waits for it.
    pub(crate) fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.released.load() & WAITERS == 0 {
            return;
        }
        let wakers = {
            let mut slow = lock(&self.slow);
            // Cleared under the lock under which futures register; threads register again on each turn.
            let now = self.released.load();
            self.released.store((now & !WAITERS).wrapping_add(STEP));
            mem::take(&mut slow.wakers)
        };
        self.released.wake_all();
        for waker in wakers {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// Registers the calling thread: try again, then [`Room::sleep`] with what this returned.
    pub(crate) fn register(&self) -> u32 {
        let _slow = lock(&self.slow);
        self.released.fetch_or(WAITERS) | WAITERS
    }

    /// Sleeps unless room was given back since `registered`.
    pub(crate) fn sleep(&self, registered: u32) {
        self.released.wait(registered, None);
    }

    /// Registers a future: try again after this.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        let mut slow = lock(&self.slow);
        self.released.fetch_or(WAITERS);
        if !slow.wakers.iter().any(|known| known.will_wake(waker)) {
            slow.wakers.push(waker.clone());
        }
    }

    /// Adds somebody to be asked for room.
    pub(crate) fn add_holder(&self, holder: Weak<dyn Holder>) {
        let mut slow = lock(&self.slow);
        slow.holders.retain(|known| known.strong_count() > 0);
        slow.holders.push(holder);
    }

    /// Puts every stream that holds room on its lane.
    pub(crate) fn ask_holders(&self) {
        let holders = lock(&self.slow).holders.clone();
        holders.iter().filter_map(Weak::upgrade).for_each(|holder| holder.give_up_room());
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").field("limit", &self.limit).field("used", &self.used()).finish_non_exhaustive()
    }
}
