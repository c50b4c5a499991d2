//! Where records go. A sink is driven by the reader pool: it gets deliveries in order, one at a time, and answers with data.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;

use crate::{Delivery, Seq};

/// A destination of records.
///
/// `send` gets whole batches in order; what it answers moves the cursor. A delivery may come again after a crash; its records' stable
/// keys are (queue, incarnation, seq). A note given with `Delivered` or `Partial` is saved with the cursor in one step and handed to
/// `start` after a restart, so that a sink whose own place can be set back (a file's length) delivers exactly once.
pub trait Sink: Send + 'static {
    /// Called once before the first `send`, with the note saved last (empty if none); again after an error, with back-off.
    fn start(&mut self, note: &[u8]) -> impl Future<Output = Result<(), SinkError>> + Send {
        let _ = note;
        async { Ok(()) }
    }

    /// Delivers, and says how it went.
    fn send(&mut self, delivery: &Delivery) -> impl Future<Output = SendOutcome> + Send;
}

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The form of [`Sink`] that can be a trait object; every `Sink` is one.
pub trait DynSink: Send + 'static {
    /// [`Sink::start`].
    fn start_boxed<'a>(&'a mut self, note: &'a [u8]) -> BoxFuture<'a, Result<(), SinkError>>;
    /// [`Sink::send`].
    fn send_boxed<'a>(&'a mut self, delivery: &'a Delivery) -> BoxFuture<'a, SendOutcome>;
}

impl<S: Sink> DynSink for S {
    fn start_boxed<'a>(&'a mut self, note: &'a [u8]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.start(note))
    }
    fn send_boxed<'a>(&'a mut self, delivery: &'a Delivery) -> BoxFuture<'a, SendOutcome> {
        Box::pin(self.send(delivery))
    }
}

/// Any sink, behind a pointer; itself a [`Sink`].
#[expect(missing_debug_implementations, reason = "a sink need not be printable")]
pub struct BoxSink(Box<dyn DynSink>);

impl BoxSink {
    /// Puts a sink behind a pointer.
    pub fn new(sink: impl Sink) -> Self {
        Self(Box::new(sink))
    }
}

impl Sink for BoxSink {
    async fn start(&mut self, note: &[u8]) -> Result<(), SinkError> {
        self.0.start_boxed(note).await
    }
    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        self.0.send_boxed(delivery).await
    }
}

/// A sink that cannot start, and why.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// How a delivery went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOutcome {
    /// All of it arrived.
    Delivered {
        /// Saved with the cursor, at most 256 bytes; `None` leaves the last note.
        note: Option<Vec<u8>>,
    },
    /// Everything below `next` arrived; the rest is sent again, with back-off.
    Partial {
        /// Seq of the first record that did not arrive.
        next: Seq,
        /// As in `Delivered`.
        note: Option<Vec<u8>>,
    },
    /// Not now; again after `wait` at the earliest.
    Throttled {
        /// What the destination asked for.
        wait: Duration,
    },
    /// Nothing arrived; try again, with back-off.
    Retry {
        /// Why, in words.
        reason: String,
    },
    /// The destination will never take it; see [`crate::OnRejected`].
    Rejected {
        /// Why, in words.
        reason: String,
    },
}

impl SendOutcome {
    /// All of it arrived, without a note.
    #[must_use]
    pub fn delivered() -> Self {
        Self::Delivered { note: None }
    }
    /// Nothing arrived, for this reason.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into() }
    }
}
