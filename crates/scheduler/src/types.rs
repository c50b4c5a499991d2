//! The words callers and the cache exchange. No rule stands here; the rules are in `turn` and `cache`.

use std::fmt;
use std::time::Duration;

use wal_format::{ConsumerId, Instant, SegmentId, Seq, StreamId};

/// One reader of one stream. A consumer's id is never used again, so neither is a key, not even when a consumer
/// of the same name is created after a removal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The stream that is read.
    pub stream: StreamId,
    /// Who reads it.
    pub consumer: ConsumerId,
}

impl Key {
    /// The key of `consumer` on `stream`.
    #[must_use]
    pub const fn new(stream: StreamId, consumer: ConsumerId) -> Self {
        Self { stream, consumer }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.stream, self.consumer)
    }
}

/// Who runs a consumer's turns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// A pool of workers, through [`Cache::lease`](crate::Cache::lease).
    Pool,
    /// The consumer itself, through [`Cache::lease_key`](crate::Cache::lease_key). It is told by [`Woken::pull`].
    Pull,
}

/// Which reading of a consumer this is. Raised by attach and seek; a lease or an ack that carries an older number
/// changes nothing. Never used twice by one cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SeekNumber(u64);

impl SeekNumber {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself, for logs.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// How far a turn may read. It reads no seq at or above the bound and asks nobody else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// The segment is the one being written; `to` was `readable_end` when the lease was taken.
    Open {
        /// Exclusive.
        to: Seq,
    },
    /// The writer has closed the segment.
    Rotated {
        /// The segment's final end, exclusive.
        end: Seq,
    },
}

impl Bound {
    /// The first seq the turn must not read.
    #[must_use]
    pub const fn end(self) -> Seq {
        match self {
            Self::Open { to } => to,
            Self::Rotated { end } => end,
        }
    }
}

/// The exclusive right to one turn. Give it back with [`Cache::end_turn`](crate::Cache::end_turn) on every way
/// out, a panic included: a lease that is dropped leaves its consumer leased for ever.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
#[must_use = "a lease that does not go back through `end_turn` stops its consumer"]
#[non_exhaustive]
pub struct Lease {
    /// Whose turn it is.
    pub key: Key,
    /// The segment to read.
    pub reading: SegmentId,
    /// The next seq to read. At or above the bound's end there is nothing to read and no file to open: end the turn
    /// with [`Outcome::AtBound`].
    pub from: Seq,
    /// How far to read.
    pub bound: Bound,
    /// Which reading of the consumer this lease belongs to.
    pub seek_number: SeekNumber,
}

impl Lease {
    /// Whether a turn has anything to read. If not, open no file: the segment may have been unlinked already.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from >= self.bound.end()
    }
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The turn's budget was used up below the bound.
    MoreToRead {
        /// The next seq to read.
        at: Seq,
    },
    /// Everything below the bound was read and handed over: *caught up* if the bound is open, *drained* if it is
    /// rotated. That these two cannot be mistaken for each other is why this is one variant.
    AtBound,
    /// The sink or the reader failed.
    Failed {
        /// The next seq to read: above the lease's `from` if part was handed over, which starts the count of
        /// failures again.
        at: Seq,
        /// The least time the destination asked for (`Retry-After`); zero if it did not ask.
        wait_min: Duration,
    },
}

/// What became due, and so whom the caller has to wake *after* it has given its lock back.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[must_use = "whoever became due sleeps until somebody wakes it"]
pub struct Woken {
    /// Pool turns that became due: wake min(this, parked) workers.
    pub pool_count: usize,
    /// Pull consumers to notify.
    pub pull: Vec<Key>,
}

impl Woken {
    /// Whether there is nobody to wake.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pool_count == 0 && self.pull.is_empty()
    }
}

/// What the end of a turn led to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[must_use = "it may name somebody to wake"]
pub struct TurnEnd {
    /// Whom to wake, after unlocking.
    pub woken: Woken,
    /// `ReadComplete`: this segment is rotated and delivered to this consumer. Arms the retirement tick.
    pub completed: Option<SegmentId>,
    /// When the consumer is due next; `None` if it waits for a signal or was forgotten. Whoever keeps the timer looks
    /// whether this is earlier than what it sleeps for.
    pub due: Option<Instant>,
}

/// What became of a detached consumer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Detached {
    /// It was not attached.
    Unknown,
    /// It is forgotten.
    Forgotten,
    /// A lease is out; it is forgotten when the turn ends.
    AfterTurn,
}

/// The state of the log as one consumer sees it. Computed, never stored. `ReadComplete` is no state one could meet:
/// it is the instant inside `end_turn` that [`TurnEnd::completed`] reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WalState {
    /// The consumer's segment is closed by the writer: there is more, or at least a next segment to go to.
    Rotated,
    /// The consumer reads the segment that is being written; a turn is worth it from this instant on, or not before
    /// a signal if there is none.
    NextReadAt(Option<Instant>),
}

/// What a consumer is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// A turn is worth it from this instant on.
    Due(Instant),
    /// It has read all there is. The instant is that of the next poll, if the policy polls.
    CaughtUp(Option<Instant>),
    /// Its last turn failed.
    BackOff {
        /// When it is tried again.
        until: Instant,
        /// Failures in a row, at least 1.
        failures: u32,
    },
    /// A turn is running.
    Leased,
}

/// One consumer, for statistics and tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct View {
    /// What it is doing.
    pub phase: Phase,
    /// The state of the log as it sees it.
    pub state: WalState,
    /// The segment it reads.
    pub reading: SegmentId,
    /// The next seq it will read.
    pub at: Seq,
    /// Which reading of it this is.
    pub seek_number: SeekNumber,
    /// Failures in a row.
    pub failures: u32,
}

/// Counts since the cache was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Counters {
    /// Leases given out.
    pub lease_count: u64,
    /// Of these, such with nothing to read.
    pub empty_lease_count: u64,
    /// Turns that ended with a failure.
    pub failed_count: u64,
    /// Turns whose outcome was ignored because the consumer was moved meanwhile.
    pub void_count: u64,
    /// Segments read to their final end, summed over consumers.
    pub completed_count: u64,
    /// Turns started by the safety poll alone that found something to read and for which no signal came before they
    /// ended. Must be 0; anything else is a lost wake-up (or a writer held up for a whole turn between publishing an
    /// end and signalling it).
    pub safety_find_count: u64,
}
