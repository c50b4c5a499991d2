//! A ticket: the caller's means to wait until its records reached a level.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use wal_format::{Now, Seq};

use crate::word::Word;
use crate::{CommitError, Level};

/// Waits for the records of one append. Dropping it changes nothing.
#[derive(Debug)]
pub struct Ticket {
    first: Seq,
    count: u32,
    #[expect(dead_code, reason = "skeleton")]
    word: Arc<Word>,
}

impl Ticket {
    /// The first record's seq.
    pub fn seq(&self) -> Seq {
        self.first
    }

    /// Number of records.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The seq after the last record.
    pub fn end(&self) -> Seq {
        todo!()
    }

    /// Blocks until the records reached `level`; commits inline if the log is idle.
    ///
    /// # Errors
    /// [`CommitError`] says what is known of the records.
    pub fn wait(&self, level: Level, now: Now) -> Result<Seq, CommitError> {
        let _ = (level, now);
        todo!()
    }

    /// Ready once the records reached `level`; never calls the device. Puts the stream on its lane.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn poll(&mut self, level: Level, cx: &mut Context<'_>) -> Poll<Result<Seq, CommitError>> {
        let _ = (level, cx);
        todo!()
    }

    /// The outcome if it is known now, without registering.
    pub fn peek(&self, level: Level) -> Option<Result<Seq, CommitError>> {
        let _ = level;
        todo!()
    }
}

/// A ticket as a future resolves at [`Level::Durable`].
impl Future for Ticket {
    type Output = Result<Seq, CommitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll(Level::Durable, cx)
    }
}
