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

/// The ends as they are shared. Invariant: `durable <= written <= appended`, each only grows.
#[derive(Debug)]
pub(crate) struct SharedEnds {
    appended: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    readable: AtomicU64,
    want_durable: AtomicU64,
}

impl SharedEnds {
    /// Everything stored ends at `end`; the first new seq is `next`.
    pub(crate) fn new(end: Seq, next: Seq) -> Self {
        let at = || AtomicU64::new(end.get());
        let appended = AtomicU64::new(next.get());
        Self { appended, written: at(), durable: at(), readable: at(), want_durable: at() }
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
        let written = self.written.fetch_max(written.get(), Ordering::SeqCst).max(written.get());
        self.durable.fetch_max(durable.get(), Ordering::SeqCst);
        let readable = match level {
            ReadLevel::Durable => durable.get(),
            ReadLevel::Written => written,
        };
        let before = self.readable.fetch_max(readable, Ordering::SeqCst);
        (readable > before).then_some(Seq::new(readable))
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
