//! A sink at work on a stream.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::consumer::wait_drained;
use crate::core::Phase;
use crate::shell::SinkSlot;
use crate::{ConsumerStats, Seq, Stream};

/// A sink that the reader pool drives. Dropping this handle leaves it at work until the queue is closed.
#[derive(Debug)]
pub struct Attached {
    stream: Stream,
    slot: Arc<SinkSlot>,
}

impl Attached {
    pub(crate) fn new(stream: Stream, slot: Arc<SinkSlot>) -> Self {
        Self { stream, slot }
    }

    /// Its consumer's name.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.slot.consumer.name
    }

    /// The stream it takes from.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> ConsumerStats {
        self.stream.state.consumer_stats(&self.slot.consumer)
    }

    /// Seq of the next record not acknowledged.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.slot.consumer.cursor()
    }

    /// Records readers see and this consumer did not acknowledge.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.stream.state.lag(&self.slot.consumer)
    }

    /// Resolves once everything readable at the call is delivered; `false` if the sink was detached or the queue closed first.
    pub async fn drained(&self) -> bool {
        let consumer = &self.slot.consumer;
        let core = &self.stream.shell.core;
        let target = self.stream.ends().readable;
        std::future::poll_fn(|cx| {
            consumer.moved_bell.register(cx.waker());
            core.hub.ended.register(cx.waker());
            if consumer.cursor() >= target {
                return Poll::Ready(true);
            }
            let over = consumer.is_removed() || !consumer.is_attached() || core.phase() == Phase::Closed;
            if over { Poll::Ready(false) } else { Poll::Pending }
        })
        .await
    }

    /// Blocks until everything readable at the call is delivered, or the timeout; says which.
    #[must_use]
    pub fn wait_drained(&self, timeout: Duration) -> bool {
        wait_drained(&self.stream, &self.slot.consumer, timeout)
    }

    /// Ends any back-off: the next try is due now.
    pub fn kick(&self) {
        self.stream.shell.core.kick(&self.slot.consumer, self.stream.shell.clock.now());
    }

    /// Stops it after the current delivery; the consumer stays registered. Does not wait.
    pub fn detach(self) {
        self.stream.shell.pool.detach(&self.stream.shell.core, &self.slot);
    }
}
