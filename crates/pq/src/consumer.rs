//! A named reader of a stream with a durable cursor of its own, pulled by its user.

use std::time::Duration;

use crate::{AckError, Delivery, ReadError, SaveError, Seq, Start, StreamError};

/// A consumer, open exclusively. `next` may be called several times before `ack`; dropping it returns what is not acknowledged:
/// whoever opens it next gets that again.
#[derive(Debug)]
pub struct Consumer {}

impl Consumer {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        todo!()
    }
    /// The note saved last with the cursor; empty if none.
    #[must_use]
    pub fn note(&self) -> Vec<u8> {
        todo!()
    }
    /// Seq of the next record not acknowledged.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        todo!()
    }
    /// The next delivery; waits, without blocking, while there is none. Files are never read on the thread that polls.
    /// `None`: the stream or the queue is closed. Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// Nothing is skipped; the next call tries the same place.
    pub async fn next(&mut self) -> Result<Option<Delivery>, ReadError> {
        todo!()
    }
    /// [`Consumer::next`] that blocks.
    ///
    /// # Errors
    /// As for `next`.
    pub fn next_blocking(&mut self) -> Result<Option<Delivery>, ReadError> {
        todo!()
    }
    /// [`Consumer::next_blocking`] that gives up after a while.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`], or as for `next`.
    pub fn next_timeout(&mut self, _timeout: Duration) -> Result<Option<Delivery>, ReadError> {
        todo!()
    }
    /// What is there now, without waiting for more; `None`: nothing, or closed. Blocks for the file read only.
    ///
    /// # Errors
    /// As for `next`.
    pub fn try_next(&mut self) -> Result<Option<Delivery>, ReadError> {
        todo!()
    }
    /// Everything up to and including this delivery is done with. In memory at once, saved with the next tick; a second time, or
    /// late, it changes nothing.
    ///
    /// # Errors
    /// The cursor is unchanged.
    pub fn ack(&self, _delivery: &Delivery) -> Result<Acked, AckError> {
        todo!()
    }
    /// Everything below `to` is done with.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn ack_to(&self, _to: Seq) -> Result<Acked, AckError> {
        todo!()
    }
    /// [`Consumer::ack_to`] with a note of at most 256 bytes that is saved in the same step.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn ack_with_note(&self, _to: Seq, _note: &[u8]) -> Result<Acked, AckError> {
        todo!()
    }
    /// Moves the cursor, either way, and saves it before it returns.
    ///
    /// # Errors
    /// The cursor is where it was.
    pub fn seek(&mut self, _to: Start) -> Result<Seq, StreamError> {
        todo!()
    }
    /// Records readers see and this consumer did not acknowledge.
    #[must_use]
    pub fn lag(&self) -> u64 {
        todo!()
    }
    /// Blocks until everything readable at the call is acknowledged (by other threads through [`Consumer::ack`]…), or the timeout.
    #[must_use]
    pub fn wait_drained(&self, _timeout: Duration) -> bool {
        todo!()
    }
}

/// An acknowledgement that was taken.
#[derive(Debug, Clone)]
pub struct Acked {}

impl Acked {
    /// Resolves once the cursor is durable; asks for a save at once.
    ///
    /// # Errors
    /// The save failed; the acknowledgement stands and is saved with the next success.
    pub async fn saved(&self) -> Result<(), SaveError> {
        todo!()
    }
    /// [`Acked::saved`] that blocks.
    ///
    /// # Errors
    /// As for `saved`.
    pub fn wait(&self) -> Result<(), SaveError> {
        todo!()
    }
}
