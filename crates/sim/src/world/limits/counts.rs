//! What the queue counts of limits, beside what clients saw: every refusal, and every record that a consumer passed, once.

use std::collections::BTreeSet;

use pq::{Gap, GapReason};

use super::World;
use crate::violation::{Checked, Kind, ensure};
use crate::world::reader_name;

/// What a stream refused in this life.
#[derive(Debug, Default)]
pub(in crate::world) struct Refusals {
    pub(super) full: u64,
    pub(super) dropped: u64,
    /// Most bytes that the last one needed, until something is dropped or unlinked.
    pub(super) needed: u64,
    /// An append waited: it may have been tried more than once.
    pub(super) waited: bool,
}

/// What a consumer passed since it was taken.
#[derive(Debug, Default)]
pub(in crate::world) struct Passed {
    /// Where it stood, and what was counted then; `None`: it was moved by something else than acknowledgements.
    since: Option<(u64, Counted)>,
    trimmed: BTreeSet<u64>,
    expired: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    all: u64,
    trimmed: u64,
    expired: u64,
}

impl World {
    /// Appends that a stream refused in this life, and records it dropped instead of taking them; those that waited are not among them.
    #[must_use]
    pub fn refused_counts(&self, stream: usize) -> (u64, u64) {
        self.slots.get(stream).map_or((0, 0), |slot| (slot.refusals.full, slot.refusals.dropped))
    }

    /// A consumer was taken: what it passes is counted from here on.
    pub(in crate::world) fn count_from_here(&mut self, stream: usize, reader: usize) {
        let since = self.counted(stream, reader).filter(|_| self.is_bounded(stream));
        self.slots[stream].readers[reader].passed = Passed { since, ..Passed::default() };
    }

    /// A consumer was told these gaps.
    pub(in crate::world) fn passes(&mut self, stream: usize, reader: usize, gaps: &[Gap]) {
        let passed = &mut self.slots[stream].readers[reader].passed;
        for gap in gaps {
            match gap.reason {
                GapReason::Trimmed => passed.trimmed.extend(gap.from.get()..gap.to.get()),
                GapReason::Expired => passed.expired.extend(gap.from.get()..gap.to.get()),
                _ => {}
            }
        }
    }

    fn counted(&self, stream: usize, reader: usize) -> Option<(u64, Counted)> {
        let stats = self.slot(stream).stream.as_ref()?.stats();
        let of = stats.consumers.iter().find(|consumer| consumer.name == reader_name(reader))?;
        let all = of.acked_count + of.dropped_count + of.lost_count + of.trimmed_count + of.expired_count;
        Some((of.cursor, Counted { all, trimmed: of.trimmed_count, expired: of.expired_count }))
    }

    /// Every refusal and every record that a consumer passed was counted once, for what it was.
    pub(in crate::world) fn check_counts(&self, stream: usize) -> Checked {
        let Some(handle) = self.slot(stream).stream.as_ref().filter(|_| self.is_bounded(stream)) else {
            return Ok(());
        };
        let (stats, refusals) = (handle.stats(), &self.slot(stream).refusals);
        let is_full =
            stats.full_count == refusals.full || (refusals.waited && stats.full_count > refusals.full);
        ensure(is_full && stats.dropped_records_count == refusals.dropped, Kind::Unexpected, || {
            format!(
                "{} refused and {} dropped are counted, it were {refusals:?}",
                stats.full_count, stats.dropped_records_count
            )
        })?;
        for reader in 0..self.readers_count() {
            let passed = &self.slot(stream).readers[reader].passed;
            let (Some((at, before)), Some((cursor, now))) = (passed.since, self.counted(stream, reader))
            else {
                continue;
            };
            let of = |told: &BTreeSet<u64>| told.range(at..cursor.max(at)).count() as u64;
            let is = Counted {
                all: before.all + cursor.saturating_sub(at),
                trimmed: before.trimmed + of(&passed.trimmed),
                expired: before.expired + of(&passed.expired),
            };
            ensure(now == is, Kind::Unexpected, || {
                format!("{} passed {at}..{cursor} and counts {now:?}, it were {is:?}", reader_name(reader))
            })?;
        }
        Ok(())
    }
}
