//! Reading batches: verified as a whole by one checksum, and looked for.
//!
//! ```text
//! read_batch ─ Ok(BatchView) ──────────► frames()                  memory speed
//!    │ Mismatch ───────────────────────► salvage()                 frame by frame
//!    │ BadMagic, BadHeader ─ BatchHeader::repair ─ verify_batch    a flipped bit in the header costs nothing
//!    │          └ none ────────────────► find_batch()              the next header of ours
//!    └ NeedMore ───────────────────────► more bytes, or a torn end
//! ```
//!
//! One frame iterator serves recovery, readers, tools and fuzzing. It is total: in a batch that no honest program wrote it
//! ends early, and [`Frames::next_seq`] tells.

use crate::{
    BATCH_HEADER_BYTES, BatchHeader, DecodeError, FRAME_HEAD_BYTES, Frame, FrameKind, Seq, StreamIdentity,
    batch::MAGIC, batch_checksum, frame::Head,
};

/// A batch whose frames match its checksum.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    header: BatchHeader,
    frames: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The header.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The bytes of the frames.
    #[must_use]
    pub const fn frames_bytes(&self) -> &'a [u8] {
        self.frames
    }

    /// The frames in order, records and metas.
    #[must_use]
    pub const fn frames(&self) -> Frames<'a> {
        verified_frames(&self.header, self.frames)
    }

    /// The length of header and frames, in bytes; padding not counted.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        BATCH_HEADER_BYTES + self.frames.len()
    }

    /// Whether the frames fill the batch exactly and are as many records as the header says.
    ///
    /// Only a defective or hostile writer makes this false: the checksum has already excluded damage. Costs a walk over all heads.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let mut frames = self.frames();
        let bytes: usize = frames.by_ref().map(|frame| FRAME_HEAD_BYTES + frame.payload.len()).sum();
        bytes == self.frames.len() && frames.next_seq() == self.header.end_seq()
    }
}

/// Reads the batch that starts at the first byte of `bytes` and verifies it by its one checksum.
///
/// # Errors
/// `NeedMore` if the batch goes on behind `bytes`; `Mismatch` if header and frames disagree (see [`salvage`](crate::salvage));
/// otherwise as [`BatchHeader::decode`].
pub fn read_batch<'a>(identity: &StreamIdentity, bytes: &'a [u8]) -> Result<BatchView<'a>, DecodeError> {
    let header = BatchHeader::decode(bytes, identity)?;
    let frames = bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    verify_batch(identity, &header, frames).map_err(|error| match error {
        DecodeError::NeedMore { bytes } => DecodeError::NeedMore { bytes: BATCH_HEADER_BYTES + bytes },
        other => other,
    })
}

/// Verifies the frames behind an already decoded (or repaired) header; `frames` starts at the first frame.
///
/// # Errors
/// `NeedMore` (counted from the first frame), `Mismatch`.
pub fn verify_batch<'a>(
    identity: &StreamIdentity,
    header: &BatchHeader,
    frames: &'a [u8],
) -> Result<BatchView<'a>, DecodeError> {
    let length = header.frames_bytes as usize;
    let frames = frames.get(..length).ok_or(DecodeError::NeedMore { bytes: length })?;
    let mut checksum = batch_checksum(identity, header.first_seq);
    checksum.update(frames);
    if checksum.get() == header.batch_crc {
        Ok(BatchView { header: *header, frames })
    } else {
        Err(DecodeError::Mismatch)
    }
}

/// Iterates over frames that a batch checksum has already vouched for, without looking at their own.
#[must_use]
pub const fn verified_frames<'a>(header: &BatchHeader, frames: &'a [u8]) -> Frames<'a> {
    Frames { next: header.first_seq, end: header.end_seq(), rest: frames }
}

/// The frames of a verified batch, in order. Ends early if they are malformed.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    next: Seq,
    end: Seq,
    rest: &'a [u8],
}

impl Frames<'_> {
    /// The seq of the next record; the batch's end once all were yielded.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.next
    }
}

impl<'a> Frames<'a> {
    #[inline]
    fn step(&mut self) -> Option<Frame<'a>> {
        let (block, rest) = self.rest.split_first_chunk::<FRAME_HEAD_BYTES>()?;
        let head = Head::read(block)?;
        let (payload, rest) = rest.split_at_checked(head.payload_bytes)?;
        let frame = head.frame(self.next, payload);
        if frame.kind == FrameKind::Record {
            if self.next >= self.end {
                return None;
            }
            self.next = self.next.saturating_add(1);
        }
        self.rest = rest;
        Some(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.step();
        if frame.is_none() {
            self.rest = &[];
        }
        frame
    }
}

impl core::iter::FusedIterator for Frames<'_> {}

/// The next place at or behind `from` where a batch header of ours decodes, as an index into `bytes`.
///
/// The batch behind it may still be torn, and old: whoever searches checks its first seq and its frames (docs/format.md F-31),
/// and goes on searching one byte further.
#[must_use]
pub fn find_batch(identity: &StreamIdentity, bytes: &[u8], from: usize) -> Option<(usize, BatchHeader)> {
    let mut at = from;
    loop {
        at += find_magic(bytes.get(at..)?)?;
        if let Ok(header) = BatchHeader::decode(bytes.get(at..)?, identity) {
            return Some((at, header));
        }
        at += 1;
    }
}

/// The index of the first magic number. Blocks are looked over for its first two bytes by code that vectorizes.
fn find_magic(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let [first, second, ..] = MAGIC;
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let (_, shifted) = rest.split_first()?;
        let pairs = rest.iter().zip(shifted).take(BLOCK);
        if pairs.fold(false, |hit, (one, two)| hit | ((*one == first) & (*two == second))) {
            let found = rest.windows(MAGIC.len()).take(BLOCK).position(|window| *window == MAGIC);
            if let Some(index) = found {
                return Some(at + index);
            }
        }
        at += BLOCK;
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
