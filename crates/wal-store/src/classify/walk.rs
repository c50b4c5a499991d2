//! The walk along the chain: from the oldest file to the newest, q in hand, one arm a row.
//!
//! ```text
//!   at ──keep──> at' : sound batches that stand there and continue q
//!                 └─ bad: R1 keep, R2 cut, R3 gap (newest) · R4 gap, R11 gap (older) · then again from the next batch
//! ```
//!
//! Invariants: each round of a loop moves q or the offset forward; a gap never reaches beyond D, nor beyond the next
//! batch that is kept.

use wal_format::{SEGMENT_HEADER_BYTES, SegmentId, Seq};

use super::{FileTags, Kept, Known, Piece, Row, Verdict, end_before, whole_above};
use crate::read::{Gap, GapReason};
use crate::recover::chain::Role;
use crate::recover::facts::RunFact;

/// The state of one walk.
pub(super) struct Walk<'a> {
    pub(super) known: Known,
    /// D + 1.
    pub(super) proven: Seq,
    pub(super) q: Seq,
    /// The files without a header behind all that have one.
    pub(super) tail: &'a [&'a Piece],
    /// What they hold of seqs below this is nothing to go on with.
    pub(super) tail_from: Seq,
    pub(super) verdict: Verdict,
}

/// How far one file is read.
#[derive(Clone, Copy)]
struct Bounds {
    end: u64,
    seq_end: Option<Seq>,
}

impl Bounds {
    /// Whether this run is sound and lies inside.
    fn hold(&self, run: &RunFact) -> bool {
        run.is_sound() && run.end <= self.end
    }
}

impl Walk<'_> {
    fn row(&mut self, row: Row, piece: &Piece) {
        self.verdict.rows.push((row, piece.link.id()));
    }

    /// A gap from q to `to`, cut at the floor.
    fn gap(&mut self, to: Seq) {
        let from = self.q.max(self.known.floor);
        if to > from {
            match self.verdict.gaps.last_mut() {
                Some(gap) if gap.to == from => gap.to = to,
                _ => self.verdict.gaps.push(Gap { from, to, reason: GapReason::Lost }),
            }
        }
        self.q = self.q.max(to);
    }

    pub(super) fn inside(&mut self, piece: &Piece, next: Option<&Piece>) {
        let first_seq = self.q;
        // A header alone, the link that a torn first batch leaves, does not say which seqs were left out in front of it.
        let says_skips = piece.link.found.first_batch.is_some();
        if piece.runs.is_none() && says_skips && self.end_before(piece) > self.q {
            self.row(Row::R11, piece);
            self.gap(self.end_before(piece));
        }
        // What is missing in front of its first batch is missing in a file without a header.
        let gaps = self.verdict.gaps.len()
            - usize::from(self.verdict.gaps.last().is_some_and(|gap| gap.to == self.q));
        let end_offset = match (&piece.runs, next) {
            (None, Some(next)) => self.trusted(piece, next),
            (runs, Some(next)) => self.older(piece, runs.as_deref().unwrap_or_default(), next),
            (runs, None) => self.newest(piece, runs.as_deref().unwrap_or_default()),
        };
        if piece.link.role == Role::HeadlessInside {
            self.row(Row::R6, piece);
            if self.verdict.gaps.len() > gaps {
                self.verdict.quarantine.push(piece.link.id());
            }
        }
        let kept = Kept { id: piece.link.id(), first_seq, end_seq: self.q, end_offset };
        self.verdict.kept.push(kept);
    }

    /// Where the seqs end of what stands in front of `next`.
    fn end_before(&self, next: &Piece) -> Seq {
        end_before(self.known, next).unwrap_or(self.q)
    }

    /// An older segment whose end its successor names: not read. What is damaged inside is found by its readers.
    fn trusted(&mut self, piece: &Piece, next: &Piece) -> u64 {
        self.q = self.q.max(self.end_before(next));
        piece.link.named_end.unwrap_or(SEGMENT_HEADER_BYTES as u64)
    }

    /// A segment with a newer one behind it.
    fn older(&mut self, piece: &Piece, runs: &[RunFact], next: &Piece) -> u64 {
        let named = piece.link.named_end;
        let seq_end = if named.is_some() { None } else { end_before(self.known, next) };
        let bounds = Bounds { end: named.unwrap_or(u64::MAX), seq_end };
        let mut at = SEGMENT_HEADER_BYTES as u64;
        loop {
            at = self.keep(piece, runs, at, bounds);
            if at >= bounds.end || seq_end.is_some_and(|end| self.q >= end) {
                break;
            }
            // R4: damage before the end its successor recorded.
            let further = runs.iter().filter(|run| run.start >= at && run.end_seq > self.q);
            let further = further.filter(|run| bounds.hold(run) || !run.is_sound());
            let further = further.filter(|run| bounds.seq_end.is_none_or(|end| run.first < end));
            match further.min_by_key(|run| run.first) {
                Some(run) if run.is_sound() || run.first > self.q => {
                    self.row(Row::R4, piece);
                    self.gap(run.missing_end());
                    self.q = self.q.max(run.first);
                    at = run.start;
                }
                Some(run) => {
                    self.row(Row::R4, piece);
                    self.keep_damaged(run);
                    at = run.end;
                }
                None => break,
            }
        }
        let end = self.end_before(next);
        let is_whole = at >= bounds.end && next.link.names(piece.link.id());
        // All of it is there, so what lies in front of a successor whose first batch is torn was left out by its writer.
        if end > self.q && (!is_whole || next.link.found.first_batch.is_some()) {
            // R11, or R4 without anything behind.
            self.row(if at >= bounds.end { Row::R11 } else { Row::R4 }, piece);
            self.gap(end);
        }
        named.unwrap_or(at)
    }

    /// The newest segment with a header.
    fn newest(&mut self, piece: &Piece, runs: &[RunFact]) -> u64 {
        let at = self.follow(piece, runs);
        if at == SEGMENT_HEADER_BYTES as u64 {
            self.row(Row::R10, piece);
        }
        at
    }

    /// A file without a header behind all that have one (R5).
    pub(super) fn tail(&mut self, piece: &Piece) {
        let first_seq = self.q;
        self.row(Row::R5, piece);
        let (rows, torn_bytes) = (self.verdict.rows.len(), self.verdict.torn_bytes);
        let end_offset = self.follow(piece, piece.runs.as_deref().unwrap_or_default());
        if self.q > first_seq {
            self.verdict.kept.push(Kept { id: piece.link.id(), first_seq, end_seq: self.q, end_offset });
        } else {
            // None at q: void, and what was found behind is nobody's torn tail.
            self.verdict.rows.truncate(rows);
            self.verdict.torn_bytes = torn_bytes;
            self.verdict.void.push(piece.link.id());
        }
    }

    /// Follows a file that nothing bounds to its logical end.
    fn follow(&mut self, piece: &Piece, runs: &[RunFact]) -> u64 {
        let entry = self.q;
        let mut at = SEGMENT_HEADER_BYTES as u64;
        loop {
            let seq_end = self.tail_goes_on(piece);
            at = self.keep(piece, runs, at, Bounds { end: u64::MAX, seq_end });
            let durable = self.proven > self.q;
            let left = || {
                let here = runs.iter().filter(move |run| run.start >= at);
                here.filter(move |run| seq_end.is_none_or(|end| run.first < end))
            };
            let bad = left().find(|run| !run.is_sound() && run.continues(self.q));
            let bad = bad.filter(|run| run.start == at || durable);
            let whole = left().filter(|run| run.is_whole() && run.end_seq > self.q);
            let next = whole.min_by_key(|run| run.first);
            if seq_end.is_some_and(|end| self.q >= end || (bad.is_none() && next.is_none())) {
                return at;
            }
            if bad.is_none()
                && let Some(run) = self.damaged_behind_a_hole(left(), next)
            {
                self.row(Row::R3, piece);
                self.gap(run.missing_end());
                self.q = self.q.max(run.first);
                continue;
            }
            match (bad, next) {
                // R3: it was durable, or one flipped bit explains it: damaged, not torn.
                (Some(run), _) if durable || run.is_one_flip() => {
                    self.row(Row::R3, piece);
                    self.keep_damaged(run);
                    at = run.end;
                }
                (_, Some(run)) if durable => {
                    self.row(Row::R3, piece);
                    self.gap(run.missing_end().min(self.proven));
                    self.q = self.q.max(run.first.min(self.proven));
                    at = run.start;
                }
                (_, None) if durable && (piece.link.role == Role::Linked || self.q > entry) => {
                    self.row(Row::R3, piece);
                    self.gap(self.proven);
                    return at;
                }
                (None, None) => {
                    self.row(Row::R1, piece);
                    return at;
                }
                (Some(_), _) | (_, Some(_)) => {
                    self.row(Row::R2, piece);
                    let end = runs.iter().map(|run| run.end).max().unwrap_or(at).min(piece.link.found.len);
                    self.verdict.torn_bytes += end.saturating_sub(at);
                    return at;
                }
            }
        }
    }

    /// Of `left`, a damaged batch that was durable and stands behind missing seqs, in front of all that is whole: what is left of it is
    /// kept.
    fn damaged_behind_a_hole<'r>(
        &self,
        left: impl Iterator<Item = &'r RunFact>,
        next: Option<&RunFact>,
    ) -> Option<&'r RunFact> {
        let damaged = left.filter(|run| !run.is_whole() && run.first > self.q);
        let first = damaged.filter(|run| run.first < self.proven).min_by_key(|run| run.first)?;
        next.is_none_or(|next| first.first < next.first).then_some(first)
    }

    /// Where a newer file without a header goes on.
    fn tail_goes_on(&self, piece: &Piece) -> Option<Seq> {
        let behind = self.tail.iter().filter(|tail| tail.link.id() > piece.link.id());
        whole_above(behind.copied(), self.q.max(self.tail_from)).map(RunFact::missing_end).min()
    }

    /// Keeps sound runs that stand at `at` and continue the stream; returns where they end.
    ///
    /// In a file without a header it steps over batches below q: they were kept elsewhere, or are old bytes of the file.
    fn keep(&mut self, piece: &Piece, runs: &[RunFact], mut at: u64, bounds: Bounds) -> u64 {
        let headless = piece.link.header_first().is_none();
        for run in runs.iter().filter(|run| bounds.hold(run)) {
            if run.start != at || bounds.seq_end.is_some_and(|end| self.q >= end) {
                continue;
            }
            if run.continues(self.q) {
                let mut tags = self.tags_of(piece.link.id());
                tags.add(run, &piece.link);
                self.verdict.tags.push(tags);
                (self.q, at) = (run.end_seq, run.end);
            } else if headless && run.end_seq <= self.q {
                at = run.end;
            }
        }
        at
    }

    /// What was taken from this file so far.
    fn tags_of(&mut self, id: SegmentId) -> FileTags {
        self.verdict.tags.pop_if(|last| last.id == id).unwrap_or_else(|| FileTags::of(id))
    }

    /// Keeps a damaged batch: what cannot be saved in it is a gap, the rest stays readable.
    fn keep_damaged(&mut self, run: &RunFact) {
        for (from, to) in run.damage.iter().flat_map(|damage| damage.lost.iter()) {
            if *to > self.q {
                self.q = self.q.max(*from);
                self.gap(*to);
            }
        }
        self.q = self.q.max(run.end_seq);
    }

    pub(super) fn finish(mut self) -> Verdict {
        // Nothing holds what was proven durable.
        let proven = self.proven;
        if proven > self.q {
            self.gap(proven);
            let q = self.q;
            if let Some(last) = self.verdict.kept.last_mut() {
                last.end_seq = q;
            }
        }
        self.verdict.next_seq = self.q.max(proven).get();
        self.verdict
    }
}
