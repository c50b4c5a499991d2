//! A ticket: the caller's means to wait until its records reached a level.
//!
//! It is not a promise to commit: a future puts the stream on its lane, a blocking wait commits by itself when nobody
//! else does. Dropping a ticket changes nothing. Tickets resolve by their batch's word, never by an end alone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use wal_format::{Now, Seq};

use crate::word::{WakerPlace, Word};
use crate::{CommitError, Level};

/// Waits for the records of one append. Dropping it changes nothing.
#[derive(Debug)]
pub struct Ticket {
    first: Seq,
    end: Seq,
    word: Arc<Word>,
    polled: Option<Polled>,
}

/// What a future remembers between polls.
#[derive(Debug)]
struct Polled {
    place: Option<WakerPlace>,
    stalls_seen: u32,
    level: Level,
}

impl Ticket {
    pub(crate) fn new(first: Seq, end: Seq, word: Arc<Word>) -> Self {
        Self { first, end, word, polled: None }
    }

    /// The first record's seq.
    pub fn seq(&self) -> Seq {
        self.first
    }

    /// Number of records.
    pub fn count(&self) -> u64 {
        self.first.distance_to(self.end)
    }

    /// The seq after the last record.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// Blocks until the records reached `level`; commits inline if the log is idle. Returns the first record's seq.
    ///
    /// # Errors
    /// [`CommitError`] says what is known of the records. After a retryable one they are still buffered: wait again.
    pub fn wait(&self, level: Level, now: Now) -> Result<Seq, CommitError> {
        let outcome = match self.word.outcome(level) {
            Some(outcome) => outcome,
            None => match self.word.log().upgrade() {
                Some(log) => log.wait_for(&self.word, self.end, level, now),
                // The log's last handle was dropped meanwhile, which settles all words.
                None => self.word.outcome(level).unwrap_or(Err(CommitError::Closed)),
            },
        };
        outcome.map(|()| self.first)
    }

    /// Ready once the records reached `level`; never calls the device. The first poll puts the stream on its lane:
    /// somebody else must commit there.
    ///
    /// # Errors
    /// As [`Ticket::wait`]. After a retryable error it may be polled again.
    pub fn poll(&mut self, level: Level, cx: &mut Context<'_>) -> Poll<Result<Seq, CommitError>> {
        if let Some(outcome) = self.word.outcome(level) {
            return Poll::Ready(outcome.map(|()| self.first));
        }
        let Some(log) = self.word.log().upgrade() else {
            // The log's last handle was dropped meanwhile, which settles all words.
            let outcome = self.word.outcome(level).unwrap_or(Err(CommitError::Closed));
            return Poll::Ready(outcome.map(|()| self.first));
        };
        if level == Level::Durable {
            log.ends.want_durable(self.end);
        }
        let asked_before = self.polled.as_ref().is_some_and(|polled| polled.level >= level);
        let polled =
            self.polled.get_or_insert_with(|| Polled { place: None, stalls_seen: log.stall.seen(), level });
        polled.level = polled.level.max(level);
        if let Some(outcome) = self.word.register_waker(&mut polled.place, level, cx) {
            return Poll::Ready(outcome.map(|()| self.first));
        }
        if let Some(error) = log.stall.since(polled.stalls_seen) {
            *polled = Polled { stalls_seen: log.stall.seen(), level: Level::Buffered, place: polled.place };
            return Poll::Ready(Err(error));
        }
        if !asked_before {
            log.ctx.events.enlist(log.ctx.identity.stream);
        }
        Poll::Pending
    }

    /// The outcome if it is known now, without waiting and without registering.
    pub fn peek(&self, level: Level) -> Option<Result<Seq, CommitError>> {
        Some(self.word.outcome(level)?.map(|()| self.first))
    }
}

/// A ticket as a future resolves at [`Level::Durable`].
impl Future for Ticket {
    type Output = Result<Seq, CommitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll(Level::Durable, cx)
    }
}
