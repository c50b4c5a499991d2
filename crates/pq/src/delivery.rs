//! What a reader gets: whole batches as they stand in the file, records borrowed from them, and gaps where records are known never to
//! come. The bytes are the ones the kernel filled in, or those of the commit; nothing is copied.
//!
//! ```text
//!   Delivery ── items ── run of records ── bytes, shared
//!        │          └─── gap [from, to)
//!        └─ first() … next(): where the next delivery begins
//! ```

use std::sync::Arc;

use bytes::Bytes;
use scheduler::{Key, SeekNumber};
use wal_format::{QueueId, Seq, StreamIdentity};
use wal_store::{Chunk, Gap, Position, RecordRef, Run};

use crate::Incarnation;

/// A run of records and gaps of one stream, in order, made for one consumer. Cheap to clone; holds the bytes alive.
#[derive(Debug, Clone)]
pub struct Delivery {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: StreamIdentity,
    /// `None`: read without a consumer.
    made_for: Option<(Key, SeekNumber)>,
    first: Seq,
    chunk: Chunk,
}

/// One thing delivered.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A record.
    Record(RecordRef<'a>),
    /// Seqs that will never come.
    Gap(Gap),
}

impl Delivery {
    pub(crate) fn new(
        identity: StreamIdentity,
        made_for: Option<(Key, SeekNumber)>,
        first: Seq,
        chunk: Chunk,
    ) -> Self {
        Self { inner: Arc::new(Inner { identity, made_for, first, chunk }) }
    }

    /// The records, in order.
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        self.inner.chunk.records()
    }

    /// Records and gaps, in order.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.inner.chunk.items.iter().flat_map(|item| {
            let records = item.run().into_iter().flat_map(Run::records).map(Item::Record);
            records.chain(item.gap().map(Item::Gap))
        })
    }

    /// The gaps, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.inner.chunk.gaps()
    }

    /// The runs of records, in order: each one piece of memory.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.inner.chunk.items.iter().filter_map(wal_store::Item::run)
    }

    /// A record's payload as its own handle on the shared memory; `None` if the record is not of this delivery.
    #[must_use]
    pub fn share(&self, record: &RecordRef<'_>) -> Option<Bytes> {
        let run = self.runs().find(|run| run.first() <= record.seq && record.seq < run.end())?;
        Some(run.share(record))
    }

    /// Seq of the first thing delivered.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.inner.first
    }

    /// Seq behind the last thing delivered: where the next delivery begins.
    #[must_use]
    pub fn next(&self) -> Seq {
        self.inner.chunk.next
    }

    /// Records in it.
    #[must_use]
    pub fn records_count(&self) -> u64 {
        self.inner.chunk.record_count()
    }

    /// Bytes of memory behind it, an upper bound of its payload.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.runs().map(|run| run.bytes().len()).sum()
    }

    /// The queue's id; with the incarnation and a record's seq a key that is never used again.
    #[must_use]
    pub fn queue_id(&self) -> QueueId {
        self.inner.identity.queue
    }

    /// The incarnation of the stream.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.inner.identity.incarnation
    }

    pub(crate) fn made_for(&self) -> Option<(Key, SeekNumber)> {
        self.inner.made_for
    }

    pub(crate) fn next_hint(&self) -> Option<Position> {
        self.inner.chunk.next_hint
    }
}
