//! A persistent queue: durable streams of records, delivered in order until acknowledged.
//!
//! ```
//! use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let queue = pq::Queue::open(dir, pq::Options::default())?;
//! let orders = queue.stream("orders")?;
//!
//! // Never waits for the device; the seq is known at once, the ticket tells when it is safe.
//! let ticket = orders.append("two coffees")?;
//! println!("seq {}", ticket.seq());
//! ticket.wait()?; // or `ticket.await`: now it survives kill -9 and a power cut
//!
//! // Each named consumer sees every record in order, at its own pace, across restarts.
//! let mut kitchen = orders.consumer("kitchen")?;
//! while let Some(delivery) = kitchen.try_next()? { // or `next().await`, or `next_blocking()`
//!     for record in delivery.records() {
//!         println!("{}: {}", record.seq, String::from_utf8_lossy(record.payload));
//!     }
//!     kitchen.ack(&delivery)?;
//! }
//! drop(kitchen);
//! queue.close(Duration::from_secs(5))?;
//! # Ok(())
//! # }
//! ```
//!
//! It is a library in your process and a directory on your disk, with one owner at a time. It is not a server, and not a log of several
//! machines.
//!
//! ```text
//!   Stream::append ─> open batch ─> one write + one fdatasync ─> Ticket resolves ─> readers are woken
//!                                        segments, append-only        │
//!   Consumer::next, or a Sink of the reader pool  <─── whole batches ─┘   ack ─> cursor ─> saved ─> segment unlinked
//! ```
//!
//! - [`Queue`], [`Stream`], [`Ticket`]: writing. [`Consumer`], [`Delivery`]: pulling. [`Sink`], [`Attached`]: pushing.
//! - [`Options`], [`StreamSettings`], [`SinkSettings`]: what can be set; contradictory values are refused by name.
//! - [`inspect`]: looking at a queue beside its owner. [`repair`]: mending a damaged one. [`core`]: the queue without threads and clock, for simulation.
//! - [`Clock`], [`ManualClock`]: time as a seam, for your tests too.
//!
//! Feature `tokio` (on by default): sinks and the pool that drives them. Everything else needs no runtime; [`Ticket`] and
//! [`Consumer::next`] are plain futures.

mod acked;
#[cfg(feature = "tokio")]
mod attached;
mod catalog;
mod clock;
mod consumer;
pub mod core;
mod delivery;
mod errors;
pub mod inspect;
mod losses;
mod meta;
mod names;
mod options;
mod queue;
pub mod repair;
mod report;
mod shell;
mod sink;
mod stats;
mod stream;
mod sync;
mod ticket;
mod waits;
mod wake;

pub use acked::Acked;
#[cfg(feature = "tokio")]
pub use attached::Attached;
pub use clock::{Clock, ClockWake, ManualClock, SystemClock};
pub use consumer::Consumer;
pub use delivery::{Delivery, Item};
pub use disk::{DiskError, ErrorClass, FdBudget, FdLimit, Op as DiskOp, Permit};
pub use errors::{
    AckError, AppendDurableError, AttachError, CloseError, OpenError, OptionsError, ReadError, SaveError,
    StreamError,
};
pub use losses::Loss;
pub use names::{NAME_BYTES_MAX, NameError};
pub use options::{ConsumerSettings, OnRejected, Options, SinkSettings, Start, StreamSettings};
pub use queue::Queue;
pub use report::{CloseReport, OpenReport, StreamReport};
pub use sink::{BoxFuture, BoxSink, DynSink, SendOutcome, Sink, SinkError};
pub use stats::{ConsumerStats, FdStats, QueueStats, StreamStats};
pub use stream::Stream;
pub use ticket::Ticket;
pub use wal_format::{
    ConsumerId, Incarnation, Instant, Marks, Now, QueueId, SegmentId, Seq, StreamId, Tag, WallTime,
};
pub use wal_store::{
    AppendError, CommitError, Ends, FullOf, Gap, GapReason, Level, Limits, OnFull, OwnedTag, ReadLevel,
    ReadMethod, Record, RecordRef, Run, SyncSetting,
};

/// The README's example, compiled and run with the doc-tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
