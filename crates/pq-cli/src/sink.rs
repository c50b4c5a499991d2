//! Sinks: where records go.
//!
//! Each is driven by the queue's reader pool, one delivery at a time and in order. A sink answers with data: what arrived, or why not
//! and when to try again; it never drops a record by itself.

pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod null;
pub(crate) mod stdout;

use std::sync::Arc;

use pq::{Delivery, SendOutcome, Sink, SinkError};

use crate::output::missing;
use crate::run::report::Reporter;

/// A sink whose lost records are told to a person, once each.
pub(crate) struct Watched<S> {
    inner: S,
    stream: String,
    reporter: Arc<Reporter>,
}

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, stream: &str, reporter: Arc<Reporter>) -> Self {
        Self { inner, stream: stream.to_owned(), reporter }
    }
}

impl<S: Sink + Sync> Sink for Watched<S> {
    async fn start(&mut self, note: &[u8]) -> Result<(), SinkError> {
        self.inner.start(note).await
    }

    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let outcome = self.inner.send(delivery).await;
        if matches!(outcome, SendOutcome::Delivered { .. }) {
            for gap in delivery.gaps() {
                self.reporter.notice(format!("stream `{}`: {}", self.stream, missing(gap)));
            }
        }
        outcome
    }
}
