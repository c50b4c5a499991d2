//! What one log holds on the disk: bytes taken for records not yet written, and bytes of each of its files.
//!
//! ```text
//!   take ─► charged to a batch ─► grew + settle: bytes of a file ─► gone
//!                    └─ given up: give_back
//! ```
//!
//! Invariants: everything is counted for the log and in the queue's [`Space`] alike; a shortage is told once until
//! something is given back. The lock over the files is the last one anybody takes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wal_format::SegmentId;

use crate::limits::batch_overhead;
use crate::space::{Headroom, NONE, give, take};
use crate::sync::{Mutex, lock};
use crate::{FullOf, Limits, OnFull, Settings, SettingsError, Space};

/// A refusal, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) needed: u64,
    pub(crate) used: u64,
    pub(crate) limit: u64,
    pub(crate) of: FullOf,
}

/// Whether somebody is to be told that space is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    No,
    /// For the first time since something was given back.
    News,
}

/// How short of space a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// An append was refused since space was last given back.
    pub refused: bool,
    /// Bytes the log is to drop, if dropping the oldest is its policy; 0: none.
    pub excess: u64,
}

/// What one log holds.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Mutex<Limits>,
    limit: AtomicU64,
    drops_oldest: AtomicBool,
    headroom: Headroom,
    used: AtomicU64,
    /// Bytes of each file there is.
    files: Mutex<BTreeMap<SegmentId, u64>>,
    /// The count of releases at the last refusal, and at the last time little space was left; [`NONE`]: never.
    refused_at: AtomicU64,
    low_at: AtomicU64,
    /// What the last refused append needed.
    refused_bytes: AtomicU64,
}

impl Meter {
    pub(crate) fn new(settings: &Settings, files: &[(SegmentId, u64)], space: &Space) -> Self {
        let held = files.iter().map(|(_, bytes)| *bytes).sum();
        space.add(held);
        let meter = Self {
            limits: Mutex::new(settings.limits),
            limit: AtomicU64::new(NONE),
            drops_oldest: AtomicBool::new(false),
            headroom: Headroom {
                segment_bytes_max: settings.segment_bytes_max,
                overhead: batch_overhead(settings),
            },
            used: AtomicU64::new(held),
            files: Mutex::new(files.iter().copied().collect()),
            refused_at: AtomicU64::new(NONE),
            low_at: AtomicU64::new(NONE),
            refused_bytes: AtomicU64::new(0),
        };
        meter.apply(settings.limits);
        meter
    }

    pub(crate) fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub(crate) fn set_limits(
        &self,
        limits: Limits,
        settings: &Settings,
        space: &Space,
    ) -> Result<(), SettingsError> {
        limits.validate(settings)?;
        self.apply(limits);
        space.released();
        Ok(())
    }

    fn apply(&self, limits: Limits) {
        let mut now = lock(&self.limits);
        *now = limits;
        self.limit.store(limits.bytes_max.unwrap_or(NONE), Ordering::SeqCst);
        self.drops_oldest.store(limits.on_full == OnFull::DropOldest, Ordering::SeqCst);
    }

    /// See [`batch_overhead`].
    pub(crate) fn overhead(&self) -> u64 {
        self.headroom.overhead
    }

    /// Bytes held, on the disk or about to be.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// Takes `bytes` of the log's space and of the queue's: both or neither.
    pub(crate) fn take(&self, bytes: u64, space: &Space) -> Result<Shortage, Refusal> {
        let limit = self.limit.load(Ordering::SeqCst);
        let used = take(&self.used, bytes, limit)
            .map_err(|used| self.refuse(bytes, (used, limit), FullOf::Stream))?;
        let all = space.take(bytes).map_err(|found| {
            give(&self.used, bytes);
            self.refuse(bytes, found, FullOf::Queue)
        })?;
        if !self.drops_oldest.load(Ordering::Relaxed) {
            return Ok(Shortage::No);
        }
        let is_low = used > self.headroom.low_from(limit) || all > space.low_from(self.headroom);
        Ok(if is_low { news(&self.low_at, space) } else { Shortage::No })
    }

    fn refuse(&self, needed: u64, (used, limit): (u64, u64), of: FullOf) -> Refusal {
        self.refused_bytes.store(needed, Ordering::SeqCst);
        Refusal { needed, used, limit, of }
    }

    /// An append was refused for good: whether that is news.
    pub(crate) fn was_refused(&self, of: FullOf, space: &Space) -> Shortage {
        if of == FullOf::Queue {
            space.was_refused();
        }
        news(&self.refused_at, space)
    }

    /// Gives back what was taken for records that are not written.
    pub(crate) fn give_back(&self, bytes: u64, space: &Space) {
        if bytes > 0 {
            give(&self.used, bytes);
            space.give(bytes);
            space.released();
        }
    }

    /// A file grew, or may have: it ends at `end` at most.
    pub(crate) fn grew(&self, segment: SegmentId, end: u64, space: &Space) {
        let more = {
            let mut files = lock(&self.files);
            let bytes = files.entry(segment).or_default();
            let more = end.saturating_sub(*bytes);
            *bytes += more;
            more
        };
        self.used.fetch_add(more, Ordering::SeqCst);
        space.add(more);
    }

    /// What was taken for a batch is now counted as part of its file.
    pub(crate) fn settle(&self, charge: u64, space: &Space) {
        if charge > 0 {
            give(&self.used, charge);
            space.give(charge);
            space.wake();
        }
    }

    /// A file is gone.
    pub(crate) fn gone(&self, segment: SegmentId, space: &Space) {
        if let Some(bytes) = lock(&self.files).remove(&segment) {
            give(&self.used, bytes);
            space.give(bytes);
        }
        space.released();
    }

    /// The log holds nothing any more.
    pub(crate) fn end(&self, space: &Space) {
        lock(&self.files).clear();
        space.give(self.used.swap(0, Ordering::SeqCst));
        space.released();
    }

    /// Bytes of these files.
    pub(crate) fn bytes_of(&self, segments: impl Iterator<Item = SegmentId>) -> u64 {
        let files = lock(&self.files);
        segments.filter_map(|id| files.get(&id)).sum()
    }

    pub(crate) fn pressure(&self, space: &Space) -> Pressure {
        let refused = self.refused_at.load(Ordering::SeqCst) == space.releases();
        if !self.drops_oldest.load(Ordering::SeqCst) {
            return Pressure { refused, excess: 0 };
        }
        let limit = self.limit.load(Ordering::SeqCst);
        let over = self.used().saturating_sub(self.headroom.low_from(limit));
        let mut excess = over.max(space.over_low(self.headroom));
        if refused {
            let needed = self.refused_bytes.load(Ordering::SeqCst);
            let lacks = self.used().saturating_add(needed).saturating_sub(limit);
            excess = excess.max(lacks).max(space.lacks(needed));
        }
        if excess == 0 {
            // Enough is left by now: the next time there is not is news again.
            self.low_at.store(NONE, Ordering::SeqCst);
        }
        Pressure { refused, excess }
    }
}

fn news(told_at: &AtomicU64, space: &Space) -> Shortage {
    let now = space.releases();
    if told_at.load(Ordering::SeqCst) == now || told_at.swap(now, Ordering::SeqCst) == now {
        Shortage::No
    } else {
        Shortage::News
    }
}
