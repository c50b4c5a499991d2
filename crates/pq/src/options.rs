//! What can be set: of a queue, a stream, a consumer, a sink. Checked once, when given; a value that contradicts another is refused by
//! the name of its field, and 0 never means a busy loop.

use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, OptionsError, ReadMethod, Seq, SystemClock};

/// Settings of a queue. Start from [`Options::default`] and change what you need.
#[derive(Clone, Debug)]
pub struct Options {
    /// Settings of streams created without their own.
    pub stream: StreamSettings,
    /// Memory for records that are not yet written, of all streams together, in bytes. Default 64 MiB.
    pub buffer_bytes_max: u64,
    /// Most bytes the queue may take on the disk: its segments, its journals with the space they took ahead, its reserve, and quarantine.
    /// What an append meets at this limit is its stream's [`Limits::on_full`](crate::Limits::on_full). At least a segment of the default
    /// settings more than `reserve_bytes` and 1 MiB for the journals. `None`: no limit. Default `None`.
    pub bytes_max: Option<u64>,
    /// Bytes of the file `reserve`, which is given up for cursors, floors and deletion when the disk is full, and made again afterwards.
    /// 0: none. Default 1 MiB.
    pub reserve_bytes: u64,
    /// Most files and sockets the queue holds open at once. `None`: the process's limit less a margin. Default `None`.
    pub fds_max: Option<usize>,
    /// Threads that commit in the background, 1 to 256. Default 4.
    pub lanes_count: usize,
    /// Turns that sinks take at the same time, 1 to 1024. Default 4.
    pub readers_count: usize,
    /// Bytes of records a turn reads at most before another stream has its turn; at least one batch is read. Default 1 MiB.
    pub turn_bytes_max: usize,
    /// How bytes get from a segment to a reader. Default [`ReadMethod::Read`]; maps only where nobody else cuts files short.
    pub read_method: ReadMethod,
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
        Self {
            stream: StreamSettings::default(),
            buffer_bytes_max: 64 << 20,
            bytes_max: None,
            reserve_bytes: 1 << 20,
            fds_max: None,
            lanes_count: 4,
            readers_count: 4,
            turn_bytes_max: 1 << 20,
            read_method: ReadMethod::Read,
            turn_time_max: Duration::from_millis(100),
            cursor_interval: Duration::from_millis(200),
            push_back: None,
            backoff_first: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            clock: Arc::new(SystemClock::new()),
            #[cfg(feature = "tokio")]
            runtime: None,
        }
    }
}

/// What the journals may take before anything is stored: a generation and a spare each, for a start.
const JOURNAL_BYTES: u64 = 1 << 20;
/// More than this helps nobody, and is written at once.
const RESERVE_BYTES_MAX: u64 = 1 << 30;

/// Least time of anything that comes again and again.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Most threads, or turns at the same time.
const LANES_MAX: usize = 256;
const READERS_MAX: usize = 1024;
/// Files a queue holds all the time: the root, the lock and its directory, two journals, each with a spare and a successor at times.
pub(crate) const FDS_HELD: usize = 8;
/// Files only some may take: those, and a directory, a writer, a new segment, one more of each.
pub(crate) const FDS_RESERVED: usize = FDS_HELD + 6;
/// Least share of everybody.
pub(crate) const FDS_COMMON_MIN: usize = 4;
/// Least budget.
pub(crate) const FDS_MIN: usize = FDS_RESERVED + FDS_COMMON_MIN;
/// Left to the rest of the process: standard streams, the runtime's own files, the caller's.
const FDS_MARGIN: usize = 24;

/// Of the margin, what a process cannot do without: standard streams, and what a runtime opens.
const FDS_OTHERS_MIN: usize = 8;

/// The process's limit less a margin, at least what a queue needs.
pub(crate) fn fds_default() -> usize {
    // More than this is of no use: idle files are kept open up to the budget.
    process_limit().saturating_sub(FDS_MARGIN).clamp(FDS_MIN, 1 << 16)
}

/// Files this process may open (`ulimit -n`).
fn process_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Holds the budget against what the process may open: told here, not by whatever fails first later on.
///
/// # Errors
/// Names both numbers.
pub(crate) fn check_process_limit(fds_max: Option<usize>) -> Result<(), OptionsError> {
    within_process_limit(fds_max, process_limit())
}

fn within_process_limit(fds_max: Option<usize>, limit: usize) -> Result<(), OptionsError> {
    let needed = fds_max.unwrap_or(FDS_MIN).saturating_add(FDS_OTHERS_MIN);
    if needed <= limit {
        return Ok(());
    }
    let reason = format!(
        "the process may open {limit} files (`ulimit -n`), {} for the queue and {FDS_OTHERS_MIN} for the rest of it are {needed}",
        fds_max.unwrap_or(FDS_MIN)
    );
    Err(OptionsError { field: "fds_max", reason })
}

impl Options {
    /// Checks every field, alone and against the others.
    ///
    /// # Errors
    /// Names the first field that cannot be, and why.
    pub fn validate(&self) -> Result<(), OptionsError> {
        check_stream(&self.stream, self.buffer_bytes_max)?;
        self.check_space()?;
        within("lanes_count", self.lanes_count, 1, LANES_MAX)?;
        within("readers_count", self.readers_count, 1, READERS_MAX)?;
        within("turn_bytes_max", self.turn_bytes_max, 1, isize::MAX.unsigned_abs())?;
        at_least("turn_time_max", self.turn_time_max)?;
        at_least("cursor_interval", self.cursor_interval)?;
        at_least("backoff_first", self.backoff_first)?;
        if let Some(push_back) = self.push_back {
            at_least("push_back", push_back)?;
        }
        if self.backoff_max < self.backoff_first {
            let reason =
                format!("{:?} is less than backoff_first, {:?}", self.backoff_max, self.backoff_first);
            return Err(OptionsError { field: "backoff_max", reason });
        }
        match self.fds_max {
            Some(fds_max) => within("fds_max", fds_max, FDS_MIN, usize::MAX),
            None => Ok(()),
        }
    }
}

impl Options {
    fn check_space(&self) -> Result<(), OptionsError> {
        if self.reserve_bytes > RESERVE_BYTES_MAX {
            let reason = format!("{} is more than {RESERVE_BYTES_MAX}", self.reserve_bytes);
            return Err(OptionsError { field: "reserve_bytes", reason });
        }
        let Some(bytes_max) = self.bytes_max else { return Ok(()) };
        let least = self.stream.segment_bytes_max.saturating_add(self.reserve_bytes + JOURNAL_BYTES);
        if bytes_max < least {
            let reason = format!(
                "{bytes_max} does not hold a segment of segment_bytes_max, the reserve and the journals: at least {least}"
            );
            return Err(OptionsError { field: "bytes_max", reason });
        }
        Ok(())
    }
}

/// Checks a stream's settings alone and against the room all streams share.
///
/// # Errors
/// Names the field.
pub(crate) fn check_stream(settings: &StreamSettings, buffer_bytes_max: u64) -> Result<(), OptionsError> {
    settings.validate().map_err(|e| OptionsError { field: e.field, reason: e.problem.to_string() })?;
    // Else the largest record allowed could never be taken: `Busy` for ever.
    let needed = wal_format::frame_bytes(settings.record_bytes_max).max(1) as u64;
    if buffer_bytes_max < needed {
        let reason = format!(
            "{buffer_bytes_max} bytes do not hold one record of record_bytes_max, {needed} bytes as a frame"
        );
        return Err(OptionsError { field: "buffer_bytes_max", reason });
    }
    Ok(())
}

fn within(field: &'static str, value: usize, min: usize, max: usize) -> Result<(), OptionsError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(OptionsError { field, reason: format!("{value} is outside {min}..={max}") })
}

fn at_least(field: &'static str, value: Duration) -> Result<(), OptionsError> {
    if value >= INTERVAL_MIN {
        return Ok(());
    }
    Err(OptionsError {
        field,
        reason: format!("{value:?} is less than {INTERVAL_MIN:?}: 0 would be a busy loop"),
    })
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

impl SinkSettings {
    /// Checks every field.
    ///
    /// # Errors
    /// Names the first field that cannot be, and why.
    pub fn validate(&self) -> Result<(), OptionsError> {
        within("quick_tries_count", self.quick_tries_count as usize, 1, 100)
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
