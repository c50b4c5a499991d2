//! [`Offsets`]: the durable cursors, floors and ends of one queue.
//!
//! Each change is checked, encoded, made durable, and only then applied to memory.

use std::path::PathBuf;
use std::sync::Arc;

use disk::{Disk, SyncSite};
use wal_format::{ConsumerId, JournalKind, QueueId, StreamId};

use crate::change::ChangeWriter;
use crate::check;
use crate::entry::{ConsumerEntry, DurableEnd, FloorReason, NewConsumer, Save, Trims};
use crate::error::{OpenError, SaveError};
use crate::journal::{Bodies, Journal, JournalOptions};
use crate::replay::{replay, snapshot};
use crate::report::OffsetsReport;
use crate::state::State;

/// The call sites at which [`Offsets`] syncs; a new generation syncs at the journal's own.
pub mod sites {
    use disk::SyncSite;

    /// [`Offsets::create_consumer`](crate::Offsets::create_consumer).
    pub const CREATE: SyncSite = SyncSite::new("cursors.create");
    /// [`Offsets::remove_consumer`](crate::Offsets::remove_consumer).
    pub const REMOVE: SyncSite = SyncSite::new("cursors.remove");
    /// [`Offsets::forget_stream`](crate::Offsets::forget_stream).
    pub const FORGET: SyncSite = SyncSite::new("cursors.forget");
    /// [`Offsets::clean_stop`](crate::Offsets::clean_stop).
    pub const CLEAN_STOP: SyncSite = SyncSite::new("cursors.clean_stop");
    /// [`Offsets::void_clean_stop`](crate::Offsets::void_clean_stop).
    pub const VOID: SyncSite = SyncSite::new("cursors.void");
    /// For the `site` of [`Offsets::save`](crate::Offsets::save).
    pub const SAVE: SyncSite = SyncSite::new("cursors.save");
}

mod look;

/// Prefix of the journal's file names.
const PREFIX: &str = "cursors";

/// The durable cursors, floors and ends of one queue, one owner at a time.
///
/// What it says is what is durable: after a failed save it still says the old values.
#[derive(Debug)]
pub struct Offsets {
    state: State,
    /// `None` if opened for reading only.
    journal: Option<Journal>,
    changes: Bodies,
    certainty: Certainty,
}

/// Whether the disk may say something else than memory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// The last save succeeded, or there was none in this run.
    Same,
    /// A save failed and none succeeded since: after a crash its changes may be found.
    MayDiffer,
}

impl Offsets {
    /// Opens the journal `cursors-*` in the disk's root for writing; the caller holds the queue's lock.
    ///
    /// Nothing is written but that leftovers of a crash are removed; the first save of a run makes a new generation.
    ///
    /// # Errors
    /// [`OpenError`], nothing was changed. Damage is no error: what is sound is there, the report says what is not.
    pub fn open(disk: Arc<dyn Disk>, queue: QueueId) -> Result<(Self, OffsetsReport), OpenError> {
        Self::open_with(disk, queue, JournalOptions::default())
    }

    /// [`open`](Self::open) with limits of your own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        disk: Arc<dyn Disk>,
        queue: QueueId,
        options: JournalOptions,
    ) -> Result<(Self, OffsetsReport), OpenError> {
        let dir = PathBuf::new();
        let (journal, bodies, report) =
            Journal::open_with(disk, &dir, PREFIX, JournalKind::CURSORS, queue, options)?;
        let (state, report) = replay(&bodies, report)?;
        Ok((
            Self { state, journal: Some(journal), changes: Bodies::new(), certainty: Certainty::Same },
            report,
        ))
    }

    /// Reads the journal beside a live owner, or without one; changes nothing on the disk, and cannot save.
    ///
    /// What it says was durable at some moment during the call, or was about to be.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn read_only(disk: Arc<dyn Disk>, queue: QueueId) -> Result<(Self, OffsetsReport), OpenError> {
        let (bodies, report) = Journal::read_only(&*disk, PREFIX, JournalKind::CURSORS, queue)?;
        let (state, report) = replay(&bodies, report)?;
        Ok((Self { state, journal: None, changes: Bodies::new(), certainty: Certainty::Same }, report))
    }

    /// Registers a consumer durably and returns its id, which no other consumer of this queue ever had.
    ///
    /// # Errors
    /// [`SaveError::NameTaken`], [`SaveError::OutOfRange`] for its name, [`SaveError::Journal`]. The consumer is not
    /// there; after a failed save a crash may bring it, unless another save succeeded in between.
    pub fn create_consumer(&mut self, new: NewConsumer) -> Result<ConsumerId, SaveError> {
        check::name(&new.name)?;
        if self.consumer_named(new.stream, &new.name).is_some() {
            return Err(SaveError::NameTaken { stream: new.stream, name: new.name });
        }
        if self.state.next_consumer == u64::MAX {
            return Err(SaveError::IdsUsedUp);
        }
        let entry = ConsumerEntry {
            stream: new.stream,
            incarnation: new.incarnation,
            consumer: ConsumerId::new(self.state.next_consumer),
            name: new.name,
            created_at: new.created_at,
            cursor: new.cursor,
            hint: new.hint,
            acked_above: Vec::new(),
            note: Vec::new(),
        };
        self.commit(sites::CREATE, |write| write.consumer(&entry))?;
        let consumer = entry.consumer;
        self.state.put_consumer(entry);
        Ok(consumer)
    }

    /// Forgets a consumer durably.
    ///
    /// # Errors
    /// [`SaveError::UnknownConsumer`], [`SaveError::Journal`]. The consumer is still there.
    pub fn remove_consumer(&mut self, consumer: ConsumerId) -> Result<(), SaveError> {
        if !self.state.consumers.contains_key(&consumer) {
            return Err(SaveError::UnknownConsumer { consumer });
        }
        self.commit(sites::REMOVE, |write| write.removed(consumer))?;
        self.state.remove_consumer(consumer);
        Ok(())
    }

    /// Forgets a stream durably: its consumers, floor, durable end. Nothing is written if nothing is known of it, unless
    /// a save failed before.
    ///
    /// # Errors
    /// [`SaveError::Journal`]. All of it is still there.
    pub fn forget_stream(&mut self, stream: StreamId) -> Result<(), SaveError> {
        let state = &self.state;
        let known = state.ids_of(stream).next().is_some()
            || state.floors.contains_key(&stream)
            || state.ends.contains_key(&stream)
            || state.trims.contains_key(&stream)
            || state.marks.contains_key(&stream)
            || state.clean.as_ref().is_some_and(|clean| clean.ends.iter().any(|&(of, _)| of == stream));
        if !known {
            return self.settle(sites::FORGET);
        }
        self.commit(sites::FORGET, |write| write.forgotten(stream))?;
        self.state.forget_stream(stream);
        Ok(())
    }

    /// Saves cursors, floors and durable ends, all or nothing, with one write and one sync (a compaction, now and
    /// then, takes a few more). Durable ends make a record of a clean stop void.
    ///
    /// If several moves name one consumer the last one counts, and each is checked against what is durable.
    ///
    /// # Errors
    /// [`SaveError::UnknownConsumer`], [`SaveError::CursorBack`], [`SaveError::FloorBack`], [`SaveError::OutOfRange`]:
    /// nothing was written. [`SaveError::Journal`]: memory keeps the old values, and so does the disk, unless there is
    /// a crash before the next save that succeeds: then either may be found.
    pub fn save(&mut self, save: &Save<'_>, site: SyncSite) -> Result<(), SaveError> {
        check::save(&self.state, save)?;
        if save.is_empty() {
            return self.settle(site);
        }
        let trims = self.trims_after(save);
        let voids = !save.durable_ends.is_empty() && self.state.clean.is_some();
        self.commit(site, |write| {
            // In the order in which they may be acted on: a floor never without the cursors it follows from.
            save.durable_ends.iter().for_each(|&(stream, end)| write.end(stream, end));
            save.cursors.iter().for_each(|to| write.cursor(to));
            save.floors.iter().for_each(|(stream, floor)| write.floor(*stream, floor));
            for (stream, all) in &trims {
                all.ranges.iter().for_each(|range| write.trim(*stream, Some(range), all));
            }
            save.marks.iter().for_each(|&(stream, mark)| write.mark(stream, mark));
            save.open_time.iter().for_each(|&open_time| write.open_time(open_time));
            if voids {
                write.clean_stop_void();
            }
        })?;
        for &(stream, end) in save.durable_ends {
            self.state.put_end(stream, end);
        }
        for to in save.cursors {
            self.state.move_cursor(to);
        }
        for (stream, floor) in save.floors {
            self.state.put_floor(*stream, floor.clone());
        }
        for (stream, more) in trims {
            self.state.put_trims(stream, more);
        }
        for &(stream, mark) in save.marks {
            self.state.put_mark(stream, mark);
        }
        save.open_time.iter().for_each(|&open_time| self.state.put_open_time(open_time));
        if voids {
            self.state.clean = None;
        }
        Ok(())
    }

    /// Records a clean stop: the durable end of every stream, with nothing pending. It also saves these ends.
    ///
    /// # Errors
    /// [`SaveError::Journal`]. There is no record of a clean stop, which costs the next start some reading.
    pub fn clean_stop(&mut self, ends: &[(StreamId, DurableEnd)]) -> Result<(), SaveError> {
        let mut ends = ends.to_vec();
        ends.sort_unstable_by_key(|&(stream, _)| stream);
        ends.dedup_by_key(|&mut (stream, _)| stream);
        self.commit(sites::CLEAN_STOP, |write| {
            ends.iter().for_each(|&(stream, end)| write.end(stream, end));
            write.clean_stop(&ends);
        })?;
        self.state.put_clean_stop(&ends);
        Ok(())
    }

    /// Makes the record of a clean stop void, durably; to be called before the first write of a run. Writes nothing
    /// if there is none, unless a save failed before.
    ///
    /// # Errors
    /// [`SaveError::Journal`]. The record still stands: do not write to any stream.
    pub fn void_clean_stop(&mut self) -> Result<(), SaveError> {
        if self.state.clean.is_none() {
            return self.settle(sites::VOID);
        }
        self.commit(sites::VOID, |write| write.clean_stop_void())?;
        self.state.clean = None;
        Ok(())
    }

    /// Writes a new generation of the journal now, whatever its length.
    ///
    /// # Errors
    /// [`SaveError::Journal`]. What was durable still is.
    pub fn compact(&mut self) -> Result<(), SaveError> {
        let Some(journal) = &mut self.journal else { return Err(SaveError::ReadOnly) };
        let mut all = Bodies::new();
        snapshot(&self.state, &mut all);
        let result = journal.compact(&all);
        if result.is_ok() {
            self.certainty = Certainty::Same;
        }
        Ok(result?)
    }

    /// The new ranges of each stream, with the totals as they will be.
    fn trims_after(&self, save: &Save<'_>) -> Vec<(StreamId, Trims)> {
        let mut after: Vec<(StreamId, Trims)> = Vec::new();
        for &(stream, trim) in save.trims {
            if !after.iter().any(|(of, _)| *of == stream) {
                let before = self.state.trims.get(&stream).cloned().unwrap_or_default();
                after.push((stream, Trims { ranges: Vec::new(), ..before }));
            }
            let Some((_, all)) = after.iter_mut().find(|(of, _)| *of == stream) else { continue };
            let count = trim.from.distance_to(trim.to);
            match trim.reason {
                FloorReason::Expired => all.expired_count = all.expired_count.saturating_add(count),
                _ => all.trimmed_count = all.trimmed_count.saturating_add(count),
            }
            all.ranges.push(trim);
        }
        after
    }

    /// After a failed save, nothing to do is something to do: what the failed save may have left on the disk (a record
    /// of a clean stop, say) must not come back after the caller went on.
    fn settle(&mut self, site: SyncSite) -> Result<(), SaveError> {
        match self.certainty {
            Certainty::Same => Ok(()),
            Certainty::MayDiffer => self.commit(site, |_| ()),
        }
    }

    fn commit(
        &mut self,
        site: SyncSite,
        changes: impl FnOnce(&mut ChangeWriter<'_>),
    ) -> Result<(), SaveError> {
        let Some(journal) = &mut self.journal else { return Err(SaveError::ReadOnly) };
        self.changes.clear();
        let mut write = ChangeWriter::new(&mut self.changes);
        changes(&mut write);
        write.finish();
        let result = journal.save(&self.changes, |all| snapshot(&self.state, all), site);
        self.certainty = if result.is_ok() { Certainty::Same } else { Certainty::MayDiffer };
        Ok(result?)
    }
}
