//! Recovery: from what a crash left to a stream that goes on.
//!
//! Collect from all files first, then classify by the table ([`classify`](crate::classify)), then act. What acts is
//! little: retired and void files are unlinked, damaged ones linked into quarantine. No file of an earlier run is ever
//! written, truncated or appended to: whether a sync of it once failed is forgotten with the process. A torn tail is made
//! dead by the header of the next segment, which names where this one ends.
//!
//! ```text
//!   sync directory ─> list ─> sync, drop cache, heads ─> chain ─> scan ─> classify ─> quarantine ─> unlink ─> sync
//!                             \____ the medium, not the cache ____/       (pure)
//! ```
//!
//! Only files whose end nothing names are read: the newest, and those without a header. Older ones are as long as their
//! successor says, and what is damaged inside them is found by whoever reads them.
//!
//! Invariants: reading classifies and changes nothing; an error leaves everything as it was, or some of the unlinks
//! done, and recovering again decides the same; nothing is shown before the directory was synced.

mod act;
pub(crate) mod chain;
pub(crate) mod collect;
#[cfg(test)]
mod crash_tests;
pub(crate) mod facts;
pub(crate) mod sweep;

use std::path::PathBuf;

use disk::DiskError;
use wal_format::{DecodeError, Predecessor, SegmentId, Seq};

use crate::classify::{Known, Row, Verdict, classify};
use crate::segments::{SegmentInfo, SegmentState};
use crate::{Gap, OwnedTag, SegmentList, StoreContext};
use chain::Link;
use collect::{Collected, Trust};

/// What is known from outside before the files are looked at.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// First seq and first segment that must still exist.
    pub floor: Option<(Seq, SegmentId)>,
    /// The highest saved durable end, a clean stop's included.
    pub durable_end: Option<Seq>,
    /// The highest saved cursor of any consumer. A cursor is saved only up to what is durable.
    pub cursors_max: Option<Seq>,
    /// The tags saved with the floor.
    pub floor_tags: Vec<OwnedTag>,
    /// The newest segment as the clean-stop record names it, if there is a record that still counts. It is believed
    /// only if it still is the newest.
    pub clean: Option<SegmentId>,
}

/// What recovery found, and where the log goes on.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// The segments kept, all rotated.
    pub segments: SegmentList,
    /// The first seq to give.
    pub next_seq: Seq,
    /// The seq before it, whether stored or lost; 0: none.
    pub prev_seq: u64,
    /// The id of the next segment.
    pub next_segment: SegmentId,
    /// What the next segment's header names.
    pub predecessor: Option<Predecessor>,
    /// Seqs lost, as far as this recovery looked; the same ones again at the next.
    pub gaps: Vec<Gap>,
    /// Last tag of every producer.
    pub tags: Vec<OwnedTag>,
    /// How many seqs at or above `next_seq` the last run may have shown unsynced: 0 after a clean stop. A stream whose
    /// readers see what is only written jumps at least this far.
    pub shown_unsynced_max: u64,
    /// The files that are left and their lengths, dead bytes included.
    pub file_bytes: Vec<(SegmentId, u64)>,
    /// What was found and done.
    pub report: RecoveryReport,
}

impl Recovery {
    /// Of a stream that was just created.
    pub fn fresh() -> Self {
        Self {
            segments: SegmentList::new(),
            next_seq: Seq::FIRST,
            prev_seq: 0,
            next_segment: SegmentId::FIRST,
            predecessor: None,
            gaps: Vec::new(),
            tags: Vec::new(),
            shown_unsynced_max: 0,
            file_bytes: Vec::new(),
            report: RecoveryReport::default(),
        }
    }
}

/// What recovery found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the clean-stop record was believed.
    pub clean: bool,
    /// Files that bear a segment's name.
    pub file_count: usize,
    /// Files that were read from their first batch to their end.
    pub scanned_count: usize,
    /// Rows of the table that were applied, with the segment.
    pub rows: Vec<(Row, SegmentId)>,
    /// Files unlinked: retired ones that came back, void ones.
    pub unlinked: Vec<SegmentId>,
    /// Files linked into quarantine, by their new path.
    pub quarantined: Vec<PathBuf>,
    /// Segments whose header had one bit wrong.
    pub mended: Vec<SegmentId>,
    /// Bytes of batches behind the logical end: torn, or voided by a hole in front of them.
    pub torn_bytes: u64,
    /// All bytes behind the logical end of the newest segment.
    pub dead_bytes: u64,
    /// Names in the directory that are not a segment's, ignored. Lossy where they are not UTF-8.
    pub strays: Vec<String>,
    /// Files with a segment's name whose ids this stream cannot have reached, and with nothing of it inside: ignored.
    pub beyond: Vec<SegmentId>,
    /// The disk cannot drop cached pages: what was read may be ahead of the medium.
    pub cache_kept: bool,
}

impl RecoveryReport {
    /// How often a row was applied.
    pub fn count(&self, row: Row) -> usize {
        self.rows.iter().filter(|(applied, _)| *applied == row).count()
    }

    /// Whether anything but an ordinary stop or crash was found.
    pub fn found_damage(&self) -> bool {
        !self.quarantined.is_empty()
            || !self.mended.is_empty()
            || self.count(Row::R3) + self.count(Row::R4) > 0
    }
}

/// Why a stream could not be recovered now. Nothing was classified or shown; other streams are not concerned.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// R8: the disk failed. Try again later.
    #[error("cannot recover the stream now: {source}")]
    Disk {
        /// What the disk said; it names the file.
        #[from]
        source: DiskError,
    },
    /// R7: a newer program wrote this. Nothing was changed.
    #[error("{}: {source}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Bytes from its start.
        offset: u64,
        /// Version or flags.
        source: DecodeError,
    },
    /// There is no seq or segment id left.
    #[error("seqs or segment ids of the stream are used up")]
    UsedUp,
}

impl RecoverError {
    /// Whether trying again may succeed without anybody doing something.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Disk { .. })
    }
}

/// Classifies what the stream's directory holds, unlinks what is void, and says where the stream goes on.
///
/// # Errors
/// Nothing durable is lost whatever fails; call again. Some files may already be unlinked that would be again.
pub fn recover(ctx: &StoreContext, evidence: &Evidence) -> Result<Recovery, RecoverError> {
    let collected = collect::collect(ctx, evidence, Trust::Medium)?;
    let known = known(evidence);
    let verdict = classify(known, &collected.pieces);
    let tags = collect::tags(ctx, evidence, &collected, &verdict)?;
    let mut recovery = conclude(evidence, &collected, &verdict, tags)?;
    act::act(ctx, &collected, &verdict, &mut recovery.report)?;
    let gone = &recovery.report.unlinked;
    recovery.file_bytes.retain(|(id, _)| gone.binary_search(id).is_err());
    Ok(recovery)
}

/// What the saved state says.
pub(crate) fn known(evidence: &Evidence) -> Known {
    let floor = evidence.floor.map_or(Seq::FIRST, |(seq, _)| seq).max(Seq::FIRST);
    let ends = [evidence.durable_end, evidence.cursors_max].into_iter().flatten();
    Known { floor, durable_end: ends.max().unwrap_or(floor).max(floor) }
}

/// The floor's segment.
pub(crate) fn floor_segment(evidence: &Evidence) -> SegmentId {
    evidence.floor.map_or(SegmentId::FIRST, |(_, segment)| segment).max(SegmentId::FIRST)
}

/// Puts the verdict into the form a log starts from.
pub(crate) fn conclude(
    evidence: &Evidence,
    collected: &Collected,
    verdict: &Verdict,
    tags: Vec<OwnedTag>,
) -> Result<Recovery, RecoverError> {
    let known = known(evidence);
    let segments = segments(verdict, known.floor);
    let within = collected.links.iter().map(Link::id).filter(|id| *id <= collected.reach);
    let highest = within.max().unwrap_or(SegmentId::new(0));
    let floor_before = SegmentId::new(floor_segment(evidence).get() - 1);
    let next_segment = highest.max(floor_before).checked_next().ok_or(RecoverError::UsedUp)?;
    let last = verdict.kept.last();
    let next_seq = Seq::new(verdict.next_seq);
    if next_seq == Seq::MAX {
        return Err(RecoverError::UsedUp);
    }
    let mut report = collected.report.clone();
    report.rows.extend(verdict.rows.iter().copied());
    report.torn_bytes = verdict.torn_bytes;
    report.dead_bytes = last.map_or(0, |last| collected.len_of(last.id).saturating_sub(last.end_offset));
    Ok(Recovery {
        segments,
        next_seq,
        prev_seq: next_seq.get() - 1,
        next_segment,
        predecessor: last.map(|last| Predecessor { id: last.id, end_offset: last.end_offset }),
        gaps: verdict.gaps.clone(),
        tags,
        file_bytes: collected.links.iter().map(|link| (link.id(), collected.len_of(link.id()))).collect(),
        shown_unsynced_max: if report.clean { 0 } else { collected.unsynced_records_max() },
        report,
    })
}

fn segments(verdict: &Verdict, floor: Seq) -> SegmentList {
    let infos = verdict.kept.iter().map(|kept| SegmentInfo {
        id: kept.id,
        first_seq: kept.first_seq,
        end_seq: kept.end_seq,
        end_offset: kept.end_offset,
        state: SegmentState::Rotated,
    });
    let mut list: SegmentList = infos.collect();
    list.set_retired_below(floor);
    list
}

#[cfg(test)]
mod tests;
