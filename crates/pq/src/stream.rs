//! One stream of a queue: appends, and the doors to its consumers.

use std::sync::Arc;

use crate::core::StreamState;
use crate::shell::Shell;
use crate::{
    AppendDurableError, AppendError, CommitError, Consumer, ConsumerSettings, ConsumerStats, Ends, Limits,
    Loss, OwnedTag, Record, Seq, StreamError, StreamId, StreamSettings, StreamStats, Tag, Ticket,
};

/// A stream. Cheap to clone; all clones are the same stream.
#[derive(Debug, Clone)]
pub struct Stream {
    pub(crate) shell: Arc<Shell>,
    pub(crate) state: Arc<StreamState>,
}

impl Stream {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its id in this queue, never used again.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.state.id
    }

    /// What it may hold, as of now.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.state.log.limits()
    }

    /// Changes what it may hold, at once; kept with the stream, durably, before it returns. What is over a lower limit stays until it is
    /// delivered, or dropped if that is the policy.
    ///
    /// # Errors
    /// The limits cannot be, or the disk; the old ones stay.
    pub fn set_limits(&self, limits: Limits) -> Result<(), StreamError> {
        self.shell.core.set_limits(&self.state, limits)
    }

    /// The settings it was opened with; its limits may have changed since, see [`Stream::limits`].
    #[must_use]
    pub fn settings(&self) -> &StreamSettings {
        &self.state.settings
    }

    /// Takes one record. Never waits for the device; the seq is known at once.
    ///
    /// # Errors
    /// The record was not taken: no room ([`AppendError::Busy`]), a byte limit is reached ([`AppendError::Full`], or
    /// [`AppendError::Dropped`] if the policy is to drop the newest), too long, the stream is paused, deleted or closed.
    pub fn append(&self, payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        self.append_record(Record::new(payload.as_ref()))
    }

    /// [`Stream::append`] for a payload in several slices, and with marks.
    ///
    /// # Errors
    /// As for `append`.
    pub fn append_record(&self, record: Record<'_>) -> Result<Ticket, AppendError> {
        self.ticket(self.state.log.append(record, self.shell.now()))
    }

    /// [`Stream::append`] that blocks while there is no room, and at a byte limit where the policy is to block or to drop the oldest.
    ///
    /// # Errors
    /// As for `append`, but never `Busy`.
    pub fn append_blocking(&self, payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        self.append_record_blocking(Record::new(payload.as_ref()))
    }

    /// [`Stream::append_record`] that blocks while there is no room.
    ///
    /// # Errors
    /// As for `append`, but never `Busy`.
    pub fn append_record_blocking(&self, record: Record<'_>) -> Result<Ticket, AppendError> {
        self.ticket(self.state.log.append_blocking(record, self.shell.now()))
    }

    /// [`Stream::append`] that waits, without blocking, while there is no room.
    ///
    /// # Errors
    /// As for `append`, but never `Busy`.
    pub async fn append_async(&self, payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        let record = Record::new(payload.as_ref());
        let taken = std::future::poll_fn(|cx| self.state.log.poll_append(record, self.shell.now(), cx)).await;
        self.ticket(taken)
    }

    /// Appends and blocks until the record is durable.
    ///
    /// # Errors
    /// Nothing was taken, or its fate is what the inner [`CommitError`] says.
    pub fn append_durable(&self, payload: impl AsRef<[u8]>) -> Result<Seq, AppendDurableError> {
        Ok(self.append_blocking(payload)?.wait()?)
    }

    /// Takes all records or none: all or nothing after a crash, and in visibility. The tag, if any, becomes durable with them; the
    /// last one per producer is found again by [`Stream::last_tags`].
    ///
    /// # Errors
    /// Nothing was taken; a batch larger than `batch_bytes_max` is refused with both numbers.
    pub fn append_batch(&self, records: &[Record<'_>], tag: Option<Tag<'_>>) -> Result<Ticket, AppendError> {
        self.ticket(self.state.log.append_batch(records, tag, self.shell.now()))
    }

    /// [`Stream::append_batch`] that blocks while there is no room, committing what holds it, and at a byte limit where the policy is to
    /// block or to drop the oldest.
    ///
    /// # Errors
    /// As for `append_batch`; `Busy` only if the disk refuses to take what holds the room.
    pub fn append_batch_blocking(
        &self,
        records: &[Record<'_>],
        tag: Option<Tag<'_>>,
    ) -> Result<Ticket, AppendError> {
        self.making_room(|| self.state.log.append_batch_blocking(records, tag, self.shell.now()))
    }

    /// [`Stream::append_batch_blocking`] that does not wait at a byte limit: for those who have others to serve.
    ///
    /// # Errors
    /// As for `append_batch_blocking`.
    pub fn append_batch_unless_full(
        &self,
        records: &[Record<'_>],
        tag: Option<Tag<'_>>,
    ) -> Result<Ticket, AppendError> {
        self.making_room(|| self.state.log.append_batch(records, tag, self.shell.now()))
    }

    fn making_room(
        &self,
        append: impl Fn() -> Result<wal_store::Ticket, AppendError>,
    ) -> Result<Ticket, AppendError> {
        loop {
            let taken = append();
            let Err(AppendError::Busy { needed, limit, .. }) = taken else { return self.ticket(taken) };
            if needed > limit || !self.make_room(needed) {
                return self.ticket(taken);
            }
        }
    }

    /// Commits this stream, then all: what holds the room is not yet written. `false`: the disk refused all that hold any.
    fn make_room(&self, needed: usize) -> bool {
        let room = self.shell.core.room();
        let fits = || room.used().saturating_add(needed) <= room.limit();
        let (mut gave, mut refused) = (false, false);
        let mut commit = |stream: &StreamState| {
            let ends = stream.ends();
            match stream.log.commit(self.shell.now(), wal_store::Want::Batch) {
                // One that held nothing gave nothing: trying again because of it would try for ever.
                Ok(_) => gave |= ends.written < ends.appended,
                Err(_) => refused = true,
            }
        };
        commit(&self.state);
        for stream in self.shell.core.all_streams() {
            if fits() {
                return true;
            }
            commit(&stream);
        }
        gave || !refused || fits()
    }

    /// Blocks until everything appended before is durable; says up to where.
    ///
    /// # Errors
    /// What the error says of the records above the durable end.
    pub fn commit_blocking(&self) -> Result<Seq, CommitError> {
        let progress = self.state.log.commit(self.shell.now(), wal_store::Want::Durable)?;
        Ok(progress.ends.durable)
    }

    /// Blocks until everything appended before stands in a rotated segment; the next append begins a new one.
    ///
    /// # Errors
    /// As for `commit_blocking`.
    pub fn rotate(&self) -> Result<(), CommitError> {
        self.state.log.rotate(self.shell.now()).map(|_| ())
    }

    /// How far it is appended, written, durable, readable.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.state.ends()
    }

    /// The oldest seq kept; the end if none is.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.state.first()
    }

    /// The last durable tag of every producer.
    #[must_use]
    pub fn last_tags(&self) -> Vec<OwnedTag> {
        self.state.log.last_tags()
    }

    /// Every loss ever found in this stream and remembered, once each, ascending; see [`Queue::losses`](crate::Queue::losses).
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        self.state.losses()
    }

    /// Opens the consumer of that name, exclusively; registers it, durably, if there is none (start: the oldest record kept).
    ///
    /// # Errors
    /// [`StreamError::InUse`] if it is open.
    pub fn consumer(&self, name: &str) -> Result<Consumer, StreamError> {
        self.consumer_with(name, ConsumerSettings::default())
    }

    /// [`Stream::consumer`] with settings.
    ///
    /// # Errors
    /// As for `consumer`.
    pub fn consumer_with(&self, name: &str, settings: ConsumerSettings) -> Result<Consumer, StreamError> {
        let state = self.shell.core.take_consumer(&self.state, name, settings.start, self.shell.now())?;
        Ok(Consumer::new(self.clone(), state))
    }

    /// The registered consumers, in the order of their creation.
    #[must_use]
    pub fn consumers(&self) -> Vec<ConsumerStats> {
        self.state.consumers().iter().map(|consumer| self.state.consumer_stats(consumer)).collect()
    }

    /// Forgets a consumer and its cursor, durably; what only it held back can be retired.
    ///
    /// # Errors
    /// [`StreamError::InUse`] if it is open, `NoConsumer` if there is none.
    pub fn remove_consumer(&self, name: &str) -> Result<(), StreamError> {
        self.shell.core.remove_consumer(&self.state, name)
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        self.state.stats()
    }

    fn ticket(&self, taken: Result<wal_store::Ticket, AppendError>) -> Result<Ticket, AppendError> {
        taken.map(|inner| Ticket::new(inner, &self.shell.clock))
    }
}
