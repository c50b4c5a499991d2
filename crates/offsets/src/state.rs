//! What the journal says, in memory: maps, and one function a change. No I/O.
//!
//! Invariants: `by_stream` holds exactly the keys of `consumers`; `next_consumer` is above every id ever seen.

use std::collections::{BTreeMap, BTreeSet};

use wal_format::{ConsumerId, StreamId};

use crate::change::{BodyError, Change, ChangeWriter, decode};
use crate::entry::{CleanStop, ConsumerEntry, CursorMove, DurableEnd, Floor};

/// The whole state of the cursor journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) consumers: BTreeMap<ConsumerId, ConsumerEntry>,
    pub(crate) by_stream: BTreeSet<(StreamId, ConsumerId)>,
    pub(crate) floors: BTreeMap<StreamId, Floor>,
    pub(crate) ends: BTreeMap<StreamId, DurableEnd>,
    pub(crate) next_consumer: u64,
    pub(crate) clean: Option<CleanStop>,
    /// How many ends the clean stop said it has; with fewer of them it does not count.
    clean_count: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            consumers: BTreeMap::new(),
            by_stream: BTreeSet::new(),
            floors: BTreeMap::new(),
            ends: BTreeMap::new(),
            next_consumer: 1,
            clean: None,
            clean_count: 0,
        }
    }
}

impl State {
    /// Applies a body of the journal; returns how many of its items made no sense.
    pub(crate) fn replay(&mut self, body: &[u8]) -> Result<u64, BodyError> {
        let mut ignored = 0;
        let decoded = decode(body, |change| {
            if !self.replay_change(change) {
                ignored += 1;
            }
        });
        match decoded {
            Ok(()) => Ok(ignored),
            Err(BodyError::Malformed) => Ok(ignored + 1),
            Err(error @ BodyError::UnknownKind(_)) => Err(error),
        }
    }

    /// To be called when the whole journal was replayed.
    pub(crate) fn replayed(&mut self) {
        let whole = self.clean.as_ref().is_none_or(|clean| clean.ends.len() as u64 == self.clean_count);
        if !whole {
            self.clean = None;
        }
    }

    fn replay_change(&mut self, change: Change) -> bool {
        match change {
            Change::Consumer(entry) => self.put_consumer(entry),
            Change::Cursor(to) => return self.move_cursor(&to),
            Change::Floor(stream, floor) => self.put_floor(stream, floor),
            Change::Tag(stream, tag) => match self.floors.get_mut(&stream) {
                Some(floor) => floor.tags.push(tag),
                None => return false,
            },
            Change::End(stream, end) => self.put_end(stream, end),
            Change::Removed(consumer) => self.remove_consumer(consumer),
            Change::Forgotten(stream) => self.forget_stream(stream),
            Change::NextConsumer(id) => self.next_consumer = self.next_consumer.max(id),
            Change::CleanStop(count) => {
                self.clean = Some(CleanStop { ends: Vec::new() });
                self.clean_count = count;
            }
            Change::CleanStopEnd(stream, end) => match &mut self.clean {
                Some(clean) => clean.ends.push((stream, end)),
                None => return false,
            },
            Change::CleanStopVoid => self.clean = None,
        }
        true
    }

    pub(crate) fn put_consumer(&mut self, entry: ConsumerEntry) {
        self.next_consumer = self.next_consumer.max(entry.consumer.get().saturating_add(1));
        self.by_stream.insert((entry.stream, entry.consumer));
        self.consumers.insert(entry.consumer, entry);
    }

    /// Moves a cursor, whichever way; `false` if nobody knows the consumer.
    pub(crate) fn move_cursor(&mut self, to: &CursorMove) -> bool {
        let Some(entry) = self.consumers.get_mut(&to.consumer) else { return false };
        entry.cursor = to.cursor;
        entry.hint = to.hint;
        entry.acked_above.clone_from(&to.acked_above);
        if let Some(note) = &to.note {
            entry.note.clone_from(note);
        }
        true
    }

    pub(crate) fn put_floor(&mut self, stream: StreamId, floor: Floor) {
        self.floors.insert(stream, floor);
    }

    pub(crate) fn put_end(&mut self, stream: StreamId, end: DurableEnd) {
        self.ends.insert(stream, end);
    }

    pub(crate) fn remove_consumer(&mut self, consumer: ConsumerId) {
        if let Some(entry) = self.consumers.remove(&consumer) {
            self.by_stream.remove(&(entry.stream, consumer));
        }
    }

    pub(crate) fn forget_stream(&mut self, stream: StreamId) {
        let consumers: Vec<_> = self.ids_of(stream).collect();
        for consumer in consumers {
            self.remove_consumer(consumer);
        }
        self.floors.remove(&stream);
        self.ends.remove(&stream);
        if let Some(clean) = &mut self.clean {
            let before = clean.ends.len();
            clean.ends.retain(|&(of, _)| of != stream);
            self.clean_count = self.clean_count.saturating_sub((before - clean.ends.len()) as u64);
        }
    }

    pub(crate) fn put_clean_stop(&mut self, ends: &[(StreamId, DurableEnd)]) {
        self.clean_count = ends.len() as u64;
        self.clean = Some(CleanStop { ends: ends.to_vec() });
        self.ends.extend(ends.iter().copied());
    }

    pub(crate) fn ids_of(&self, stream: StreamId) -> impl Iterator<Item = ConsumerId> {
        let all = (stream, ConsumerId::new(0))..=(stream, ConsumerId::new(u64::MAX));
        self.by_stream.range(all).map(|&(_, consumer)| consumer)
    }

    /// Writes all of it.
    pub(crate) fn snapshot(&self, write: &mut ChangeWriter<'_>) {
        write.next_consumer(self.next_consumer);
        for entry in self.consumers.values() {
            write.consumer(entry);
        }
        for (&stream, &end) in &self.ends {
            write.end(stream, end);
        }
        for (&stream, floor) in &self.floors {
            write.floor(stream, floor);
        }
        if let Some(clean) = &self.clean {
            write.clean_stop(&clean.ends);
        }
    }
}
