//! Reading: whole batches from a live or a rotated segment, gaps in their place.
//!
//! One read is one big `pread` into reused memory, one checksum a batch, and no copy. It asks nobody but the segment
//! list and trusts no hint: a position is where a batch header of the right seq decodes, or it is not used. Reading
//! changes nothing on disk, and damage never stops it: what cannot be read becomes a gap with its exact range.
//!
//! ```text
//!   seq ──locate──> segment ──hint, or search by headers──> offset ──fill──> batch, batch, batch │ cut batch
//!                      └─ hole: a gap                            mismatch: mend, else find the next, gap
//! ```
//!
//! Invariants: no seq at or above the bound is returned; every read returns something below the bound or proves that
//! nothing is there yet; a read that fails changes nothing and may be repeated.

mod buffers;
mod chunk;
mod fill;
mod lone;
mod mend;
mod search;

use std::path::Path;

use disk::{DiskError, ErrorClass, OpenMode};
use wal_format::{
    BatchFlags, BatchHeader, DecodeError, SEGMENT_HEADER_BYTES, SegmentId, Seq, StreamIdentity,
};

pub use buffers::{ReadBuffers, ReadMethod};
pub use chunk::{Chunk, Gap, GapReason, Item, RecordRef, Records, Run};
pub use lone::LoneSegment;
pub(crate) use mend::{Part, find_next, mend};

use crate::segments::{Place, SegmentInfo, SegmentList, segment_path};
use crate::sync::lock;
use crate::{Log, StoreContext};
use fill::Reading;

/// Where a batch's bytes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The segment.
    pub segment: SegmentId,
    /// Bytes from the start of its file.
    pub offset: u64,
}

/// Where to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFrom {
    /// The first seq wanted.
    pub seq: Seq,
    /// Where it stood, if known; checked, never trusted.
    pub hint: Option<Position>,
}

/// How much one read may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of batches; at least one batch is returned whatever its size.
    pub bytes_max: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { bytes_max: 1 << 20 }
    }
}

/// Why a read failed. Nothing is lost or changed; the same read may be tried again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The disk failed.
    #[error("cannot read segment {segment}: {source}")]
    Disk {
        /// The segment.
        segment: SegmentId,
        /// What the disk said; it names the file.
        source: DiskError,
    },
    /// A newer program wrote this.
    #[error("segment {segment} at byte {offset}: {source}")]
    NewerFormat {
        /// The segment.
        segment: SegmentId,
        /// Bytes from the start of its file.
        offset: u64,
        /// Version or flags.
        source: DecodeError,
    },
}

impl ReadError {
    /// Whether the cause may go away by itself.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Disk { source, .. } => source.is_retryable() || source.class() == ErrorClass::Device,
            Self::NewerFormat { .. } => false,
        }
    }
}

impl Log {
    /// Reads whole batches from `from.seq` up to `bound` (exclusive, at most the readable end).
    ///
    /// The chunk is empty only if nothing below `bound` is there yet. A run never crosses a segment; call again with
    /// `next` and `next_hint` for more.
    ///
    /// # Errors
    /// Nothing is lost; read again.
    pub fn read(
        &self,
        from: ReadFrom,
        bound: Seq,
        limits: ReadLimits,
        buffers: &mut ReadBuffers,
    ) -> Result<Chunk, ReadError> {
        let locate = || lock(&self.shared.segments).locate(from.seq);
        let (ctx, place) = (self.context(), locate());
        match place.read(ctx, from, bound, limits, buffers)? {
            Found::Chunk(chunk) => Ok(chunk),
            Found::Gone(lost) => match locate() {
                again if again == place => Ok(lost),
                // Retired between the look at the list and the open.
                again => Ok(again.read(ctx, from, bound, limits, buffers)?.chunk()),
            },
        }
    }
}

impl SegmentList {
    /// As [`Log::read`], over a list that nobody else changes: a recovery's, or a scan's beside a live owner.
    ///
    /// # Errors
    /// Nothing is lost; read again.
    pub fn read(
        &self,
        ctx: &StoreContext,
        from: ReadFrom,
        bound: Seq,
        limits: ReadLimits,
        buffers: &mut ReadBuffers,
    ) -> Result<Chunk, ReadError> {
        self.locate(from.seq).read(ctx, from, bound, limits, buffers).map(Found::chunk)
    }
}

impl Place {
    fn read(
        self,
        ctx: &StoreContext,
        from: ReadFrom,
        bound: Seq,
        limits: ReadLimits,
        buffers: &mut ReadBuffers,
    ) -> Result<Found, ReadError> {
        if from.seq >= bound {
            return Ok(Found::Chunk(Chunk::empty(from.seq, from.hint)));
        }
        let chunk = match self {
            Self::End => Chunk::empty(from.seq, from.hint),
            Self::Hole { next, retired_below } if from.seq < retired_below => {
                let gap = Gap {
                    from: from.seq,
                    to: next.first_seq.min(bound).min(retired_below),
                    reason: GapReason::Retired,
                };
                gaps_in_front(&next, vec![gap])
            }
            Self::Hole { next, .. } => hole(&next, from.seq, bound, first_header(ctx, &next)?.as_ref()),
            Self::In(segment) => return read_segment(ctx, segment, from, bound, limits, buffers),
        };
        Ok(Found::Chunk(chunk))
    }
}

/// What a read of a place comes to.
enum Found {
    Chunk(Chunk),
    /// The segment's file is not there. The chunk is right if the list still names it.
    Gone(Chunk),
}

impl Found {
    fn chunk(self) -> Chunk {
        match self {
            Self::Chunk(chunk) | Self::Gone(chunk) => chunk,
        }
    }
}

/// The chunk that says that nothing is in front of `next`: whether the writer skipped it or somebody lost it, its first batch says.
fn hole(next: &SegmentInfo, from: Seq, bound: Seq, first: Option<&BatchHeader>) -> Chunk {
    let to = next.first_seq.min(bound);
    let lost = || vec![Gap { from, to, reason: GapReason::Lost }];
    gaps_in_front(next, first.map_or_else(lost, |header| gaps_before(header, from, to)))
}

fn gaps_in_front(next: &SegmentInfo, gaps: Vec<Gap>) -> Chunk {
    let to = gaps.last().map_or(next.first_seq, |gap| gap.to);
    let hint = Position { segment: next.id, offset: SEGMENT_HEADER_BYTES as u64 };
    Chunk {
        items: gaps.into_iter().map(Item::Gap).collect(),
        next: to,
        next_hint: (to == next.first_seq).then_some(hint),
    }
}

/// The header of a segment's first batch, if it can be read.
fn first_header(ctx: &StoreContext, next: &SegmentInfo) -> Result<Option<BatchHeader>, ReadError> {
    let path = segment_path(&ctx.dir, next.id);
    let fail = |source| ReadError::Disk { segment: next.id, source };
    let held = match ctx.files.open(&*ctx.disk, &path, OpenMode::Read) {
        Ok(held) => held,
        Err(error) if error.class() == ErrorClass::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut bytes = [0; wal_format::BATCH_HEADER_BYTES];
    let got = held.file().read_at(&mut bytes, SEGMENT_HEADER_BYTES as u64).map_err(fail)?;
    ctx.files.check_in(&path, held);
    Ok(header_at(&ctx.identity, bytes.get(..got).unwrap_or_default()))
}

/// The batch header at the front of `bytes`, as it is or with one flipped bit mended.
pub(crate) fn header_at(identity: &StreamIdentity, bytes: &[u8]) -> Option<BatchHeader> {
    BatchHeader::decode(bytes, identity).ok().or_else(|| BatchHeader::repair(bytes, identity))
}

/// Why seqs from `from` up to `to`, at most this batch's first, are not there: what its writer skipped was never to be stored, what lies
/// in front of that is lost.
pub(crate) fn gaps_before(header: &BatchHeader, from: Seq, to: Seq) -> Vec<Gap> {
    let is_skipped = header.flags.contains(BatchFlags::SKIPPED);
    let skipped = if is_skipped { Seq::new(header.prev_seq.saturating_add(1)).clamp(from, to) } else { to };
    let gaps = [
        Gap { from, to: skipped, reason: GapReason::Lost },
        Gap { from: skipped, to, reason: GapReason::NotDurable },
    ];
    gaps.into_iter().filter(|gap| gap.from < gap.to).collect()
}

fn read_segment(
    ctx: &StoreContext,
    segment: SegmentInfo,
    from: ReadFrom,
    bound: Seq,
    limits: ReadLimits,
    buffers: &mut ReadBuffers,
) -> Result<Found, ReadError> {
    read_file(ctx, &segment_path(&ctx.dir, segment.id), segment, from, bound, limits, buffers)
}

fn read_file(
    ctx: &StoreContext,
    path: &Path,
    segment: SegmentInfo,
    from: ReadFrom,
    bound: Seq,
    limits: ReadLimits,
    buffers: &mut ReadBuffers,
) -> Result<Found, ReadError> {
    let end = segment.end_seq.min(bound);
    let held = match ctx.files.open(&*ctx.disk, path, OpenMode::Read) {
        Ok(held) => held,
        Err(error) if error.class() == ErrorClass::NotFound => {
            let gap = Gap { from: from.seq, to: end, reason: GapReason::Lost };
            return Ok(Found::Gone(Chunk { items: vec![Item::Gap(gap)], next: end, next_hint: None }));
        }
        Err(source) => return Err(ReadError::Disk { segment: segment.id, source }),
    };
    let chunk =
        Reading::new(ctx.identity, segment, held.file(), from.seq, end).run(from.hint, limits, buffers)?;
    // Only after success: a descriptor that failed is closed, the next read opens a new one.
    ctx.files.check_in(path, held);
    Ok(Found::Chunk(chunk))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
