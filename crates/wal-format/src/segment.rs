//! The segment header.
use crate::{DecodeError, SegmentId, Seq, StreamIdentity, WallTime};

/// The length of a segment header, in bytes; the first batch starts here.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

/// The segment before this one in the chain, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predecessor {
    /// Its id.
    pub id: SegmentId,
    /// Its end, in bytes from the start of its file; whatever lies behind is dead for all time.
    pub end_offset: u64,
}

/// What the first block of a segment file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentHeader {
    /// The stream the segment belongs to.
    pub identity: StreamIdentity,
    /// The segment's id, as its file name says.
    pub segment: SegmentId,
    /// The seq of the first record of the first batch.
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
        todo!()
    }

    /// Reads a header back.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(_bytes: &[u8]) -> Result<Self, DecodeError> {
        todo!()
    }

    /// Reads a header of which one bit is wrong; `None` if no one-bit neighbour is a header.
    #[must_use]
    pub fn repair(_bytes: &[u8]) -> Option<Self> {
        todo!()
    }
}
