//! News that is not an outcome: the disk refused for now. Waiters are told, their records stay buffered.
//!
//! Invariant: the count is raised before sleepers are kicked, and a waiter reads it after it registered; so a waiter
//! that was there before a stall is told of it.

use std::sync::atomic::{AtomicU32, Ordering};

use disk::DiskError;

use crate::CommitError;
use crate::sync::{Mutex, lock};

/// The last refusal, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    count: AtomicU32,
    last: Mutex<Option<DiskError>>,
}

impl Stall {
    /// To be given to [`Stall::since`] later.
    pub(crate) fn seen(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// The refusal that came after `seen`, if one did.
    pub(crate) fn since(&self, seen: u32) -> Option<CommitError> {
        if self.seen() == seen {
            return None;
        }
        lock(&self.last).clone().map(|source| CommitError::Stalled { source })
    }

    /// The disk refused.
    pub(crate) fn set(&self, error: &DiskError) {
        *lock(&self.last) = Some(error.clone());
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}
