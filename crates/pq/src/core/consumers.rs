//! Consumers: created, taken, given back, moved, removed. Whatever reads the floor holds the ledger until its own entry is durable and
//! the cache knows (I7).

use std::sync::Arc;

use offsets::{ConsumerEntry, CursorMove, NewConsumer, Save, sites};
use scheduler::Mode;
use wal_format::{Instant, Now, Seq};

use crate::clock::locked;
use crate::{Start, StreamError};

use super::tally::Fate;
use super::{ConsumerState, Core, Ledger, Phase, StreamState};

impl Core {
    /// Takes the consumer of that name exclusively, creates it if there is none, and attaches it as a pull consumer.
    ///
    /// # Errors
    /// `InUse`, a bad name, a start beyond the end, the disk.
    pub(crate) fn take_consumer(
        &self,
        stream: &Arc<StreamState>,
        name: &str,
        start: Start,
        now: Now,
    ) -> Result<Arc<ConsumerState>, StreamError> {
        let consumer = self.register_consumer(stream, name, start, now)?;
        self.hub.add_bell(consumer.key);
        self.attach(stream, &consumer, Mode::Pull, now.instant);
        Ok(consumer)
    }

    /// Takes the consumer of that name exclusively, creates it if there is none.
    ///
    /// # Errors
    /// As for `take_consumer`.
    pub(crate) fn register_consumer(
        &self,
        stream: &Arc<StreamState>,
        name: &str,
        start: Start,
        now: Now,
    ) -> Result<Arc<ConsumerState>, StreamError> {
        crate::names::check(name)?;
        self.hub.saw(now.instant);
        let mut ledger = locked(&self.ledger);
        self.check_open(stream)?;
        let consumer = match stream.consumer_named(name) {
            Some(consumer) => consumer,
            None => self.create(&mut ledger, stream, name, start, now)?,
        };
        drop(ledger);
        if !consumer.take() {
            return Err(StreamError::InUse { stream: stream.name.clone(), consumer: name.to_owned() });
        }
        Ok(consumer)
    }

    /// Attaches a taken consumer: its reading begins at its cursor. The cursor is durable and not below the floor, and the floor
    /// cannot pass it: it is registered.
    pub(crate) fn attach(
        &self,
        stream: &StreamState,
        consumer: &Arc<ConsumerState>,
        mode: Mode,
        now: Instant,
    ) {
        // The reading begins before the pool can lease it, so that the first delivery belongs to it.
        let woken = self.hub.with_cache(|cache| {
            let woken = cache.attach(consumer.key, consumer.cursor(), mode, now);
            consumer.begin(cache.seek_number(consumer.key));
            woken
        });
        self.hub.wake(woken);
        tracing::debug!(stream = %stream.name, consumer = %consumer.name, "attached");
    }

    /// Gives a consumer back; what it did not acknowledge is given out again to whoever takes it next.
    pub(crate) fn give_back(&self, consumer: &ConsumerState) {
        let _ = self.hub.with_cache(|cache| cache.detach(consumer.key));
        self.hub.remove_bell(consumer.key);
        consumer.give_back();
    }

    /// Forgets a consumer durably.
    ///
    /// # Errors
    /// `InUse`, `NotFound`, the disk.
    pub(crate) fn remove_consumer(&self, stream: &Arc<StreamState>, name: &str) -> Result<(), StreamError> {
        let mut ledger = locked(&self.ledger);
        self.check_open(stream)?;
        let missing = || StreamError::NoConsumer { stream: stream.name.clone(), consumer: name.to_owned() };
        let consumer = stream.consumer_named(name).ok_or_else(missing)?;
        if !consumer.take() {
            return Err(StreamError::InUse { stream: stream.name.clone(), consumer: name.to_owned() });
        }
        if let Err(error) = ledger.offsets.remove_consumer(consumer.key.consumer) {
            consumer.give_back();
            return Err(StreamError::cursors(&error));
        }
        stream.remove_consumer(consumer.key.consumer);
        consumer.remove();
        drop(ledger);
        self.hub.touch(stream.id);
        Ok(())
    }

    /// Moves a cursor, either way, durably.
    ///
    /// # Errors
    /// Beyond the end, or the disk; the cursor is where it was.
    pub(crate) fn seek(
        &self,
        stream: &Arc<StreamState>,
        consumer: &Arc<ConsumerState>,
        to: Start,
        now: Instant,
    ) -> Result<Seq, StreamError> {
        self.hub.saw(now);
        let mut ledger = locked(&self.ledger);
        self.check_open(stream)?;
        if consumer.is_removed() {
            return Err(StreamError::Deleted { name: stream.name.clone() });
        }
        let to = place_of(stream, to)?;
        let save = Save { cursors: &[CursorMove::seek(consumer.key.consumer, to)], ..Save::default() };
        let saved = self.saving(now, || ledger.offsets.save(&save, sites::SAVE));
        saved.map_err(|e| StreamError::cursors(&e))?;
        let woken = self.hub.with_cache(|cache| {
            let woken = cache.seek(consumer.key, to, now);
            consumer.sought(to, cache.seek_number(consumer.key));
            woken
        });
        drop(ledger);
        self.hub.wake(woken);
        self.hub.touch(stream.id);
        Ok(to)
    }

    /// Ends a consumer's back-off.
    #[cfg(feature = "tokio")]
    pub(crate) fn kick(&self, consumer: &ConsumerState, now: Instant) {
        let woken = self.hub.with_cache(|cache| cache.kick(consumer.key, now));
        self.hub.wake(woken);
    }

    /// An acknowledgement: in memory, and the tick is armed.
    ///
    /// # Errors
    /// The cursor is unchanged.
    pub(crate) fn ack(
        &self,
        consumer: &Arc<ConsumerState>,
        to: Seq,
        seek: Option<scheduler::SeekNumber>,
        hint: Option<wal_store::Position>,
        note: Option<&[u8]>,
    ) -> Result<super::AckDone, crate::AckError> {
        self.pass(consumer, to, seek, hint, note, Fate::Delivered)
    }

    /// As an acknowledgement, of records that were rejected and are dropped.
    ///
    /// # Errors
    /// The cursor is unchanged.
    #[cfg(feature = "tokio")]
    pub(crate) fn step_over(
        &self,
        consumer: &Arc<ConsumerState>,
        to: Seq,
        seek: Option<scheduler::SeekNumber>,
        hint: Option<wal_store::Position>,
    ) -> Result<(), crate::AckError> {
        self.pass(consumer, to, seek, hint, None, Fate::Dropped).map(drop)
    }

    fn pass(
        &self,
        consumer: &Arc<ConsumerState>,
        to: Seq,
        seek: Option<scheduler::SeekNumber>,
        hint: Option<wal_store::Position>,
        note: Option<&[u8]>,
        fate: Fate,
    ) -> Result<super::AckDone, crate::AckError> {
        if self.phase() == Phase::Closed {
            return Err(crate::AckError::Closed);
        }
        let done = consumer.ack(to, seek, hint, note, fate)?;
        if done != super::AckDone::Nothing {
            self.hub.moved();
        }
        if done == super::AckDone::ChangedFirst {
            self.hub.cursor_moved(consumer);
        }
        Ok(done)
    }

    fn create(
        &self,
        ledger: &mut Ledger,
        stream: &Arc<StreamState>,
        name: &str,
        start: Start,
        now: Now,
    ) -> Result<Arc<ConsumerState>, StreamError> {
        let cursor = place_of(stream, start)?;
        let new = NewConsumer {
            stream: stream.id,
            incarnation: stream.identity.incarnation,
            name: name.to_owned(),
            created_at: now.wall,
            cursor,
            hint: None,
        };
        let created = self.saving(now.instant, || ledger.offsets.create_consumer(new.clone()));
        let id = created.map_err(|e| StreamError::cursors(&e))?;
        let entry: Option<&ConsumerEntry> = ledger.offsets.consumer(id);
        let Some(entry) = entry else { return Err(StreamError::Closed) };
        let consumer = ConsumerState::new(entry, stream.identity, Seq::FIRST);
        stream.add_consumer(Arc::clone(&consumer));
        Ok(consumer)
    }

    pub(crate) fn check_open(&self, stream: &StreamState) -> Result<(), StreamError> {
        if self.phase() != Phase::Open {
            return Err(StreamError::Closed);
        }
        if stream.is_deleted() {
            return Err(StreamError::Deleted { name: stream.name.clone() });
        }
        Ok(())
    }
}

/// The seq a start stands for.
///
/// Whoever asks holds the ledger, so that the floor does not rise before its entry is durable.
fn place_of(stream: &StreamState, start: Start) -> Result<Seq, StreamError> {
    let oldest = stream.first();
    let ends = stream.ends();
    // A cursor is durable: it must not stand above what is.
    let end = ends.readable.min(ends.durable).max(oldest);
    match start {
        Start::Oldest => Ok(oldest),
        Start::Now => Ok(end),
        Start::Seq(seq) if seq > end => Err(StreamError::BeyondEnd { seq, end }),
        Start::Seq(seq) => Ok(seq.max(oldest)),
    }
}
