//! What the journal says, in memory: maps, and one function a change. No I/O.
//!
//! Invariants: `by_stream` holds exactly the keys of `consumers`; `next_consumer` is above every id ever seen.

use std::collections::{BTreeMap, BTreeSet};

use wal_format::{ConsumerId, Seq, StreamId};

use crate::change::{BodyError, Change, ChangeWriter, decode};
use crate::entry::{AgeMark, CleanStop, ConsumerEntry, CursorMove, DurableEnd, Floor, OpenTime, Trims};
use crate::policy;

/// The whole state of the cursor journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) consumers: BTreeMap<ConsumerId, ConsumerEntry>,
    pub(crate) by_stream: BTreeSet<(StreamId, ConsumerId)>,
    pub(crate) floors: BTreeMap<StreamId, Floor>,
    pub(crate) ends: BTreeMap<StreamId, DurableEnd>,
    pub(crate) next_consumer: u64,
    pub(crate) clean: Option<CleanStop>,
    pub(crate) trims: BTreeMap<StreamId, Trims>,
    pub(crate) marks: BTreeMap<StreamId, Vec<AgeMark>>,
    pub(crate) open_time: OpenTime,
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
            trims: BTreeMap::new(),
            marks: BTreeMap::new(),
            open_time: OpenTime::default(),
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
            Change::Trim(stream, trims) => self.put_trims(stream, trims),
            Change::Mark(stream, mark) => self.put_mark(stream, mark),
            Change::OpenTime(open_time) => self.put_open_time(open_time),
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

    /// Adds ranges, and takes over the totals.
    pub(crate) fn put_trims(&mut self, stream: StreamId, more: Trims) {
        let least = self.least_cursor(stream);
        let trims = self.trims.entry(stream).or_default();
        trims.trimmed_count = trims.trimmed_count.max(more.trimmed_count);
        trims.expired_count = trims.expired_count.max(more.expired_count);
        for range in more.ranges {
            policy::add_range(&mut trims.ranges, range);
        }
        policy::forget_ranges(&mut trims.ranges, least);
    }

    pub(crate) fn put_mark(&mut self, stream: StreamId, mark: AgeMark) {
        let floor = self.floors.get(&stream).map(|floor| floor.seq);
        policy::add_mark(self.marks.entry(stream).or_default(), mark, floor);
    }

    pub(crate) fn put_open_time(&mut self, open_time: OpenTime) {
        self.open_time = self.open_time.max(open_time);
    }

    /// The least durable cursor of a stream's consumers.
    pub(crate) fn least_cursor(&self, stream: StreamId) -> Option<Seq> {
        self.ids_of(stream).filter_map(|id| self.consumers.get(&id)).map(|entry| entry.cursor).min()
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
        self.trims.remove(&stream);
        self.marks.remove(&stream);
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
        if self.open_time > OpenTime::default() {
            write.open_time(self.open_time);
        }
        for (&stream, marks) in &self.marks {
            marks.iter().for_each(|&mark| write.mark(stream, mark));
        }
        for (&stream, trims) in &self.trims {
            let mut ranges = trims.ranges.clone();
            policy::forget_ranges(&mut ranges, self.least_cursor(stream));
            // Also without a range: the totals stand in each.
            write.trim(stream, None, trims);
            ranges.iter().for_each(|range| write.trim(stream, Some(range), trims));
        }
        if let Some(clean) = &self.clean {
            write.clean_stop(&clean.ends);
        }
    }
}
