//! An open regular file of the real disk.

use std::io::{IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rustix::fs::{self, FallocateFlags};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::{map, rw, size_limit};
use crate::{Advice, Cached, DiskError, File, Op, SyncSite};

/// The step in which the page cache is looked at.
const PAGE_BYTES: u64 = 4096;
/// How often one page may be found in the cache, and dropped, before nothing more is tried.
const HITS_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct OsFile {
    fd: OwnedFd,
    path: Arc<Path>,
    /// Set once this handle was mapped: the bytes must not change any more.
    is_mapped: AtomicBool,
}

impl OsFile {
    pub(super) fn new(fd: OwnedFd, path: &Path) -> Self {
        Self { fd, path: Arc::from(path), is_mapped: AtomicBool::new(false) }
    }

    fn error(&self, op: Op, errno: Errno) -> DiskError {
        DiskError::new(op, &self.path, errno.into())
    }

    fn any_page_kept(&self, range: Range<u64>) -> rustix::io::Result<Cached> {
        let mut at = range.start;
        let mut hit_count = 0;
        while at < range.end {
            // A read that must not wait answers AGAIN where it would have to ask the device.
            let mut byte = [0];
            let buf = &mut [IoSliceMut::new(&mut byte)];
            match rustix::io::preadv2(&self.fd, buf, at, ReadWriteFlags::NOWAIT) {
                // Or the device was so fast that this very question brought the page in: drop it and ask again. A
                // page that somebody holds stays.
                Ok(_) if hit_count < HITS_MAX => {
                    hit_count += 1;
                    let page = at / PAGE_BYTES * PAGE_BYTES;
                    fs::fadvise(&self.fd, page, NonZeroU64::new(PAGE_BYTES), fs::Advice::DontNeed)?;
                    continue;
                }
                // Kept, or a device that always wins the race: nothing is proven.
                Ok(_) => return Ok(Cached::Unknown),
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(Cached::Unknown),
                Err(errno) => return Err(errno),
            }
            hit_count = 0;
            at = (at / PAGE_BYTES + 1).saturating_mul(PAGE_BYTES);
        }
        Ok(Cached::None)
    }

    fn refuse_if_mapped(&self, op: Op) -> Result<(), DiskError> {
        if self.is_mapped.load(Ordering::Relaxed) { Err(self.error(op, Errno::OPNOTSUPP)) } else { Ok(()) }
    }
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        rw::read_full(buf, offset, |rest, at| rustix::io::pread(&self.fd, rest, at))
            .map_err(|errno| self.error(Op::Read, errno).at_offset(offset))
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        self.refuse_if_mapped(Op::Write)?;
        let bytes = bufs.iter().fold(0_u64, |sum, buf| sum.saturating_add(buf.len() as u64));
        size_limit::allows(offset.saturating_add(bytes))
            .map_err(|errno| self.error(Op::Write, errno).at_offset(offset))?;
        let write = |rest: &[IoSlice<'_>], at: u64| {
            if at > offset {
                // The write before was cut short, by a limit perhaps: one that begins at it meets the signal.
                size_limit::allows_anew(at.saturating_add(1))?;
            }
            rustix::io::pwritev(&self.fd, rest, at)
        };
        rw::write_full(bufs, offset, write).map_err(|(errno, at)| self.error(Op::Write, errno).at_offset(at))
    }

    fn sync_data(&self, site: SyncSite) -> Result<(), DiskError> {
        // An interruption comes before any write-back error was taken from the file, so repeating hides nothing.
        retry_on_intr(|| fs::fdatasync(&self.fd))
            .map_err(|errno| self.error(Op::SyncData, errno).at_site(site))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let stat = fs::fstat(&self.fd).map_err(|errno| self.error(Op::Len, errno))?;
        u64::try_from(stat.st_size).map_err(|_| self.error(Op::Len, Errno::OVERFLOW))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.refuse_if_mapped(Op::SetLen)?;
        size_limit::allows(len).map_err(|errno| self.error(Op::SetLen, errno).at_offset(len))?;
        retry_on_intr(|| fs::ftruncate(&self.fd, len))
            .map_err(|errno| self.error(Op::SetLen, errno).at_offset(len))
    }

    fn allocate(&self, range: Range<u64>) -> Result<(), DiskError> {
        let len = range.end.saturating_sub(range.start);
        if len == 0 {
            return Ok(());
        }
        size_limit::allows(range.end)
            .map_err(|errno| self.error(Op::Allocate, errno).at_offset(range.start))?;
        retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), range.start, len))
            .map_err(|errno| self.error(Op::Allocate, errno).at_offset(range.start))
    }

    fn advise(&self, advice: Advice, range: Range<u64>) -> Result<(), DiskError> {
        if range.is_empty() {
            return Ok(());
        }
        // To the file's end as the kernel means it: else it keeps a last page that the range covers only in part.
        let len = if range.end >= self.len()? { None } else { NonZeroU64::new(range.end - range.start) };
        let advice = match advice {
            Advice::DropCache => fs::Advice::DontNeed,
            Advice::Sequential => fs::Advice::Sequential,
        };
        fs::fadvise(&self.fd, range.start, len, advice)
            .map_err(|errno| self.error(Op::Advise, errno).at_offset(range.start))
    }

    fn cached(&self, range: Range<u64>) -> Result<Cached, DiskError> {
        let end = range.end.min(self.len()?);
        // The question makes the kernel read the page it is about; it must not read ahead into the next questions.
        let advise =
            |advice| fs::fadvise(&self.fd, 0, None, advice).map_err(|errno| self.error(Op::Advise, errno));
        advise(fs::Advice::Random)?;
        let cached = self.any_page_kept(range.start..end);
        advise(fs::Advice::Normal)?;
        cached.map_err(|errno| self.error(Op::Advise, errno))
    }

    fn map(&self, len: u64) -> Result<Option<Bytes>, DiskError> {
        if len == 0 {
            return Ok(None);
        }
        // Set before the length is read: from here on this handle cannot shorten the file.
        self.is_mapped.store(true, Ordering::SeqCst);
        if self.len()? < len {
            return Err(self.error(Op::Map, Errno::INVAL).at_offset(len));
        }
        let len = usize::try_from(len).map_err(|_| self.error(Op::Map, Errno::NOMEM))?;
        map::map(&self.fd, len).map(Some).map_err(|error| DiskError::new(Op::Map, &self.path, error))
    }
}
