//! A sink at work on a stream.

use std::time::Duration;

use crate::ConsumerStats;

/// A sink that the reader pool drives. Dropping this handle leaves it at work until the queue is closed.
#[derive(Debug)]
pub struct Attached {}

impl Attached {
    /// Its consumer's name.
    #[must_use]
    pub fn consumer(&self) -> &str {
        todo!()
    }
    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> ConsumerStats {
        todo!()
    }
    /// Records readers see and this consumer did not acknowledge.
    #[must_use]
    pub fn lag(&self) -> u64 {
        todo!()
    }
    /// Resolves once everything readable at the call is delivered; `false` if the sink was detached or the queue closed first.
    pub async fn drained(&self) -> bool {
        todo!()
    }
    /// Blocks until everything readable at the call is delivered, or the timeout; says which.
    #[must_use]
    pub fn wait_drained(&self, _timeout: Duration) -> bool {
        todo!()
    }
    /// Ends any back-off: the next try is due now.
    pub fn kick(&self) {
        todo!()
    }
    /// Stops it after the current delivery; the consumer stays registered. Does not wait.
    pub fn detach(self) {
        todo!()
    }
}
