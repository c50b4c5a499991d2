//! Room: how much memory all streams of a queue may hold in records that are not yet written, and who waits for it; and,
//! beside it, how much they may hold on the disk ([`Space`]).
//!
//! It is not the memory itself (that is `pool.rs`). An append reserves room before anything else; without room it is
//! refused. Whoever waits for room, and each refusal, puts the streams that hold the room on their lanes.
//!
//! Invariant: `used <= limit`; who waits stands in a [`Line`](crate::line::Line), so no release is missed.

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use crate::Space;
use crate::line::Line;
use crate::pool::ChunkPool;
use crate::sync::{Mutex, lock};

/// Idle chunks kept at most, in bytes, whatever the room.
const IDLE_BYTES_MAX: usize = 64 << 20;

/// Somebody whose buffered records hold room.
pub(crate) trait Holder: Send + Sync {
    /// Asks to be committed if it holds any.
    fn give_up_room(&self);
}

/// A byte budget shared by the logs of a queue.
pub struct Room {
    limit: usize,
    used: AtomicUsize,
    line: Line,
    holders: Mutex<Vec<Weak<dyn Holder>>>,
    chunks: ChunkPool,
    space: Space,
}

impl Room {
    /// Room for `limit` bytes of frames.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
            line: Line::new(),
            holders: Mutex::new(Vec::new()),
            chunks: ChunkPool::new(limit.min(IDLE_BYTES_MAX)),
            space: Space::new(),
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

    /// What the streams may hold on the disk; without a limit at first.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Ends [`Space::hold_writes`]: the streams that waited go on their lanes.
    pub fn resume_writes(&self) {
        if self.space.resume_writes() {
            self.ask_holders();
        }
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
        self.line.advance();
    }

    /// Registers the calling thread: try again, then [`Room::sleep`] with what this returned.
    pub(crate) fn register(&self) -> u32 {
        self.line.register()
    }

    /// Sleeps unless room was given back since `registered`.
    pub(crate) fn sleep(&self, registered: u32) {
        self.line.sleep(registered);
    }

    /// Registers a future: try again after this.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        self.line.register_waker(waker);
    }

    /// Adds somebody to be asked for room.
    pub(crate) fn add_holder(&self, holder: Weak<dyn Holder>) {
        let mut holders = lock(&self.holders);
        holders.retain(|known| known.strong_count() > 0);
        holders.push(holder);
    }

    /// Puts every stream that holds room on its lane.
    pub(crate) fn ask_holders(&self) {
        let holders = lock(&self.holders).clone();
        holders.iter().filter_map(Weak::upgrade).for_each(|holder| holder.give_up_room());
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").field("limit", &self.limit).field("used", &self.used()).finish_non_exhaustive()
    }
}
