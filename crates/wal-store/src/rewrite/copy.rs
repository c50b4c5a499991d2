//! Copying a segment's batches, one behind the other, each where the one before ends: to a file, or only to count the bytes.
//!
//! ```text
//!   | header | batch ~~~ batch~ batch |      ──>      | header | batch batch' batch |
//! ```
//!
//! Invariants: memory is a window and the longest batch; what is written verifies.

use std::io::IoSlice;

use disk::{DiskError, File};
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, PADDING_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, Seq,
    StreamIdentity,
};

use super::parts::{parts, tagged};
use crate::OwnedTag;
use crate::read::header_at;
use crate::recover::facts::merge_tags;
use crate::recover::sweep::tags_of;

/// How much is read at a time, in bytes.
const WINDOW_BYTES: usize = 1 << 20;
/// How much is written at a time, in bytes.
const WRITE_BYTES: usize = 1 << 20;

static ZEROS: [u8; PADDING_BYTES as usize] = [0; PADDING_BYTES as usize];

/// Batches of the original, or one that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether its batches verify, whatever their headers look like.
    pub(super) is_sound: bool,
}

/// What a copy came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Where it ends, in bytes.
    pub(super) end: u64,
    pub(super) records_count: u64,
    /// The first batch.
    pub(super) first: Option<BatchHeader>,
    /// Every batch stands where it stood.
    pub(super) in_place: bool,
    /// What it cannot say and the original can.
    pub(super) leaves: Leaves,
}

/// What a copy leaves out beside what is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Leaves {
    #[default]
    Nothing,
    /// The last batch is lost, and said that seqs in front of it were skipped.
    SkipUntold,
}

/// Copies pieces of a file behind a header.
pub(super) struct Copier<'a> {
    file: &'a dyn File,
    identity: &'a StreamIdentity,
    /// Only batches that hold seqs of this range.
    seqs: (Seq, Seq),
    to: Option<&'a dyn File>,
    /// Bytes of the original from `base` on.
    window: Vec<u8>,
    base: u64,
    /// Bytes to be written at `flushed`.
    out: Vec<u8>,
    flushed: u64,
    /// The last seq in front of what a batch skipped of which nothing is left: the next one says it.
    skipped_from: Option<u64>,
    /// The last tags of batches in front of the first one that is copied: that one says them now.
    tags: Vec<OwnedTag>,
    copied: Copied,
}

impl<'a> Copier<'a> {
    pub(super) fn new(file: &'a dyn File, identity: &'a StreamIdentity, seqs: (Seq, Seq)) -> Self {
        let copied = Copied { end: SEGMENT_HEADER_BYTES as u64, in_place: true, ..Copied::default() };
        Self {
            file,
            identity,
            seqs,
            to: None,
            window: Vec::new(),
            base: 0,
            out: Vec::new(),
            flushed: 0,
            skipped_from: None,
            tags: Vec::new(),
            copied,
        }
    }

    /// Counts what a copy would come to.
    pub(super) fn measure(mut self, pieces: &[Piece]) -> Result<Copied, DiskError> {
        self.pieces(pieces)?;
        Ok(self.copied)
    }

    /// Writes the copy.
    pub(super) fn write(
        mut self,
        header: &SegmentHeader,
        pieces: &[Piece],
        to: &'a dyn File,
    ) -> Result<Copied, DiskError> {
        self.to = Some(to);
        self.out.extend_from_slice(&header.encode());
        self.pieces(pieces)?;
        self.flush()?;
        Ok(self.copied)
    }

    fn pieces(&mut self, pieces: &[Piece]) -> Result<(), DiskError> {
        for piece in pieces {
            let mut at = piece.start;
            while at < piece.end {
                match self.batch(at, piece)? {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        self.copied.leaves = self.skipped_from.map_or(Leaves::Nothing, |_| Leaves::SkipUntold);
        Ok(())
    }

    /// Copies the batch at `at`; says where the next one is.
    fn batch(&mut self, at: u64, piece: &Piece) -> Result<Option<u64>, DiskError> {
        let head = self.bytes(at, BATCH_HEADER_BYTES)?;
        let Some(header) = header_at(self.identity, &self.window[head]) else { return Ok(None) };
        let next = header.end_offset(at);
        let (first, end) = self.seqs;
        if header.first_seq >= end {
            return Ok(Some(next));
        }
        let whole = self.bytes(at, usize::try_from(header.bytes()).unwrap_or(usize::MAX))?;
        let frames = self
            .window
            .get(whole)
            .and_then(|whole| whole.get(BATCH_HEADER_BYTES..))
            .unwrap_or_default()
            .to_vec();
        if header.end_seq() <= first {
            // Kept elsewhere; but it may be the batch that repeats all tags.
            if piece.is_sound {
                merge_tags(&mut self.tags, tags_of(&header, &frames));
            }
        } else if piece.is_sound {
            self.put(at, &header, &frames)?;
        } else {
            let left = parts(self.identity, &header, &frames);
            if left.is_empty() && header.flags.contains(BatchFlags::SKIPPED) {
                self.skipped_from.get_or_insert(header.prev_seq);
            }
            for part in left {
                self.put(at, &part.header, &part.frames)?;
            }
        }
        Ok(Some(next))
    }

    fn put(&mut self, from: u64, header: &BatchHeader, frames: &[u8]) -> Result<(), DiskError> {
        let part = tagged(self.identity, &std::mem::take(&mut self.tags), header, frames);
        let (mut header, frames) =
            part.as_ref().map_or((*header, frames), |part| (part.header, &part.frames));
        if let Some(prev_seq) = self.skipped_from.take() {
            header = BatchHeader { flags: BatchFlags::SKIPPED, prev_seq, ..header };
        }
        let at = self.copied.end;
        let end = header.end_offset(at);
        self.copied.in_place &= at == from;
        self.copied.first = self.copied.first.or(Some(header));
        self.copied.records_count += u64::from(header.count);
        self.copied.end = end;
        if self.to.is_none() {
            return Ok(());
        }
        self.out.extend_from_slice(&header.encode(self.identity));
        self.out.extend_from_slice(frames);
        let padding = usize::try_from(end - at - header.bytes()).unwrap_or(0);
        self.out.extend_from_slice(ZEROS.get(..padding).unwrap_or(&ZEROS));
        if self.out.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        if let Some(to) = self.to {
            to.write_all_at(&[IoSlice::new(&self.out)], self.flushed)?;
            self.flushed += self.out.len() as u64;
            self.out.clear();
        }
        Ok(())
    }

    /// Has bytes of the original in the window, as far as it goes; says where in the window they are.
    fn bytes(&mut self, at: u64, bytes: usize) -> Result<std::ops::Range<usize>, DiskError> {
        let start = at.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        let there = start.filter(|start| start.saturating_add(bytes) <= self.window.len());
        if let Some(start) = there {
            return Ok(start..start + bytes);
        }
        // No length in a header is believed before the file is that long.
        let left = usize::try_from(self.file.len()?.saturating_sub(at)).unwrap_or(usize::MAX);
        self.window.resize(bytes.max(WINDOW_BYTES).min(left), 0);
        let got = self.file.read_at(&mut self.window, at)?;
        self.window.truncate(got);
        self.base = at;
        Ok(0..bytes.min(got))
    }
}
