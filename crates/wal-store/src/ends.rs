//! How far a log is: four ends that only grow, read by anybody without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use wal_format::Seq;

use crate::ReadLevel;

/// How far a log is, in exclusive seqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Accepted.
    pub appended: Seq,
    /// Given to the operating system.
    pub written: Seq,
    /// On the medium.
    pub durable: Seq,
    /// Readers may see up to here.
    pub readable: Seq,
}

/// The ends as they are shared. Invariant: `durable <= written <= appended`, each only grows; `readable` too, but for what was only
/// written and is given up.
#[derive(Debug)]
pub(crate) struct SharedEnds {
    appended: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    readable: AtomicU64,
    want_durable: AtomicU64,
    /// What was accepted below and is not durable was given up.
    given_up: AtomicU64,
}

impl SharedEnds {
    /// Everything stored ends at `end`; the first new seq is `next`.
    pub(crate) fn new(end: Seq, next: Seq) -> Self {
        let at = || AtomicU64::new(end.get());
        let appended = AtomicU64::new(next.get());
        Self { appended, written: at(), durable: at(), readable: at(), want_durable: at(), given_up: at() }
    }

    /// Read in the order that keeps the invariant visible while others publish.
    pub(crate) fn get(&self) -> Ends {
        let readable = self.readable();
        let durable = self.durable();
        let written = Seq::new(self.written.load(Ordering::SeqCst));
        Ends { appended: self.appended(), written, durable, readable }
    }

    pub(crate) fn appended(&self) -> Seq {
        Seq::new(self.appended.load(Ordering::SeqCst))
    }

    pub(crate) fn durable(&self) -> Seq {
        Seq::new(self.durable.load(Ordering::SeqCst))
    }

    pub(crate) fn readable(&self) -> Seq {
        Seq::new(self.readable.load(Ordering::SeqCst))
    }

    /// Called under the tail's lock.
    pub(crate) fn set_appended(&self, end: Seq) {
        self.appended.store(end.get(), Ordering::Release);
    }

    /// Publishes; says what became readable, if anything did.
    pub(crate) fn publish(&self, written: Seq, durable: Seq, level: ReadLevel) -> Option<Seq> {
        self.written.fetch_max(written.get(), Ordering::SeqCst);
        self.durable.fetch_max(durable.get(), Ordering::SeqCst);
        let readable = match level {
            ReadLevel::Durable => durable.get(),
            // Not the highest ever: what was written beyond it may have been given up.
            ReadLevel::Written => written.get(),
        };
        let before = self.readable.fetch_max(readable, Ordering::SeqCst);
        (readable > before).then_some(Seq::new(readable))
    }

    /// What is not durable below `end` was given up: what readers see falls back to what is durable.
    pub(crate) fn give_up(&self, end: Seq) {
        self.given_up.fetch_max(end.get(), Ordering::SeqCst);
        self.readable.fetch_min(self.durable.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Whether something was given up, and nothing behind it is durable yet.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::SeqCst) > self.durable.load(Ordering::SeqCst)
    }

    /// Somebody needs everything below `end` on the medium.
    pub(crate) fn want_durable(&self, end: Seq) {
        self.want_durable.fetch_max(end.get(), Ordering::SeqCst);
    }

    /// Whoever needed something is not there any more.
    pub(crate) fn want_nothing(&self) {
        self.want_durable.store(0, Ordering::SeqCst);
    }

    /// Whether somebody needs more on the medium than is there.
    pub(crate) fn durable_is_wanted(&self) -> bool {
        self.want_durable.load(Ordering::SeqCst) > self.durable.load(Ordering::SeqCst)
    }
}
