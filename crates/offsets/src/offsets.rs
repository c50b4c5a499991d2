//! [`Offsets`]: the durable cursors, floors and ends of one queue.

use std::sync::Arc;

use disk::{Disk, SyncSite};
use wal_format::{ConsumerId, QueueId, StreamId};

use crate::entry::{CleanStop, ConsumerEntry, DurableEnd, Floor, NewConsumer, Save};
use crate::error::{OpenError, SaveError};
use crate::report::OffsetsReport;

/// Longest name of a consumer, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Longest note of a consumer, in bytes.
pub const NOTE_BYTES_MAX: usize = 256;
/// Most ranges acked above a cursor.
pub const ACKED_RANGES_MAX: usize = 1024;

/// The call sites at which this crate syncs.
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

/// The durable cursors, floors and ends of one queue.
#[derive(Debug)]
pub struct Offsets {}

impl Offsets {
    /// Opens for writing; the caller holds the queue's lock.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(disk: Arc<dyn Disk>, queue: QueueId) -> Result<(Self, OffsetsReport), OpenError> {
        let _ = (disk, queue);
        todo!()
    }

    /// Opens for looking, beside a live owner; changes nothing on the disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn read_only(disk: Arc<dyn Disk>, queue: QueueId) -> Result<(Self, OffsetsReport), OpenError> {
        let _ = (disk, queue);
        todo!()
    }

    /// Registers a consumer durably.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn create_consumer(&mut self, new: NewConsumer) -> Result<ConsumerId, SaveError> {
        let _ = new;
        todo!()
    }

    /// Forgets a consumer durably.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn remove_consumer(&mut self, consumer: ConsumerId) -> Result<(), SaveError> {
        let _ = consumer;
        todo!()
    }

    /// Forgets a stream with its consumers, floor and end.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn forget_stream(&mut self, stream: StreamId) -> Result<(), SaveError> {
        let _ = stream;
        todo!()
    }

    /// Saves with one write and one sync.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save(&mut self, save: &Save<'_>, site: SyncSite) -> Result<(), SaveError> {
        let _ = (save, site);
        todo!()
    }

    /// Records a clean stop.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn clean_stop(&mut self, ends: &[(StreamId, DurableEnd)]) -> Result<(), SaveError> {
        let _ = ends;
        todo!()
    }

    /// Makes the record of a clean stop void, durably; a no-op without one.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn void_clean_stop(&mut self) -> Result<(), SaveError> {
        todo!()
    }

    /// The record of a clean stop, if the last run left one and it is not void yet.
    #[must_use]
    pub fn was_clean(&self) -> Option<&CleanStop> {
        todo!()
    }

    /// A consumer by id.
    #[must_use]
    pub fn consumer(&self, consumer: ConsumerId) -> Option<&ConsumerEntry> {
        let _ = consumer;
        todo!()
    }

    /// A consumer by stream and name.
    #[must_use]
    pub fn consumer_named(&self, stream: StreamId, name: &str) -> Option<&ConsumerEntry> {
        let _ = (stream, name);
        todo!()
    }

    /// The consumers of a stream, ascending by id.
    pub fn consumers_of(&self, stream: StreamId) -> impl Iterator<Item = &ConsumerEntry> {
        let _ = (self, stream);
        std::iter::empty()
    }

    /// All consumers, ascending by id.
    pub fn consumers(&self) -> impl Iterator<Item = &ConsumerEntry> {
        let _ = self;
        std::iter::empty()
    }

    /// The floor of a stream.
    #[must_use]
    pub fn floor(&self, stream: StreamId) -> Option<&Floor> {
        let _ = stream;
        todo!()
    }

    /// The saved durable end of a stream.
    #[must_use]
    pub fn durable_end(&self, stream: StreamId) -> Option<DurableEnd> {
        let _ = stream;
        todo!()
    }

    /// The id the next consumer will get.
    #[must_use]
    pub fn next_consumer_id(&self) -> ConsumerId {
        todo!()
    }
}
