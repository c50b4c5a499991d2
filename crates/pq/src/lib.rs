//! A persistent queue: durable streams of records, delivered in order until acknowledged.

#[cfg(feature = "tokio")]
mod attached;
mod catalog;
mod clock;
mod consumer;
pub mod core;
mod delivery;
mod errors;
pub mod inspect;
mod meta;
mod names;
mod options;
mod queue;
mod report;
mod shell;
mod sink;
mod stats;
mod stream;
mod sync;
mod ticket;
mod waits;
mod wake;

#[cfg(feature = "tokio")]
pub use attached::Attached;
pub use clock::{Clock, ClockWake, ManualClock, SystemClock};
pub use consumer::{Acked, Consumer};
pub use delivery::{Delivery, Item};
pub use disk::{FdBudget, FdLimit, Permit};
pub use errors::{
    AckError, AppendDurableError, AttachError, CloseError, OpenError, OptionsError, ReadError, SaveError,
    StreamError,
};
pub use names::{NAME_BYTES_MAX, NameError};
pub use options::{ConsumerSettings, OnRejected, Options, SinkSettings, Start, StreamSettings};
pub use queue::Queue;
pub use report::{CloseReport, OpenReport, StreamReport};
pub use sink::{BoxFuture, BoxSink, DynSink, SendOutcome, Sink, SinkError};
pub use stats::{ConsumerStats, FdStats, QueueStats, StreamStats};
pub use stream::Stream;
pub use ticket::Ticket;
pub use wal_format::{ConsumerId, Incarnation, Instant, Marks, Now, QueueId, SegmentId, Seq, StreamId, Tag, WallTime};
pub use wal_store::{
    AppendError, CommitError, Ends, Gap, GapReason, Level, OwnedTag, ReadLevel, Record, RecordRef, Run, SyncSetting,
};
