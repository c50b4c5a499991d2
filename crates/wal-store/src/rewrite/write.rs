//! Writing one copy, durably, and reading it back before anybody relies on it.

use std::io::IoSlice;

use disk::{Advice, DiskError, ErrorClass, File, OpenMode, SyncSite};
use wal_format::{SEGMENT_HEADER_BYTES, SegmentHeader};

use super::copy::{Copier, Piece};
use super::{Rewrite, RewriteError, RewriteKind};
use crate::recover::sweep::{Reach, ScanFailure, scan};
use crate::{StoreContext, segment_path};

/// Syncs of a copy.
const COPY_SITE: SyncSite = SyncSite::new("repair.copy");
/// How much is copied or compared at a time, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

impl Rewrite {
    /// Writes the copy into an empty file, makes it durable, reads it back from the medium and compares.
    ///
    /// # Errors
    /// The copy is no good; remove it.
    pub fn write(&self, ctx: &StoreContext, to: &dyn File) -> Result<(), RewriteError> {
        let original = ctx.disk.open(&segment_path(&ctx.dir, self.segment), OpenMode::Read)?;
        match self.kind {
            RewriteKind::Mend => {
                let copier = Copier::new(&*original, &ctx.identity, self.seqs);
                copier.write(&self.header, &self.pieces, to)?;
            }
            RewriteKind::Follow => {
                to.write_all_at(&[IoSlice::new(&self.header.encode())], 0)?;
                raw(&*original, to, SEGMENT_HEADER_BYTES as u64, self.bytes_after)?;
            }
            RewriteKind::Cut => raw(&*original, to, 0, self.bytes_after)?,
        }
        to.sync_data(COPY_SITE)?;
        match to.advise(Advice::DropCache, 0..to.len()?) {
            Err(error) if error.class() != ErrorClass::Unsupported => return Err(error.into()),
            _ => {}
        }
        if to.len()? == self.bytes_after && self.is_as_planned(ctx, &*original, to)? {
            Ok(())
        } else {
            Err(RewriteError::NotAsWritten { segment: self.segment })
        }
    }

    fn is_as_planned(
        &self,
        ctx: &StoreContext,
        original: &dyn File,
        copy: &dyn File,
    ) -> Result<bool, DiskError> {
        let behind_header = SEGMENT_HEADER_BYTES as u64;
        match self.kind {
            RewriteKind::Cut => is_same(original, copy, 0, self.bytes_after),
            RewriteKind::Follow => {
                Ok(self.has_header(copy)? && is_same(original, copy, behind_header, self.bytes_after)?)
            }
            RewriteKind::Mend => {
                let runs = match scan(copy, &ctx.identity, behind_header, Reach::to(self.bytes_after)) {
                    Ok(runs) => runs,
                    Err(ScanFailure::Disk(error)) => return Err(error),
                    Err(ScanFailure::Newer(..)) => return Ok(false),
                };
                let mut at = behind_header;
                for run in &runs {
                    if run.start != at || !run.is_sound() || !run.blemishes.is_empty() {
                        return Ok(false);
                    }
                    at = run.end;
                }
                let whole = Piece { start: behind_header, end: at, is_sound: true };
                let again = Copier::new(copy, &ctx.identity, self.seqs).measure(&[whole])?;
                let all = (again.end, again.records_count) == (self.bytes_after, self.records_count);
                Ok(at == self.bytes_after && all && self.has_header(copy)?)
            }
        }
    }

    fn has_header(&self, copy: &dyn File) -> Result<bool, DiskError> {
        let mut header = [0; SEGMENT_HEADER_BYTES];
        copy.read_at(&mut header, 0)?;
        Ok(SegmentHeader::decode(&header) == Ok(self.header))
    }
}

/// Copies `[from, end)` to the same place in another file.
fn raw(original: &dyn File, to: &dyn File, from: u64, end: u64) -> Result<(), DiskError> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = from;
    while at < end {
        let bytes = read_block(original, &mut block, at, end)?;
        if bytes.is_empty() {
            return Ok(());
        }
        to.write_all_at(&[IoSlice::new(bytes)], at)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

fn is_same(one: &dyn File, other: &dyn File, from: u64, end: u64) -> Result<bool, DiskError> {
    let (mut left, mut right) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    let mut at = from;
    while at < end {
        let (left, right) = (read_block(one, &mut left, at, end)?, read_block(other, &mut right, at, end)?);
        if left != right || left.is_empty() {
            return Ok(false);
        }
        at += left.len() as u64;
    }
    Ok(true)
}

fn read_block<'a>(file: &dyn File, block: &'a mut [u8], at: u64, end: u64) -> Result<&'a [u8], DiskError> {
    let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
    let block = block.get_mut(..want).unwrap_or_default();
    let got = file.read_at(block, at)?;
    Ok(block.get(..got).unwrap_or_default())
}
