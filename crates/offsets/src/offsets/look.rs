//! What [`Offsets`] says: all of it durable, none of it a call to the disk.

use wal_format::{ConsumerId, StreamId};

use super::Offsets;
use crate::entry::{AgeMark, CleanStop, ConsumerEntry, DurableEnd, Floor, OpenTime, Trims};
use crate::journal::{Generation, Journal};

impl Offsets {
    /// The record of a clean stop, if the last run left one and it is not void.
    #[must_use]
    pub const fn was_clean(&self) -> Option<&CleanStop> {
        self.state.clean.as_ref()
    }

    /// A consumer by its id.
    #[must_use]
    pub fn consumer(&self, consumer: ConsumerId) -> Option<&ConsumerEntry> {
        self.state.consumers.get(&consumer)
    }

    /// A consumer by its stream and name.
    #[must_use]
    pub fn consumer_named(&self, stream: StreamId, name: &str) -> Option<&ConsumerEntry> {
        self.consumers_of(stream).find(|entry| entry.name == name)
    }

    /// The consumers of a stream, ascending by id.
    pub fn consumers_of(&self, stream: StreamId) -> impl Iterator<Item = &ConsumerEntry> {
        self.state.ids_of(stream).filter_map(|consumer| self.state.consumers.get(&consumer))
    }

    /// All consumers, ascending by id.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &ConsumerEntry> {
        self.state.consumers.values()
    }

    /// The floor of a stream, if one was ever saved.
    #[must_use]
    pub fn floor(&self, stream: StreamId) -> Option<&Floor> {
        self.state.floors.get(&stream)
    }

    /// What policies dropped of a stream: the ranges not every consumer stands behind yet, and the totals.
    #[must_use]
    pub fn trims(&self, stream: StreamId) -> Option<&Trims> {
        self.state.trims.get(&stream)
    }

    /// How far a stream was at which time, ascending.
    #[must_use]
    pub fn age_marks(&self, stream: StreamId) -> &[AgeMark] {
        self.state.marks.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// For how long the queue was open, as of the last save that told.
    #[must_use]
    pub const fn open_time(&self) -> OpenTime {
        self.state.open_time
    }

    /// The durable end of a stream as of the last save that named it: the stream may be longer.
    #[must_use]
    pub fn durable_end(&self, stream: StreamId) -> Option<DurableEnd> {
        self.state.ends.get(&stream).copied()
    }

    /// All streams of which anything is known, ascending.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamId> {
        let state = &self.state;
        let mut streams: Vec<_> = state.by_stream.iter().map(|&(stream, _)| stream).collect();
        streams.extend(state.floors.keys().chain(state.ends.keys()));
        streams.extend(state.trims.keys().chain(state.marks.keys()));
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// The id the next consumer will get.
    #[must_use]
    pub const fn next_consumer_id(&self) -> ConsumerId {
        ConsumerId::new(self.state.next_consumer)
    }

    /// Bytes in use of the journal file saves go to, 0 before the first save of a run; for statistics.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::used_bytes)
    }

    /// The generation saves go to, `None` before the first save of a run and after a failed one.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.journal.as_ref().and_then(Journal::generation)
    }
}
