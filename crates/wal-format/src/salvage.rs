//! Taking apart a batch whose checksum does not match, so that a flipped bit costs one record at most.
//!
//! ```text
//! head sound, payload sound ─► Frame
//! head sound, payload not ───► Lost (this record), step over
//! head not ─ one-bit neighbour, with its payload, sound ─► Frame
//!          └ search the rest of the batch ─► Lost up to the frame found, go on there
//!                                         └► Lost up to the batch's end
//! ```
//!
//! Invariants: every record of the batch comes out exactly once, in order, as a frame or within a lost range. A frame found
//! by searching tells its own seq, by running its head's checksum backwards to the seed; only seqs this batch may still hold
//! count, so frames inside payloads (which can only be older) are never mistaken for this batch's. The search looks at no more
//! payload bytes than [`EFFORT`] times the batch: damage never needs more than once, heads nested by hand could ask for their square.

use crate::{
    BatchHeader, FRAME_HEAD_BYTES, Frame, FrameKind, Seq, StreamIdentity, batch_checksum,
    checksum::{StreamSeed, locate_flip},
    frame::Head,
    layout::{Fields, one_bit_neighbour},
};

/// How often the search may look at each byte of the batch on average.
const EFFORT: usize = 4;

/// What is left of a batch whose checksum does not match, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvaged<'a> {
    /// A frame that verifies by its own checksums.
    Frame(Frame<'a>),
    /// The records `[from, to)` are lost. Neighbouring ranges are not joined.
    Lost {
        /// The first lost seq.
        from: Seq,
        /// The seq after the last lost one.
        to: Seq,
    },
    /// Bytes in front of record `before` are lost that held no record: a meta frame, if anything.
    LostMeta {
        /// The seq of the record that follows, or the batch's end.
        before: Seq,
    },
}

/// Takes apart a batch whose checksum does not match; `frames` starts at the first frame.
///
/// It may be shorter than the header says (the file ends) and is cut where it is longer: what is not there is lost.
/// Costs a search over the whole batch at worst, and no memory.
#[must_use]
pub fn salvage<'a>(identity: &StreamIdentity, header: &BatchHeader, frames: &'a [u8]) -> Salvage<'a> {
    let rest = frames.get(..header.frames_bytes as usize).unwrap_or(frames);
    Salvage {
        seed: StreamSeed::of(identity.incarnation),
        next: header.first_seq,
        end: header.end_seq(),
        rest,
        effort: rest.len().saturating_mul(EFFORT),
    }
}

/// Which one bit of a batch whose checksum does not match is flipped, counted from bit 0 of the first frame's first byte;
/// `None` if one bit does not explain the mismatch.
///
/// One bit is proof of damage: a torn write loses sectors, not bits. (Of torn batches one in 2³² / bits of the record that
/// was hit looks like this nevertheless; it is then reported as the loss of that record.) `None` too if frames are missing.
#[must_use]
pub fn flipped_bit(identity: &StreamIdentity, header: &BatchHeader, frames: &[u8]) -> Option<usize> {
    let frames = frames.get(..header.frames_bytes as usize)?;
    let mut lost = 0;
    for item in salvage(identity, header, frames) {
        lost += match item {
            Salvaged::Frame(_) => 0,
            Salvaged::LostMeta { .. } => 1,
            Salvaged::Lost { from, to } => from.distance_to(to),
        };
        // Cheaper than the search for the bit, and enough to tell most torn batches.
        if lost > 1 {
            return None;
        }
    }
    let mut computed = batch_checksum(identity, header.first_seq);
    computed.update(frames);
    locate_flip(header.batch_crc, computed.get(), frames.len()).filter(|bit| *bit < frames.len() * 8)
}

/// Iterator of [`salvage`].
#[derive(Clone, Debug)]
pub struct Salvage<'a> {
    seed: StreamSeed,
    next: Seq,
    end: Seq,
    rest: &'a [u8],
    /// Payload bytes the search may still look at.
    effort: usize,
}

/// What stands at a place where a frame is expected.
enum Found<'a> {
    Whole(Frame<'a>, &'a [u8]),
    BadPayload(FrameKind, &'a [u8]),
    BadHead,
}

impl<'a> Salvage<'a> {
    fn at_front(&self) -> Found<'a> {
        let Some((block, rest)) = self.rest.split_first_chunk::<FRAME_HEAD_BYTES>() else {
            return Found::BadHead;
        };
        let seed = self.seed.at(self.next);
        let Some(head) = Head::read_sound(block, seed) else {
            let repaired = one_bit_neighbour(block, |near| {
                let head = Head::read_sound(near, seed)?;
                self.whole(head, seed, rest)
            });
            return repaired.unwrap_or(Found::BadHead);
        };
        if head.kind == FrameKind::Record && self.next >= self.end {
            return Found::BadHead;
        }
        let behind = rest.get(head.payload_bytes..).unwrap_or_default();
        self.whole(head, seed, rest).unwrap_or(Found::BadPayload(head.kind, behind))
    }

    /// The whole frame of a sound head, if its payload is sound too and it may stand here.
    fn whole(&self, head: Head, seed: u32, rest: &'a [u8]) -> Option<Found<'a>> {
        let (payload, rest) = rest.split_at_checked(head.payload_bytes)?;
        let fits = head.kind == FrameKind::Meta || self.next < self.end;
        (fits && head.vouches_for(payload, seed)).then(|| Found::Whole(head.frame(self.next, payload), rest))
    }

    /// The next whole frame behind the front that this batch may still hold: the seq of its seed, and the bytes from it on.
    fn search(&mut self) -> Option<(Seq, &'a [u8])> {
        let mut rest = self.rest;
        loop {
            (_, rest) = rest.split_first()?;
            let (block, body) = rest.split_first_chunk::<FRAME_HEAD_BYTES>()?;
            if let Some(seq) = self.seq_of(block, body) {
                return Some((seq, rest));
            }
        }
    }

    fn seq_of(&mut self, block: &[u8; FRAME_HEAD_BYTES], body: &[u8]) -> Option<Seq> {
        let head = Head::read(block)?;
        let payload = body.get(..head.payload_bytes)?;
        let (covered, sum) = block.split_last_chunk::<4>()?;
        let seq = self.seed.seq_of(Fields::of(sum).u32(), covered, self.next, self.end)?;
        if head.kind == FrameKind::Record && seq >= self.end {
            return None;
        }
        self.effort = self.effort.checked_sub(head.payload_bytes)?;
        head.vouches_for(payload, self.seed.at(seq)).then_some(seq)
    }

    /// Goes on at `rest`, where a frame with the seed of `to` starts; tells what is lost on the way.
    fn skip_to(&mut self, to: Seq, rest: &'a [u8]) -> Salvaged<'a> {
        let from = self.next;
        self.next = to;
        self.rest = rest;
        if from == to { Salvaged::LostMeta { before: to } } else { Salvaged::Lost { from, to } }
    }
}

impl<'a> Iterator for Salvage<'a> {
    type Item = Salvaged<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return (self.next < self.end).then(|| self.skip_to(self.end, &[]));
        }
        match self.at_front() {
            Found::Whole(frame, rest) => {
                self.next = self.next.saturating_add(u64::from(frame.kind == FrameKind::Record));
                self.rest = rest;
                Some(Salvaged::Frame(frame))
            }
            Found::BadPayload(kind, rest) => {
                let to = self.next.saturating_add(u64::from(kind == FrameKind::Record));
                Some(self.skip_to(to, rest))
            }
            Found::BadHead => {
                let (to, rest) = self.search().unwrap_or((self.end, &[]));
                Some(self.skip_to(to, rest))
            }
        }
    }
}

impl core::iter::FusedIterator for Salvage<'_> {}

#[cfg(test)]
#[path = "salvage_tests.rs"]
mod tests;
