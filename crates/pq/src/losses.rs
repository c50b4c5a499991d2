//! What a stream is known to have lost: ranges of seqs, each counted once, for ever.
//!
//! It remembers, and knows no file. A range is identified by its stream and its seqs: found again, in part or whole, it adds nothing.
//!
//! ```text
//!   folded: counted only │ [5,6) [9,12) [40,41)      ascending, apart; neighbours of one reason are one
//!                        below
//! ```
//!
//! Invariants: ranges ascend and do not overlap; there are at most [`LOSSES_MAX`] of them, of more the oldest are only counted;
//! adding in the same order gives the same state.

use wal_format::{Seq, WallTime};
use wal_store::Item;

use crate::{Gap, GapReason};

/// Most ranges that are told apart in one stream. Of more, the oldest are kept as a count, and nothing below them is counted again.
pub(crate) const LOSSES_MAX: usize = 4096;

/// Seqs of a stream that will never come, as the queue remembers them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The stream's name.
    pub stream: String,
    /// The first lost seq.
    pub from: Seq,
    /// The seq behind the last lost one.
    pub to: Seq,
    /// Why.
    pub reason: GapReason,
    /// When it was found; `None` if that was not written down.
    pub found_at: Option<WallTime>,
}

impl Loss {
    /// How many seqs.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.from.distance_to(self.to)
    }
}

/// One range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) gap: Gap,
    pub(crate) found_at: Option<WallTime>,
}

/// What was too much to be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folded {
    /// All of it lies below this seq, and nothing below it is counted again.
    pub(crate) below: Seq,
    pub(crate) ranges_count: u64,
    pub(crate) records_count: u64,
}

impl Default for Folded {
    fn default() -> Self {
        Self { below: Seq::FIRST, ranges_count: 0, records_count: 0 }
    }
}

/// The losses of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    ranges: Vec<Lost>,
    folded: Folded,
}

impl Losses {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Lost> {
        self.ranges.iter()
    }

    pub(crate) fn folded(&self) -> Folded {
        self.folded
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.ranges.iter().map(|lost| lost.gap).collect()
    }

    pub(crate) fn of(&self, stream: &str) -> impl Iterator<Item = Loss> {
        let told = |lost: &Lost| Loss {
            stream: stream.to_owned(),
            from: lost.gap.from,
            to: lost.gap.to,
            reason: lost.gap.reason,
            found_at: lost.found_at,
        };
        self.ranges.iter().map(told).collect::<Vec<_>>().into_iter()
    }

    /// Seqs lost in all.
    pub(crate) fn records_count(&self) -> u64 {
        let told: u64 = self.ranges.iter().map(|lost| lost.gap.count()).sum();
        told.saturating_add(self.folded.records_count)
    }

    /// What of a gap is not known yet, ascending.
    pub(crate) fn news(&self, gap: &Gap) -> Vec<Gap> {
        let mut news = Vec::new();
        let mut from = gap.from.max(self.folded.below);
        let behind = self.ranges.partition_point(|known| known.gap.to <= from);
        for known in self.ranges.iter().skip(behind).map(|known| known.gap) {
            if known.from >= gap.to {
                break;
            }
            if known.from > from {
                news.push(Gap { from, to: known.from, reason: gap.reason });
            }
            from = from.max(known.to);
        }
        if from < gap.to {
            news.push(Gap { from, to: gap.to, reason: gap.reason });
        }
        news
    }

    /// The loss that a seq is part of.
    pub(crate) fn lost_at(&self, seq: Seq) -> Option<Gap> {
        let behind = self.ranges.partition_point(|known| known.gap.to <= seq);
        self.ranges.get(behind).map(|known| known.gap).filter(|gap| gap.from <= seq)
    }

    /// What was not durable, cut where a loss is known.
    pub(crate) fn named(&self, item: Item) -> Vec<Item> {
        let Item::Gap(gap) = item else { return vec![item] };
        if gap.reason != GapReason::NotDurable {
            return vec![item];
        }
        let (mut items, mut at) = (Vec::new(), gap.from);
        while at < gap.to {
            let (reason, to) = match self.lost_at(at) {
                Some(lost) => (GapReason::Lost, lost.to),
                None => (gap.reason, self.next_after(at).unwrap_or(gap.to)),
            };
            let to = to.min(gap.to);
            items.push(Item::Gap(Gap { from: at, to, reason }));
            at = to;
        }
        items
    }

    /// Where the next loss behind a seq begins.
    fn next_after(&self, seq: Seq) -> Option<Seq> {
        self.ranges
            .get(self.ranges.partition_point(|known| known.gap.from <= seq))
            .map(|known| known.gap.from)
    }

    /// Whether all of a gap is known.
    pub(crate) fn know(&self, gap: &Gap) -> bool {
        self.news(gap).is_empty()
    }

    /// Adds what of a gap is not known; neighbours of one reason become one.
    pub(crate) fn add(&mut self, gap: &Gap, found_at: Option<WallTime>) {
        for gap in self.news(gap) {
            let at = self.ranges.partition_point(|known| known.gap.from < gap.from);
            self.ranges.insert(at, Lost { gap, found_at });
            self.join(at);
            if let Some(before) = at.checked_sub(1) {
                self.join(before);
            }
        }
        while self.ranges.len() > LOSSES_MAX {
            let oldest = self.ranges.remove(0).gap;
            self.folded.below = self.folded.below.max(oldest.to);
            self.folded.ranges_count += 1;
            self.folded.records_count = self.folded.records_count.saturating_add(oldest.count());
        }
    }

    /// Starts from what was folded before.
    pub(crate) fn fold(&mut self, folded: Folded) {
        self.folded = folded;
        self.ranges.retain(|known| known.gap.to > folded.below);
    }

    /// Joins the range at `at` with the next one, if they touch.
    fn join(&mut self, at: usize) {
        let (Some(one), Some(next)) = (self.ranges.get(at).copied(), self.ranges.get(at + 1).copied()) else {
            return;
        };
        if one.gap.to == next.gap.from && one.gap.reason == next.gap.reason {
            self.ranges.remove(at + 1);
            if let Some(joined) = self.ranges.get_mut(at) {
                joined.gap.to = next.gap.to;
                joined.found_at = [one.found_at, next.found_at].into_iter().flatten().min();
            }
        }
    }
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
