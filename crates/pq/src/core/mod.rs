//! The core: the whole queue without threads and without a clock. Every call takes the time it happens at; nothing happens between
//! calls. The shell drives it from threads, a simulator from a loop; both use the same functions.
//!
//! ```text
//!   lock ─> queue.meta ─> catalog ─> cursors ─> each stream: recover ─> log          open
//!   append (through the log) ─> commit_due ─> lease ─> read ─> ack ─> end            run
//!   tick: cursors, floors, durable ends in one save ─> unlink                        save, retire
//!   commit everything ─> tick ─> clean-stop record                                   close
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use pq::core::{Core, Seed};
//! use pq::{Now, Options, Start};
//!
//! let (disk, now) = (Arc::new(sim_disk::SimDisk::new()), Now::default());
//! let core = Core::open(disk, Options::default(), Seed::Fixed(1), now)?;
//! let stream = core.open_stream("s", None, now)?;
//! let consumer = core.open_consumer(&stream, "c", Start::Oldest, now)?;
//! stream.log().append(b"one".as_slice(), now)?;
//!
//! // Nothing happens by itself: the driver lets time pass, and does what is due.
//! let due = core.next_due(now.instant).expect("a part-filled batch is due for commit");
//! let now = Now { instant: due, ..now };
//! core.run_timers(due);
//! core.commit_due(now);
//! let delivery = core.next(&stream, &consumer, 1 << 20, &mut Default::default(), now)?.expect("it is durable");
//! assert!(core.acknowledge(&consumer, &delivery, delivery.next(), None)?);
//! assert_eq!(core.tick(now)?.cursors_count, 1);
//! assert!(core.close(|| now)?.clean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Locks, in this order: `ledger` (long, held over files: the retention lock of I7) → `streams` → the cache's (short) → a consumer's
//! (short). `ack` and the end of a turn never take the long one.

mod ages;
mod alarm;
mod changed;
mod close;
mod commit;
mod consumer;
mod consumers;
mod dropped;
mod floor;
mod handles;
mod hub;
mod ids;
mod layout;
mod listener;
mod open;
mod quiet;
mod reserve;
mod stream;
mod streams;
mod tally;
mod tick;
mod turns;
mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use disk::{Disk, FdBudget, FileCache, Lock, Permit};
use offsets::Offsets;
use wal_format::{Instant, QueueId, StreamId};
use wal_store::{ReadBuffers, Room};

use crate::catalog::Catalog;
use crate::{OpenReport, Options};

pub(crate) use consumer::{AckDone, ConsumerState};
pub use handles::{CoreConsumer, CoreStream};
#[cfg(feature = "tokio")]
pub(crate) use hub::Found;
pub(crate) use hub::{Hub, LaneJob};
pub use ids::Seed;
pub(crate) use layout::{LOCK, STREAMS, ensure_dir, strays, stream_dir};
pub(crate) use open::evidence_of;
pub(crate) use stream::StreamState;
pub use tick::TickReport;
pub(crate) use tick::durable_end_of;
pub use turns::{Turn, TurnResult};
pub(crate) use usage::other_bytes;

/// A queue without threads and without a clock.
pub struct Core {
    disk: Arc<dyn Disk>,
    files: Arc<FileCache>,
    room: Arc<Room>,
    queue: QueueId,
    options: Options,
    pub(crate) hub: Arc<Hub>,
    ledger: Mutex<Ledger>,
    streams: RwLock<Streams>,
    report: OpenReport,
    phase: AtomicU64,
    saves: AtomicU64,
    ids: Mutex<ids::Ids>,
    quiet: quiet::Quiet,
    ages: ages::Ages,
    reserve: Arc<reserve::Reserve>,
    usage: usage::Usage,
    held: Mutex<Option<Held>>,
}

/// What is given back at the very end, in this order.
struct Held {
    _lock: Box<dyn Lock>,
    _permit: Permit,
}

/// What is durable about streams and consumers. Behind the long lock.
struct Ledger {
    catalog: Catalog,
    offsets: Offsets,
    last_tick: Option<Instant>,
    /// Failed saves in a row.
    failures: u32,
}

/// The streams that run, and those that cannot.
#[derive(Default)]
struct Streams {
    by_id: BTreeMap<StreamId, Arc<StreamState>>,
    by_name: BTreeMap<String, StreamId>,
    paused: BTreeMap<String, Paused>,
}

/// A stream whose files could not be recovered.
#[derive(Debug, Clone)]
struct Paused {
    id: StreamId,
    reason: String,
}

/// How far closing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    Closing,
    Closed,
}

impl Core {
    /// The queue's id.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.queue
    }

    /// What opening found.
    #[must_use]
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Buffers for one more reader.
    pub(crate) fn read_buffers(&self) -> ReadBuffers {
        ReadBuffers::new(self.options.read_method)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// The descriptor budget.
    #[must_use]
    pub fn fds(&self) -> &Arc<FdBudget> {
        self.files.budget()
    }

    pub(crate) fn saves_count(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Closing,
            _ => Phase::Closed,
        }
    }

    /// Moves on to a phase; `false`: it was there or further.
    fn enter(&self, phase: Phase) -> bool {
        let phase = match phase {
            Phase::Open => 0,
            Phase::Closing => 1,
            Phase::Closed => 2,
        };
        self.phase.fetch_max(phase, Ordering::AcqRel) < phase
    }

    fn streams(&self) -> RwLockReadGuard<'_, Streams> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams_mut(&self) -> RwLockWriteGuard<'_, Streams> {
        self.streams.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream that runs.
    pub(crate) fn stream_of(&self, id: StreamId) -> Option<Arc<StreamState>> {
        self.streams().by_id.get(&id).cloned()
    }

    /// The streams that run, by name.
    pub(crate) fn all_streams(&self) -> Vec<Arc<StreamState>> {
        let streams = self.streams();
        streams.by_name.values().filter_map(|id| streams.by_id.get(id)).cloned().collect()
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("queue", &self.queue)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
