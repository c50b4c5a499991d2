//! A log's settings: limits, when it syncs by itself, what readers may see. Plain values, validated once.

use std::time::Duration;

use wal_format::{
    BATCH_HEADER_BYTES, FRAMES_BYTES_MAX, PAYLOAD_BYTES_MAX, SEGMENT_HEADER_BYTES, frame_bytes,
};

use crate::Limits;

/// How safe a record is, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// In this process' memory.
    Buffered,
    /// Given to the operating system: survives a kill of the process, not a power cut.
    Written,
    /// On the medium, its directory entry too: survives a power cut.
    #[default]
    Durable,
}

/// When a log syncs without being asked. Waiting for [`Level::Durable`] forces a sync at every setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncSetting {
    /// Only what is asked for, at rotation, and so that no more than `unsynced_bytes_max` is ever unsynced.
    ///
    /// Rotation syncs at every setting, since the next segment names the end of this one: so this setting is no less safe than
    /// [`SyncSetting::OnRotate`], and no faster.
    Never,
    /// Syncs just when [`SyncSetting::Never`] does; a name for those who count on the sync at rotation rather than put up with it.
    OnRotate,
    /// With the first commit after this long since the last sync.
    Every(Duration),
    /// With each batch.
    #[default]
    EachBatch,
    /// As [`SyncSetting::EachBatch`], and every append puts the stream on its lane at once.
    EachAppend,
}

/// From which level on readers see a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReadLevel {
    /// `readable_end` = `durable_end`.
    #[default]
    Durable,
    /// `readable_end` = `written_end`: for streams that never sync by themselves.
    Written,
}

/// The settings of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// A segment is closed before a batch would make it longer than this, in bytes. A larger batch gets a segment of
    /// its own.
    pub segment_bytes_max: u64,
    /// A segment is closed at its first commit, or when due, after this long since its creation; `None`: never by age.
    pub segment_age_max: Option<Duration>,
    /// Most bytes of frames in one batch.
    pub batch_bytes_max: usize,
    /// Most frames in one batch.
    pub batch_records_max: u32,
    /// A part-filled batch is due for commit after this long.
    pub commit_interval: Duration,
    /// When the log syncs by itself.
    pub sync: SyncSetting,
    /// From which level on readers see a record.
    pub read_level: ReadLevel,
    /// Most payload bytes of one record.
    pub record_bytes_max: usize,
    /// Most bytes left written but not synced, one batch more at the very most; recorded in each segment's header.
    pub unsynced_bytes_max: u64,
    /// First wait before a failed commit is tried again; it doubles up to 100 times this.
    pub retry_after: Duration,
    /// How long a paused log waits before it probes the disk.
    pub probe_after: Duration,
    /// What the stream may hold.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_bytes_max: 64 << 20,
            segment_age_max: Some(Duration::from_secs(3600)),
            batch_bytes_max: 10 << 20,
            batch_records_max: 100_000,
            commit_interval: Duration::from_millis(20),
            sync: SyncSetting::EachBatch,
            read_level: ReadLevel::Durable,
            record_bytes_max: 1 << 20,
            unsynced_bytes_max: 64 << 20,
            retry_after: Duration::from_millis(10),
            probe_after: Duration::from_secs(1),
            limits: Limits::default(),
        }
    }
}

/// A setting that cannot be, alone or beside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("setting {field}: {problem}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The field's name in [`Settings`].
    pub field: &'static str,
    /// What is wrong with it, and what was expected.
    pub problem: &'static str,
}

impl Settings {
    /// Checks every field alone and against the others.
    ///
    /// # Errors
    /// Names the first field that cannot be.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let refuse = |field, problem| Err(SettingsError { field, problem });
        let segment_least = SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES + frame_bytes(0);
        if self.segment_bytes_max < segment_least as u64 {
            return refuse("segment_bytes_max", "must hold the segment's header and a batch (4,176 bytes)");
        }
        if self.segment_age_max == Some(Duration::ZERO) {
            return refuse("segment_age_max", "must be longer than 0; leave it out for no limit");
        }
        if self.record_bytes_max == 0 {
            return refuse("record_bytes_max", "must be at least 1");
        }
        if self.record_bytes_max > PAYLOAD_BYTES_MAX {
            return refuse("record_bytes_max", "must be at most 256 MiB, the format's limit");
        }
        if self.batch_bytes_max < frame_bytes(self.record_bytes_max) {
            return refuse("batch_bytes_max", "must hold a record of record_bytes_max and its 16-byte head");
        }
        if self.batch_bytes_max as u64 > u64::from(FRAMES_BYTES_MAX / 2) {
            return refuse("batch_bytes_max", "must be at most 512 MiB");
        }
        if self.batch_records_max == 0 {
            return refuse("batch_records_max", "must be at least 1");
        }
        if self.commit_interval == Duration::ZERO {
            return refuse("commit_interval", "must be longer than 0");
        }
        if self.sync == SyncSetting::Every(Duration::ZERO) {
            return refuse(
                "sync",
                "the interval must be longer than 0; use EachBatch to sync with each batch",
            );
        }
        if self.unsynced_bytes_max == 0 {
            return refuse("unsynced_bytes_max", "must be at least 1");
        }
        if self.retry_after == Duration::ZERO {
            return refuse("retry_after", "must be longer than 0");
        }
        if self.probe_after == Duration::ZERO {
            return refuse("probe_after", "must be longer than 0");
        }
        self.limits.validate(self)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
