//! The table of recovery, R0 to R11: what the batches of all files together mean.
//!
//! Pure: facts in, decisions out, nothing read and nothing written. The rows R0, R0b and R9 are decided by
//! [`chain`](crate::recover::chain) from names and headers; R7 and R8 end a recovery before anything is classified; the
//! rest stands here, each arm named by its row.
//!
//! ```text
//!   oldest ──────────── q ────────────> newest with a header ──> files without one
//!              │ batch at q: keep, q moves        │ bad byte at q: R1 R2 R3
//!              └ bad byte before the end: R4
//! ```
//!
//! q is the seq expected next; D the highest seq that anything proves durable. The window W of the rules bounds how far
//! evidence is *looked for*: that is the scan's business (`recover::sweep`), and plays no part here.
//!
//! Invariants: q only grows; every seq from the floor to `next_seq` is kept, skipped by its writer, or in a gap; the
//! decisions depend on nothing but the arguments, so recovering twice decides the same.

mod walk;

use wal_format::{BatchFlags, SEGMENT_HEADER_BYTES, SegmentId, Seq};

use crate::OwnedTag;
use crate::read::Gap;
use crate::recover::chain::{Link, Role};
use crate::recover::facts::{RunFact, merge_tags};
use walk::Walk;

/// What is known from outside the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) floor: Seq,
    /// D of all saved state: the exclusive end of what it proves durable.
    pub(crate) durable_end: Seq,
}

/// A file of the chain and what it holds.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) link: Link,
    /// `None`: not looked into; its successor names its end, and it is as long as that.
    pub(crate) runs: Option<Vec<RunFact>>,
}

/// A row of the table that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the rows of the table, by their names in the documentation")]
pub enum Row {
    R0,
    R0b,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R9,
    R10,
    R11,
}

/// A segment that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) id: SegmentId,
    pub(crate) first_seq: Seq,
    pub(crate) end_seq: Seq,
    pub(crate) end_offset: u64,
}

/// The last tags in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileTags {
    pub(crate) id: SegmentId,
    pub(crate) tags: Vec<OwnedTag>,
    /// Whether its first batch is among what was read: that one repeats every tag of the files in front of it.
    pub(crate) is_complete: bool,
}

impl FileTags {
    pub(crate) fn of(id: SegmentId) -> Self {
        Self { id, tags: Vec::new(), is_complete: false }
    }

    pub(crate) fn add(&mut self, run: &RunFact, link: &Link) {
        // Where a repair left out the first batch, the header still says where the file began.
        let is_first = link.header_first().is_none_or(|first| first == run.first);
        self.is_complete |= run.start == SEGMENT_HEADER_BYTES as u64 && is_first;
        merge_tags(&mut self.tags, run.tags.clone());
    }
}

/// What is to be done, and where the stream goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) kept: Vec<Kept>,
    /// R5: tail files without a batch at q, ascending.
    pub(crate) void: Vec<SegmentId>,
    /// R6: kept, and linked into quarantine, because a seq is missing there.
    pub(crate) quarantine: Vec<SegmentId>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) rows: Vec<(Row, SegmentId)>,
    /// Bytes behind the logical end that look like a torn batch or voided ones.
    pub(crate) torn_bytes: u64,
    /// The tags of what is kept of the files that were read, by file.
    pub(crate) tags: Vec<FileTags>,
    pub(crate) next_seq: u64,
}

/// Applies the table. `pieces` ascend by id and hold no retired, void or rival file.
///
/// R5: void files are not unlinked while the next recovery would decide otherwise without them: one may alone prove what
/// was durable. The header of the next segment makes them void for good (R0b), once that segment proves as much.
pub(crate) fn classify(known: Known, pieces: &[Piece]) -> Verdict {
    let mut verdict = decide(known, pieces);
    if !verdict.void.is_empty() {
        let left = pieces.iter().filter(|piece| !verdict.void.contains(&piece.link.id()));
        let next = decide(known, &left.cloned().collect::<Vec<_>>());
        let same =
            next.next_seq == verdict.next_seq && next.kept == verdict.kept && next.gaps == verdict.gaps;
        if !same {
            verdict.void.clear();
        }
    }
    verdict
}

fn decide(known: Known, pieces: &[Piece]) -> Verdict {
    let inside: Vec<&Piece> = pieces.iter().filter(|piece| is_inside(known, piece)).collect();
    let tail: Vec<&Piece> = pieces.iter().filter(|piece| piece.link.role == Role::HeadlessTail).collect();
    let proven = proven_end(known, pieces);
    let first = inside.first().and_then(|piece| first_seq(known, piece));
    let start = first.map_or(known.floor, |first| first.min(known.floor));
    // A file without a header that is newer than those with one holds nothing from before them, unless it was put there.
    let tail_from = inside.iter().filter_map(|piece| piece.link.header_first()).max().unwrap_or(known.floor);
    let mut walk = Walk { known, proven, q: start, tail: &tail, tail_from, verdict: Verdict::default() };
    for (index, piece) in inside.iter().enumerate() {
        walk.inside(piece, inside.get(index + 1).copied());
    }
    for piece in &tail {
        walk.tail(piece);
    }
    let mut verdict = walk.finish();
    for piece in pieces.iter().filter(|piece| piece.link.role == Role::HeadlessInside) {
        let behind = inside.iter().find(|inside| inside.link.id() > piece.link.id());
        let first = behind.and_then(|behind| first_seq(known, behind));
        if !is_inside(known, piece) && verdict.gaps.iter().any(|gap| Some(gap.to) == first) {
            // R6: nothing in it can be read, and what is missing stood there.
            verdict.rows.push((Row::R6, piece.link.id()));
            verdict.quarantine.push(piece.link.id());
        }
    }
    verdict
}

/// A file without a header and without a batch at or above the floor is ignored (R6).
fn is_inside(known: Known, piece: &Piece) -> bool {
    match piece.link.role {
        Role::Linked => true,
        Role::HeadlessInside => first_seq(known, piece).is_some(),
        _ => false,
    }
}

/// First seq of a file: its header's, else that of its first batch at or above the floor.
pub(crate) fn first_seq(known: Known, piece: &Piece) -> Option<Seq> {
    piece.link.header_first().or_else(|| {
        let runs = piece.runs.iter().flatten();
        runs.filter(|run| run.end_seq > known.floor).map(|run| run.first.max(known.floor)).min()
    })
}

/// Where the seqs of the segment in front of a piece end: at its first seq, or earlier if its first batch says it skipped some.
pub(crate) fn end_before(known: Known, next: &Piece) -> Option<Seq> {
    let first = first_seq(known, next)?;
    Some(match next.link.found.first_batch {
        // Behind `first`: a repair left out what was lost in front of it, and its header still says where it began.
        Some(batch) if batch.flags.contains(BatchFlags::SKIPPED) && batch.first_seq >= first => {
            Seq::new(batch.prev_seq.saturating_add(1)).min(first)
        }
        _ => first,
    })
}

/// Whole runs of files without a header that reach above a seq.
pub(crate) fn whole_above<'p>(
    tail: impl Iterator<Item = &'p Piece>,
    above: Seq,
) -> impl Iterator<Item = &'p RunFact> {
    let runs = tail.flat_map(|piece| piece.runs.iter().flatten());
    runs.filter(move |run| run.is_whole() && run.end_seq > above)
}

/// D + 1: the exclusive end of what anything proves durable, over all files.
fn proven_end(known: Known, pieces: &[Piece]) -> Seq {
    let proven = pieces.iter().map(proven_by).max().unwrap_or(Seq::new(0));
    proven.max(known.durable_end).max(known.floor)
}

/// What one file proves durable, exclusive.
fn proven_by(piece: &Piece) -> Seq {
    let runs = piece.runs.iter().flatten().filter(|run| run.is_whole()).map(|run| run.durable_end);
    let first = piece.link.found.first_batch.map(|batch| batch.durable_seq);
    Seq::new(runs.chain(first).max().unwrap_or(0))
}

#[cfg(test)]
mod tests;
