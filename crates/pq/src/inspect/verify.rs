//! Checks every byte, and says exactly what is damaged and what it costs.

use std::path::Path;

use serde::Serialize;
use wal_format::SegmentId;
use wal_store::{Finding, Row, ScanDepth, ScanReport, segment_path};

use crate::catalog::Entry;
use crate::core::stream_dir;
use crate::repair::{OrphanInfo, RepairReport};
use crate::{Gap, GapReason};

use super::gone::{self, Saved};
use super::streams::{Scanned, Unread};
use super::{InspectError, Inspection};

/// What a check of every byte found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// By stream.
    pub streams: Vec<StreamCheck>,
    /// Damage of the queue's own files (metadata, catalog, cursors) and directories that no stream stands for, in words that begin with
    /// the file.
    pub notes: Vec<String>,
    /// What lies in the queue's directories and is not the queue's; no damage.
    pub strays: Vec<String>,
}

impl VerifyReport {
    /// Whether anything is damaged or lost.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.notes.is_empty() || self.streams.iter().any(StreamCheck::is_damaged)
    }
}

/// What a check of a stream found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamCheck {
    /// Its name.
    pub name: String,
    /// Records that are whole.
    pub records_count: u64,
    /// Batches they stand in.
    pub batches_count: u64,
    /// Bytes looked at.
    pub bytes: u64,
    /// Bytes behind the end, of which none is read: a crash left them, or an owner is writing them. No damage.
    pub torn_bytes: u64,
    /// Seqs that are lost, as (from, to, reason); `to` is the first seq behind.
    pub lost: Vec<(u64, u64, String)>,
    /// Those of them that the queue does not remember yet. Opening it, reading over them or a repair writes them down; a loss that is
    /// written down, and of which no damaged byte is left, is no damage.
    pub lost_news: Vec<(u64, u64)>,
    /// Damage found, in words that begin with the file, its path within the queue, and the offset in it.
    pub damage: Vec<String>,
    /// Names in the stream's directory that are no segment's; no damage.
    pub strays: Vec<String>,
}

impl StreamCheck {
    /// Whether anything is damaged, or lost without being remembered.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.lost_news.is_empty() || !self.damage.is_empty()
    }
}

/// What a plan of a repair says of the queue's own files, a line each that begins with the file.
pub(super) fn notes(own: &RepairReport) -> Vec<String> {
    let mut notes: Vec<String> =
        own.steps.iter().map(|step| format!("{}: {}", step.path, step.found.join(", "))).collect();
    let left: Vec<&OrphanInfo> = own.orphans.iter().filter(|orphan| orphan.is_left()).collect();
    if own.catalog_missing && !left.is_empty() {
        notes.push("catalog: missing, and with it the names and settings of the streams".to_owned());
    }
    let orphan = |orphan: &&OrphanInfo| match orphan.segments_count {
        1 => format!("{}: no stream stands for the segment in it", orphan.dir),
        segments => format!("{}: no stream stands for the {segments} segments in it", orphan.dir),
    };
    notes.extend(left.iter().map(orphan));
    notes
}

/// Checks one stream; `None`: it is deleted.
pub(super) fn check(inspection: &Inspection, entry: &Entry) -> Result<Option<StreamCheck>, InspectError> {
    let (scan, cursors) = match inspection.scan_one(entry, ScanDepth::EveryByte)? {
        Scanned::Whole(scan, cursors) => (scan, cursors),
        Scanned::Not(unread, _) => return Ok(Some(unread_check(entry, unread))),
        Scanned::Deleted => return Ok(None),
    };
    let dir = stream_dir(entry.id);
    let found = &scan.classified;
    let (posing, mut strays) =
        found.strays.iter().cloned().partition::<Vec<_>, _>(|name| is_segment_name(name));
    strays.extend(found.beyond.iter().filter_map(|id| {
        let path = segment_path(&dir, *id);
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    }));
    // What was never durable, and what was retired, is no loss of what is here.
    let lost: Vec<Gap> = scan.gaps.iter().filter(|gap| gap.reason == GapReason::Lost).copied().collect();
    let news: Vec<Gap> = lost.iter().flat_map(|gap| entry.losses.news(gap)).collect();
    let mut damage = damage(&scan, &dir, &posing);
    let saved = Saved {
        floor: cursors.floor(entry.id).map(|floor| floor.segment),
        newest: cursors.durable_end(entry.id).map(|end| end.segment),
    };
    for gap in &news {
        let gone = gone::segments_of(inspection, &scan, &dir, *gap, saved);
        let file = |line: &str| line.split(": ").next().map(str::to_owned);
        let is_told = |line: &String| damage.iter().any(|told| file(told) == file(line));
        let news: Vec<String> = gone.into_iter().filter(|line| !is_told(line)).collect();
        damage.extend(news);
    }
    Ok(Some(StreamCheck {
        name: entry.name.clone(),
        records_count: scan.record_count,
        batches_count: scan.batch_count,
        bytes: scan.file_bytes,
        torn_bytes: found.torn_bytes.max(found.dead_bytes),
        lost: lost.iter().map(|gap| (gap.from.get(), gap.to.get(), gap.reason.to_string())).collect(),
        lost_news: news.iter().map(|gap| (gap.from.get(), gap.to.get())).collect(),
        damage,
        strays,
    }))
}

/// What is damaged in the files that are read, in words.
fn damage(scan: &ScanReport, dir: &Path, posing: &[String]) -> Vec<String> {
    let in_words = |finding: &Finding| {
        let path = segment_path(dir, finding.segment);
        format!("{} at byte {}: {}", path.display(), finding.offset, finding.kind)
    };
    let mut damage: Vec<String> = scan.findings.iter().map(in_words).collect();
    let rivals = scan.classified.rows.iter().filter(|(row, _)| *row == Row::R9);
    damage.extend(rivals.map(|(_, id)| {
        let path = segment_path(dir, *id);
        format!("{}: another segment or another stream's under this name, not read", path.display())
    }));
    let posing = posing.iter().map(|name| dir.join(name));
    damage.extend(posing.map(|path| format!("{}: a segment's name, but no regular file", path.display())));
    damage
}

/// A stream that could not be looked through.
fn unread_check(entry: &Entry, unread: Unread) -> StreamCheck {
    let gap = unread.gap();
    let news = gap.iter().flat_map(|gap| entry.losses.news(gap));
    StreamCheck {
        name: entry.name.clone(),
        records_count: 0,
        batches_count: 0,
        bytes: 0,
        torn_bytes: 0,
        lost: gap.iter().map(|gap| (gap.from.get(), gap.to.get(), gap.reason.to_string())).collect(),
        lost_news: news.map(|gap| (gap.from.get(), gap.to.get())).collect(),
        damage: if unread.is_unborn() { Vec::new() } else { vec![unread.reason] },
        strays: Vec::new(),
    }
}

fn is_segment_name(name: &str) -> bool {
    let id = name.strip_suffix(".seg").and_then(|id| u64::from_str_radix(id, 16).ok());
    id.is_some_and(|id| segment_path(Path::new(""), SegmentId::new(id)) == Path::new(name))
}
