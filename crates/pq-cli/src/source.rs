//! Sources: what turns lines of files and of stdin into records.
//!
//! ```text
//!   patterns ──find──> files ──by stream──> feeders ──shared out over──> shards (a thread each)
//! ```
//! A shard owns the streams whose names hash to it, so nothing is shared between shards. It reads one chunk per stream in turn: a huge
//! file does not keep the others waiting. Idle shards sleep; a followed file is looked at once per `poll_interval`.

pub(crate) mod feeder;
pub(crate) mod place;
pub(crate) mod shard;
pub(crate) mod stdin;
pub(crate) mod tail;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Tells threads to stop, and wakes those that sleep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(crate) fn set(&self) {
        *self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the time is over or the stop is set; says whether it is set.
    pub(crate) fn sleep(&self, duration: Duration) -> bool {
        let is_set = self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_set, _) = self
            .0
            .changed
            .wait_timeout_while(is_set, duration, |set| !*set)
            .unwrap_or_else(PoisonError::into_inner);
        *is_set
    }
}
