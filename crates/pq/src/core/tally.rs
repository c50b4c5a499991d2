//! What is counted of a consumer. Every record it passes ends in exactly one of acknowledged, dropped, lost, trimmed, expired (I12).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use wal_format::Seq;

use crate::{Gap, GapReason};

/// What was counted in this run.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) delivered: AtomicU64,
    pub(crate) acked: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) last_failure: Mutex<Option<String>>,
}

/// What became of records that a cursor passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Their destination has them.
    Delivered,
    /// It rejected them, and they are dropped by choice.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "only sinks reject"))]
    Dropped,
}

/// What a cursor's move passed that is no record, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) lost: u64,
    pub(crate) trimmed: u64,
    pub(crate) expired: u64,
}

impl Counted {
    /// A cursor moved over so many seqs, gaps among them; what became of the records is their fate.
    pub(crate) fn passed(&self, seqs: u64, gaps: Tally, fate: Fate) {
        let records = seqs.saturating_sub(gaps.lost + gaps.trimmed + gaps.expired);
        match fate {
            Fate::Delivered => &self.acked,
            Fate::Dropped => &self.dropped,
        }
        .fetch_add(records, Ordering::Relaxed);
        self.lost.fetch_add(gaps.lost, Ordering::Relaxed);
        self.trimmed.fetch_add(gaps.trimmed, Ordering::Relaxed);
        self.expired.fetch_add(gaps.expired, Ordering::Relaxed);
    }
}

/// Counts what of the gaps lies below the cursor, and forgets it.
pub(crate) fn take_passed(gaps: &mut Vec<Gap>, cursor: Seq) -> Tally {
    let mut tally = Tally::default();
    gaps.retain_mut(|gap| {
        let end = gap.to.min(cursor);
        let count = gap.from.distance_to(end);
        match gap.reason {
            GapReason::Trimmed => tally.trimmed += count,
            GapReason::Expired => tally.expired += count,
            _ => tally.lost += count,
        }
        gap.from = gap.from.max(end);
        gap.from < gap.to
    });
    tally
}
