//! What recovery knows about a file before it decides anything: its header, and the batches in it.
//!
//! Collecting reads and counts; it changes nothing and judges nothing. A file's batches are kept as *runs*: batches that
//! follow one another without a gap in bytes or seqs count as one, so that a sound segment is one fact whatever its
//! length.
//!
//! ```text
//!   | header | batch batch batch | bad bytes | batch batch | torn batch | zeros …
//!              \____ run ______/               \__ run __/   \_ run _/
//! ```
//!
//! Invariants: runs ascend by offset and do not overlap; a sound run verified by its batches' checksums; a damaged run
//! is one batch whose header is sound (or was mended) and whose frames are not.

use disk::{DiskError, File};
use wal_format::{
    BATCH_HEADER_BYTES, BatchHeader, DecodeError, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, Seq,
    StreamIdentity,
};

use crate::OwnedTag;
use crate::read::header_at;

/// What stands in a file's first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// The header of this segment.
    Sound(SegmentHeader),
    /// As [`Head::Sound`], with one bit wrong.
    Mended(SegmentHeader),
    /// No header: never written, lost, or beyond mending.
    Absent,
    /// A header of this stream, for another segment.
    Claims(SegmentId),
    /// A header of another stream or incarnation.
    Foreign,
    /// Of a newer program.
    Newer(DecodeError),
}

impl Head {
    pub(crate) fn header(&self) -> Option<&SegmentHeader> {
        if let Self::Sound(header) | Self::Mended(header) = self { Some(header) } else { None }
    }
}

/// A file of the stream's directory that bears a segment's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: SegmentId,
    /// Its length in bytes.
    pub(crate) len: u64,
    pub(crate) head: Head,
    /// The header of the batch behind the segment header, if one decodes there.
    pub(crate) first_batch: Option<BatchHeader>,
}

/// Batches that follow one another, or one damaged batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFact {
    /// Offset of the first batch.
    pub(crate) start: u64,
    /// Offset behind the last.
    pub(crate) end: u64,
    pub(crate) first: Seq,
    pub(crate) end_seq: Seq,
    /// Of the first batch.
    pub(crate) prev_seq: u64,
    /// Whether the first batch says that the seqs before it were skipped.
    pub(crate) skipped: bool,
    /// The highest durable end any batch of the run names.
    pub(crate) durable_end: u64,
    /// Last tag of each producer in the run.
    pub(crate) tags: Vec<OwnedTag>,
    pub(crate) damage: Option<Damage>,
    /// What was wrong and cost nothing, with the offset of its batch.
    pub(crate) blemishes: Vec<(u64, Blemish)>,
}

/// Damage that costs no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blemish {
    /// A batch header with one bit wrong.
    Header,
    /// The zeros that fill a padded batch up are not zeros.
    Padding,
}

impl RunFact {
    pub(crate) fn is_sound(&self) -> bool {
        self.damage.is_none()
    }

    /// Whether it is damaged, and by a single flipped bit.
    pub(crate) fn is_one_flip(&self) -> bool {
        self.damage.as_ref().is_some_and(|damage| damage.one_flip)
    }

    /// Whether all of it was written: it is sound, or one flipped bit away from it.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_sound() || self.is_one_flip()
    }

    /// Where what may be missing in front of it ends: what its first batch says was skipped is not missing.
    pub(crate) fn missing_end(&self) -> Seq {
        if self.skipped { Seq::new(self.prev_seq.saturating_add(1)).min(self.first) } else { self.first }
    }

    /// Whether `seq` is in it, or is one that its first batch says was skipped.
    pub(crate) fn continues(&self, seq: Seq) -> bool {
        let skips_from = self.skipped && self.prev_seq < seq.get();
        (self.first <= seq || skips_from) && seq < self.end_seq
    }
}

/// What is wrong with a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The records that cannot be saved, ascending.
    pub(crate) lost: Vec<(Seq, Seq)>,
    /// A single flipped bit explains all of it: it was whole once, so it is not torn.
    pub(crate) one_flip: bool,
}

/// Reads a file's header and its first batch's.
pub(crate) fn look(file: &dyn File, identity: &StreamIdentity, id: SegmentId) -> Result<Found, DiskError> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES];
    let got = file.read_at(&mut bytes, 0)?;
    let (head, batch) = bytes.get(..got).unwrap_or_default().split_at(got.min(SEGMENT_HEADER_BYTES));
    let first_batch = header_at(identity, batch);
    Ok(Found { id, len: file.len()?, head: head_of(head, identity, id), first_batch })
}

fn head_of(bytes: &[u8], identity: &StreamIdentity, id: SegmentId) -> Head {
    let (header, mended) = match SegmentHeader::decode(bytes) {
        Ok(header) => (header, false),
        Err(error) if error.is_newer_format() => return Head::Newer(error),
        Err(DecodeError::Zeros | DecodeError::NeedMore { .. }) => return Head::Absent,
        Err(_) => match SegmentHeader::repair(bytes) {
            Some(header) => (header, true),
            None => return Head::Absent,
        },
    };
    if header.identity != *identity {
        Head::Foreign
    } else if header.segment != id {
        Head::Claims(header.segment)
    } else if mended {
        Head::Mended(header)
    } else {
        Head::Sound(header)
    }
}

/// Adds later tags to earlier ones: the last of each producer stays.
pub(crate) fn merge_tags(tags: &mut Vec<OwnedTag>, later: Vec<OwnedTag>) {
    for tag in later {
        match tags.iter_mut().find(|known| known.producer == tag.producer) {
            Some(known) => *known = tag,
            None => tags.push(tag),
        }
    }
}
