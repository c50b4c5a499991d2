//! What must hold of a stream right after it was opened again.

use pq::ReadLevel;

use super::{Book, index};
use crate::oracle::cursor::Presence;
use crate::oracle::record::Fate;
use crate::oracle::recovered::{Stopped, StreamView};
use crate::violation::{Checked, Kind};

impl Book {
    /// It was opened again.
    pub(in crate::oracle) fn reopened(&mut self, stopped: Stopped, view: &StreamView) -> Checked {
        let end = view.durable;
        self.ensure(end <= self.end(), Kind::Resurrected, || {
            format!("recovered up to {end}, accepted up to {}", self.end())
        })?;
        self.ensure(end >= self.recovered_end, Kind::Lost, || {
            format!("recovered up to {end}, and up to {} before", self.recovered_end)
        })?;
        self.check_losses(view)?;
        self.dropped(view.first, view.dropped)?;
        self.ensure(view.first <= self.first_max(), Kind::Lost, || {
            format!("the oldest record kept is {}, the floor at most {}", view.first, self.first_max())
        })?;
        self.cut(stopped, end)?;
        // What follows may be there behind what was given up, and of that the client may not have been told (seed 75074).
        let there = if stopped < Stopped::Failing { Fate::Durable } else { Fate::Maybe };
        for record in self.records.iter_mut().flatten() {
            if matches!(record.fate, Fate::Pending | Fate::Written) {
                record.fate = there;
            }
        }
        self.recovered_end = end;
        self.may_jump = self.level == ReadLevel::Written;
        self.check_tags(end, view)?;
        self.check_cursors(end, view)
    }

    /// What lies at or above `end` is gone.
    fn cut(&mut self, stopped: Stopped, end: u64) -> Checked {
        for seq in end..self.end() {
            let Some(record) = self.record(seq).copied() else { continue };
            let kept = match record.fate {
                Fate::Durable => true,
                Fate::Written => stopped <= Stopped::Killed,
                Fate::Pending => stopped == Stopped::Clean,
                _ => false,
            };
            self.ensure(!kept, Kind::Lost, || {
                format!(
                    "seq {seq} was {:?} and is gone after {stopped:?}, recovered up to {end}",
                    record.fate
                )
            })?;
            let (first, group_end) = record.group;
            self.ensure(!(first < end && end < group_end), Kind::OutOfOrder, || {
                format!("half of the batch {first}..{group_end} is there, up to {end}")
            })?;
        }
        self.records.truncate(index(end));
        Ok(())
    }

    /// A producer's tag is that of its newest batch that is there; of those given up nobody knows.
    fn check_tags(&mut self, end: u64, view: &StreamView) -> Checked {
        self.tags.retain(|tag| tag.end <= end);
        let mut producers: Vec<Vec<u8>> = self.tags.iter().map(|tag| tag.producer.clone()).collect();
        producers.sort_unstable();
        producers.dedup();
        for producer in producers {
            let found = view.tags.iter().find(|(of, _)| *of == producer).map(|(_, value)| value.as_slice());
            let mut possible = Vec::new();
            let mut is_certain = false;
            for tag in self.tags.iter().rev().filter(|tag| tag.producer == producer) {
                match self.fate(tag.first) {
                    // One that damage hit may be known from what is left, though its record is told lost (`--swarm`, seed 532769).
                    Some(Fate::Never | Fate::Gone) if !tag.is_doubtful => {}
                    fate => {
                        possible.push(Some(tag.value.as_slice()));
                        is_certain = fate == Some(Fate::Durable) && !tag.is_doubtful;
                    }
                }
                if is_certain {
                    break;
                }
            }
            if !is_certain {
                possible.push(None);
            }
            self.ensure(possible.contains(&found), Kind::Lost, || {
                format!("tag of {producer:?} is {found:?}, possible {possible:?}")
            })?;
        }
        Ok(())
    }

    fn check_cursors(&mut self, end: u64, view: &StreamView) -> Checked {
        for found in &view.consumers {
            let name = &found.name;
            self.ensure(found.cursor <= end, Kind::Ahead, || {
                format!("cursor {name} is at {}, recovered up to {end}", found.cursor)
            })?;
            let Some(cursor) = self.cursors.get_mut(name) else {
                return self.fail(Kind::Resurrected, format!("consumer {name} is back"));
            };
            cursor.reopened(name, found.cursor)?;
        }
        let missing = |name: &String| !view.consumers.iter().any(|found| found.name == *name);
        for (name, cursor) in &self.cursors {
            let lost = cursor.presence == Presence::Present && missing(name);
            self.ensure(!lost, Kind::Lost, || format!("consumer {name} is gone"))?;
        }
        self.cursors.retain(|name, _| !missing(name));
        Ok(())
    }
}
