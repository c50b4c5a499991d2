//! Frames.
use crate::{DecodeError, Seq, StreamIdentity};
use alloc::vec::Vec;

/// The length of a frame's head, in bytes.
pub const FRAME_HEAD_BYTES: usize = 16;
/// The most bytes a payload may have.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 28;
/// The most bytes the body of a meta frame may have.
pub const META_BYTES_MAX: usize = 256;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A record; it has a seq.
    Record,
    /// An opaque tag of at most [`META_BYTES_MAX`] bytes; it has none.
    Meta,
}

/// Four bits of the caller, stored and returned with a record as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(u8);

impl Marks {
    /// No mark.
    pub const NONE: Self = Self(0);

    /// The low four bits of `bits`; `None` if a higher one is set.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        if bits < 16 { Some(Self(bits)) } else { None }
    }

    /// The four bits, 0 to 15.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// One frame, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The record's seq; `None` for a meta frame.
    pub seq: Option<Seq>,
    /// What it holds.
    pub kind: FrameKind,
    /// The caller's bits.
    pub marks: Marks,
    /// The payload.
    pub payload: &'a [u8],
}

/// The bytes a frame takes for a payload of `payload_bytes`.
#[must_use]
pub const fn frame_bytes(payload_bytes: usize) -> usize {
    FRAME_HEAD_BYTES.saturating_add(payload_bytes)
}

/// The head of the frame whose payload is `slices`, one after the other: for callers who place the payload themselves.
///
/// # Panics
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`].
#[must_use]
pub fn frame_head(
    _identity: &StreamIdentity,
    _seq: Seq,
    _kind: FrameKind,
    _marks: Marks,
    _slices: &[&[u8]],
) -> [u8; FRAME_HEAD_BYTES] {
    todo!()
}

/// Appends a whole frame to `out`. `seq` is the record's; for a meta frame that of the next record.
///
/// # Panics
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`].
pub fn encode_frame(
    _out: &mut Vec<u8>,
    _identity: &StreamIdentity,
    _seq: Seq,
    _kind: FrameKind,
    _marks: Marks,
    _slices: &[&[u8]],
) {
    todo!()
}

/// The body of a meta frame: which producer, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag<'a> {
    producer: &'a [u8],
    value: &'a [u8],
}

/// A tag that does not fit a meta frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TagTooLong {
    /// The bytes the tag would take, its length byte included.
    pub bytes: usize,
}

impl<'a> Tag<'a> {
    /// A tag of `producer` and `value`, together at most [`META_BYTES_MAX`] − 1 bytes.
    ///
    /// # Errors
    /// [`TagTooLong`] if they are longer.
    pub fn new(_producer: &'a [u8], _value: &'a [u8]) -> Result<Self, TagTooLong> {
        todo!()
    }

    /// Whose tag it is.
    #[must_use]
    pub const fn producer(&self) -> &'a [u8] {
        self.producer
    }

    /// What it says.
    #[must_use]
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The bytes of the whole frame that holds this tag.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        frame_bytes(1 + self.producer.len() + self.value.len())
    }

    /// Appends the meta frame with this tag to `out`; `next` is the seq of the next record of the batch.
    pub fn encode(&self, _out: &mut Vec<u8>, _identity: &StreamIdentity, _next: Seq) {
        todo!()
    }

    /// Reads the body of a meta frame.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] if the lengths contradict each other.
    pub fn decode(_payload: &'a [u8]) -> Result<Self, DecodeError> {
        todo!()
    }
}
