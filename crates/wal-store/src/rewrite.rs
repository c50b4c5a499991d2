//! Writing damaged segments again: all records that verify, one batch behind the other, under sound headers.
//!
//! It decides as recovery does and reads as a reader does, so that what comes out is read as before, seq for seq: it mends what
//! costs nothing and closes the holes of what is lost. It changes no file; whoever repairs writes a copy and puts it in place.
//!
//! ```text
//!   1 │ H b b ~ b b │  2 │ H b b │        H names where 1 ends; a shorter 1 needs a new H in 2
//!   1 │ H b b b b │    2 │ H'b b │        in an order in which no state between loses or revives a batch
//! ```
//!
//! A file of which a batch that is lost is the last one is left as it is if that batch alone says that its writer skipped the seqs in
//! front of it: without it nobody could tell them from lost ones.
//!
//! Invariants: a plan depends on what the disk holds and on nothing else, so a plan made anew after any of its steps is the rest
//! of it; a sound stream has no plan.

mod copy;
mod order;
mod parts;
mod write;

use disk::DiskError;
use wal_format::{Predecessor, SegmentHeader, SegmentId, Seq, WallTime};

use crate::classify::{Verdict, classify};
use crate::recover::chain::Link;
use crate::recover::collect::{self, Collected, Trust};
use crate::recover::facts::{Head, RunFact};
use crate::recover::sweep::Reach;
use crate::recover::{conclude, known};
use crate::scan::{Counted, count, inspect};
use crate::{
    DurableEnd, Evidence, Finding, Gap, GapReason, RecoverError, RecoveryReport, SegmentInfo, StoreContext,
    segment_path,
};
use copy::{Copied, Copier, Leaves, Piece};

/// What is to be done so that no damaged byte of a stream is left that anybody reads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RewritePlan {
    /// In the order to do them in, one after the other.
    pub rewrites: Vec<Rewrite>,
    /// Seqs that are lost, exactly. To be written down before anything is rewritten: afterwards the file does not show them.
    pub gaps: Vec<Gap>,
    /// How far the stream is durable, with all that will be in the copies. To be saved before anything is rewritten: the
    /// damaged batches prove it now, and will not be there.
    pub durable_end: Option<DurableEnd>,
    /// Files that end earlier than they should and are sound up to there: nothing of them is written again, the next segment's
    /// header names the end that is left.
    pub short: Vec<(SegmentId, Vec<Finding>)>,
    /// Files that are left as they are, damaged: of their last batch no record is left, and it alone says that the seqs in front of
    /// it were never to be stored.
    pub left: Vec<(SegmentId, Vec<Finding>)>,
    /// Records that can be read, before and after.
    pub record_count: u64,
    /// What a recovery would do now.
    pub classified: RecoveryReport,
}

/// One file to be written again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rewrite {
    /// The segment.
    pub segment: SegmentId,
    /// What is damaged in it; nothing if only its header has to say something else.
    pub findings: Vec<Finding>,
    /// What is done.
    pub kind: RewriteKind,
    /// Bytes of the file now.
    pub bytes_before: u64,
    /// Bytes of the copy.
    pub bytes_after: u64,
    /// Records in the copy.
    pub records_count: u64,
    header: SegmentHeader,
    seqs: (Seq, Seq),
    pieces: Vec<Piece>,
}

/// How a file is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteKind {
    /// Its whole records, without what is damaged.
    Mend,
    /// As it is, but its header names where the segment in front of it ends now.
    Follow,
    /// As it is up to its end: the dead bytes behind it must not count when the end moves.
    Cut,
}

/// Why a copy could not be made. The original is as it was.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What was read back is not what was written.
    #[error(
        "the copy of segment {segment} does not read back as it was written: the disk cannot be trusted; copy the queue to another one"
    )]
    NotAsWritten {
        /// The segment.
        segment: SegmentId,
    },
}

/// One kept segment on its way to a plan.
struct Draft {
    info: SegmentInfo,
    link: Link,
    findings: Vec<Finding>,
    pieces: Vec<Piece>,
    copied: Copied,
    state: DraftState,
}

/// What becomes of a segment's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DraftState {
    /// They are sound; nothing of it changes but, perhaps, its header.
    Sound,
    /// They are damaged and say what nothing else does; nothing of it changes but, perhaps, its header.
    Left,
    /// They are copied.
    Mended,
}

impl Draft {
    /// Where its batches will end.
    fn new_end(&self) -> u64 {
        if self.is_mended() { self.copied.end } else { self.info.end_offset }
    }

    fn is_mended(&self) -> bool {
        self.state == DraftState::Mended
    }
}

/// Plans what is to be written again; changes nothing. `unsynced_bytes_max` is for a stream of which no header is left.
///
/// With the owner's right the medium is read, as in a recovery; without, what the system shows.
///
/// # Errors
/// As [`recover`](crate::recover()).
pub fn plan_rewrites(
    ctx: &StoreContext,
    evidence: &Evidence,
    access: RewriteAccess,
    unsynced_bytes_max: u64,
) -> Result<RewritePlan, RecoverError> {
    let trust = if access == RewriteAccess::Owner { Trust::Medium } else { Trust::Cache };
    let collected = collect::collect(ctx, evidence, trust)?;
    let verdict: Verdict = classify(known(evidence), &collected.pieces);
    let recovery = conclude(evidence, &collected, &verdict, Vec::new())?;
    let Counted { gaps, record_count, .. } = count(ctx, evidence, &recovery.segments, recovery.next_seq)?;
    let mut drafts = Vec::new();
    for info in recovery.segments.iter() {
        let Some(link) = collected.link(info.id) else { continue };
        drafts.push(draft(ctx, &collected, *info, *link)?);
    }
    let headers = drafts.iter().filter_map(|draft| draft.link.found.head.header());
    let unsynced_bytes_max =
        headers.map(|header| header.unsynced_bytes_max).max().unwrap_or(unsynced_bytes_max);
    let last = drafts.last().map(|last| (last.info.id, last.new_end()));
    let durable_end =
        last.map(|(segment, offset)| DurableEnd { end: recovery.next_seq, segment: Some(segment), offset });
    let unchanged = |state| {
        let drafts = drafts.iter().filter(move |draft| draft.state == state && !draft.findings.is_empty());
        drafts.map(|draft| (draft.info.id, draft.findings.clone())).collect()
    };
    Ok(RewritePlan {
        short: unchanged(DraftState::Sound),
        left: unchanged(DraftState::Left),
        rewrites: order::rewrites(ctx, &drafts, unsynced_bytes_max),
        gaps: gaps.into_iter().filter(|gap| gap.reason == GapReason::Lost).collect(),
        durable_end,
        record_count,
        classified: recovery.report,
    })
}

/// By what right a stream is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteAccess {
    /// The one owner's, who holds the queue's lock.
    Owner,
    /// Anybody's, beside a live owner.
    Look,
}

fn draft(
    ctx: &StoreContext,
    collected: &Collected,
    info: SegmentInfo,
    link: Link,
) -> Result<Draft, RecoverError> {
    let mut findings = Vec::new();
    inspect(ctx, collected, &info, &mut findings)?;
    if findings.is_empty() {
        let copied = Copied::default();
        return Ok(Draft { info, link, findings, pieces: Vec::new(), copied, state: DraftState::Sound });
    }
    let end = info.end_offset.min(link.found.len);
    let runs = collect::scan_file(ctx, &link, Reach::to(end))?;
    let blemished = runs.iter().any(|run| !run.is_sound() || !run.blemishes.is_empty());
    let pieces = pieces(&info, &runs);
    let path = segment_path(&ctx.dir, info.id);
    let copied = collect::with_file(ctx, &path, |file| {
        Copier::new(file, &ctx.identity, (info.first_seq, info.end_seq)).measure(&pieces)
    })?;
    let copied = copied.unwrap_or_default();
    let header_is_sound = matches!(link.found.head, Head::Sound(_));
    let state = match copied.leaves {
        Leaves::SkipUntold => DraftState::Left,
        Leaves::Nothing
            if header_is_sound && !blemished && copied.in_place && copied.end == link.found.len =>
        {
            DraftState::Sound
        }
        Leaves::Nothing => DraftState::Mended,
    };
    // Not copied and shorter than its successor says: what is missing behind is all there is to say.
    let info = if state == DraftState::Mended { info } else { SegmentInfo { end_offset: end, ..info } };
    Ok(Draft { info, link, findings, pieces, copied, state })
}

/// The runs a reader of this segment would take, in order.
fn pieces(info: &SegmentInfo, runs: &[RunFact]) -> Vec<Piece> {
    let mut seq = info.first_seq;
    let mut pieces = Vec::new();
    for run in runs {
        // Below what is expected: old bytes of the file. At or above its end: dead.
        if run.end_seq <= seq || run.first >= info.end_seq {
            continue;
        }
        pieces.push(Piece { start: run.start, end: run.end, is_sound: run.is_sound() });
        seq = run.end_seq;
    }
    pieces
}

impl Rewrite {
    /// Records that cannot be read because of what is damaged here, `[from, to)` each, ascending.
    pub fn lost(&self) -> Vec<(Seq, Seq)> {
        self.findings.iter().flat_map(|finding| finding.lost.iter().copied()).collect()
    }
}

/// The header of a segment as it should be: as it is, with its bit mended, or made of what is known.
fn header_of(
    ctx: &StoreContext,
    draft: &Draft,
    before: Option<Predecessor>,
    unsynced_bytes_max: u64,
) -> SegmentHeader {
    let first = draft.copied.first;
    let made = SegmentHeader {
        identity: ctx.identity,
        segment: draft.info.id,
        first_seq: first.map_or(draft.info.first_seq, |first| first.first_seq),
        created_at: first.map_or(WallTime::EPOCH, |first| first.append_time),
        unsynced_bytes_max,
        predecessor: before,
    };
    match draft.link.found.head.header() {
        None => made,
        // It keeps the name of a predecessor that is not there any more.
        Some(header) => match (header.predecessor, before) {
            (Some(named), Some(before)) if named.id == before.id => {
                SegmentHeader { predecessor: Some(before), ..*header }
            }
            _ => *header,
        },
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
