//! The caller's means to wait for a level. Dropping one changes nothing: the record is committed all the same.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{CommitError, Level, Seq};

/// Stands for one `append` or `append_batch`. A future at level [`Level::Durable`] unless [`Ticket::level`] says otherwise.
#[derive(Debug)]
#[must_use = "a record is safe only once its ticket resolved; drop it on purpose if that is not needed"]
pub struct Ticket {}

impl Ticket {
    /// Waits for this level instead of `Durable`.
    pub fn level(self, _level: Level) -> Self {
        todo!()
    }
    /// Seq of the record, of the first one of a batch.
    #[must_use]
    pub fn seq(&self) -> Seq {
        todo!()
    }
    /// Seqs of all its records.
    #[must_use]
    pub fn seqs(&self) -> Range<u64> {
        todo!()
    }
    /// Blocks until the level is reached; commits inline if nobody else does. Not for async code: await the ticket there.
    ///
    /// # Errors
    /// Whether the records are durable is not known, or they are known not to be; the error says which.
    pub fn wait(self) -> Result<Seq, CommitError> {
        todo!()
    }
}

impl Future for Ticket {
    type Output = Result<Seq, CommitError>;
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        todo!()
    }
}
