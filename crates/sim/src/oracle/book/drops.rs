//! What a book knows of limits: what a save may drop, and what was dropped.
//!
//! ```text
//!   may_drop ─> save ─┬─ answered ─> dropped: so many, the stream begins here ──> each consumer is given just that gap
//!                     └─ stopped ──> open ──> dropped: none of it, or all
//! ```
//!
//! Invariants: only what a limit asked for is dropped; each seq is counted once, with the reason that readers are told; what every
//! consumer had is not counted; what was dropped is never shown.

use std::ops::Range;

use pq::GapReason;

use super::Book;
use crate::oracle::cursor::Presence;
use crate::violation::{Checked, Kind};

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Drops {
    /// Dropped for certain.
    ranges: Vec<(Range<u64>, GapReason)>,
    /// How many: for bytes, for age.
    counts: (u64, u64),
    /// A save may drop what lies below: for bytes, for age.
    may: (u64, u64),
    /// Where the stream was seen to begin.
    first: u64,
}

impl Book {
    /// A save begins that may drop what lies below `trim_to` for bytes, and below `expire_to` for age.
    pub fn may_drop(&mut self, trim_to: u64, expire_to: u64) {
        let may = &mut self.drops.may;
        *may = (may.0.max(trim_to), may.1.max(expire_to));
    }

    /// The stream begins at `first`, and dropped so many in all, for bytes and for age; answers how many of them are news.
    ///
    /// # Errors
    /// More or other records are gone than a limit asked for, or they are counted otherwise.
    pub fn dropped(&mut self, first: u64, counts: (u64, u64)) -> Checked<u64> {
        let (known, may) = (self.drops.counts, self.drops.may);
        self.ensure(counts.0 >= known.0 && counts.1 >= known.1, Kind::Lost, || {
            format!("dropped {counts:?} records in all, {known:?} before")
        })?;
        let (trimmed, expired) = (counts.0 - known.0, counts.1 - known.1);
        let news = trimmed + expired;
        let from = first.saturating_sub(news);
        let middle = from + expired;
        // Where no policy dropped anything, what is gone was delivered.
        let delivered = self.first_max().max(self.drops.first);
        self.ensure(from <= delivered, Kind::Lost, || {
            format!("it begins at {first}, {news} dropped, everybody had what is below {delivered}")
        })?;
        if news > 0 {
            let present = self.cursors.values().filter(|cursor| cursor.presence == Presence::Present);
            let had = present.map(|cursor| cursor.saved).min().unwrap_or(0).max(self.drops.first);
            self.ensure(from >= had, Kind::FalseAlarm, || {
                format!("{from}..{first} are counted as dropped, everybody had what is below {had}")
            })?;
            self.ensure(expired == 0 || middle <= may.1, Kind::Lost, || {
                format!("{from}..{middle} expired, no more than what is below {} is old", may.1)
            })?;
            self.ensure(trimmed == 0 || first <= may.0, Kind::Lost, || {
                format!(
                    "{middle}..{first} were dropped for bytes, no more than what is below {} had to",
                    may.0
                )
            })?;
            self.drops.ranges.push((from..middle, GapReason::Expired));
            self.drops.ranges.push((middle..first, GapReason::Trimmed));
            self.floor_max = self.floor_max.max(first);
        }
        self.drops.counts = counts;
        self.drops.first = self.drops.first.max(first);
        self.drops.may = (0, 0);
        Ok(news)
    }

    /// How many were dropped for certain: for bytes, and for age.
    #[must_use]
    pub fn dropped_counts(&self) -> (u64, u64) {
        self.drops.counts
    }

    pub(super) fn is_dropped(&self, seq: u64, reason: GapReason) -> bool {
        self.drops.ranges.iter().any(|(range, of)| range.contains(&seq) && *of == reason)
    }

    pub(super) fn check_not_dropped(&self, seq: u64) -> Checked {
        let found = self.drops.ranges.iter().find(|(range, _)| range.contains(&seq));
        self.ensure(found.is_none(), Kind::Resurrected, || {
            format!("seq {seq} was dropped, and is shown: {found:?}")
        })
    }
}
