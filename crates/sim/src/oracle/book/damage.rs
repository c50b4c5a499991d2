//! What a book knows of damage: which seqs are lost for good, and which of them the queue told.
//!
//! Invariant: a seq that is lost is never shown; one that is not is never told lost.

use std::collections::BTreeSet;
use std::ops::Range;

use pq::ReadLevel;

use super::{Book, index};
use crate::oracle::record::Fate;
use crate::oracle::recovered::StreamView;
use crate::violation::{Checked, Kind};

/// What damage to a segment may cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    /// These records.
    pub seqs: BTreeSet<u64>,
    /// All of them, and not only some.
    pub is_exact: bool,
    /// Tags, too.
    pub may_cost_tags: bool,
    /// Seqs that no record had, and of which nothing says so any more.
    pub unsaid: Vec<Range<u64>>,
}

/// What is known of lost seqs.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// Lost for good: whoever comes by is told so.
    lost: BTreeSet<u64>,
    /// Hit, and perhaps below the floor, or not there: of what was given up nobody knows (seed 86405).
    doubtful: BTreeSet<u64>,
    /// No record had them, and nothing says so any more.
    unsaid: Vec<Range<u64>>,
    /// The queue says that it remembers these as lost.
    remembered: BTreeSet<u64>,
    /// Reports named these.
    told: BTreeSet<u64>,
    /// A repair went through everything: all that is lost is remembered.
    is_all_known: bool,
    /// The first seq that had to be there when something was damaged last.
    first: u64,
}

impl Losses {
    pub(super) fn contains(&self, seq: u64) -> bool {
        self.lost.contains(&seq)
    }

    fn may_be(&self, seq: u64) -> bool {
        self.lost.contains(&seq) || self.doubtful.contains(&seq)
    }
}

impl Book {
    /// Whether a seq may be told lost: it is, or it was left out (no record ever had it, or that was given up: seed 311222) and what said
    /// so is lost.
    pub(super) fn may_be_lost(&self, seq: u64) -> bool {
        let is_left_out = matches!(self.fate(seq), None | Some(Fate::Never | Fate::Maybe | Fate::Gone));
        self.losses.may_be(seq)
            || (is_left_out && self.losses.unsaid.iter().any(|unsaid| unsaid.contains(&seq)))
    }
}

impl Book {
    /// The floor is not above this.
    #[must_use]
    pub fn floor_max(&self) -> u64 {
        self.floor_max
    }

    /// Files were damaged; the stream goes from `first` to `end` and reads `lost` as lost.
    ///
    /// # Errors
    /// More is lost than the damage may cost, or less than it must.
    pub fn damaged(&mut self, (first, end): (u64, u64), lost: &BTreeSet<u64>, cost: &Cost) -> Checked {
        self.ensure(self.durable_end() <= end, Kind::Lost, || {
            format!("durable up to {}, and behind damage up to {end}, without a gap", self.durable_end())
        })?;
        let is_kept = |seq: u64| self.fate(seq) == Some(Fate::Durable);
        // What is lost in front of all that can be read is read by nobody who begins there.
        let mut lost = lost.clone();
        lost.extend((self.floor_max..first).filter(|seq| is_kept(*seq) || self.losses.contains(*seq)));
        let first = first.min(self.floor_max);
        let is_news = |seq: &&u64| **seq >= first && is_kept(**seq) && !self.losses.may_be(**seq);
        for seq in lost.iter().filter(is_news) {
            self.ensure(cost.seqs.contains(seq), Kind::Lost, || {
                format!("seq {seq} is lost, and the damage may cost {:?}", cost.seqs)
            })?;
        }
        let hit = cost.seqs.iter().filter(|seq| cost.is_exact && **seq >= first && is_kept(**seq));
        for seq in hit.chain(self.losses.lost.range(first..)) {
            self.ensure(lost.contains(seq), Kind::FalseAlarm, || {
                format!("seq {seq} is gone, and not read as lost")
            })?;
        }
        // Seqs left out behind the last record are told lost with it, up to where an empty segment begins (seed 311773).
        let is_tail_lost = (self.end() - 1..end).all(|seq| lost.contains(&seq));
        if self.level == ReadLevel::Written && is_tail_lost && end > self.end() {
            self.losses.unsaid.push(self.end()..end);
            self.records.resize(index(end), None);
        }
        self.losses.unsaid.extend(cost.unsaid.iter().cloned());
        for seq in &lost {
            if let Some(Some(record)) = self.records.get_mut(index(*seq)) {
                record.fate = Fate::Lost;
            }
        }
        let is_doubtful = |seq: &&u64| **seq < first || self.fate(**seq) == Some(Fate::Maybe);
        let doubtful: Vec<u64> = cost.seqs.iter().filter(is_doubtful).copied().collect();
        self.losses.doubtful.extend(doubtful);
        if cost.may_cost_tags {
            self.tags.iter_mut().for_each(|tag| tag.is_doubtful = true);
        }
        self.losses.lost.extend(&lost);
        self.losses.is_all_known = false;
        self.losses.first = first;
        Ok(())
    }

    /// A bit of the journal of cursors flipped: it may cost the last move.
    pub fn cursors_damaged(&mut self) {
        self.cursors.values_mut().for_each(|cursor| cursor.maybe.push(cursor.before));
    }

    pub(in crate::oracle) fn has_lost(&self) -> bool {
        !self.losses.lost.is_empty()
    }

    pub(in crate::oracle) fn mended(&mut self) {
        self.losses.is_all_known = true;
        // What everybody may be past, nobody needs to be told (seed 150815).
        self.losses.first = self.losses.first.max(self.floor_max);
    }

    /// A report names these as newly found lost.
    pub(in crate::oracle) fn told_lost(&mut self, seqs: Range<u64>) -> Checked {
        self.admit_tear(seqs.clone());
        for seq in seqs {
            self.ensure(self.may_be_lost(seq), Kind::FalseAlarm, || format!("seq {seq} is told lost"))?;
            let is_news = self.losses.told.insert(seq);
            self.ensure(is_news, Kind::FalseAlarm, || format!("seq {seq} is told lost twice"))?;
        }
        Ok(())
    }

    /// A write that tore and left out a single bit looks like a flipped one: of the last record, which nobody was told durable, nobody
    /// can tell (`--many-batches`, seed 13455).
    fn admit_tear(&mut self, seqs: Range<u64>) {
        let is_unsettled = matches!(self.fate(seqs.start), Some(Fate::Pending | Fate::Written | Fate::Maybe));
        if seqs.end - seqs.start == 1 && is_unsettled && self.durable_end() <= seqs.start {
            self.losses.doubtful.insert(seqs.start);
        }
    }

    /// What the queue remembers as lost after it was opened: never less than before, all of it once a repair was through.
    pub(super) fn check_losses(&mut self, view: &StreamView) -> Checked {
        let found: BTreeSet<u64> = view.losses.iter().flat_map(|gap| gap.from.get()..gap.to.get()).collect();
        for gap in &view.losses {
            self.admit_tear(gap.from.get()..gap.to.get());
        }
        for seq in &found {
            self.ensure(self.may_be_lost(*seq), Kind::Lost, || format!("seq {seq} is reported lost"))?;
        }
        let forgotten = self.losses.remembered.difference(&found).next();
        self.ensure(forgotten.is_none(), Kind::Lost, || {
            format!("seq {forgotten:?} was remembered as lost, and is not any more")
        })?;
        if self.losses.is_all_known {
            let missing = self.losses.lost.range(self.losses.first..).find(|seq| !found.contains(seq));
            self.ensure(missing.is_none(), Kind::Lost, || {
                format!("seq {missing:?} is lost, and a repair does not say so")
            })?;
        }
        self.losses.remembered = found;
        Ok(())
    }
}
