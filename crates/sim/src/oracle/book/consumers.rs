//! What a book knows of the stream's consumers: created, taken, moved, acknowledged, saved.

use super::{Book, Origin};
use crate::oracle::cursor::{Cursor, Presence};
use crate::violation::{Checked, Kind, ensure};

impl Book {
    /// A consumer is about to be created.
    pub fn attempt_reader(&mut self, name: &str, at: u64) {
        let cursor = self.cursors.entry(name.to_owned()).or_insert_with(|| Cursor::at(at, Presence::Unknown));
        cursor.presence = Presence::Unknown;
        cursor.maybe.push(at);
    }

    /// A consumer is about to be removed.
    pub fn attempt_removal(&mut self, name: &str) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.presence = Presence::Unknown;
        }
    }

    /// A consumer was taken and stands at `at`.
    ///
    /// # Errors
    /// It stands somewhere else than it must, is there although it was not, or the other way round.
    pub fn taken(&mut self, name: &str, at: u64, origin: Origin) -> Checked {
        let end = self.end();
        self.ensure(at <= end, Kind::Ahead, || format!("{name} stands at {at}, the end is {end}"))?;
        let presence = self.cursors.get(name).map_or(Presence::Absent, |cursor| cursor.presence);
        let expected = match (origin, presence) {
            (Origin::Found, Presence::Absent) => {
                return self.fail(Kind::Resurrected, format!("consumer {name} is there"));
            }
            (Origin::Created { .. }, Presence::Present) => {
                return self.fail(Kind::Lost, format!("consumer {name} was there"));
            }
            (Origin::Found, _) => self.cursors.get(name).map_or(at, |cursor| cursor.acked),
            (Origin::Created { oldest }, _) => {
                self.ensure(oldest <= self.first_max(), Kind::Lost, || {
                    format!("the oldest record kept is {oldest}, at most {}", self.first_max())
                })?;
                self.cursors.insert(name.to_owned(), Cursor::at(at, Presence::Present));
                oldest
            }
        };
        self.ensure(at == expected, Kind::OutOfOrder, || {
            format!("{name} was taken at {at}, {expected} expected")
        })?;
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.next = at;
        }
        Ok(())
    }

    /// A consumer is gone for certain.
    pub fn removed(&mut self, name: &str) {
        self.cursors.remove(name);
    }

    /// A seek begins; what comes of it is unknown until [`Book::sought`].
    pub fn seeking(&mut self, name: &str, to: u64) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.maybe.push(to);
        }
    }

    /// A seek answered: it stands here, durably.
    pub fn sought(&mut self, name: &str, at: u64) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.stands(at);
        }
    }

    /// Everything below `to` was acknowledged.
    pub fn acked(&mut self, name: &str, to: u64) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.acked = cursor.acked.max(to);
        }
    }

    /// A save answered: this consumer's saved cursor is here. `whole`: nothing stood in the way of saving all of it.
    ///
    /// # Errors
    /// More was saved than acknowledged, or less although nothing stood in the way.
    pub fn saved(&mut self, name: &str, at: u64, whole: bool) -> Checked {
        let Some(cursor) = self.cursors.get_mut(name) else { return Ok(()) };
        let acked = cursor.acked;
        let what = || format!("{name} is saved at {at}, acknowledged up to {acked}");
        ensure(at <= acked, Kind::Ahead, what)?;
        ensure(!whole || at == acked, Kind::Lost, what)?;
        if at != cursor.saved {
            cursor.before = std::mem::replace(&mut cursor.saved, at);
        }
        Ok(())
    }

    /// Something was written since: what failed before it can no longer be found.
    pub fn settled(&mut self, name: &str) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.presence = Presence::Present;
            cursor.maybe.clear();
        }
    }

    /// What was given out and not acknowledged is given out again.
    pub fn rewound(&mut self, name: &str) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.next = cursor.acked;
        }
    }

    pub(in crate::oracle) fn saving(&mut self) {
        let certain =
            self.cursors.values().filter(|c| c.presence == Presence::Present).map(|c| c.acked).min();
        let unknown =
            self.cursors.values().filter(|c| c.presence == Presence::Unknown).map(|c| c.acked).max();
        if let Some(floor) = certain.or(unknown) {
            self.floor_max = self.floor_max.max(floor);
        }
    }
}
