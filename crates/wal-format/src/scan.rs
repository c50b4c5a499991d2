//! Reading batches.
use crate::{BatchHeader, DecodeError, Frame, Seq, StreamIdentity};

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
    pub fn frames(&self) -> Frames<'a> {
        verified_frames(&self.header, self.frames)
    }

    /// The length of header and frames, in bytes; padding not counted.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        crate::BATCH_HEADER_BYTES + self.frames.len()
    }
}

/// Reads the batch that starts at the first byte of `bytes` and verifies it by its one checksum.
///
/// # Errors
/// See [`DecodeError`].
pub fn read_batch<'a>(_identity: &StreamIdentity, _bytes: &'a [u8]) -> Result<BatchView<'a>, DecodeError> {
    todo!()
}

/// Verifies the frames behind an already decoded (or repaired) header; `frames` starts at the first frame.
///
/// # Errors
/// [`DecodeError::NeedMore`] (counted from the first frame), [`DecodeError::Mismatch`].
pub fn verify_batch<'a>(
    _identity: &StreamIdentity,
    _header: &BatchHeader,
    _frames: &'a [u8],
) -> Result<BatchView<'a>, DecodeError> {
    todo!()
}

/// Iterates over frames that a batch checksum has already vouched for, without looking at their own.
#[must_use]
pub fn verified_frames<'a>(_header: &BatchHeader, _frames: &'a [u8]) -> Frames<'a> {
    todo!()
}

/// The frames of a verified batch.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    next: Seq,
    rest: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;
    fn next(&mut self) -> Option<Self::Item> {
        let _ = (self.next, self.rest);
        todo!()
    }
}

/// What is left of a batch whose checksum does not match, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvaged<'a> {
    /// A frame that verifies by its own checksums.
    Frame(Frame<'a>),
    /// The records `[from, to)` are lost.
    Lost {
        /// The first lost seq.
        from: Seq,
        /// The seq after the last lost one.
        to: Seq,
    },
    /// A meta frame in front of record `before` is lost; no record is.
    LostMeta {
        /// The seq of the record that follows.
        before: Seq,
    },
}

/// Takes apart a batch whose checksum does not match. `frames` may be shorter than the header says (the file ends): the rest is lost.
#[must_use]
pub fn salvage<'a>(_identity: &StreamIdentity, _header: &BatchHeader, _frames: &'a [u8]) -> Salvage<'a> {
    todo!()
}

/// Iterator of [`salvage`].
#[derive(Clone, Debug)]
pub struct Salvage<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Salvage<'a> {
    type Item = Salvaged<'a>;
    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.rest;
        todo!()
    }
}

/// The next place at or behind `from` where a batch header of ours decodes.
#[must_use]
pub fn find_batch(_identity: &StreamIdentity, _bytes: &[u8], _from: usize) -> Option<(usize, BatchHeader)> {
    todo!()
}
