//! A segment file read by itself, wherever it stands: from its first batch to its last, without the chain around it.
//!
//! For files in quarantine. What comes out may be in the stream too, or be void there: nothing here knows.

use std::path::{Path, PathBuf};

use wal_format::{SEGMENT_HEADER_BYTES, SegmentId, Seq};

use super::{Chunk, Found, ReadBuffers, ReadError, ReadFrom, ReadLimits, read_file};
use crate::recover::collect::with_file;
use crate::recover::sweep::{Reach, ScanFailure, scan};
use crate::{RecoverError, SegmentInfo, SegmentState, StoreContext};

/// A segment file by itself.
#[derive(Debug, Clone)]
pub struct LoneSegment {
    path: PathBuf,
    info: SegmentInfo,
}

impl LoneSegment {
    /// Looks through a file for batches of the context's stream; `None` if there are none, or no such file.
    ///
    /// # Errors
    /// The disk, or a newer program's file.
    pub fn look(ctx: &StoreContext, path: &Path, id: SegmentId) -> Result<Option<Self>, RecoverError> {
        let start = SEGMENT_HEADER_BYTES as u64;
        let looked = with_file(ctx, path, |file| {
            let end = file.len()?;
            Ok((scan(file, &ctx.identity, start, Reach::to(end))?, end))
        });
        let runs = match looked {
            Ok(runs) => runs,
            Err(ScanFailure::Disk(source)) => return Err(source.into()),
            Err(ScanFailure::Newer(offset, source)) => {
                return Err(RecoverError::NewerFormat { path: path.to_owned(), offset, source });
            }
        };
        let Some((runs, end_offset)) = runs else { return Ok(None) };
        let (first, end) = (runs.first().map(|run| run.first), runs.iter().map(|run| run.end_seq).max());
        let (Some(first_seq), Some(end_seq)) = (first, end) else { return Ok(None) };
        let info = SegmentInfo { id, first_seq, end_seq, end_offset, state: SegmentState::Rotated };
        Ok(Some(Self { path: path.to_owned(), info }))
    }

    /// The first seq in it, and the one behind the last.
    pub fn seqs(&self) -> (Seq, Seq) {
        (self.info.first_seq, self.info.end_seq)
    }

    /// As [`Log::read`](crate::Log::read), over this file.
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
        let bound = bound.min(self.info.end_seq);
        if from.seq >= bound {
            return Ok(Chunk::empty(from.seq, None));
        }
        read_file(ctx, &self.path, self.info, from, bound, limits, buffers).map(Found::chunk)
    }
}
