//! One consumer as its client knows it: what it was given, what it acknowledged, what was saved.

use crate::violation::{Checked, Kind, ensure};

/// Whether a stream or a consumer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// For certain.
    Present,
    /// For certain not.
    Absent,
    /// The call that would have said it failed, or never returned.
    Unknown,
}

/// See the module. All seqs are exclusive ends, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Whether it is registered.
    pub(super) presence: Presence,
    /// At least this is saved.
    pub(super) saved: u64,
    /// Acknowledged up to here.
    pub(super) acked: u64,
    /// The next seq it must be given.
    pub(super) next: u64,
    /// Where a seek that failed, or never returned, may have put it.
    pub(super) maybe: Vec<u64>,
    /// Where it was saved before it was saved where it is.
    pub(super) before: u64,
}

impl Cursor {
    pub(super) fn at(seq: u64, presence: Presence) -> Self {
        Self { presence, saved: seq, acked: seq, next: seq, maybe: Vec::new(), before: seq }
    }

    /// The next seq it must be given.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What it acknowledged up to.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// At least this is saved.
    #[must_use]
    pub fn saved(&self) -> u64 {
        self.saved
    }

    /// It stands here, durably.
    pub(super) fn stands(&mut self, at: u64) {
        let before = if at == self.saved { self.before } else { self.saved };
        *self = Self { before, ..Self::at(at, Presence::Present) };
    }

    /// Where it stands after a stop.
    pub(super) fn reopened(&mut self, name: &str, at: u64) -> Checked {
        let within = (self.saved..=self.acked.max(self.saved)).contains(&at) || self.maybe.contains(&at);
        let kind = if at < self.saved { Kind::OutOfOrder } else { Kind::Lost };
        ensure(within, kind, || {
            format!(
                "cursor {name} is at {at}; saved {}, acked {}, maybe {:?}",
                self.saved, self.acked, self.maybe
            )
        })?;
        self.stands(at);
        Ok(())
    }
}
