//! An acknowledgement on its way to the disk.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::core::{ConsumerState, Phase};
use crate::{SaveError, Seq, Stream};

/// An acknowledgement that was taken.
#[derive(Debug, Clone)]
pub struct Acked {
    stream: Stream,
    state: Arc<ConsumerState>,
    to: Seq,
}

impl Acked {
    pub(crate) fn new(stream: Stream, state: Arc<ConsumerState>, to: Seq) -> Self {
        Self { stream, state, to }
    }

    /// Everything below this is done with.
    #[must_use]
    pub fn to(&self) -> Seq {
        self.to
    }

    /// Whether the cursor is durable.
    #[must_use]
    pub fn is_saved(&self) -> bool {
        self.state.saved() >= self.to
    }

    /// Resolves once the cursor is durable; asks for a save at once.
    ///
    /// # Errors
    /// The save failed; the acknowledgement stands and is saved with the next success.
    pub async fn saved(&self) -> Result<(), SaveError> {
        let (before, _) = self.state.failures();
        let hub = &self.stream.shell.core.hub;
        if !self.is_saved() {
            hub.saver.arm(self.stream.shell.clock.now());
        }
        poll_fn(|cx| {
            self.state.saved_bell.register(cx.waker());
            hub.ended.register(cx.waker());
            if self.is_saved() {
                return Poll::Ready(Ok(()));
            }
            match self.state.failures() {
                (count, Some(error)) if count > before => Poll::Ready(Err(error)),
                _ if self.is_over() => Poll::Ready(Err(SaveError::Closed)),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// [`Acked::saved`] that blocks, and saves by itself.
    ///
    /// # Errors
    /// As for `saved`.
    pub fn wait(&self) -> Result<(), SaveError> {
        if self.is_saved() {
            return Ok(());
        }
        if self.is_over() {
            return Err(SaveError::Closed);
        }
        // Whoever saves holds the ledger for all of it: behind it this cursor is saved, or the save failed.
        self.stream.shell.core.tick(self.stream.shell.now())?;
        if self.is_saved() { Ok(()) } else { Err(SaveError::NotDurable { to: self.to }) }
    }

    fn is_over(&self) -> bool {
        self.state.is_removed() || self.stream.shell.core.phase() == Phase::Closed
    }
}
