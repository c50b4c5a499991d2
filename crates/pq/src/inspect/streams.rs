//! What there is, stream by stream: scanned, or else told from what is saved.
//!
//! Invariant: a stream whose files are gone or cannot be read hides no other.

use offsets::{ConsumerEntry, Offsets};
use serde::Serialize;
use wal_format::Seq;
use wal_store::{RecoverError, ScanDepth, ScanReport, scan_read_only, segment_path};

use disk::ErrorClass;

use crate::catalog::Entry;
use crate::core::{evidence_of, stream_dir};
use crate::repair::{MISSING_DIR, known_seqs};
use crate::{Gap, GapReason, OnFull};

use super::{InspectError, Inspection, LossInfo};

/// A stream, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamInfo {
    /// Its name.
    pub name: String,
    /// Oldest kept seq.
    pub first: u64,
    /// End of what can be read.
    pub end: u64,
    /// Seqs from `first` to `end` less those that are known to be lost or never to have been stored.
    pub records: u64,
    /// The durable end as saved last; a live owner may be ahead of it.
    pub durable_end: u64,
    /// Segments that exist.
    pub segments: Vec<SegmentInfo>,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Most bytes they may have; `None`: no limit of its own.
    pub bytes_max: Option<u64>,
    /// What an append meets at a byte limit: `block`, `reject`, `drop-oldest`, `drop-newest`.
    pub on_full: &'static str,
    /// Seconds after which a segment is dropped; `None`: never.
    pub age_max_seconds: Option<f64>,
    /// Records known to be lost, ever.
    pub lost_records: u64,
    /// Which, as the owner remembers them.
    pub losses: Vec<LossInfo>,
    /// Records dropped to stay under a byte limit before every consumer had them, ever.
    pub trimmed_records: u64,
    /// Records dropped because they were too old before every consumer had them, ever.
    pub expired_records: u64,
    /// Its consumers.
    pub consumers: Vec<ConsumerInfo>,
    /// Why its files could not be looked through, with the name of what is missing or cannot be read. Then nothing is known of its
    /// segments, and the figures are those that are saved: `first` to `end` is what it held at the last save.
    pub unreadable: Option<String>,
}

/// A segment, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its id.
    pub id: u64,
    /// Its first seq.
    pub first: u64,
    /// Its end.
    pub end: u64,
    /// Bytes of its file.
    pub bytes: u64,
}

/// A consumer, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// Its saved cursor.
    pub cursor: u64,
    /// Records above it: seqs that are known to be lost, or never to have been stored, are none.
    pub lag_records: u64,
    /// How many of these limits dropped: they will be delivered as gaps.
    pub dropped_records: u64,
}

/// How a stream was looked through.
pub(super) enum Scanned {
    Whole(Box<ScanReport>, Offsets),
    Not(Unread, Offsets),
    /// Its owner deleted it meanwhile.
    Deleted,
}

/// Why a stream was not looked through.
pub(super) struct Unread {
    pub(super) reason: String,
    /// Its directory is gone: what it is known to have held, from and to. `from >= to`: nothing, its creation was cut short.
    pub(super) lost: Option<(Seq, Seq)>,
}

impl Unread {
    /// All of it, as a gap.
    pub(super) fn gap(&self) -> Option<Gap> {
        let (from, to) = self.lost.filter(|(from, to)| from < to)?;
        Some(Gap { from, to, reason: GapReason::Lost })
    }

    /// Whether nothing is amiss: created, and its directory not made yet.
    pub(super) fn is_unborn(&self) -> bool {
        self.lost.is_some_and(|(from, to)| from >= to)
    }
}

impl Inspection {
    /// `None`: it is deleted.
    pub(super) fn stream_info(&self, entry: &Entry) -> Result<Option<StreamInfo>, InspectError> {
        let (scan, cursors) = match self.scan_one(entry, ScanDepth::Ends)? {
            Scanned::Whole(scan, cursors) => (scan, cursors),
            Scanned::Not(unread, cursors) => {
                let (first, end) = known_seqs(&cursors, entry);
                let missing = Missing::new(entry, unread.gap().as_slice());
                let info = saved_info(entry, &cursors, (first, end.max(first)), &missing);
                let unreadable = (!unread.is_unborn()).then_some(unread.reason);
                return Ok(Some(StreamInfo { unreadable, ..info }));
            }
            Scanned::Deleted => return Ok(None),
        };
        let dir = stream_dir(entry.id);
        let segment = |s: &wal_store::SegmentInfo| SegmentInfo {
            id: s.id.get(),
            first: s.first_seq.get(),
            end: s.end_seq.get(),
            // Retired between the scan and here: gone.
            bytes: self.disk.stat(&segment_path(&dir, s.id)).map_or(0, |stat| stat.len),
        };
        let first = scan.segments.first().map_or(scan.end, |s| s.first_seq);
        let missing = Missing::new(entry, &scan.gaps);
        Ok(Some(StreamInfo {
            segments: scan.segments.iter().map(segment).collect(),
            bytes: scan.file_bytes,
            ..saved_info(entry, &cursors, (first, scan.end), &missing)
        }))
    }

    /// A stream's scan, or why there is none.
    pub(super) fn scan_one(&self, entry: &Entry, depth: ScanDepth) -> Result<Scanned, InspectError> {
        let error = match self.scan(entry, depth) {
            Ok((scan, cursors)) => return Ok(Scanned::Whole(Box::new(scan), cursors)),
            Err(InspectError::Scan(error)) => error,
            Err(other) => return Err(other),
        };
        let cursors = self.cursors()?;
        if !matches!(&error, RecoverError::Disk { source } if source.class() == ErrorClass::NotFound) {
            return Ok(Scanned::Not(Unread { reason: reason_of(&error), lost: None }, cursors));
        }
        // Its owner deleted it since the catalog was read.
        if self.catalog()?.living().all(|living| living.id != entry.id) {
            return Ok(Scanned::Deleted);
        }
        let reason = format!("{}: {MISSING_DIR}", stream_dir(entry.id).display());
        let (from, to) = known_seqs(&cursors, entry);
        Ok(Scanned::Not(Unread { reason, lost: Some((from, to)) }, cursors))
    }

    /// A scan, and the cursors as they were after it: what lies below their floor was retired meanwhile, and is no gap.
    fn scan(&self, entry: &Entry, depth: ScanDepth) -> Result<(ScanReport, Offsets), InspectError> {
        let before = self.cursors()?;
        let context = self.context(entry);
        let mut scan = scan_read_only(&context, &evidence_of(&before, entry.id, None), depth)?;
        let after = self.cursors()?;
        if let Some(floor) = after.floor(entry.id) {
            scan.gaps.retain(|gap| gap.to > floor.seq);
        }
        Ok((scan, after))
    }
}

/// Seqs of a stream that are known to be lost, or never to have been stored.
struct Missing(Vec<Gap>);

impl Missing {
    /// Those that are remembered, and those of these gaps that are not yet.
    fn new(entry: &Entry, found: &[Gap]) -> Self {
        let news = found.iter().flat_map(|gap| entry.losses.news(gap));
        Self(entry.losses.gaps().into_iter().chain(news).collect())
    }

    /// How many seqs of `from` to `end` are not among them.
    fn records(&self, from: Seq, end: Seq) -> u64 {
        let lost: u64 = self.0.iter().map(|gap| gap.from.max(from).distance_to(gap.to.min(end))).sum();
        from.distance_to(end).saturating_sub(lost)
    }
}

/// What is saved of a stream with these seqs; its segments are not.
fn saved_info(entry: &Entry, cursors: &Offsets, (first, end): (Seq, Seq), missing: &Missing) -> StreamInfo {
    let trims = cursors.trims(entry.id).cloned().unwrap_or_default();
    let consumer = |c: &ConsumerEntry| ConsumerInfo {
        name: c.name.clone(),
        cursor: c.cursor.get(),
        lag_records: missing.records(c.cursor, end),
        dropped_records: trims.ranges.iter().map(|t| t.from.max(c.cursor).distance_to(t.to)).sum(),
    };
    let limits = entry.settings.limits;
    StreamInfo {
        name: entry.name.clone(),
        first: first.get(),
        end: end.get(),
        records: missing.records(first, end),
        durable_end: cursors.durable_end(entry.id).map_or(1, |durable| durable.end.get()),
        segments: Vec::new(),
        bytes: 0,
        bytes_max: limits.bytes_max,
        on_full: match limits.on_full {
            OnFull::Block => "block",
            OnFull::Reject => "reject",
            OnFull::DropOldest => "drop-oldest",
            OnFull::DropNewest => "drop-newest",
        },
        age_max_seconds: limits.age_max.map(|age| age.as_secs_f64()),
        trimmed_records: trims.trimmed_count,
        expired_records: trims.expired_count,
        lost_records: entry.losses.records_count(),
        losses: entry.losses.of(&entry.name).map(|loss| LossInfo::of(&loss)).collect(),
        consumers: cursors.consumers_of(entry.id).map(consumer).collect(),
        unreadable: None,
    }
}

/// In words that begin with the file.
fn reason_of(error: &RecoverError) -> String {
    match error {
        RecoverError::Disk { source } => {
            format!("{}: cannot be read ({}: {})", source.path().display(), source.op(), source.io_error())
        }
        other => other.to_string(),
    }
}
