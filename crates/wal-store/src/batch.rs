//! A batch: records of one write, as frames in pooled chunks of memory. It is not a file and does no I/O.
//!
//! ```text
//!   open batch (appends) ──full, or swapped by a committer──► in flight ──► written ──► chunks back to the pool
//! ```
//! Frames stand one behind the other and may straddle chunks; the write is one vector over all chunks. The batch's
//! header is made when it is written, because it says what was durable then.
//!
//! Invariant: `first <= end`, all seqs in between are here, in order.

use std::sync::Arc;

use wal_format::{FrameKind, Marks, Now, Seq, StreamIdentity, Tag, frame_head};

use crate::machine::Meta;
use crate::pool::{ChunkPool, ChunkSize};
use crate::record::{Payload, Record};
use crate::tags::TagSet;
use crate::word::Word;

/// Records that become durable together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) first: Seq,
    pub(crate) end: Seq,
    /// Bytes of all frames; the room the batch holds.
    pub(crate) frames_bytes: usize,
    pub(crate) chunks: Vec<Vec<u8>>,
    /// When the first record came.
    pub(crate) opened: Now,
    pub(crate) word: Option<Arc<Word>>,
    pub(crate) tags: TagSet,
    /// Room it holds, in bytes; none if it was read back from a file.
    pub(crate) room: usize,
    /// Space on the disk taken for it, in bytes, until it is part of a file.
    pub(crate) charge: u64,
    /// Whether a write of it was ever begun: its bytes may come back after a crash.
    pub(crate) touched: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            first: Seq::FIRST,
            end: Seq::FIRST,
            frames_bytes: 0,
            chunks: Vec::new(),
            opened: Now::default(),
            word: None,
            tags: TagSet::default(),
            room: 0,
            charge: 0,
            touched: false,
        }
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames_bytes == 0
    }

    pub(crate) fn count(&self) -> u64 {
        self.first.distance_to(self.end)
    }

    /// What the commit machine is told of it.
    pub(crate) fn meta(&self) -> Meta {
        Meta { first: self.first, end: self.end, frames_bytes: self.frames_bytes as u64 }
    }

    /// Begins an empty batch: its first record will be `first`.
    pub(crate) fn begin(&mut self, first: Seq, now: Now, word: Arc<Word>) {
        debug_assert!(self.is_empty() && self.chunks.is_empty());
        self.first = first;
        self.end = first;
        self.opened = now;
        self.word = Some(word);
    }

    /// Encodes a record behind the others. Its length was checked, its room is reserved.
    pub(crate) fn push(
        &mut self,
        record: &Record<'_>,
        next: Seq,
        identity: &StreamIdentity,
        pool: &ChunkPool,
    ) {
        match record.payload() {
            Payload::One(payload) => self.push_slices(&[payload], record.marks(), identity, pool),
            Payload::Many(slices) => self.push_slices(slices, record.marks(), identity, pool),
        }
        self.end = next;
    }

    fn push_slices(&mut self, slices: &[&[u8]], marks: Marks, identity: &StreamIdentity, pool: &ChunkPool) {
        let head = frame_head(identity, self.end, FrameKind::Record, marks, slices);
        self.extend(&head, pool);
        slices.iter().for_each(|slice| self.extend(slice, pool));
    }

    /// Encodes a tag; the records it speaks of follow.
    pub(crate) fn push_tag(&mut self, tag: &Tag<'_>, identity: &StreamIdentity, pool: &ChunkPool) {
        let mut frame = Vec::with_capacity(tag.frame_bytes());
        tag.encode(&mut frame, identity, self.end);
        self.extend(&frame, pool);
        self.tags.set(tag.producer(), tag.value(), self.end);
    }

    fn extend(&mut self, mut bytes: &[u8], pool: &ChunkPool) {
        self.frames_bytes += bytes.len();
        while !bytes.is_empty() {
            let free = self.chunks.last().map_or(0, |chunk| chunk.capacity() - chunk.len());
            if free == 0 {
                let size = if self.chunks.is_empty() { ChunkSize::Small } else { ChunkSize::Large };
                self.chunks.push(pool.take(size));
                continue;
            }
            let (now, later) = bytes.split_at(free.min(bytes.len()));
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.extend_from_slice(now);
            }
            bytes = later;
        }
    }

    /// Empties it for another use: chunks back to the pool, allocations kept.
    pub(crate) fn recycle(&mut self, pool: &ChunkPool) {
        pool.give(&mut self.chunks);
        self.frames_bytes = 0;
        self.room = 0;
        self.charge = 0;
        self.touched = false;
        self.word = None;
        self.tags.clear();
    }
}
