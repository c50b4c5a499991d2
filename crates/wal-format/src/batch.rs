//! The batch header.
use crate::{DecodeError, Seq, StreamId, StreamIdentity, WallTime};
use core::ops::BitOr;

/// The length of a batch header, in bytes.
pub const BATCH_HEADER_BYTES: usize = 64;
/// Padded batches end at a multiple of this many bytes of the file.
pub const PADDING_BYTES: u64 = 4096;
/// The most bytes of frames a batch may hold.
pub const FRAMES_BYTES_MAX: u32 = 1 << 30;

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
    /// The seq of the first record.
    pub first_seq: Seq,
    /// The last seq before this batch, 0 if there was none; less than `first_seq`.
    pub prev_seq: u64,
    /// The writer's durable end (exclusive) at the moment of writing; 0 or 1 if nothing was durable; at most `first_seq`.
    pub durable_seq: u64,
    /// When the batch was opened.
    pub append_time: WallTime,
    /// The number of records, at least 1 (meta frames are not counted).
    pub count: u32,
    /// The bytes of all frames; padding not counted.
    pub frames_bytes: u32,
    /// The checksum over all frames: [`batch_checksum`](crate::batch_checksum).
    pub batch_crc: u32,
}

impl BatchHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self, _identity: &StreamIdentity) -> [u8; BATCH_HEADER_BYTES] {
        todo!()
    }

    /// Reads a header back.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(_bytes: &[u8], _identity: &StreamIdentity) -> Result<Self, DecodeError> {
        todo!()
    }

    /// Reads a header of which one bit is wrong; `None` if no one-bit neighbour is a header of this stream.
    #[must_use]
    pub fn repair(_bytes: &[u8], _identity: &StreamIdentity) -> Option<Self> {
        todo!()
    }

    /// The seq after the last record.
    #[must_use]
    pub fn end_seq(&self) -> Seq {
        self.first_seq.saturating_add(u64::from(self.count))
    }

    /// The length of header and frames, in bytes; padding not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        BATCH_HEADER_BYTES as u64 + u64::from(self.frames_bytes)
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
}
