//! Space: how many bytes the streams of a queue may hold on the disk, and who waits for it.
//!
//! It counts and refuses; it unlinks nothing. Its owner hears of a refusal by [`Events::short_of_space`], makes room
//! (delivers, drops) and calls [`Log::retire`]; that gives space back here and wakes whoever waits.
//!
//! ```text
//!   append ── take(frames + overhead) ──► charged ── written ──► bytes of a file ── unlinked ──► free
//!                  └ refused: Full, or a place in the line
//! ```
//!
//! Invariants: what a log holds is charged to the log and to the queue, in this order, both or neither; `used <= limit`
//! except where a limit was lowered, a new segment repeats tags, or a write failed; every release wakes the line.
//!
//! [`Events::short_of_space`]: crate::Events::short_of_space
//! [`Log::retire`]: crate::Log::retire

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use disk::DiskError;
use wal_format::Instant;

use crate::line::Line;
use crate::sync::{Mutex, lock};

/// Stands for "no limit".
pub(crate) const NONE: u64 = u64::MAX;

/// Whoever holds writes of records back, and knows what they wait for.
pub trait Keeper: Send + Sync {
    /// A commit found them held back: look whether they need be any longer, and call [`Room::resume_writes`] if not. It is called in the
    /// middle of a commit: it must not wait for one.
    ///
    /// [`Room::resume_writes`]: crate::Room::resume_writes
    fn look_again(&self, now: Instant);
}

/// Why writes of records are held back.
#[derive(Default)]
struct Held {
    cause: Option<DiskError>,
    keeper: Option<Weak<dyn Keeper>>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("cause", &self.cause).finish_non_exhaustive()
    }
}

/// The byte budget on the disk that the logs of a queue share.
#[derive(Debug)]
pub struct Space {
    limit: AtomicU64,
    /// What the logs hold.
    used: AtomicU64,
    /// What the queue holds besides.
    other: AtomicU64,
    /// Counts what was given back.
    releases: AtomicU64,
    /// The count of releases when an append was last refused because of this limit; [`NONE`]: never.
    refused_at: AtomicU64,
    holds: AtomicBool,
    held: Mutex<Held>,
    line: Line,
}

impl Space {
    pub(crate) fn new() -> Self {
        Self {
            limit: AtomicU64::new(NONE),
            used: AtomicU64::new(0),
            other: AtomicU64::new(0),
            releases: AtomicU64::new(0),
            refused_at: AtomicU64::new(NONE),
            holds: AtomicBool::new(false),
            held: Mutex::new(Held::default()),
            line: Line::new(),
        }
    }

    /// The limit in bytes; `None`: there is none.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::SeqCst)).filter(|limit| *limit != NONE)
    }

    /// Changes the limit; what is over a lower one stays until it is unlinked.
    pub fn set_limit(&self, bytes: Option<u64>) {
        self.limit.store(bytes.unwrap_or(NONE), Ordering::SeqCst);
        self.released();
    }

    /// Bytes held now, on the disk or about to be: by the logs, and by what [`Space::set_other`] said.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst).saturating_add(self.other.load(Ordering::SeqCst))
    }

    /// Says how many bytes count against the limit that are no log's.
    pub fn set_other(&self, bytes: u64) {
        if self.other.swap(bytes, Ordering::SeqCst) > bytes {
            self.released();
        }
    }

    /// Whether an append was refused because of this limit since anything was last given back.
    pub fn is_short(&self) -> bool {
        self.refused_at.load(Ordering::SeqCst) == self.releases()
    }

    pub(crate) fn was_refused(&self) {
        self.refused_at.store(self.releases(), Ordering::SeqCst);
    }

    /// Holds back every write of records (they stay in memory, as on a full disk) until [`Room::resume_writes`]: what
    /// little space is left is for something else. Commits answer with `cause`.
    ///
    /// [`Room::resume_writes`]: crate::Room::resume_writes
    pub fn hold_writes(&self, cause: DiskError) {
        let mut held = lock(&self.held);
        held.cause = Some(cause);
        self.holds.store(true, Ordering::SeqCst);
    }

    /// Who is asked by each commit that finds writes held back. Without one they are until somebody resumes them by himself.
    pub fn set_keeper(&self, keeper: Weak<dyn Keeper>) {
        lock(&self.held).keeper = Some(keeper);
    }

    /// `false`: they were not held back.
    pub(crate) fn resume_writes(&self) -> bool {
        let mut held = lock(&self.held);
        held.cause = None;
        self.holds.swap(false, Ordering::SeqCst)
    }

    /// Whether writes of records are held back.
    pub fn holds_writes(&self) -> bool {
        self.holds.load(Ordering::SeqCst)
    }

    /// Why writes of records are held back, after their keeper looked whether they need be.
    pub(crate) fn held_back(&self, now: Instant) -> Option<DiskError> {
        if !self.holds_writes() {
            return None;
        }
        let keeper = lock(&self.held).keeper.as_ref().and_then(Weak::upgrade);
        if let Some(keeper) = keeper {
            keeper.look_again(now);
        }
        lock(&self.held).cause.clone()
    }

    pub(crate) fn register(&self) -> u32 {
        self.line.register()
    }

    pub(crate) fn sleep(&self, registered: u32) {
        self.line.sleep(registered);
    }

    pub(crate) fn register_waker(&self, waker: &Waker) {
        self.line.register_waker(waker);
    }

    /// Wakes whoever waits, to look again.
    pub(crate) fn wake(&self) {
        self.line.advance();
    }

    /// Something was given back, or a limit changed: who is refused from now on says so again.
    pub(crate) fn released(&self) {
        self.releases.fetch_add(1, Ordering::SeqCst);
        self.line.advance();
    }

    /// How often something was given back so far.
    pub(crate) fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Counts bytes that are there whatever the limit says.
    pub(crate) fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts bytes no more; whoever waits is told by [`Space::released`] or [`Space::wake`].
    pub(crate) fn give(&self, bytes: u64) {
        give(&self.used, bytes);
    }

    /// By how many bytes the logs are beyond the line from which on little is left.
    pub(crate) fn over_low(&self, headroom: Headroom) -> u64 {
        self.used.load(Ordering::SeqCst).saturating_sub(self.low_from(headroom))
    }

    /// By how many bytes the limit would be passed with so many more.
    pub(crate) fn lacks(&self, bytes: u64) -> u64 {
        self.used().saturating_add(bytes).saturating_sub(self.limit.load(Ordering::SeqCst))
    }

    /// Takes `bytes`; else how much is used, and the limit. The answer is what is used after it.
    pub(crate) fn take(&self, bytes: u64) -> Result<u64, (u64, u64)> {
        let limit = match self.limit.load(Ordering::SeqCst) {
            NONE => NONE,
            limit => limit.saturating_sub(self.other.load(Ordering::SeqCst)),
        };
        take(&self.used, bytes, limit).map_err(|_| (self.used(), self.limit.load(Ordering::SeqCst)))
    }

    /// From how many bytes of the logs on little space is left.
    pub(crate) fn low_from(&self, headroom: Headroom) -> u64 {
        let limit = self.limit.load(Ordering::SeqCst);
        headroom.low_from(limit).saturating_sub(self.other.load(Ordering::SeqCst))
    }
}

pub(crate) fn take(used: &AtomicU64, bytes: u64, limit: u64) -> Result<u64, u64> {
    if limit == NONE {
        return Ok(used.fetch_add(bytes, Ordering::SeqCst).saturating_add(bytes));
    }
    let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
    used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).map(|before| before.saturating_add(bytes))
}

pub(crate) fn give(used: &AtomicU64, bytes: u64) {
    let _ = used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| Some(used.saturating_sub(bytes)));
}

/// How much a log that drops its oldest keeps free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headroom {
    pub(crate) segment_bytes_max: u64,
    pub(crate) overhead: u64,
}

impl Headroom {
    /// From how many bytes on little is left: a segment less than the limit, or a quarter of it, and two batches' overhead.
    pub(crate) fn low_from(self, limit: u64) -> u64 {
        if limit == NONE {
            return NONE;
        }
        let free = self.segment_bytes_max.min(limit / 4).saturating_add(2 * self.overhead);
        limit - free.min(limit / 2)
    }
}
