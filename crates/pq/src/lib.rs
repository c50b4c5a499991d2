//! A persistent queue: durable streams of records, delivered in order until acknowledged.

mod attached;
mod clock;
mod consumer;
mod delivery;
mod errors;
pub mod inspect;
mod names;
mod options;
mod queue;
mod report;
mod sink;
mod stats;
mod stream;
mod ticket;

pub use attached::Attached;
pub use clock::{Clock, ClockWake, ManualClock, SystemClock};
pub use consumer::{Acked, Consumer};
pub use delivery::{Delivery, Gap, Item};
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
    AppendError, CommitError, Ends, GapReason, Level, OwnedTag, ReadLevel, Record, RecordRef, SyncSetting,
};
