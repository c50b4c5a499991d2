//! When a consumer that has caught up is looked at again.
//!
//! ```text
//! push_back:  |---------|---------|---------|      polls fall on these lines
//! caught up at    x  x      y
//! looked at           ^         ^                  x and x together, y on the next
//! ```

use std::time::Duration;

use wal_format::Instant;

use crate::backoff::DELAY_MIN;

/// How a caught-up consumer learns that there is more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// The writer says so. A caught-up consumer has no due time, an idle queue no timer.
    Signal,
    /// It looks again after `push_back`; the writer speaks up at a rotation only.
    ///
    /// Polls fall on multiples of `push_back` since the queue was opened: never later than `push_back` after the
    /// consumer caught up, and all idle consumers at the same instants, so that any number of them wakes the process
    /// once per `push_back`.
    Poll {
        /// Shorter than 1 ms counts as 1 ms: the library never spins.
        push_back: Duration,
    },
}

/// The first multiple of `every` after `now`: at most `every` away, and the same for all who ask meanwhile.
pub(crate) fn next_poll(now: Instant, every: Duration) -> Instant {
    let every = u64::try_from(every.max(DELAY_MIN).as_nanos()).unwrap_or(u64::MAX);
    match now.nanos().checked_add(every) {
        Some(latest) => Instant::from_nanos(latest - latest % every),
        // The last poll before the clock ends, 584 years from now.
        None => Instant::from_nanos(u64::MAX),
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
