//! Frames: one record, or one meta tag, as bytes inside a batch.
//!
//! ```text
//! 0      4    5     6    8           12       16
//! length kind flags zero payload crc head crc payload …
//! ```
//!
//! A frame does not name its seq: both checksums are seeded with it, so a frame only decodes where it belongs.
//! Encoding cannot fail once the length was checked; decoding is total.

use crate::{
    DecodeError, Seq, StreamIdentity,
    checksum::{crc, seed_at},
    layout::is_sealed,
};
use alloc::vec::Vec;
use core::fmt;

/// The length of a frame's head, in bytes.
pub const FRAME_HEAD_BYTES: usize = 16;
/// The most bytes a payload may have: 256 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 28;
/// The most bytes the body of a meta frame may have, its length byte included.
pub const META_BYTES_MAX: usize = 256;

const KIND_RECORD: u8 = 1;
const KIND_META: u8 = 2;
const INCOMPATIBLE_FLAGS: u8 = 0b0011;

// A head is one little-endian integer; reading it at once is what makes iteration fast.
const KIND_BIT: u32 = 32;
const MARKS_BIT: u32 = 44;
const PAYLOAD_CRC_BIT: u32 = 64;
const HEAD_CRC_BIT: u32 = 96;
const COVERED_BYTES: usize = 12;

/// The checksum takes whole words only where they are aligned.
#[repr(align(8))]
struct Words([u8; FRAME_HEAD_BYTES]);

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
/// `seq` is the record's; for a meta frame that of the next record of the batch.
///
/// # Panics
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`], or than [`META_BYTES_MAX`] in a meta frame.
#[must_use]
pub fn frame_head(
    identity: &StreamIdentity,
    seq: Seq,
    kind: FrameKind,
    marks: Marks,
    slices: &[&[u8]],
) -> [u8; FRAME_HEAD_BYTES] {
    let (number, limit) = match kind {
        FrameKind::Record => (KIND_RECORD, PAYLOAD_BYTES_MAX),
        FrameKind::Meta => (KIND_META, META_BYTES_MAX),
    };
    let seed = seed_at(identity, seq);
    let (mut length, mut payload_crc) = (0_usize, seed);
    for slice in slices {
        length = length.saturating_add(slice.len());
        payload_crc = crc(payload_crc, slice);
    }
    assert!(length <= limit, "a payload of {length} bytes: the limit is {limit}");
    let fields = length as u128
        | u128::from(number) << KIND_BIT
        | u128::from(marks.0) << MARKS_BIT
        | u128::from(payload_crc) << PAYLOAD_CRC_BIT;
    let covered = Words(fields.to_le_bytes());
    let (covered, _) = covered.0.split_at(COVERED_BYTES);
    (fields | u128::from(crc(seed, covered)) << HEAD_CRC_BIT).to_le_bytes()
}

/// Appends a whole frame to `out`. `seq` is the record's; for a meta frame that of the next record of the batch.
///
/// # Panics
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`], or than [`META_BYTES_MAX`] in a meta frame.
pub fn encode_frame(
    out: &mut Vec<u8>,
    identity: &StreamIdentity,
    seq: Seq,
    kind: FrameKind,
    marks: Marks,
    slices: &[&[u8]],
) {
    out.extend_from_slice(&frame_head(identity, seq, kind, marks, slices));
    for slice in slices {
        out.extend_from_slice(slice);
    }
}

/// A head's fields; whether they can be trusted is another question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: FrameKind,
    pub(crate) marks: Marks,
    pub(crate) payload_bytes: usize,
    payload_crc: u32,
}

impl Head {
    /// Reads the fields without looking at the checksum; `None` if no version-1 writer writes such a head.
    #[inline]
    pub(crate) const fn read(block: &[u8; FRAME_HEAD_BYTES]) -> Option<Self> {
        let fields = u128::from_le_bytes(*block);
        let [kind, flags, zero_low, zero_high] = word(fields, KIND_BIT).to_le_bytes();
        let payload_bytes = word(fields, 0) as usize;
        let (kind, limit) = match kind {
            KIND_RECORD => (FrameKind::Record, PAYLOAD_BYTES_MAX),
            KIND_META => (FrameKind::Meta, META_BYTES_MAX),
            _ => return None,
        };
        if zero_low | zero_high | flags & INCOMPATIBLE_FLAGS != 0 || payload_bytes > limit {
            return None;
        }
        Some(Self {
            kind,
            marks: Marks(flags >> 4),
            payload_bytes,
            payload_crc: word(fields, PAYLOAD_CRC_BIT),
        })
    }

    /// Reads the fields of a head whose checksum is right under `seed`.
    pub(crate) fn read_sound(block: &[u8; FRAME_HEAD_BYTES], seed: u32) -> Option<Self> {
        if is_sealed(block, |covered| crc(seed, covered)) { Self::read(block) } else { None }
    }

    /// Whether `payload` is what the head says it is.
    pub(crate) fn vouches_for(&self, payload: &[u8], seed: u32) -> bool {
        crc(seed, payload) == self.payload_crc
    }

    /// The frame of this head, with the seq if it is a record.
    #[inline]
    pub(crate) fn frame<'a>(&self, seq: Seq, payload: &'a [u8]) -> Frame<'a> {
        let seq = match self.kind {
            FrameKind::Record => Some(seq),
            FrameKind::Meta => None,
        };
        Frame { seq, kind: self.kind, marks: self.marks, payload }
    }
}

/// The 32 bits of `fields` from `bit` on.
#[expect(clippy::cast_possible_truncation, reason = "cutting a word out is the purpose")]
const fn word(fields: u128, bit: u32) -> u32 {
    (fields >> bit) as u32
}

/// The body of a meta frame: which producer, and its place in its source.
///
/// The last tag of each producer is what a source needs after a restart to go on without a loss or a repetition.
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

impl fmt::Display for TagTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a tag of {} bytes, its length byte included: the limit is {META_BYTES_MAX}", self.bytes)
    }
}

impl core::error::Error for TagTooLong {}

impl<'a> Tag<'a> {
    /// A tag of `producer` and `value`, together at most [`META_BYTES_MAX`] − 1 bytes.
    ///
    /// # Errors
    /// [`TagTooLong`] if they are longer.
    pub const fn new(producer: &'a [u8], value: &'a [u8]) -> Result<Self, TagTooLong> {
        let bytes = producer.len().saturating_add(value.len()).saturating_add(1);
        if bytes > META_BYTES_MAX { Err(TagTooLong { bytes }) } else { Ok(Self { producer, value }) }
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

    /// Appends the meta frame with this tag to `out`; `next` is the seq of the next record of the batch, or its end.
    pub fn encode(&self, out: &mut Vec<u8>, identity: &StreamIdentity, next: Seq) {
        let length = u8::try_from(self.producer.len()).unwrap_or(u8::MAX);
        let body = [&[length], self.producer, self.value];
        encode_frame(out, identity, next, FrameKind::Meta, Marks::NONE, &body);
    }

    /// Reads the body of a meta frame.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] if the lengths contradict each other.
    pub const fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((length, rest)) = payload.split_first() else { return Err(DecodeError::Malformed) };
        if payload.len() > META_BYTES_MAX {
            return Err(DecodeError::Malformed);
        }
        match rest.split_at_checked(*length as usize) {
            Some((producer, value)) => Ok(Self { producer, value }),
            None => Err(DecodeError::Malformed),
        }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
