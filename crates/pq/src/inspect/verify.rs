//! Checks every byte, and says exactly what is damaged and what it costs.

use std::path::Path;

use serde::Serialize;
use wal_format::SegmentId;
use wal_store::{Finding, Row, ScanDepth, segment_path};

use crate::catalog::Entry;
use crate::core::stream_dir;
use crate::{Gap, GapReason};

use super::{InspectError, Inspection};

/// What a check of every byte found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// By stream.
    pub streams: Vec<StreamCheck>,
    /// Damage of metadata and cursors, in words.
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
    /// Damage found, in words, with file and offset.
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

/// Checks one stream.
pub(super) fn check(inspection: &Inspection, entry: &Entry) -> Result<StreamCheck, InspectError> {
    let (scan, _) = inspection.scan(entry, ScanDepth::EveryByte)?;
    let dir = stream_dir(entry.id);
    let in_words = |finding: &Finding| {
        let path = segment_path(&dir, finding.segment);
        format!("{} at byte {}: {}", path.display(), finding.offset, finding.kind)
    };
    let found = &scan.classified;
    let mut damage: Vec<String> = scan.findings.iter().map(in_words).collect();
    let rivals = found.rows.iter().filter(|(row, _)| *row == Row::R9);
    damage.extend(rivals.map(|(_, id)| {
        let path = segment_path(&dir, *id);
        format!("{}: another segment or another stream's under this name, not read", path.display())
    }));
    let (posing, mut strays) =
        found.strays.iter().cloned().partition::<Vec<_>, _>(|name| is_segment_name(name));
    strays.extend(found.beyond.iter().filter_map(|id| {
        let path = segment_path(&dir, *id);
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    }));
    damage.extend(
        posing
            .iter()
            .map(|name| format!("{}: a segment's name, but no regular file", dir.join(name).display())),
    );
    // What was never durable, and what was retired, is no loss of what is here.
    let lost = |gap: &&Gap| gap.reason == GapReason::Lost;
    Ok(StreamCheck {
        name: entry.name.clone(),
        records_count: scan.record_count,
        batches_count: scan.batch_count,
        bytes: scan.file_bytes,
        torn_bytes: found.torn_bytes.max(found.dead_bytes),
        lost: scan
            .gaps
            .iter()
            .filter(lost)
            .map(|gap| (gap.from.get(), gap.to.get(), gap.reason.to_string()))
            .collect(),
        lost_news: scan
            .gaps
            .iter()
            .filter(lost)
            .flat_map(|gap| entry.losses.news(gap))
            .map(|gap| (gap.from.get(), gap.to.get()))
            .collect(),
        damage,
        strays,
    })
}

fn is_segment_name(name: &str) -> bool {
    let id = name.strip_suffix(".seg").and_then(|id| u64::from_str_radix(id, 16).ok());
    id.is_some_and(|id| segment_path(Path::new(""), SegmentId::new(id)) == Path::new(name))
}
