//! Sweeping a file: every batch of ours in it, wherever it stands, as runs.
//!
//! ```text
//!   at ──header?──> verify ──sound──> push, on behind it
//!    │                 └──damaged──> push as damaged, on behind it
//!    └──none──> the next place where a header of ours decodes
//! ```
//!
//! Invariants: memory is a window and the longest batch; each step moves forward; old bytes of the file that verify are
//! facts like any other, and old bytes that do not are passed over.

use disk::{DiskError, File};
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, DecodeError, SEGMENT_HEADER_BYTES, Seq, StreamIdentity, Tag,
    find_batch, flipped_bit, verified_frames, verify_batch,
};

use super::facts::{Blemish, Damage, RunFact, merge_tags};
use crate::OwnedTag;
use crate::read::{Part, find_next, mend};

/// How much is read at a time, in bytes.
const WINDOW_BYTES: usize = 1 << 20;
/// How often each byte of a file may be verified in vain on average: old bytes of a file need it once, headers that
/// somebody nested could ask for its square.
const EFFORT: u64 = 4;

/// How far a file is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach<'a> {
    /// No batch that ends behind this offset.
    pub(crate) end: u64,
    /// No batch with a seq at or above this.
    pub(crate) seq_end: Option<Seq>,
    /// Seqs at which a run ends and another one begins, though they follow one another.
    pub(crate) splits: &'a [Seq],
    /// How far behind the last batch a further one is looked for; `None`: to the end.
    pub(crate) window: Option<Window>,
}

impl Reach<'_> {
    /// All batches that end at or in front of this offset.
    pub(crate) fn to(end: u64) -> Self {
        Self { end, seq_end: None, splits: &[], window: None }
    }
}

/// W of the rules: a writer leaves no more than this unsynced, so behind it nothing of a crash can stand. What stands
/// there is looked for only if something proves that seqs are missing. Without it a file stretched to a terabyte would
/// be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) bytes: u64,
    /// The seq expected at the file's first batch.
    pub(crate) first_seq: Seq,
    /// D + 1 of all saved state.
    pub(crate) durable_end: Seq,
}

/// What [`scan`] stumbled over.
#[derive(Debug)]
pub(crate) enum ScanFailure {
    Disk(DiskError),
    /// A batch of a newer program, at this offset.
    Newer(u64, DecodeError),
}

impl From<DiskError> for ScanFailure {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// Every batch of ours in `[from, reach.end)` of a file, wherever it stands.
pub(crate) fn scan(
    file: &dyn File,
    identity: &StreamIdentity,
    from: u64,
    reach: Reach<'_>,
) -> Result<Vec<RunFact>, ScanFailure> {
    let effort = reach.end.saturating_sub(from).saturating_mul(EFFORT);
    let mut scan =
        Scan { file, identity, reach, runs: Vec::new(), window: Vec::new(), base: from, filled: 0, effort };
    let mut offset = from;
    while offset < reach.end {
        match scan.step(offset)? {
            Some(next) => offset = next,
            None => break,
        }
    }
    Ok(scan.runs)
}

/// What was found out about one batch.
struct Facts {
    tags: Vec<OwnedTag>,
    damage: Option<Damage>,
    blemishes: Vec<(u64, Blemish)>,
}

struct Scan<'a> {
    file: &'a dyn File,
    identity: &'a StreamIdentity,
    reach: Reach<'a>,
    runs: Vec<RunFact>,
    /// Bytes of the file from `base` on; the first `filled` of them are valid.
    window: Vec<u8>,
    base: u64,
    filled: usize,
    /// Bytes of batches that may still be verified in vain.
    effort: u64,
}

impl Scan<'_> {
    /// Takes what stands at `offset`; returns where to go on.
    fn step(&mut self, offset: u64) -> Result<Option<u64>, ScanFailure> {
        self.need(offset, BATCH_HEADER_BYTES)?;
        let identity = self.identity;
        let mut blemishes = Vec::new();
        let header = match BatchHeader::decode(self.at(offset), identity) {
            Ok(header) => Some(header),
            Err(error) if error.is_newer_format() => return Err(ScanFailure::Newer(offset, error)),
            Err(DecodeError::Zeros | DecodeError::NeedMore { .. }) => None,
            Err(_) => {
                blemishes.push((offset, Blemish::Header));
                let bytes = self.at(offset).get(..BATCH_HEADER_BYTES);
                bytes.and_then(|bytes| BatchHeader::repair(bytes, identity))
            }
        };
        let Some(header) = header else { return self.seek(offset) };
        let end = header.end_offset(offset);
        let beyond = self.reach.seq_end.is_some_and(|end| header.end_seq() > end);
        // A damaged batch of old bytes says nothing about where ours begin.
        let old = self.runs.last().is_some_and(|run| header.first_seq < run.end_seq);
        if (beyond || old) && self.effort < header.bytes() {
            return self.seek(offset);
        }
        self.need(offset, usize::try_from(end - offset).unwrap_or(usize::MAX))?;
        let frames = self.at(offset).get(BATCH_HEADER_BYTES..).unwrap_or_default();
        let (frames, padding) =
            frames.split_at_checked(header.frames_bytes as usize).unwrap_or((frames, &[]));
        let room = usize::try_from(end - offset - header.bytes()).unwrap_or(usize::MAX);
        if padding.iter().take(room).any(|byte| *byte != 0) {
            blemishes.push((offset, Blemish::Padding));
        }
        let sound = verify_batch(identity, &header, frames).is_ok();
        match (sound, beyond || old) {
            (true, _) if beyond => {}
            (true, _) => {
                let tags = tags_of(&header, frames);
                self.push(offset, &header, Facts { tags, damage: None, blemishes });
            }
            (false, true) => {
                self.effort = self.effort.saturating_sub(header.bytes());
                return self.seek(offset);
            }
            (false, false) => {
                let damage = damage_of(identity, &header, frames);
                self.push(offset, &header, Facts { tags: Vec::new(), damage: Some(damage), blemishes });
            }
        }
        Ok(Some(end))
    }

    /// The next place behind `offset` where a header of ours decodes.
    fn seek(&mut self, offset: u64) -> Result<Option<u64>, ScanFailure> {
        let (from, end) = (offset.saturating_add(1), self.search_end());
        let here = self.at(from);
        let here =
            here.get(..usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX)).unwrap_or(here);
        if let Some((found, _)) = find_batch(self.identity, here, 0) {
            return Ok(Some(from.saturating_add(found as u64)));
        }
        // A header may begin in what is here and end behind it.
        let behind = from.saturating_add(here.len().saturating_sub(BATCH_HEADER_BYTES - 1) as u64);
        let found = find_next(self.file, self.identity, behind, end, &|_| true)?;
        Ok(found.map(|(next, _)| next))
    }

    /// Where looking for a further batch ends.
    fn search_end(&self) -> u64 {
        let (at, seq) = match (self.runs.last(), self.reach.window) {
            (_, None) => return self.reach.end,
            (Some(run), _) => (run.end, run.end_seq),
            (None, Some(window)) => (SEGMENT_HEADER_BYTES as u64, window.first_seq),
        };
        let window = self.reach.window.filter(|window| window.durable_end <= seq);
        window.map_or(self.reach.end, |window| self.reach.end.min(at.saturating_add(window.bytes)))
    }

    fn at(&self, offset: u64) -> &[u8] {
        let start = usize::try_from(offset - self.base).unwrap_or(usize::MAX);
        self.window.get(start..self.filled).unwrap_or_default()
    }

    /// Has `bytes` bytes from `offset` on in the window, as far as the reach goes.
    fn need(&mut self, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let left = usize::try_from(self.reach.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        if offset >= self.base && self.at(offset).len() >= bytes && self.filled > 0 {
            return Ok(());
        }
        let wanted = bytes.max(WINDOW_BYTES.min(left));
        if self.window.len() < wanted {
            self.window.resize(wanted, 0);
        }
        if offset != self.base {
            // A batch that begins in the window and ends behind it: what is here is not read again.
            let kept = self.at(offset).len();
            self.window.copy_within(self.filled - kept..self.filled, 0);
            (self.base, self.filled) = (offset, kept);
        }
        if let Some(buffer) = self.window.get_mut(self.filled..wanted) {
            self.filled += self.file.read_at(buffer, offset.saturating_add(self.filled as u64))?;
        }
        Ok(())
    }

    fn push(&mut self, offset: u64, header: &BatchHeader, facts: Facts) {
        let Facts { tags, damage, blemishes } = facts;
        let end = header.end_offset(offset);
        if let Some(run) = self.runs.last_mut()
            && (run.damage.is_none() && damage.is_none())
            && (run.end == offset && run.end_seq == header.first_seq)
            && !self.reach.splits.contains(&header.first_seq)
        {
            run.end = end;
            run.end_seq = header.end_seq();
            run.durable_end = run.durable_end.max(header.durable_seq);
            merge_tags(&mut run.tags, tags);
            run.blemishes.extend(blemishes);
            return;
        }
        self.runs.push(RunFact {
            start: offset,
            end,
            first: header.first_seq,
            end_seq: header.end_seq(),
            prev_seq: header.prev_seq,
            skipped: header.flags.contains(BatchFlags::SKIPPED),
            durable_end: header.durable_seq,
            tags,
            damage,
            blemishes,
        });
    }
}

/// The last tags of a batch that verifies.
pub(crate) fn tags_of(header: &BatchHeader, frames: &[u8]) -> Vec<OwnedTag> {
    let frames = frames.get(..header.frames_bytes as usize).unwrap_or_default();
    let mut tags = Vec::new();
    for frame in verified_frames(header, frames).filter(|frame| frame.seq.is_none()) {
        if let Ok(tag) = Tag::decode(frame.payload) {
            let (producer, value) = (tag.producer().to_vec(), tag.value().to_vec());
            merge_tags(&mut tags, vec![OwnedTag { producer, value, at: header.first_seq }]);
        }
    }
    tags
}

fn damage_of(identity: &StreamIdentity, header: &BatchHeader, frames: &[u8]) -> Damage {
    let lost: Vec<_> = mend(identity, header, frames)
        .into_iter()
        .filter_map(|part| if let Part::Lost { from, to } = part { Some((from, to)) } else { None })
        .collect();
    let few = lost.iter().map(|(from, to)| from.distance_to(*to)).sum::<u64>() <= 1;
    Damage { one_flip: few && flipped_bit(identity, header, frames).is_some(), lost }
}
