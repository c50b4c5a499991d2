//! The catalog's journal bodies: serde + bincode, inside the journal's checksummed envelope. The order of variants and fields is the
//! format: only append. Golden bytes are in the tests.
//!
//! A stream without limits is written as the first version wrote it, and one with limits by the variants that end in `Limited`: whoever
//! uses no limit can go back.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wal_format::{Incarnation, Seq, StreamId, WallTime};

use super::Entry;
use crate::losses::{Folded, Losses};
use crate::{Gap, GapReason, Limits, OnFull, ReadLevel, StreamSettings, SyncSetting};

/// Most bytes of a body, so that a damaged length allocates nothing.
const BODY_BYTES_MAX: usize = 1 << 16;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<BODY_BYTES_MAX>()
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// The next stream's id is at least this.
    NextId { id: u64 },
    /// A stream was created.
    Create { id: u64, name: String, incarnation: u128, created_at: u64, settings: SettingsBody },
    /// Its settings were replaced.
    Settings { id: u64, settings: SettingsBody },
    /// It was deleted.
    Tombstone { id: u64 },
    /// Nothing of it is left.
    Forget { id: u64 },
    /// Seqs of it are lost; when that was found was not written down.
    Loss { id: u64, from: u64, to: u64, reason: u8 },
    /// A stream with limits was created.
    CreateLimited {
        id: u64,
        name: String,
        incarnation: u128,
        created_at: u64,
        settings: SettingsBody,
        limits: LimitsBody,
    },
    /// Its settings were replaced by some with limits.
    SettingsLimited { id: u64, settings: SettingsBody, limits: LimitsBody },
    /// Seqs of it are lost, and when that was found.
    LossAt { id: u64, from: u64, to: u64, reason: u8, found_at: u64 },
    /// Losses that are only counted: all below a seq.
    LossesFolded { id: u64, below: u64, ranges_count: u64, records_count: u64 },
}

/// A stream's limits as they are kept; the age in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LimitsBody {
    bytes_max: Option<u64>,
    /// 0 block, 1 reject, 2 drop oldest, 3 drop newest; what a later version knows more of blocks.
    on_full: u8,
    age_max: Option<u64>,
}

/// A stream's settings as they are kept; durations in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SettingsBody {
    segment_bytes_max: u64,
    segment_age_max: Option<u64>,
    batch_bytes_max: u64,
    batch_records_max: u32,
    commit_interval: u64,
    sync: SyncBody,
    read_written: u8,
    record_bytes_max: u64,
    unsynced_bytes_max: u64,
    retry_after: u64,
    probe_after: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum SyncBody {
    Never,
    OnRotate,
    Every(u64),
    EachBatch,
    EachAppend,
}

impl Change {
    pub(super) fn create(entry: &Entry) -> Self {
        let (id, name, incarnation) = (entry.id.get(), entry.name.clone(), entry.incarnation.get());
        let (created_at, settings) = (entry.created_at.nanos(), (&entry.settings).into());
        match limits_of(&entry.settings) {
            None => Self::Create { id, name, incarnation, created_at, settings },
            Some(limits) => Self::CreateLimited { id, name, incarnation, created_at, settings, limits },
        }
    }

    pub(super) fn settings(id: StreamId, settings: &StreamSettings) -> Self {
        let (id, body) = (id.get(), settings.into());
        match limits_of(settings) {
            None => Self::Settings { id, settings: body },
            Some(limits) => Self::SettingsLimited { id, settings: body, limits },
        }
    }

    pub(super) fn loss(id: StreamId, gap: &Gap, found_at: Option<WallTime>) -> Self {
        let (id, from, to, reason) = (id.get(), gap.from.get(), gap.to.get(), reason_number(gap.reason));
        match found_at {
            Some(found_at) => Self::LossAt { id, from, to, reason, found_at: found_at.nanos() },
            None => Self::Loss { id, from, to, reason },
        }
    }

    pub(super) fn folded(id: StreamId, folded: Folded) -> Self {
        let Folded { below, ranges_count, records_count } = folded;
        Self::LossesFolded { id: id.get(), below: below.get(), ranges_count, records_count }
    }

    /// The entry a `Create` stands for, if its name can be.
    pub(super) fn entry(&self) -> Option<Entry> {
        let (id, name, incarnation, created_at, settings, limits) = match self {
            Self::Create { id, name, incarnation, created_at, settings } => {
                (id, name, incarnation, created_at, settings, None)
            }
            Self::CreateLimited { id, name, incarnation, created_at, settings, limits } => {
                (id, name, incarnation, created_at, settings, Some(limits))
            }
            _ => return None,
        };
        Some(Entry {
            id: StreamId::new(*id),
            name: name.clone(),
            incarnation: Incarnation::new(*incarnation),
            created_at: WallTime::from_nanos(*created_at),
            settings: settings_of(settings, limits),
            deleted: false,
            losses: Losses::default(),
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        bincode::serde::encode_to_vec(self, config()).unwrap_or_default()
    }

    /// Total; `None` for anything that is not exactly one change.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (change, read) = bincode::serde::decode_from_slice::<Self, _>(bytes, config()).ok()?;
        let sound = match &change {
            Self::Create { name, .. } | Self::CreateLimited { name, .. } => crate::names::check(name).is_ok(),
            Self::Loss { from, to, .. } | Self::LossAt { from, to, .. } => Seq::new(*from) < Seq::new(*to),
            _ => true,
        };
        (sound && read == bytes.len()).then_some(change)
    }
}

/// Settings from their two parts.
pub(super) fn settings_of(settings: &SettingsBody, limits: Option<&LimitsBody>) -> StreamSettings {
    StreamSettings { limits: limits.map_or_else(Limits::default, Into::into), ..settings.into() }
}

fn limits_of(settings: &StreamSettings) -> Option<LimitsBody> {
    let limits = settings.limits;
    (limits != Limits::default()).then(|| LimitsBody {
        bytes_max: limits.bytes_max,
        on_full: match limits.on_full {
            OnFull::Block => 0,
            OnFull::Reject => 1,
            OnFull::DropOldest => 2,
            OnFull::DropNewest => 3,
        },
        age_max: limits.age_max.map(nanos),
    })
}

impl From<&LimitsBody> for Limits {
    fn from(body: &LimitsBody) -> Self {
        Self {
            bytes_max: body.bytes_max,
            on_full: match body.on_full {
                1 => OnFull::Reject,
                2 => OnFull::DropOldest,
                3 => OnFull::DropNewest,
                _ => OnFull::Block,
            },
            age_max: body.age_max.map(Duration::from_nanos),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl From<&StreamSettings> for SettingsBody {
    fn from(s: &StreamSettings) -> Self {
        Self {
            segment_bytes_max: s.segment_bytes_max,
            segment_age_max: s.segment_age_max.map(nanos),
            batch_bytes_max: s.batch_bytes_max as u64,
            batch_records_max: s.batch_records_max,
            commit_interval: nanos(s.commit_interval),
            sync: match s.sync {
                SyncSetting::Never => SyncBody::Never,
                SyncSetting::OnRotate => SyncBody::OnRotate,
                SyncSetting::Every(every) => SyncBody::Every(nanos(every)),
                SyncSetting::EachBatch => SyncBody::EachBatch,
                SyncSetting::EachAppend => SyncBody::EachAppend,
            },
            read_written: u8::from(s.read_level == ReadLevel::Written),
            record_bytes_max: s.record_bytes_max as u64,
            unsynced_bytes_max: s.unsynced_bytes_max,
            retry_after: nanos(s.retry_after),
            probe_after: nanos(s.probe_after),
        }
    }
}

impl From<&SettingsBody> for StreamSettings {
    fn from(s: &SettingsBody) -> Self {
        Self {
            segment_bytes_max: s.segment_bytes_max,
            segment_age_max: s.segment_age_max.map(Duration::from_nanos),
            batch_bytes_max: size(s.batch_bytes_max),
            batch_records_max: s.batch_records_max,
            commit_interval: Duration::from_nanos(s.commit_interval),
            sync: match s.sync {
                SyncBody::Never => SyncSetting::Never,
                SyncBody::OnRotate => SyncSetting::OnRotate,
                SyncBody::Every(every) => SyncSetting::Every(Duration::from_nanos(every)),
                SyncBody::EachBatch => SyncSetting::EachBatch,
                SyncBody::EachAppend => SyncSetting::EachAppend,
            },
            read_level: if s.read_written == 0 { ReadLevel::Durable } else { ReadLevel::Written },
            record_bytes_max: size(s.record_bytes_max),
            unsynced_bytes_max: s.unsynced_bytes_max,
            retry_after: Duration::from_nanos(s.retry_after),
            probe_after: Duration::from_nanos(s.probe_after),
            limits: Limits::default(),
        }
    }
}

fn reason_number(reason: GapReason) -> u8 {
    match reason {
        GapReason::NotDurable => 1,
        _ => 2,
    }
}

pub(super) fn reason_of(number: u8) -> GapReason {
    if number == 1 { GapReason::NotDurable } else { GapReason::Lost }
}
