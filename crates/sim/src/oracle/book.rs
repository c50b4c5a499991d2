//! One life of one stream, from its creation to its deletion, as its clients know it.

mod after;
mod consumers;
mod damage;
mod drops;

pub use damage::Cost;

use std::collections::BTreeMap;

use pq::{Gap, GapReason, Incarnation, ReadLevel};

use super::cursor::Cursor;
use super::record::{Fate, Payload, Record, Told};
use crate::violation::{Checked, Kind, Violation, ensure};

/// Where a consumer that is taken comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was registered before.
    Found,
    /// It was created by this, at the oldest record kept.
    Created {
        /// That record's seq.
        oldest: u64,
    },
}

/// A batch that carried a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tagged {
    producer: Vec<u8>,
    value: Vec<u8>,
    first: u64,
    end: u64,
    /// Damage may have cost it.
    is_doubtful: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Book {
    name: String,
    incarnation: Incarnation,
    level: ReadLevel,
    /// By seq - 1; `None`: a seq no record ever had.
    records: Vec<Option<Record>>,
    /// A seq below was shown, and may not be given to another record.
    shown_end: u64,
    /// Whether the next append may leave seqs out.
    may_jump: bool,
    cursors: BTreeMap<String, Cursor>,
    /// Where the last recovery ended: every record there is below is durable.
    recovered_end: u64,
    /// The floor is not above this.
    floor_max: u64,
    tags: Vec<Tagged>,
    losses: damage::Losses,
    drops: drops::Drops,
}

fn index(seq: u64) -> usize {
    usize::try_from(seq.saturating_sub(1)).unwrap_or(usize::MAX)
}

impl Book {
    pub(super) fn new(name: &str, incarnation: Incarnation, level: ReadLevel) -> Self {
        Self {
            name: name.to_owned(),
            incarnation,
            level,
            records: Vec::new(),
            shown_end: 1,
            may_jump: false,
            cursors: BTreeMap::new(),
            recovered_end: 1,
            floor_max: 1,
            tags: Vec::new(),
            losses: damage::Losses::default(),
            drops: drops::Drops::default(),
        }
    }

    /// Which life.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The end of what was accepted.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.records.len() as u64 + 1
    }

    /// The end of what must be there for ever.
    #[must_use]
    pub fn durable_end(&self) -> u64 {
        let last = self.records.iter().rposition(|r| r.is_some_and(|r| r.fate == Fate::Durable));
        last.map_or(1, |last| last as u64 + 2)
    }

    /// How many records have this fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.records.iter().flatten().filter(|record| record.fate == fate).count()
    }

    /// What is known of the record at a seq.
    #[must_use]
    pub fn fate(&self, seq: u64) -> Option<Fate> {
        self.record(seq).map(|record| record.fate)
    }

    /// What is known of a consumer.
    #[must_use]
    pub fn cursor(&self, name: &str) -> Option<&Cursor> {
        self.cursors.get(name)
    }

    fn record(&self, seq: u64) -> Option<&Record> {
        self.records.get(index(seq))?.as_ref()
    }

    /// The oldest record kept is not above this: from the floor on, seqs that no record has, or none that is kept, are passed over.
    fn first_max(&self) -> u64 {
        let is_kept =
            |seq: &u64| matches!(self.fate(*seq), Some(Fate::Pending | Fate::Written | Fate::Durable));
        (self.floor_max..self.end()).find(is_kept).unwrap_or_else(|| self.end().max(self.floor_max))
    }

    fn fail<T>(&self, kind: Kind, what: impl std::fmt::Display) -> Checked<T> {
        Err(Violation::new(kind, format!("stream {:?}: {what}", self.name)))
    }

    fn ensure(&self, holds: bool, kind: Kind, what: impl FnOnce() -> String) -> Checked {
        ensure(holds, kind, || format!("stream {:?}: {}", self.name, what()))
    }

    /// Records were accepted in one call, from `first` on; a tag of `producer` came with them, or none.
    ///
    /// # Errors
    /// Their seqs are not the next ones, or were used.
    pub fn appended(&mut self, first: u64, payloads: &[Payload], tag: Option<(&[u8], &[u8])>) -> Checked {
        let (expected, end) = (self.end(), first + payloads.len() as u64);
        let right = first == expected || (self.may_jump && first > expected);
        self.ensure(right, Kind::OutOfOrder, || format!("seq {first} was given, {expected} expected"))?;
        self.ensure(first >= self.shown_end, Kind::OutOfOrder, || {
            format!("seq {first} was given again, readers saw up to {}", self.shown_end)
        })?;
        self.may_jump = false;
        self.records.resize(index(first), None);
        let group = (first, end);
        let record = |&payload| Some(Record { payload, fate: Fate::Pending, shown: false, group });
        self.records.extend(payloads.iter().map(record));
        if let Some((producer, value)) = tag {
            let (producer, value) = (producer.to_vec(), value.to_vec());
            self.tags.push(Tagged { producer, value, first, end, is_doubtful: false });
        }
        Ok(())
    }

    /// A ticket told what became of its records.
    ///
    /// # Errors
    /// It contradicts what was told before.
    pub fn told(&mut self, first: u64, end: u64, told: Told) -> Checked {
        for seq in first..end {
            let Some(Some(record)) = self.records.get_mut(index(seq)) else { continue };
            record.fate = match (record.fate, told) {
                (Fate::Pending | Fate::Written | Fate::Durable, Told::Durable) => Fate::Durable,
                (Fate::Pending | Fate::Written, Told::Written) => Fate::Written,
                (Fate::Pending, Told::NotWritten) => Fate::Never,
                (Fate::Pending | Fate::Written, Told::Indeterminate) => Fate::Maybe,
                (fate, told) => {
                    return self.fail(Kind::Lost, format!("seq {seq} was {fate:?} and is told {told:?}"));
                }
            };
        }
        Ok(())
    }

    /// A consumer was given a record.
    ///
    /// # Errors
    /// It is not the one it must be given.
    pub fn delivered(&mut self, name: &str, seq: u64, payload: &[u8], scratch: &mut Vec<u8>) -> Checked {
        self.step(name, seq, seq + 1)?;
        self.check_not_dropped(seq)?;
        let level = self.level;
        let is_recovered = seq < self.recovered_end;
        let Some(record) = self.record(seq).copied() else {
            return self.fail(Kind::Resurrected, format!("seq {seq} was never written, and is shown"));
        };
        record.payload.write(scratch);
        self.ensure(scratch.as_slice() == payload, Kind::Resurrected, || {
            format!("seq {seq} shows other bytes than were written last under it")
        })?;
        match record.fate {
            Fate::Never | Fate::Gone | Fate::Lost => {
                self.fail(Kind::Resurrected, format!("seq {seq} was {:?}, and is shown", record.fate))?;
            }
            Fate::Pending | Fate::Written if level == ReadLevel::Durable => {
                self.fail(Kind::Ahead, format!("seq {seq} is shown, its ticket does not say durable"))?;
            }
            _ => {}
        }
        self.shown_end = self.shown_end.max(seq + 1);
        if let Some(Some(record)) = self.records.get_mut(index(seq)) {
            record.shown = true;
            if level == ReadLevel::Durable || is_recovered {
                record.fate = Fate::Durable;
            }
        }
        Ok(())
    }

    /// A consumer was given a gap.
    ///
    /// # Errors
    /// Nothing justifies it.
    pub fn gap(&mut self, name: &str, gap: Gap) -> Checked {
        let (from, to) = (gap.from.get(), gap.to.get());
        self.ensure(from < to, Kind::OutOfOrder, || format!("an empty gap {gap:?}"))?;
        self.step(name, from, to)?;
        self.shown_end = self.shown_end.max(to);
        for seq in from..to {
            let fate = self.fate(seq);
            let justified = match gap.reason {
                GapReason::NotDurable => {
                    !matches!(fate, Some(Fate::Durable | Fate::Pending | Fate::Written | Fate::Lost))
                }
                GapReason::Lost => self.may_be_lost(seq),
                GapReason::Retired => seq < self.floor_max,
                GapReason::Trimmed | GapReason::Expired => self.is_dropped(seq, gap.reason),
                _ => false,
            };
            let kind = if fate == Some(Fate::Durable) { Kind::Lost } else { Kind::FalseAlarm };
            self.ensure(justified, kind, || format!("{gap:?} for {name}, but seq {seq} is {fate:?}"))?;
            if let Some(Some(record)) = self.records.get_mut(index(seq))
                && record.fate != Fate::Lost
            {
                record.fate = Fate::Gone;
            }
        }
        Ok(())
    }

    /// A consumer moves on over `[from, to)`.
    fn step(&mut self, name: &str, from: u64, to: u64) -> Checked {
        let expected = self.cursors.get(name).map_or(from, |cursor| cursor.next);
        self.ensure(from == expected, Kind::OutOfOrder, || {
            format!("{name} got seq {from}, {expected} expected")
        })?;
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.next = to;
        }
        Ok(())
    }
}
