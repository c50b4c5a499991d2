//! The caller's means to wait for a level. Dropping one changes nothing: the record is committed all the same.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::{Clock, CommitError, Level, Seq};

/// Stands for one `append` or `append_batch`. A future at level [`Level::Durable`] unless [`Ticket::level`] says otherwise.
#[derive(Debug)]
#[must_use = "a record is safe only once its ticket resolved; drop it on purpose if that is not needed"]
pub struct Ticket {
    inner: wal_store::Ticket,
    level: Level,
    clock: Arc<dyn Clock>,
}

impl Ticket {
    pub(crate) fn new(inner: wal_store::Ticket, clock: &Arc<dyn Clock>) -> Self {
        Self { inner, level: Level::Durable, clock: Arc::clone(clock) }
    }

    /// Waits for this level instead of `Durable`.
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Seq of the record, of the first one of a batch.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.inner.seq()
    }

    /// Seqs of all its records: from the first up to, and not with, the end.
    #[must_use]
    pub fn seqs(&self) -> Range<Seq> {
        self.inner.seq()..self.inner.end()
    }

    /// Blocks until the level is reached; commits inline if nobody else does. Not for async code: await the ticket there.
    ///
    /// # Errors
    /// What is known of the records. After a retryable error they are still buffered: wait again, do not append again.
    pub fn wait(&self) -> Result<Seq, CommitError> {
        self.inner.wait(self.level, self.clock.both())
    }

    /// What is known now, without waiting; `None`: not yet.
    #[must_use]
    pub fn peek(&self) -> Option<Result<Seq, CommitError>> {
        self.inner.peek(self.level)
    }
}

impl Future for Ticket {
    type Output = Result<Seq, CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let level = self.level;
        self.inner.poll(level, cx)
    }
}
