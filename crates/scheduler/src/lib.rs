//! Who reads when.
//!
//! A state cache says for each (stream, consumer) when it is next worth a turn, so that no task ever waits on a slow
//! stream and an idle queue needs no timer. This crate is that cache: due times, leases, back-off, rotation, and
//! nothing else. It does no I/O, reads no clock, starts no thread and takes no lock; it takes ids and instants. It does
//! not know what a record is or where it stands, and keeps no cursor: a cursor is what was *acknowledged*, the cache
//! knows what was *read*.
//!
//! ```
//! use scheduler::{Backoff, Bound, Cache, Key, Mode, Outcome, Policy, WalState};
//! use wal_format::{ConsumerId, Instant, SegmentId, Seq, StreamId};
//!
//! let orders = StreamId::new(1);
//! let mailer = Key::new(orders, ConsumerId::new(7));
//! let now = Instant::from_nanos(0);
//! let mut cache = Cache::new(Policy::Signal, Backoff::default(), 42);
//!
//! // Segment 1 is rotated and holds the seqs 1 to 9; segment 2 is being written and readable up to 12, exclusive.
//! cache.open_stream(orders, &[(SegmentId::new(1), Seq::new(10))], SegmentId::new(2));
//! let readable = |_| Seq::new(12);
//! assert_eq!(cache.attach(mailer, Seq::new(4), Mode::Pool, now).pool_count, 1);
//!
//! // A worker takes the turn that has been due longest, reads, and gives the lease back.
//! let lease = cache.lease(now, &readable).expect("due since it was attached");
//! assert_eq!((lease.reading, lease.from), (SegmentId::new(1), Seq::new(4)));
//! assert_eq!(lease.bound, Bound::Rotated { end: Seq::new(10) });
//! let end = cache.end_turn(lease, Outcome::AtBound, now, &readable);
//! assert_eq!(end.completed, Some(SegmentId::new(1)));
//!
//! // It goes on in the open segment, and falls asleep at its end without a due time.
//! let lease = cache.lease(now, &readable).expect("due in the next segment");
//! assert_eq!(lease.bound, Bound::Open { to: Seq::new(12) });
//! let end = cache.end_turn(lease, Outcome::AtBound, now, &readable);
//! assert_eq!((end.due, cache.next_due()), (None, None));
//!
//! // The writer commits: whoever has caught up is due.
//! assert_eq!(cache.signal(orders, now).pool_count, 1);
//! assert_eq!(cache.state(mailer), Some(WalState::NextReadAt(Some(now))));
//! ```
//!
//! # How to wrap it
//!
//! One mutex around the cache, and one *wake-up cell* per stream beside it, outside the mutex: an atomic
//! `readable_end` and an atomic flag `asleep`.
//!
//! ```text
//!   writer, after a commit                       reader, in end_turn, under the cache's lock
//!   1  readable_end := new end                   1  asleep := true      ┐
//!   2  fence(SeqCst)                             2  fence(SeqCst)       │ the closure `asleep`, in this order
//!   3  if asleep.swap(false)                     3  load readable_end   ┘
//!        lock; signal(stream); unlock; wake      4  moved above what was read? due now : asleep
//! ```
//!
//! Whoever comes second sees the other: either the reader's load finds the new end, or the writer's swap finds
//! `asleep`. A busy stream never touches the lock: its consumers are never asleep. The contract:
//!
//! - [`Cache::end_turn`] calls its closure at most once, only for a consumer that read to the bound of the open segment
//!   and was neither moved nor overtaken by a rotation. If the closure loads before it sets, or without the fence, a
//!   record can wait for the next one.
//! - A reader never clears `asleep`; only the writer's swap does. A flag left set by a consumer that turned out to be
//!   due costs the writer one lock, no more.
//! - [`Cache::signal`] makes *all* caught-up consumers of the stream due, because one flag stands for all of them.
//! - [`Cache::lease`] is given a plain load. It runs under the lock so that it cannot fall between the two steps of a
//!   rotation, which are: the old segment's last `readable_end` is published; [`Cache::rotated`] under the lock; only
//!   then the first batch of the new segment is published.
//! - What is returned as [`Woken`] is carried out after unlocking: wake min(`pool_count`, parked) workers and each pull
//!   consumer, and keep a wake-up that finds a worker between its look and its park. Whoever takes a lease wakes one
//!   more while [`Cache::has_due`] and nobody else looks.
//! - Whoever keeps the timer calls [`Cache::wake_due`], then sleeps until [`Cache::next_timer`], and looks again whenever a
//!   [`TurnEnd::due`] is earlier.
//! - Under [`Policy::Poll`] the cell is not used: the closure is a plain load and the writer calls `rotated` alone.
//!
//! # Turns
//!
//! A turn reads no seq at or above its lease's [`Bound`] and asks nobody else how far it may go: bytes behind a bound may
//! be those of a failed write. A turn whose lease [is empty](Lease::is_empty) opens no file, which may be unlinked. A
//! seek raises the consumer's [`SeekNumber`]; a lease *or an ack* with an older one changes nothing.

mod backoff;
mod cache;
mod due;
mod event;
mod policy;
mod stream;
mod turn;
mod types;

pub use backoff::Backoff;
pub use cache::Cache;
pub use policy::Policy;
pub use types::{
    Bound, Counters, Detached, Key, Lease, Mode, Outcome, Phase, SeekNumber, TurnEnd, View, WalState, Woken,
};
