//! Looking at a stream's files without owning them: for `stat`, `verify` and reading beside a live owner.
//!
//! It classifies by the same table as recovery and counts, and it changes nothing: not a file, not a name, not what is
//! cached. What the owner is just writing is "not yet there", never damage.
//!
//! ```text
//!   collect (from the cache) ─> classify ─> segments, gaps      = what a recovery would decide now
//!                                   └ every byte: findings      = what is damaged, and what it costs
//! ```
//!
//! Invariants: only names and bytes are read; a finding is about bytes in front of a segment's end.

use wal_format::{SEGMENT_HEADER_BYTES, SegmentId, Seq};

use crate::classify::classify;
use crate::recover::collect::{self, Collected, Trust};
use crate::recover::facts::{Blemish, RunFact};
use crate::recover::sweep::Reach;
use crate::recover::{conclude, known};
use crate::{
    Evidence, Gap, GapReason, Item, OwnedTag, ReadBuffers, ReadError, ReadFrom, ReadLimits, RecoverError,
    RecoveryReport, SegmentInfo, SegmentList, StoreContext,
};

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanDepth {
    /// Headers, and the segments whose end nothing names: what a recovery reads.
    Ends,
    /// Every byte of every segment.
    EveryByte,
}

/// What a read-only scan found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScanReport {
    /// The segments as a recovery would keep them now; may be read with [`SegmentList::read`].
    pub segments: SegmentList,
    /// Everything there is to read ends here (exclusive). A live owner may be ahead of it.
    pub end: Seq,
    /// Seqs that are lost, exactly, as far as this scan looked. Those below a floor that was read *after* the scan were
    /// retired meanwhile.
    pub gaps: Vec<Gap>,
    /// Damaged places. Only with [`ScanDepth::EveryByte`].
    pub findings: Vec<Finding>,
    /// Records that can be read. Only with [`ScanDepth::EveryByte`].
    pub record_count: u64,
    /// Their payload bytes. Only with [`ScanDepth::EveryByte`].
    pub payload_bytes: u64,
    /// The batches they stand in. Only with [`ScanDepth::EveryByte`].
    pub batch_count: u64,
    /// Bytes of all segment files.
    pub file_bytes: u64,
    /// The last tag of every producer.
    pub tags: Vec<OwnedTag>,
    /// The rows a recovery would apply now, strays, bytes behind the end.
    pub classified: RecoveryReport,
}

impl ScanReport {
    /// Whether anything is damaged or lost.
    pub fn found_damage(&self) -> bool {
        !self.findings.is_empty()
            || self.classified.found_damage()
            || self.gaps.iter().any(|gap| gap.reason == GapReason::Lost)
    }
}

/// A damaged place in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The segment.
    pub segment: SegmentId,
    /// Where it begins, in bytes from the start of the file: of the batch, or of the bytes that are none.
    pub offset: u64,
    /// What is damaged.
    pub kind: FindingKind,
    /// Records that cannot be read because of it, `[from, to)` each. Empty: it costs nothing.
    pub lost: Vec<(Seq, Seq)>,
}

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The segment's header: one bit, or all of it.
    SegmentHeader,
    /// A batch's header, by one bit.
    BatchHeader,
    /// Frames of a batch.
    Frames,
    /// The zeros that fill up a padded batch.
    Padding,
    /// Bytes where a batch should begin.
    NoBatch,
    /// The file ends before the segment does.
    Missing,
}

impl std::fmt::Display for FindingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SegmentHeader => "segment header damaged",
            Self::BatchHeader => "batch header damaged",
            Self::Frames => "frames damaged",
            Self::Padding => "padding damaged",
            Self::NoBatch => "no batch where one should begin",
            Self::Missing => "the file is shorter than the segment",
        })
    }
}

/// Classifies and counts, and changes nothing.
///
/// A file that a live owner retires meanwhile is passed over. `evidence.clean` plays no part.
///
/// # Errors
/// As [`recover`](crate::recover()): the disk failed, or a newer program wrote the files.
pub fn scan_read_only(
    ctx: &StoreContext,
    evidence: &Evidence,
    depth: ScanDepth,
) -> Result<ScanReport, RecoverError> {
    let collected = collect::collect(ctx, evidence, Trust::Cache)?;
    let verdict = classify(known(evidence), &collected.pieces);
    let tags = collect::tags(ctx, evidence, &collected, &verdict)?;
    let recovery = conclude(evidence, &collected, &verdict, tags)?;
    let mut report = ScanReport {
        end: recovery.next_seq,
        segments: recovery.segments,
        gaps: recovery.gaps,
        findings: Vec::new(),
        record_count: 0,
        payload_bytes: 0,
        batch_count: 0,
        file_bytes: collected.links.iter().map(|link| link.found.len).sum(),
        tags: recovery.tags,
        classified: recovery.report,
    };
    if depth == ScanDepth::EveryByte {
        for segment in report.segments.clone().iter() {
            inspect(ctx, &collected, segment, &mut report.findings)?;
        }
        let counted = count(ctx, evidence, &report.segments, report.end)?;
        report.gaps = counted.gaps;
        report.record_count = counted.record_count;
        report.payload_bytes = counted.payload_bytes;
        report.batch_count = counted.batch_count;
    }
    Ok(report)
}

/// Finds what is damaged in one segment, in front of its end.
pub(crate) fn inspect(
    ctx: &StoreContext,
    collected: &Collected,
    segment: &SegmentInfo,
    findings: &mut Vec<Finding>,
) -> Result<(), RecoverError> {
    let Some(link) = collected.link(segment.id) else { return Ok(()) };
    let mut find = |offset, kind, lost| findings.push(Finding { segment: segment.id, offset, kind, lost });
    if collected.report.mended.contains(&segment.id) || link.found.head.header().is_none() {
        find(0, FindingKind::SegmentHeader, Vec::new());
    }
    let (mut at, mut seq) = (SEGMENT_HEADER_BYTES as u64, segment.first_seq);
    let end = segment.end_offset.min(link.found.len);
    for run in collect::scan_file(ctx, link, Reach::to(end))? {
        if run.start > at {
            find(at, FindingKind::NoBatch, missing(seq, &run));
        }
        for (offset, blemish) in &run.blemishes {
            let kind = match blemish {
                Blemish::Header => FindingKind::BatchHeader,
                Blemish::Padding => FindingKind::Padding,
            };
            find(*offset, kind, Vec::new());
        }
        if let Some(damage) = &run.damage {
            find(run.start, FindingKind::Frames, damage.lost.clone());
        }
        (at, seq) = (run.end, run.end_seq.max(seq));
    }
    let rest = if seq < segment.end_seq { vec![(seq, segment.end_seq)] } else { Vec::new() };
    if link.found.len < segment.end_offset {
        find(link.found.len, FindingKind::Missing, rest);
    } else if at < segment.end_offset {
        find(at, FindingKind::NoBatch, rest);
    }
    Ok(())
}

/// What is missing in front of a run that begins behind bad bytes.
fn missing(seq: Seq, run: &RunFact) -> Vec<(Seq, Seq)> {
    if run.first > seq && !run.continues(seq) { vec![(seq, run.first)] } else { Vec::new() }
}

/// What a reader of everything sees.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) gaps: Vec<Gap>,
    pub(crate) record_count: u64,
    payload_bytes: u64,
    batch_count: u64,
}

/// Reads everything as a consumer does, and counts.
pub(crate) fn count(
    ctx: &StoreContext,
    evidence: &Evidence,
    segments: &SegmentList,
    end: Seq,
) -> Result<Counted, RecoverError> {
    let mut buffers = ReadBuffers::default();
    let mut at = ReadFrom { seq: known(evidence).floor, hint: None };
    let mut counted = Counted::default();
    while at.seq < end {
        let chunk = segments.read(ctx, at, end, ReadLimits::default(), &mut buffers);
        let chunk = chunk.map_err(|error| match error {
            ReadError::Disk { source, .. } => RecoverError::Disk { source },
            ReadError::NewerFormat { segment, offset, source } => {
                RecoverError::NewerFormat { path: crate::segment_path(&ctx.dir, segment), offset, source }
            }
        })?;
        if chunk.is_empty() {
            // Lost behind the last segment.
            counted.gaps.push(Gap { from: at.seq, to: end, reason: GapReason::Lost });
            break;
        }
        for record in chunk.records() {
            counted.record_count += 1;
            counted.payload_bytes += record.payload.len() as u64;
        }
        let batches = chunk.items.iter().filter_map(Item::run).map(|run| run.batches().count() as u64);
        counted.batch_count += batches.sum::<u64>();
        for gap in chunk.gaps() {
            match counted.gaps.last_mut() {
                Some(last) if (last.to, last.reason) == (gap.from, gap.reason) => last.to = gap.to,
                _ => counted.gaps.push(gap),
            }
        }
        at = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
    }
    Ok(counted)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
