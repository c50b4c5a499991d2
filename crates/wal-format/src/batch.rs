//! The batch header: 64 bytes in front of the frames that one write puts down under one checksum.
//!
//! ```text
//! 0     4       5     6     8      16        24       32          40          48    52           56        60
//! magic version codec flags stream first seq prev seq durable seq append time count frames bytes batch crc header crc
//! ```
//!
//! Invariant: a header that decodes describes seqs and lengths that fit their types and each other (docs/format.md F-19).

use crate::{
    DecodeError, FRAME_HEAD_BYTES, Seq, StreamId, StreamIdentity, WallTime,
    checksum::{StreamSeed, crc, seed_at},
    layout::{Fields, Layout, is_sealed, one_bit_neighbour},
};
use core::ops::BitOr;

/// The length of a batch header, in bytes.
pub const BATCH_HEADER_BYTES: usize = 64;
/// Padded batches end at a multiple of this many bytes of the file.
pub const PADDING_BYTES: u64 = 4096;
/// The most bytes of frames a batch may hold: 1 GiB.
pub const FRAMES_BYTES_MAX: u32 = 1 << 30;

pub(crate) const MAGIC: [u8; 4] = *b"PQB\x91";
const VERSION: u8 = 1;
const CODEC_PLAIN: u8 = 0;
const INCOMPATIBLE_FLAGS: u16 = 0x00ff;
/// Where the first seq stands: it is needed for the seed before anything else can be trusted.
const FIRST_SEQ_AT: usize = 16;

/// What a batch says about itself in bits. The low byte is incompatible (must be known), the high byte compatible (may be ignored).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchFlags(u16);

impl BatchFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The seqs between `prev_seq` and `first_seq` were never to be stored here: no loss.
    pub const SKIPPED: Self = Self(1);
    /// The batch ends at the next multiple of [`PADDING_BYTES`] of the file; zeros fill it up.
    pub const PADDED: Self = Self(2);

    const KNOWN: Self = Self(3);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for BatchFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What stands in front of a batch's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchHeader {
    /// `SKIPPED`, `PADDED`.
    pub flags: BatchFlags,
    /// How the frames are packed: 0, as they are.
    pub codec: u8,
    /// The stream.
    pub stream: StreamId,
    /// The seq of the first record; from 1.
    pub first_seq: Seq,
    /// The last seq before this batch, 0 if there was none; less than `first_seq`.
    pub prev_seq: u64,
    /// The writer's durable end (exclusive) at the moment of writing; 0 or 1 if nothing was durable; at most `first_seq`.
    pub durable_seq: u64,
    /// When the batch was opened.
    pub append_time: WallTime,
    /// The number of records, at least 1 (meta frames are not counted).
    pub count: u32,
    /// The bytes of all frames, up to [`FRAMES_BYTES_MAX`]; padding not counted.
    pub frames_bytes: u32,
    /// The checksum over all frames: [`batch_checksum`](crate::batch_checksum).
    pub batch_crc: u32,
}

impl BatchHeader {
    /// The header's bytes. Fields no reader would accept are a programmer's error, asserted in debug builds.
    #[must_use]
    pub fn encode(&self, identity: &StreamIdentity) -> [u8; BATCH_HEADER_BYTES] {
        debug_assert!(self.is_well_formed(), "a header that no reader accepts: {self:?}");
        debug_assert!(self.stream == identity.stream, "a batch of another stream: {self:?}");
        let seed = seed_at(identity, self.first_seq);
        Layout::new()
            .put(&MAGIC)
            .put(&[VERSION, self.codec])
            .put(&self.flags.0.to_le_bytes())
            .put(&self.stream.get().to_le_bytes())
            .put(&self.first_seq.get().to_le_bytes())
            .put(&self.prev_seq.to_le_bytes())
            .put(&self.durable_seq.to_le_bytes())
            .put(&self.append_time.nanos().to_le_bytes())
            .put(&self.count.to_le_bytes())
            .put(&self.frames_bytes.to_le_bytes())
            .put(&self.batch_crc.to_le_bytes())
            .seal(|covered| crc(seed, covered))
    }

    /// Reads the header at the front of `bytes`.
    ///
    /// # Errors
    /// `NeedMore` below 64 bytes; `Zeros`, `BadMagic`, `BadHeader` if this is no header of this stream (try
    /// [`repair`](Self::repair) on the last two); `Version`, `Incompatible`, `Codec` if a newer program wrote it; `Foreign`,
    /// `Malformed`.
    pub fn decode(bytes: &[u8], identity: &StreamIdentity) -> Result<Self, DecodeError> {
        let block = bytes
            .first_chunk::<BATCH_HEADER_BYTES>()
            .ok_or(DecodeError::NeedMore { bytes: BATCH_HEADER_BYTES })?;
        Self::decode_block(block, identity, StreamSeed::of(identity.incarnation))
    }

    /// Reads a header of which one bit is wrong; `None` if no one-bit neighbour is a header of this stream.
    #[must_use]
    pub fn repair(bytes: &[u8], identity: &StreamIdentity) -> Option<Self> {
        let block = bytes.first_chunk::<BATCH_HEADER_BYTES>()?;
        let seed = StreamSeed::of(identity.incarnation);
        one_bit_neighbour(block, |near| Self::decode_block(near, identity, seed).ok())
    }

    /// The seq after the last record.
    #[must_use]
    pub const fn end_seq(&self) -> Seq {
        self.first_seq.saturating_add(self.count as u64)
    }

    /// The length of header and frames, in bytes; padding not counted.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        BATCH_HEADER_BYTES as u64 + self.frames_bytes as u64
    }

    /// Where the next batch starts if this one starts at `start`, both in bytes from the start of the file.
    #[must_use]
    pub fn end_offset(&self, start: u64) -> u64 {
        let end = start.saturating_add(self.bytes());
        if self.flags.contains(BatchFlags::PADDED) {
            end.checked_next_multiple_of(PADDING_BYTES).unwrap_or(u64::MAX)
        } else {
            end
        }
    }

    fn decode_block(
        block: &[u8; BATCH_HEADER_BYTES],
        identity: &StreamIdentity,
        seed: StreamSeed,
    ) -> Result<Self, DecodeError> {
        if !block.starts_with(&MAGIC) {
            let blank = block.iter().all(|byte| *byte == 0);
            return Err(if blank { DecodeError::Zeros } else { DecodeError::BadMagic });
        }
        let first_seq = block.get(FIRST_SEQ_AT..).map_or(Seq::new(0), |at| Seq::new(Fields::of(at).u64()));
        if !is_sealed(block, |covered| crc(seed.at(first_seq), covered)) {
            return Err(DecodeError::BadHeader);
        }
        let header = Self::decode_sound(block)?;
        if header.stream != identity.stream {
            return Err(DecodeError::Foreign);
        }
        if header.is_well_formed() { Ok(header) } else { Err(DecodeError::Malformed) }
    }

    fn decode_sound(block: &[u8; BATCH_HEADER_BYTES]) -> Result<Self, DecodeError> {
        let mut fields = Fields::of(block);
        let _magic: [u8; 4] = fields.take();
        let (version, codec, flags) = (fields.u8(), fields.u8(), fields.u16());
        if version != VERSION {
            return Err(DecodeError::Version { found: u16::from(version), known: u16::from(VERSION) });
        }
        let unknown = flags & INCOMPATIBLE_FLAGS & !BatchFlags::KNOWN.0;
        if unknown != 0 {
            return Err(DecodeError::Incompatible { flags: unknown });
        }
        if codec != CODEC_PLAIN {
            return Err(DecodeError::Codec { found: codec });
        }
        Ok(Self {
            flags: BatchFlags(flags),
            codec,
            stream: StreamId::new(fields.u64()),
            first_seq: Seq::new(fields.u64()),
            prev_seq: fields.u64(),
            durable_seq: fields.u64(),
            append_time: WallTime::from_nanos(fields.u64()),
            count: fields.u32(),
            frames_bytes: fields.u32(),
            batch_crc: fields.u32(),
        })
    }

    fn is_well_formed(&self) -> bool {
        self.first_seq >= Seq::FIRST
            && self.count >= 1
            && self.prev_seq < self.first_seq.get()
            && self.durable_seq <= self.first_seq.get()
            && self.first_seq.checked_add(u64::from(self.count)).is_some()
            && u64::from(self.frames_bytes) >= u64::from(self.count) * FRAME_HEAD_BYTES as u64
            && self.frames_bytes <= FRAMES_BYTES_MAX
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
