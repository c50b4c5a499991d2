//! A sink in a worker's hand: started when needed, caught when it panics, put back however the turn ends.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::clock::locked;
use crate::core::Core;
use crate::{Delivery, DynSink, SendOutcome};

use super::pool::{Shared, SinkSlot};

/// A sink in a worker's hand; put back however the turn ends.
pub(super) struct InHand {
    sink: Option<Box<dyn DynSink>>,
    slot: Arc<SinkSlot>,
    shared: Arc<Shared>,
    core: Arc<Core>,
}

impl InHand {
    pub(super) fn new(
        sink: Box<dyn DynSink>,
        slot: Arc<SinkSlot>,
        shared: Arc<Shared>,
        core: Arc<Core>,
    ) -> Self {
        Self { sink: Some(sink), slot, shared, core }
    }

    pub(super) fn slot(&self) -> &SinkSlot {
        &self.slot
    }

    pub(super) fn is_detached(&self) -> bool {
        locked(&self.slot.inner).detached
    }

    /// Starts the sink if it is not.
    pub(super) async fn start(&mut self) -> Result<(), String> {
        if locked(&self.slot.inner).started {
            return Ok(());
        }
        let note = self.slot.consumer.note();
        let Some(sink) = &mut self.sink else { return Err("the sink is gone".to_owned()) };
        match caught(sink.start_boxed(&note)).await {
            Some(Ok(())) => {
                locked(&self.slot.inner).started = true;
                Ok(())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the sink panicked".to_owned()),
        }
    }

    pub(super) async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let Some(sink) = &mut self.sink else { return SendOutcome::retry("the sink is gone") };
        match caught(sink.send_boxed(delivery)).await {
            Some(outcome) => outcome,
            None => {
                // What it had begun is unknown: it starts again from what is acknowledged.
                locked(&self.slot.inner).started = false;
                SendOutcome::retry("the sink panicked")
            }
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let detached = {
            let mut inner = locked(&self.slot.inner);
            inner.sink = self.sink.take();
            inner.detached || self.slot.consumer.is_removed()
        };
        if detached {
            self.shared.remove(&self.core, &self.slot);
        }
    }
}

/// `None`: it panicked.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}
