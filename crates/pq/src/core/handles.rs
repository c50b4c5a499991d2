//! The core's streams and consumers as a driver outside this crate holds them: a simulator, mostly.

use std::sync::Arc;

use scheduler::Mode;
use wal_format::{Incarnation, Now, Seq};
use wal_store::{Log, ReadBuffers};

use crate::{AckError, Delivery, Gap, Limits, ReadError, Start, StreamError, StreamSettings, StreamStats};

use super::{AckDone, ConsumerState, Core, StreamState, Turn, TurnResult};

/// A stream of a core.
#[derive(Debug, Clone)]
pub struct CoreStream(Arc<StreamState>);

/// A consumer of a core.
#[derive(Debug, Clone)]
pub struct CoreConsumer(Arc<ConsumerState>);

impl CoreStream {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Which life of its name it is: never the same again.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.0.identity.incarnation
    }

    /// The oldest seq kept, not below the floor; the end if there is none.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.0.first()
    }

    /// Every loss ever found in it, once.
    #[must_use]
    pub fn losses(&self) -> Vec<Gap> {
        self.0.lost_gaps()
    }

    /// What was counted of it and of its consumers.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        self.0.stats()
    }

    /// Its registered consumers, taken or not, to look at.
    #[must_use]
    pub fn consumers(&self) -> Vec<CoreConsumer> {
        self.0.consumers().into_iter().map(CoreConsumer).collect()
    }

    /// Its log: to append to, to commit, to rotate.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.0.log
    }
}

impl CoreConsumer {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Seq of the next record not acknowledged.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.0.cursor()
    }

    /// The same as saved.
    #[must_use]
    pub fn saved(&self) -> Seq {
        self.0.saved()
    }

    /// The note given last.
    #[must_use]
    pub fn note(&self) -> Vec<u8> {
        self.0.note()
    }
}

impl Core {
    /// The stream of that name, created if there is none.
    ///
    /// # Errors
    /// The name, a setting, the disk, or the stream is paused.
    pub fn open_stream(
        &self,
        name: &str,
        settings: Option<&StreamSettings>,
        now: Now,
    ) -> Result<CoreStream, StreamError> {
        self.stream(name, settings, now).map(CoreStream)
    }

    /// Changes what a stream may hold, durably and at once.
    ///
    /// # Errors
    /// The limits cannot be, or the disk; the old ones stay.
    pub fn limit_stream(&self, stream: &CoreStream, limits: Limits) -> Result<(), StreamError> {
        self.set_limits(&stream.0, limits)
    }

    /// Deletes a stream with its records and cursors.
    ///
    /// # Errors
    /// `NotFound`, or the disk.
    pub fn remove_stream(&self, name: &str, now: Now) -> Result<(), StreamError> {
        self.delete_stream(name, now)
    }

    /// Takes a consumer to pull from; created if there is none.
    ///
    /// # Errors
    /// `InUse`, the name, the start, the disk.
    pub fn open_consumer(
        &self,
        stream: &CoreStream,
        name: &str,
        start: Start,
        now: Now,
    ) -> Result<CoreConsumer, StreamError> {
        self.take_consumer(&stream.0, name, start, now).map(CoreConsumer)
    }

    /// Takes a consumer whose turns come out of [`Core::lease`]; created if there is none.
    ///
    /// # Errors
    /// As for `open_consumer`.
    pub fn open_sink(
        &self,
        stream: &CoreStream,
        name: &str,
        start: Start,
        now: Now,
    ) -> Result<CoreConsumer, StreamError> {
        let consumer = self.register_consumer(&stream.0, name, start, now)?;
        self.attach(&stream.0, &consumer, Mode::Pool, now.instant);
        Ok(CoreConsumer(consumer))
    }

    /// Gives a consumer back.
    pub fn release(&self, consumer: &CoreConsumer) {
        self.give_back(&consumer.0);
    }

    /// Forgets a consumer durably; it must not be taken.
    ///
    /// # Errors
    /// `InUse`, `NoConsumer`, the disk.
    pub fn forget_consumer(&self, stream: &CoreStream, name: &str) -> Result<(), StreamError> {
        self.remove_consumer(&stream.0, name)
    }

    /// Moves a cursor, either way, durably.
    ///
    /// # Errors
    /// Beyond the end, or the disk.
    pub fn move_cursor(
        &self,
        stream: &CoreStream,
        consumer: &CoreConsumer,
        to: Start,
        now: Now,
    ) -> Result<Seq, StreamError> {
        self.seek(&stream.0, &consumer.0, to, now.instant)
    }

    /// What is there next for a consumer that pulls; `None`: nothing now.
    ///
    /// # Errors
    /// Nothing was skipped.
    pub fn next(
        &self,
        stream: &CoreStream,
        consumer: &CoreConsumer,
        bytes_max: usize,
        buffers: &mut ReadBuffers,
        now: Now,
    ) -> Result<Option<Delivery>, ReadError> {
        while let Some(mut turn) = self.lease_for(&stream.0, &consumer.0, now.instant) {
            match turn.read(bytes_max, buffers) {
                Ok(delivery) => {
                    turn.end(TurnResult::Handed, now.instant);
                    if delivery.is_some() {
                        return Ok(delivery);
                    }
                }
                Err(error) => {
                    turn.end(TurnResult::Failed { wait_min: std::time::Duration::ZERO }, now.instant);
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Everything below `to` is done with. `false`: it was before, or `delivery` belongs to an older reading.
    ///
    /// # Errors
    /// The cursor is unchanged.
    pub fn acknowledge(
        &self,
        consumer: &CoreConsumer,
        delivery: &Delivery,
        to: Seq,
        note: Option<&[u8]>,
    ) -> Result<bool, AckError> {
        let seek = consumer.0.seek_of(delivery)?;
        let hint = delivery.next_hint().filter(|_| to == delivery.next());
        Ok(self.ack(&consumer.0, to, Some(seek), hint, note)? != AckDone::Nothing)
    }
}

impl Turn {
    /// Whose turn it is.
    #[must_use]
    pub fn whose(&self) -> CoreConsumer {
        CoreConsumer(Arc::clone(&self.consumer))
    }
}
