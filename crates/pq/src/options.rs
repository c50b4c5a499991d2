//! What can be set: of a queue, a stream, a consumer, a sink. Checked once, when given; a value that contradicts another is refused by
//! the name of its field, and 0 never means a busy loop.

use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, OptionsError, Seq};

/// Settings of a queue. Start from [`Options::default`] and change what you need.
#[derive(Clone, Debug)]
pub struct Options {
    /// Settings of streams created without their own.
    pub stream: StreamSettings,
    /// Memory for records that are not yet written, of all streams together, in bytes. Default 64 MiB.
    pub buffer_bytes_max: u64,
    /// Most files and sockets the queue holds open at once. `None`: the process's limit less a margin. Default `None`.
    pub fds_max: Option<usize>,
    /// Threads that commit in the background, 1 to 256. Default 4.
    pub lanes_count: usize,
    /// Turns that sinks take at the same time, 1 to 1024. Default 4.
    pub readers_count: usize,
    /// Bytes of records a turn reads at most before another stream has its turn; at least one batch is read. Default 1 MiB.
    pub turn_bytes_max: usize,
    /// Time after which a turn ends with its current delivery. Default 100 ms.
    pub turn_time_max: Duration,
    /// Changed cursors are saved at most this often, all in one write; the bound on what is delivered twice after a crash. Default 200 ms.
    pub cursor_interval: Duration,
    /// When a caught-up reader looks again by itself. `None`: never, a commit wakes it (the default). `Some`: after this push-back, and
    /// commits wake nobody.
    pub push_back: Option<Duration>,
    /// First wait after a failed turn; doubled up to `backoff_max`. Default 100 ms.
    pub backoff_first: Duration,
    /// Longest wait after failed turns. Default 30 s.
    pub backoff_max: Duration,
    /// The clock. Default: the machine's.
    pub clock: Arc<dyn Clock>,
    /// The runtime that drives sinks. `None`: a small one of the queue's own, started with the first sink.
    #[cfg(feature = "tokio")]
    pub runtime: Option<tokio::runtime::Handle>,
}

impl Default for Options {
    fn default() -> Self {
        todo!()
    }
}

impl Options {
    /// Checks every field, alone and against the others.
    ///
    /// # Errors
    /// Names the first field that cannot be, and why.
    pub fn validate(&self) -> Result<(), OptionsError> {
        todo!()
    }
}

/// Settings of a stream, kept with it. Start from `default` and change what you need.
pub type StreamSettings = wal_store::Settings;

/// Where a new consumer starts, or an old one is moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Start {
    /// At the oldest record kept.
    #[default]
    Oldest,
    /// Behind the newest record readers see now.
    Now,
    /// At this seq; below the oldest kept: there; above the end: refused.
    Seq(Seq),
}

/// Settings of a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConsumerSettings {
    /// Where it starts if it is new; one that exists goes on where it was.
    pub start: Start,
}

/// What becomes of records a sink rejects for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnRejected {
    /// Keep them and try again with back-off (the default: nothing is lost silently).
    #[default]
    Keep,
    /// Step over them; they are counted as dropped.
    Drop,
}

/// Settings of an attached sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// Where the consumer starts if it is new.
    pub start: Start,
    /// Tries within a turn before the slot is given back and the wait doubles. Default 1.
    pub quick_tries_count: u32,
    /// What becomes of rejected records.
    pub on_rejected: OnRejected,
}

impl Default for SinkSettings {
    fn default() -> Self {
        Self { start: Start::Oldest, quick_tries_count: 1, on_rejected: OnRejected::Keep }
    }
}
