//! What every byte of a segment file is, read once from the sound file.

use std::ops::Range;
use std::path::PathBuf;

use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, FRAME_HEAD_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, StreamIdentity,
    read_batch,
};

/// What a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    SegmentHeader,
    /// Of the batch with this index.
    BatchHeader(usize),
    /// The head of a frame, or all of a meta frame.
    FrameHead,
    /// The payload of this record.
    Payload(u64),
    /// Behind the end.
    Dead,
}

/// A record's frame in its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameAt {
    pub(crate) seq: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) batch: usize,
}

/// A segment file and its parts.
#[derive(Debug)]
pub(crate) struct SegmentMap {
    pub(crate) path: PathBuf,
    /// Length of the file.
    pub(crate) bytes: u64,
    pub(crate) first_seq: u64,
    pub(crate) end_seq: u64,
    /// The part of each byte.
    parts: Vec<Part>,
    pub(crate) frames: Vec<FrameAt>,
    /// Batches that hold a tag.
    metas: Vec<usize>,
    /// Where each batch's header starts.
    pub(crate) batches: Vec<u64>,
    /// Seqs that no record had, each range with the batch that alone says so.
    skips: Vec<(usize, Range<u64>)>,
}

impl SegmentMap {
    /// Takes a sound file apart; `None`: it is none.
    pub(crate) fn read(
        identity: &StreamIdentity,
        path: PathBuf,
        bytes: &[u8],
        end_offset: u64,
    ) -> Option<Self> {
        let header = SegmentHeader::decode(bytes).ok()?;
        let first_seq = header.first_seq.get();
        let mut map = Self {
            path,
            bytes: bytes.len() as u64,
            first_seq,
            end_seq: first_seq,
            parts: vec![Part::Dead; bytes.len()],
            frames: Vec::new(),
            metas: Vec::new(),
            batches: Vec::new(),
            skips: Vec::new(),
        };
        map.mark(0, SEGMENT_HEADER_BYTES as u64, Part::SegmentHeader);
        let mut at = SEGMENT_HEADER_BYTES as u64;
        while at < end_offset {
            let rest = bytes.get(usize::try_from(at).ok()?..)?;
            let batch = read_batch(identity, rest).ok()?;
            let index = map.batches.len();
            map.batches.push(at);
            if batch.header().flags.contains(BatchFlags::SKIPPED) {
                map.skips.push((index, batch.header().prev_seq + 1..batch.header().first_seq.get()));
            }
            map.mark(at, at + BATCH_HEADER_BYTES as u64, Part::BatchHeader(index));
            let mut start = at + BATCH_HEADER_BYTES as u64;
            for frame in batch.frames() {
                let (head, end) = (
                    start + FRAME_HEAD_BYTES as u64,
                    start + (FRAME_HEAD_BYTES + frame.payload.len()) as u64,
                );
                map.mark(start, end, Part::FrameHead);
                if let Some(seq) = frame.seq {
                    map.mark(head, end, Part::Payload(seq.get()));
                    map.frames.push(FrameAt { seq: seq.get(), start, end, batch: index });
                    map.end_seq = seq.get() + 1;
                } else {
                    map.metas.push(index);
                }
                start = end;
            }
            at = batch.header().end_offset(at);
        }
        Some(map)
    }

    fn mark(&mut self, from: u64, to: u64, part: Part) {
        let range = usize::try_from(from).expect("a small file")..usize::try_from(to).expect("a small file");
        self.parts[range].fill(part);
    }

    /// What the byte at `offset` is.
    pub(crate) fn part(&self, offset: u64) -> Part {
        usize::try_from(offset).ok().and_then(|at| self.parts.get(at)).copied().unwrap_or(Part::Dead)
    }

    /// The records a destroyed range `[from, to)` may cost: those it overlaps, and those of batches whose header it overlaps.
    pub(crate) fn costs(&self, from: u64, to: u64) -> Vec<u64> {
        let hit = self.frames.iter().filter(|f| self.hits((f.start, f.end), f.batch, (from, to)));
        hit.map(|frame| frame.seq).collect()
    }

    /// Seqs that no record had, and of which nothing says so any more if a range `[from, to)` is destroyed.
    pub(crate) fn unsays(&self, from: u64, to: u64) -> Vec<Range<u64>> {
        let is_hit = |batch: usize| {
            self.batches.get(batch).is_some_and(|at| *at < to && from < at + BATCH_HEADER_BYTES as u64)
        };
        let hit = self.skips.iter().filter(|(batch, _)| is_hit(*batch));
        hit.map(|(_, seqs)| seqs.clone()).collect()
    }

    /// Whether a destroyed range may cost a tag: what is left of a damaged batch may be without its tags.
    pub(crate) fn costs_tags(&self, from: u64, to: u64) -> bool {
        let batch_end = |batch: usize| self.batches.get(batch + 1).copied().unwrap_or(u64::MAX);
        let is_hit = |batch: usize| {
            self.batches.get(batch).is_some_and(|start| *start < to && from < batch_end(batch))
        };
        self.metas.iter().any(|batch| is_hit(*batch))
    }

    /// Whether a frame, or its batch's header, lies in `[from, to)`, in part or whole.
    fn hits(&self, (start, end): (u64, u64), batch: usize, (from, to): (u64, u64)) -> bool {
        let header = self.batches.get(batch).map_or(0, |start| *start);
        (start < to && from < end) || (header < to && from < header + BATCH_HEADER_BYTES as u64)
    }
}
