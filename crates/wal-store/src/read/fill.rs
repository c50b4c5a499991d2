//! One read of one segment: find the place, fill a block, take its batches, mend what is damaged.
//!
//! ```text
//!   offset ──> [ block: batch | batch | batch | cut ]      whole batches become one run, zero copy
//!                 ^ trouble here, nothing taken yet:        mended parts, or a gap up to the next batch found
//!                       ^ trouble here: stop in front of it; the next read meets it first
//! ```
//!
//! Invariants: each round returns items or moves `offset` or `seq` forward; what a round returns begins at `seq`.

use bytes::Bytes;
use disk::{DiskError, File};
use wal_format::{
    BATCH_HEADER_BYTES, BatchHeader, DecodeError, SEGMENT_HEADER_BYTES, Seq, StreamIdentity, read_batch,
    verify_batch,
};

use super::buffers::{Block, ReadBuffers};
use super::chunk::Span;
use super::{
    Chunk, Gap, GapReason, Item, Part, Position, ReadError, ReadLimits, Run, find_next, gaps_before,
    header_at, mend,
};
use crate::segments::{SegmentInfo, SegmentState};

/// The state of one read.
pub(super) struct Reading<'a> {
    pub(super) identity: StreamIdentity,
    pub(super) segment: SegmentInfo,
    pub(super) file: &'a dyn File,
    /// The next seq to return.
    pub(super) seq: Seq,
    /// Nothing at or above this.
    end: Seq,
    /// Where the next batch begins.
    pub(super) offset: u64,
    /// Whether `offset` is a hint that was not checked yet.
    hinted: bool,
    items: Vec<Item>,
}

/// What stands at the start of a block when it is not a sound batch.
enum Trouble {
    /// The header is sound or was mended; its frames do not match, or the file ends inside them.
    Frames(BatchHeader),
    /// No header.
    NoHeader,
}

/// Bytes of the file from `offset` on.
enum Filled {
    Block(Block),
    /// The first `shown` bytes of what is mapped behind `offset`.
    Map {
        rest: Bytes,
        shown: usize,
    },
}

impl Filled {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Block(block) => block.filled(),
            Self::Map { rest, shown } => rest.get(..*shown).unwrap_or(rest),
        }
    }

    /// Fills up to `bytes` bytes in all, as far as the file goes: a length in a header is not believed before the file is that long.
    fn grow(&mut self, file: &dyn File, base: u64, bytes: usize) -> Result<(), DiskError> {
        match self {
            Self::Block(block) if block.filled().len() < bytes => {
                let left = usize::try_from(file.len()?.saturating_sub(base)).unwrap_or(usize::MAX);
                block.fill(file, base, bytes.min(left))
            }
            Self::Block(_) => Ok(()),
            Self::Map { rest, shown } => {
                *shown = bytes.max(*shown).min(rest.len());
                Ok(())
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Block(block) => block.into_bytes(),
            Self::Map { rest, .. } => rest,
        }
    }
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        identity: StreamIdentity,
        segment: SegmentInfo,
        file: &'a dyn File,
        seq: Seq,
        end: Seq,
    ) -> Self {
        let offset = SEGMENT_HEADER_BYTES as u64;
        Self { identity, segment, file, seq, end, offset, hinted: false, items: Vec::new() }
    }

    pub(super) fn run(
        mut self,
        hint: Option<Position>,
        limits: ReadLimits,
        buffers: &mut ReadBuffers,
    ) -> Result<Chunk, ReadError> {
        self.hinted = self.start(hint).map_err(|e| self.failed(e))?;
        while self.items.is_empty() && self.seq < self.end {
            if self.offset >= self.segment.end_offset {
                self.lose(self.end, GapReason::Lost);
                break;
            }
            self.round(limits, buffers)?;
        }
        let final_end = self.segment.state == SegmentState::Rotated && self.seq >= self.segment.end_seq;
        let next_hint = (!final_end).then_some(Position { segment: self.segment.id, offset: self.offset });
        Ok(Chunk { items: self.items, next: self.seq, next_hint })
    }

    fn failed(&self, source: DiskError) -> ReadError {
        ReadError::Disk { segment: self.segment.id, source }
    }

    /// Fills one block from `offset` and takes the batches in it.
    fn round(&mut self, limits: ReadLimits, buffers: &mut ReadBuffers) -> Result<(), ReadError> {
        let left = self.segment.end_offset - self.offset;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let wanted = limits.bytes_max.max(BATCH_HEADER_BYTES).min(left);
        let mut filled = self.fill(wanted, left, buffers).map_err(|e| self.failed(e))?;
        if std::mem::take(&mut self.hinted) && !self.check_hint(filled.bytes()).map_err(|e| self.failed(e))? {
            return Ok(());
        }
        let mut first = read_batch(&self.identity, filled.bytes()).map(|batch| *batch.header());
        if let Err(DecodeError::NeedMore { bytes: needed }) = first
            && needed <= left
        {
            // A batch longer than the limit: at least one is returned, whatever its size.
            filled.grow(self.file, self.offset, needed).map_err(|e| self.failed(e))?;
            first = read_batch(&self.identity, filled.bytes()).map(|batch| *batch.header());
        }
        match first {
            Ok(header) => {
                self.take(header, filled);
                Ok(())
            }
            Err(source) if source.is_newer_format() => {
                Err(ReadError::NewerFormat { segment: self.segment.id, offset: self.offset, source })
            }
            Err(_) => {
                let trouble = self.trouble(filled.bytes());
                self.overcome(trouble, filled)
            }
        }
    }

    fn fill(&self, wanted: usize, left: usize, buffers: &mut ReadBuffers) -> Result<Filled, DiskError> {
        if self.segment.state == SegmentState::Rotated {
            let whole =
                buffers.map(self.identity.stream, self.segment.id, self.file, self.segment.end_offset)?;
            let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
            if let Some(whole) = whole.filter(|whole| start <= whole.len()) {
                let rest = whole.slice(start..whole.len().min(start.saturating_add(left)));
                return Ok(Filled::Map { shown: wanted.min(rest.len()), rest });
            }
        }
        let mut block = buffers.block(wanted);
        block.fill(self.file, self.offset, wanted)?;
        Ok(Filled::Block(block))
    }

    /// Takes sound batches from the front of the block; `header`, the first, was found sound.
    fn take(&mut self, mut header: BatchHeader, filled: Filled) {
        let base = self.offset;
        let mut pending = Vec::new();
        let mut at = 0;
        while self.take_batch(header, at + BATCH_HEADER_BYTES, &mut pending) {
            at = usize::try_from(self.offset - base).unwrap_or(usize::MAX);
            if self.seq >= self.end || self.offset >= self.segment.end_offset {
                break;
            }
            match read_batch(&self.identity, filled.bytes().get(at..).unwrap_or_default()) {
                Ok(batch) => header = *batch.header(),
                Err(_) => break,
            }
        }
        self.finish(filled, pending);
    }

    /// Adds one verified batch; `false` if it lies (partly) at or above the end and stays in front of `offset`.
    fn take_batch(&mut self, header: BatchHeader, start: usize, pending: &mut Vec<Pending>) -> bool {
        if header.end_seq() > self.seq {
            if header.first_seq > self.seq {
                let to = header.first_seq.min(self.end);
                pending.extend(gaps_before(&header, self.seq, to).into_iter().map(Pending::Gap));
                self.seq = to;
            }
            if self.seq >= self.end {
                return false;
            }
            let first = self.seq;
            self.seq = header.end_seq().min(self.end);
            let span = Span { header, start };
            match pending.last_mut() {
                Some(Pending::Run { spans, end, .. }) => {
                    spans.push(span);
                    *end = self.seq;
                }
                _ => pending.push(Pending::Run { spans: vec![span], first, end: self.seq }),
            }
            if header.end_seq() > self.end {
                return false;
            }
        }
        self.offset = header.end_offset(self.offset);
        true
    }

    fn finish(&mut self, filled: Filled, pending: Vec<Pending>) {
        if pending.is_empty() {
            return;
        }
        let bytes = filled.into_bytes();
        self.items.extend(pending.into_iter().map(|pending| match pending {
            Pending::Gap(gap) => Item::Gap(gap),
            Pending::Run { spans, first, end } => Item::Records(Run::new(bytes.clone(), spans, first, end)),
        }));
    }

    /// What is wrong at the start of `bytes`.
    fn trouble(&self, bytes: &[u8]) -> Trouble {
        header_at(&self.identity, bytes).map_or(Trouble::NoHeader, Trouble::Frames)
    }

    fn overcome(&mut self, trouble: Trouble, filled: Filled) -> Result<(), ReadError> {
        match trouble {
            Trouble::NoHeader => self.skip_to_next().map_err(|e| self.failed(e)),
            Trouble::Frames(header) => {
                let filled = self.whole(&header, filled).map_err(|e| self.failed(e))?;
                let frames = filled.bytes().get(BATCH_HEADER_BYTES..).unwrap_or_default();
                let mut pending = Vec::new();
                if header.end_seq() <= self.seq {
                    // Damaged and not wanted: perhaps old bytes of the file, whose length says nothing about ours.
                    return self.skip_to_next().map_err(|e| self.failed(e));
                }
                if verify_batch(&self.identity, &header, frames).is_ok() {
                    // Only the header was hit, and it was mended.
                    self.take_batch(header, BATCH_HEADER_BYTES, &mut pending);
                    self.finish(filled, pending);
                } else {
                    let length = frames.len().min(header.frames_bytes as usize);
                    let parts = mend(&self.identity, &header, frames.get(..length).unwrap_or_default());
                    self.take_parts(&header, parts);
                }
                Ok(())
            }
        }
    }

    /// Makes sure all of a batch is in the block, as far as the segment goes.
    fn whole(&self, header: &BatchHeader, mut filled: Filled) -> Result<Filled, DiskError> {
        let left = usize::try_from(self.segment.end_offset - self.offset).unwrap_or(usize::MAX);
        let needed = usize::try_from(header.bytes()).unwrap_or(usize::MAX).min(left);
        filled.grow(self.file, self.offset, needed)?;
        Ok(filled)
    }

    fn take_parts(&mut self, batch: &BatchHeader, parts: Vec<Part>) {
        if batch.first_seq > self.seq {
            for gap in gaps_before(batch, self.seq, batch.first_seq.min(self.end)) {
                self.lose(gap.to, gap.reason);
            }
        }
        for part in parts {
            match part {
                Part::Lost { to, .. } if to > self.seq => self.lose(to.min(self.end), GapReason::Lost),
                Part::Records { header, frames } if header.end_seq() > self.seq && self.seq < self.end => {
                    let (first, end) = (self.seq, header.end_seq().min(self.end));
                    let spans = vec![Span { header, start: 0 }];
                    self.items.push(Item::Records(Run::new(Bytes::from(frames), spans, first, end)));
                    self.seq = end;
                }
                Part::Lost { .. } | Part::Records { .. } => {}
            }
        }
        if batch.end_seq() <= self.end {
            self.offset = batch.end_offset(self.offset);
        }
    }

    /// Records a gap from `seq` to `to`, if there is anything between.
    fn lose(&mut self, to: Seq, reason: GapReason) {
        if to > self.seq {
            self.items.push(Item::Gap(Gap { from: self.seq, to, reason }));
            self.seq = to;
        }
    }

    /// No header at `offset`: goes on at the next batch, even one that holds nothing wanted: only where it ends can a
    /// header be told that has to be mended.
    fn skip_to_next(&mut self) -> Result<(), DiskError> {
        let (limit, end) = (self.segment.end_seq, self.segment.end_offset);
        let wanted = |header: &BatchHeader| header.first_seq < limit;
        match find_next(self.file, &self.identity, self.offset.saturating_add(1), end, &wanted)? {
            Some((offset, header)) => {
                self.lose(header.first_seq.min(self.end), GapReason::Lost);
                self.offset = offset;
            }
            None => {
                self.lose(self.end, GapReason::Lost);
                self.offset = end;
            }
        }
        Ok(())
    }
}

/// An item whose memory is still being filled.
enum Pending {
    Gap(Gap),
    Run { spans: Vec<Span>, first: Seq, end: Seq },
}
