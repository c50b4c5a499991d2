//! One stream of a queue: appends, and the doors to its consumers.

use crate::{
    AppendError, CommitError, Consumer, ConsumerSettings, ConsumerStats, Ends, OwnedTag, Record, Seq, StreamError,
    StreamSettings, StreamStats, Tag, Ticket,
};

/// A stream. Cheap to clone; all clones are the same stream.
#[derive(Debug, Clone)]
pub struct Stream {}

impl Stream {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &StreamSettings {
        todo!()
    }
    /// Takes one record. Never waits for the device; the seq is known at once.
    ///
    /// # Errors
    /// The record was not taken: no room ([`AppendError::Busy`]), too long, the stream is paused or closed.
    pub fn append(&self, _payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// [`Stream::append`] for a payload in several slices, and with marks.
    ///
    /// # Errors
    /// As for `append`.
    pub fn append_record(&self, _record: Record<'_>) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// [`Stream::append`] that blocks while there is no room.
    ///
    /// # Errors
    /// As for `append`, but never `Busy`.
    pub fn append_blocking(&self, _payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// [`Stream::append`] that waits, without blocking, while there is no room.
    ///
    /// # Errors
    /// As for `append`, but never `Busy`.
    pub async fn append_async(&self, _payload: impl AsRef<[u8]>) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// Appends and blocks until the record is durable.
    ///
    /// # Errors
    /// Nothing was taken, or its fate is what the inner [`CommitError`] says.
    pub fn append_durable(&self, _payload: impl AsRef<[u8]>) -> Result<Seq, crate::AppendDurableError> {
        todo!()
    }
    /// Takes all records or none: all or nothing after a crash, and in visibility. The tag, if any, becomes durable with them; the
    /// last one per producer is found again by [`Stream::last_tags`].
    ///
    /// # Errors
    /// Nothing was taken; a batch larger than `batch_bytes_max` is refused with both numbers.
    pub fn append_batch(&self, _records: &[Record<'_>], _tag: Option<Tag<'_>>) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// [`Stream::append_batch`] that blocks while there is no room.
    ///
    /// # Errors
    /// As for `append_batch`, but never `Busy`.
    pub fn append_batch_blocking(
        &self,
        _records: &[Record<'_>],
        _tag: Option<Tag<'_>>,
    ) -> Result<Ticket, AppendError> {
        todo!()
    }
    /// Blocks until everything appended before is durable.
    ///
    /// # Errors
    /// What the error says of the records above the durable end.
    pub fn commit_blocking(&self) -> Result<Seq, CommitError> {
        todo!()
    }
    /// Blocks until everything appended before stands in a rotated segment; the next append begins a new one.
    ///
    /// # Errors
    /// As for `commit_blocking`.
    pub fn rotate(&self) -> Result<(), CommitError> {
        todo!()
    }
    /// How far it is appended, written, durable, readable.
    #[must_use]
    pub fn ends(&self) -> Ends {
        todo!()
    }
    /// The oldest seq kept.
    #[must_use]
    pub fn first(&self) -> Seq {
        todo!()
    }
    /// The last durable tag of every producer.
    #[must_use]
    pub fn last_tags(&self) -> Vec<OwnedTag> {
        todo!()
    }
    /// Opens the consumer of that name, exclusively; registers it, durably, if there is none (start: the oldest record kept).
    ///
    /// # Errors
    /// [`StreamError::InUse`] if it is open.
    pub fn consumer(&self, _name: &str) -> Result<Consumer, StreamError> {
        todo!()
    }
    /// [`Stream::consumer`] with settings.
    ///
    /// # Errors
    /// As for `consumer`.
    pub fn consumer_with(&self, _name: &str, _settings: ConsumerSettings) -> Result<Consumer, StreamError> {
        todo!()
    }
    /// The registered consumers.
    #[must_use]
    pub fn consumers(&self) -> Vec<ConsumerStats> {
        todo!()
    }
    /// Forgets a consumer and its cursor, durably; what only it held back can be retired.
    ///
    /// # Errors
    /// [`StreamError::InUse`] if it is open, `NotFound` if there is none.
    pub fn remove_consumer(&self, _name: &str) -> Result<(), StreamError> {
        todo!()
    }
    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        todo!()
    }
}
