//! What a reader gets: whole batches as they stand in the file, records borrowed from them, and gaps where records are known to be lost.

use crate::{GapReason, Incarnation, QueueId, RecordRef, Seq};

/// A run of records and gaps of one stream, in order. Cheap to clone; holds the bytes alive.
#[derive(Debug, Clone)]
pub struct Delivery {}

/// Seqs that will never be delivered, in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// First lost seq.
    pub from: Seq,
    /// End of the lost seqs.
    pub to: Seq,
    /// Why.
    pub reason: GapReason,
}

/// One thing delivered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A record.
    Record(RecordRef<'a>),
    /// Lost seqs.
    Gap(Gap),
}

impl Delivery {
    /// The records, in order.
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        std::iter::empty()
    }
    /// Records and gaps, in order.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        std::iter::empty()
    }
    /// The gaps, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        std::iter::empty()
    }
    /// Seq of the first thing delivered.
    #[must_use]
    pub fn first(&self) -> Seq {
        todo!()
    }
    /// Seq behind the last thing delivered: where the next delivery begins.
    #[must_use]
    pub fn next(&self) -> Seq {
        todo!()
    }
    /// Records in it.
    #[must_use]
    pub fn records_count(&self) -> u64 {
        todo!()
    }
    /// Bytes of frames in it, an upper bound of its payload.
    #[must_use]
    pub fn bytes(&self) -> usize {
        todo!()
    }
    /// The queue's id; with the incarnation and a record's seq a key that is never used again.
    #[must_use]
    pub fn queue_id(&self) -> QueueId {
        todo!()
    }
    /// The incarnation of the stream.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        todo!()
    }
}
