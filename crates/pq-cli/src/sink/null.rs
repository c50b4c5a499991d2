//! A sink that takes everything and keeps nothing: for measuring, and for streams whose records need not go anywhere.

use pq::{Delivery, SendOutcome, Sink};

/// Takes everything.
#[derive(Debug)]
pub(crate) struct NullSink;

impl Sink for NullSink {
    async fn send(&mut self, _delivery: &Delivery) -> SendOutcome {
        SendOutcome::delivered()
    }
}
