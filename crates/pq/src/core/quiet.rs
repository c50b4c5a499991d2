//! At most a line a minute about a fault that goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wal_format::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// When something was said last.
#[derive(Debug)]
pub(crate) struct Quiet {
    said_at: AtomicU64,
}

impl Default for Quiet {
    fn default() -> Self {
        Self { said_at: AtomicU64::new(u64::MAX) }
    }
}

impl Quiet {
    /// Whether it is time to say it (again).
    pub(crate) fn may_speak(&self, now: Instant) -> bool {
        let said_at = self.said_at.load(Ordering::Relaxed);
        if said_at != u64::MAX && now.saturating_since(Instant::from_nanos(said_at)) < MINUTE {
            return false;
        }
        self.said_at.store(now.nanos(), Ordering::Relaxed);
        true
    }
}
