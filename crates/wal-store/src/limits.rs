//! What a stream may hold, and what is done at the limit. Plain values.

use std::time::Duration;

use wal_format::{BATCH_HEADER_BYTES, PADDING_BYTES, SEGMENT_HEADER_BYTES, frame_bytes};

use crate::commit::PADDED_FROM_BYTES;
use crate::{Settings, SettingsError};

/// Least age: what is checked more often than this would be a busy loop.
const AGE_MIN: Duration = Duration::from_millis(1);

/// What an append meets at the byte limit of its stream, or of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnFull {
    /// It is refused; the blocking and async variants wait until something was delivered and unlinked.
    #[default]
    Block,
    /// It is refused, by the blocking and async variants too.
    Reject,
    /// Whole segments are dropped, oldest first, delivered or not; ahead of need, so that it is rarely refused.
    DropOldest,
    /// Its records are dropped and counted.
    DropNewest,
}

/// What a stream may hold. May change while its log runs, see [`Log::set_limits`](crate::Log::set_limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Limits {
    /// Most bytes of its segment files, with what is accepted and not yet written; at least `segment_bytes_max` and a
    /// record of `record_bytes_max`. `None`: no limit of its own.
    pub bytes_max: Option<u64>,
    /// What an append meets at that limit, or at the queue's.
    pub on_full: OnFull,
    /// A segment is dropped once its newest record is this old, delivered or not; at least 1 ms. `None`: never. A log
    /// keeps it and does not act on it: its owner does.
    pub age_max: Option<Duration>,
}

impl Limits {
    /// Checks every field alone and against the stream's settings.
    pub(crate) fn validate(&self, settings: &Settings) -> Result<(), SettingsError> {
        let refuse = |field, problem| Err(SettingsError { field, problem });
        if let Some(bytes_max) = self.bytes_max {
            if bytes_max < settings.segment_bytes_max {
                return refuse("limits.bytes_max", "must hold a segment of segment_bytes_max");
            }
            let record = frame_bytes(settings.record_bytes_max) as u64;
            if bytes_max < record.saturating_add(batch_overhead(settings)) {
                return refuse(
                    "limits.bytes_max",
                    "must hold a record of record_bytes_max in a segment of its own",
                );
            }
        }
        if self.age_max.is_some_and(|age| age < AGE_MIN) {
            return refuse("limits.age_max", "must be at least 1 ms; leave it out for no limit");
        }
        Ok(())
    }
}

/// Most bytes a batch takes on the disk beside its frames: it may be the first of a segment, and padded.
pub(crate) fn batch_overhead(settings: &Settings) -> u64 {
    let padding = if settings.batch_bytes_max as u64 >= PADDED_FROM_BYTES - BATCH_HEADER_BYTES as u64 {
        PADDING_BYTES - 1
    } else {
        0
    };
    (SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES) as u64 + padding
}
