//! The segment header: the first 4096 bytes of a segment file say whose it is and where its predecessor ends.
//!
//! ```text
//! 0     8       10    16      32          48     56      64        72      80       88     96       4092
//! magic version flags queue   incarnation stream segment first seq created unsynced predecessor …  crc
//! ```
//!
//! It is not checked here whether the ids match the file's path (docs/format.md F-11); whoever opened the file knows.

use crate::{
    DecodeError, Incarnation, QueueId, SegmentId, Seq, StreamId, StreamIdentity, WallTime,
    checksum::{crc, locate_flip},
    layout::{Fields, Layout, flip, is_sealed},
};

/// The length of a segment header, in bytes; the first batch starts here.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

const MAGIC: [u8; 8] = *b"PQSEG\r\n\x1a";
const VERSION: u16 = 1;
const INCOMPATIBLE_FLAGS: u16 = 0x00ff;

/// The segment before this one in the chain, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predecessor {
    /// Its id, less than the segment's own.
    pub id: SegmentId,
    /// Its end, in bytes from the start of its file; whatever lies behind is dead for all time.
    pub end_offset: u64,
}

/// What the first block of a segment file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentHeader {
    /// The stream the segment belongs to.
    pub identity: StreamIdentity,
    /// The segment's id, as its file name says; from 1.
    pub segment: SegmentId,
    /// The seq of the first record of the first batch; from 1.
    pub first_seq: Seq,
    /// When the segment was created.
    pub created_at: WallTime,
    /// The most the writer ever leaves unsynced in this file before its last batch, in bytes.
    pub unsynced_bytes_max: u64,
    /// The segment before, `None` for the first of a stream.
    pub predecessor: Option<Predecessor>,
}

impl SegmentHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        debug_assert!(self.is_well_formed(), "a header that no reader accepts: {self:?}");
        let (predecessor, end_offset) =
            self.predecessor.map_or((0, 0), |before| (before.id.get(), before.end_offset));
        Layout::new()
            .put(&MAGIC)
            .put(&VERSION.to_le_bytes())
            .put(&[0; 6])
            .put(&self.identity.queue.get().to_le_bytes())
            .put(&self.identity.incarnation.get().to_le_bytes())
            .put(&self.identity.stream.get().to_le_bytes())
            .put(&self.segment.get().to_le_bytes())
            .put(&self.first_seq.get().to_le_bytes())
            .put(&self.created_at.nanos().to_le_bytes())
            .put(&self.unsynced_bytes_max.to_le_bytes())
            .put(&predecessor.to_le_bytes())
            .put(&end_offset.to_le_bytes())
            .seal(|covered| crc(0, covered))
    }

    /// Reads the header at the front of `bytes`.
    ///
    /// # Errors
    /// `NeedMore` below 4096 bytes; `Zeros`, `BadMagic`, `BadHeader` if this is no header (try [`repair`](Self::repair) on the
    /// last two); `Version`, `Incompatible` if a newer program wrote it; `Malformed`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = bytes
            .first_chunk::<SEGMENT_HEADER_BYTES>()
            .ok_or(DecodeError::NeedMore { bytes: SEGMENT_HEADER_BYTES })?;
        if !block.starts_with(&MAGIC) {
            let blank = block.iter().all(|byte| *byte == 0);
            return Err(if blank { DecodeError::Zeros } else { DecodeError::BadMagic });
        }
        if !is_sealed(block, |covered| crc(0, covered)) {
            return Err(DecodeError::BadHeader);
        }
        Self::decode_sound(block)
    }

    /// Reads a header of which one bit is wrong; `None` if no one-bit neighbour is a header.
    #[must_use]
    pub fn repair(bytes: &[u8]) -> Option<Self> {
        let mut block = *bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
        let (covered, stored) = block.split_last_chunk::<4>()?;
        let bit = locate_flip(u32::from_le_bytes(*stored), crc(0, covered), covered.len())?;
        flip(&mut block, bit);
        Self::decode(&block).ok()
    }

    fn decode_sound(block: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, DecodeError> {
        let mut fields = Fields::of(block);
        let _magic: [u8; 8] = fields.take();
        let version = fields.u16();
        if version != VERSION {
            return Err(DecodeError::Version { found: version, known: VERSION });
        }
        let unknown = fields.u16() & INCOMPATIBLE_FLAGS;
        if unknown != 0 {
            return Err(DecodeError::Incompatible { flags: unknown });
        }
        let zero = fields.u32();
        let queue = QueueId::new(fields.u128());
        let incarnation = Incarnation::new(fields.u128());
        let stream = StreamId::new(fields.u64());
        let segment = SegmentId::new(fields.u64());
        let first_seq = Seq::new(fields.u64());
        let created_at = WallTime::from_nanos(fields.u64());
        let unsynced_bytes_max = fields.u64();
        let (before, end_offset) = (fields.u64(), fields.u64());
        let predecessor = (before != 0).then_some(Predecessor { id: SegmentId::new(before), end_offset });
        let header = Self {
            identity: StreamIdentity { queue, stream, incarnation },
            segment,
            first_seq,
            created_at,
            unsynced_bytes_max,
            predecessor,
        };
        let stray_end = before == 0 && end_offset != 0;
        if zero != 0 || stray_end || !header.is_well_formed() {
            Err(DecodeError::Malformed)
        } else {
            Ok(header)
        }
    }

    fn is_well_formed(&self) -> bool {
        self.segment >= SegmentId::FIRST
            && self.first_seq >= Seq::FIRST
            && self.predecessor.is_none_or(|before| before.id >= SegmentId::FIRST && before.id < self.segment)
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
