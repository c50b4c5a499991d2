//! What policies dropped of a stream, as its readers are told: ranges with their reason, in the place of their seqs.
//!
//! ```text
//!   cursor ──┐ [10, 50) trimmed   [50, 80) expired │ floor 80: segments
//!            └────── a gap, and a gap ─────────────┘
//! ```
//!
//! Invariants: what is told is durable; a range is told before its files go, so that no reader takes them for lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use offsets::{FloorReason, Trim, Trims};
use wal_format::Seq;
use wal_store::{Chunk, Item};

use crate::clock::locked;
use crate::{Gap, GapReason};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    ranges: Mutex<Vec<Trim>>,
    trimmed: AtomicU64,
    expired: AtomicU64,
}

impl Dropped {
    /// Takes over what is durable.
    pub(crate) fn set(&self, trims: &Trims) {
        locked(&self.ranges).clone_from(&trims.ranges);
        self.trimmed.store(trims.trimmed_count, Ordering::Relaxed);
        self.expired.store(trims.expired_count, Ordering::Relaxed);
    }

    /// Seqs ever dropped for bytes, and for age.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.trimmed.load(Ordering::Relaxed), self.expired.load(Ordering::Relaxed))
    }

    /// What a reader at `at` is told first, up to `bound`: nothing if what stands there was not dropped.
    pub(crate) fn chunk_at(&self, at: Seq, bound: Seq) -> Option<Chunk> {
        let items: Vec<Item> = self
            .cut(at, bound)
            .into_iter()
            .take_while(|gap| gap.reason != GapReason::Retired)
            .map(Item::Gap)
            .collect();
        let next = items.last()?.gap()?.to;
        Some(Chunk { items, next, next_hint: None })
    }

    /// Gives the gaps of a chunk that lie below the floor their reasons.
    pub(crate) fn name_gaps(&self, chunk: &mut Chunk) {
        if chunk.gaps().any(|gap| gap.reason == GapReason::Retired) {
            let items = std::mem::take(&mut chunk.items);
            chunk.items = items.into_iter().flat_map(|item| self.named(item)).collect();
        }
    }

    fn named(&self, item: Item) -> Vec<Item> {
        match item {
            Item::Gap(gap) if gap.reason == GapReason::Retired => {
                self.cut(gap.from, gap.to).into_iter().map(Item::Gap).collect()
            }
            item => vec![item],
        }
    }

    /// Where a saved cursor stands: below the floor it waits in front of the first range it was not told of, and else is lifted.
    pub(crate) fn lift(&self, cursor: Seq, floor: Seq) -> Seq {
        if cursor >= floor {
            return cursor;
        }
        let ranges = locked(&self.ranges);
        let untold = ranges.iter().find(|range| range.to > cursor);
        untold.map_or(floor, |range| range.from.max(cursor))
    }

    /// `[from, to)` cut where the reason changes; what no policy dropped was delivered and retired.
    fn cut(&self, from: Seq, to: Seq) -> Vec<Gap> {
        let ranges = locked(&self.ranges);
        let (mut gaps, mut at) = (Vec::new(), from);
        for range in ranges.iter().filter(|range| range.to > from && range.from < to) {
            if at < range.from {
                gaps.push(Gap { from: at, to: range.from, reason: GapReason::Retired });
            }
            let end = range.to.min(to);
            gaps.push(Gap { from: at.max(range.from), to: end, reason: reason_of(range.reason) });
            at = end;
        }
        if at < to {
            gaps.push(Gap { from: at, to, reason: GapReason::Retired });
        }
        gaps
    }
}

fn reason_of(reason: FloorReason) -> GapReason {
    match reason {
        FloorReason::Delivered => GapReason::Retired,
        FloorReason::Trimmed => GapReason::Trimmed,
        FloorReason::Expired => GapReason::Expired,
    }
}

#[cfg(test)]
#[path = "dropped_tests.rs"]
mod tests;
