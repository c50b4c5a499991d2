//! An open file of the simulated disk.

use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use disk::{Advice, Cached, DiskError, File, Op, OpenMode, SyncSite};

use crate::errno::{EBADF, EFBIG, EINVAL, EOPNOTSUPP};
use crate::fault::{Call, Effect, Moment};
use crate::pages::PAGE_BYTES;
use crate::power::mix;
use crate::tree::{Errno, Ino};
use crate::world::{Entered, Machine, Process, World};

/// No file is longer, as on a real file system.
const FILE_BYTES_MAX: u64 = 1 << 44;

#[derive(Debug)]
pub(crate) struct SimFile {
    machine: Arc<Machine>,
    process: Process,
    ino: Ino,
    path: PathBuf,
    mode: OpenMode,
    is_mapped: AtomicBool,
}

impl SimFile {
    /// A handle; the caller has counted it.
    pub(crate) fn new(
        machine: &Arc<Machine>,
        process: Process,
        ino: Ino,
        path: &Path,
        mode: OpenMode,
    ) -> Self {
        let path = path.to_owned();
        Self { machine: Arc::clone(machine), process, ino, path, mode, is_mapped: AtomicBool::new(false) }
    }

    fn call(&self, op: Op) -> Call<'_> {
        Call { op, path: &self.path, site: None }
    }

    fn enter(&self, call: Call<'_>) -> Result<Entered<'_>, DiskError> {
        self.machine.enter(self.process, call)
    }

    fn refuse_unless_writable(&self, world: &World, call: &Call<'_>) -> Result<(), DiskError> {
        if self.mode == OpenMode::Read {
            let errno = if call.op == Op::SetLen { EINVAL } else { EBADF };
            return Err(call.error(errno));
        }
        if self.is_mapped.load(Ordering::Relaxed) {
            return Err(call.error(EOPNOTSUPP));
        }
        world.check_writable(call)
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        let call = self.call(Op::Read);
        let mut entered = self.enter(call).map_err(|error| error.at_offset(offset))?;
        let world = &mut *entered.world;
        let n = world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?.read(buf, offset);
        world.counters.bytes_read += n as u64;
        world.trace(offset);
        entered.done(call, n)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        let call = self.call(Op::Write);
        let mut entered = self.enter(call).map_err(|error| error.at_offset(offset))?;
        self.refuse_unless_writable(&entered.world, &call)?;
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let len = bytes.len() as u64;
        let (allowed, planned) = match entered.effect {
            Some(Effect::Error { errno, after_bytes }) => (after_bytes.min(len), Some(errno)),
            Some(Effect::Halt(Moment::Middle)) => (len / 2, None),
            _ => (len, None),
        };
        let world = &mut *entered.world;
        if let Some(Effect::Short { .. }) = entered.effect {
            // The rest goes out by a second system call, at once.
            *world.counters.by_op.entry(Op::Write).or_default() += 1;
        }
        let (fits, limit) = world.room_for(self.ino, offset, allowed).map_err(|errno| call.error(errno))?;
        let written = bytes.get(..usize::try_from(fits).unwrap_or(usize::MAX)).unwrap_or(&bytes);
        let order = world.next_order();
        world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?.write(written, offset, order);
        world.counters.bytes_written += written.len() as u64;
        world.trace(offset ^ mix(len));
        match limit.or(planned) {
            Some(errno) => Err(call.error(errno).at_offset(offset + fits)),
            None => entered.done(call, ()),
        }
    }

    fn sync_data(&self, site: SyncSite) -> Result<(), DiskError> {
        let call = Call { site: Some(site), ..self.call(Op::SyncData) };
        // What was written before the call is what it must cover, however long a gate holds it.
        let covered = {
            let world = self.machine.lock();
            world
                .tree
                .file(self.ino)
                .map(|file| file.sync_set(world.order))
                .map_err(|errno| call.error(errno))?
        };
        let mut entered = self.enter(call)?;
        let world = &mut *entered.world;
        if world.ignored.contains(&site) || matches!(entered.effect, Some(Effect::Halt(Moment::Middle))) {
            return entered.done(call, ());
        }
        let seed = world.seed;
        let order = world.next_order();
        let file = world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?;
        if let Some(Effect::Error { errno, .. }) = entered.effect {
            file.sync_failed(&covered, |sector| {
                seed != 0 && mix(seed ^ mix(order) ^ sector).is_multiple_of(4)
            });
            return Err(call.error(errno));
        }
        file.synced(&covered);
        entered.done(call, ())
    }

    fn len(&self) -> Result<u64, DiskError> {
        let call = self.call(Op::Len);
        let entered = self.enter(call)?;
        let len = entered.world.tree.file(self.ino).map_err(|errno| call.error(errno))?.cache_len;
        entered.done(call, len)
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let call = self.call(Op::SetLen);
        let mut entered = self.enter(call)?;
        self.refuse_unless_writable(&entered.world, &call)?;
        let world = &mut *entered.world;
        if len > world.file_bytes_max() {
            return Err(call.error(if i64::try_from(len).is_err() { EINVAL } else { EFBIG }));
        }
        let order = world.next_order();
        world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?.set_len(len, order);
        entered.done(call, ())
    }

    fn allocate(&self, range: Range<u64>) -> Result<(), DiskError> {
        let call = self.call(Op::Allocate);
        let mut entered = self.enter(call)?;
        self.refuse_unless_writable(&entered.world, &call)?;
        if range.is_empty() {
            return entered.done(call, ());
        }
        let world = &mut *entered.world;
        let len = range.end - range.start;
        match world.room_for(self.ino, range.start, len).map_err(|errno| call.error(errno))? {
            (_, Some(errno)) => Err(call.error(errno).at_offset(range.start)),
            (_, None) => {
                let order = world.next_order();
                let file = world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?;
                file.allocate(range.start, range.end, order);
                entered.done(call, ())
            }
        }
    }

    fn advise(&self, advice: Advice, range: Range<u64>) -> Result<(), DiskError> {
        let call = self.call(Op::Advise);
        let mut entered = self.enter(call)?;
        if advice == Advice::DropCache {
            let file = entered.world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?;
            file.drop_cache(range.start, range.end);
        }
        entered.done(call, ())
    }

    fn cached(&self, range: Range<u64>) -> Result<Cached, DiskError> {
        let call = self.call(Op::Advise);
        let entered = self.enter(call)?;
        let file = entered.world.tree.file(self.ino).map_err(|errno| call.error(errno))?;
        let cached = if file.is_cached(range.start, range.end) { Cached::Some } else { Cached::None };
        entered.done(call, cached)
    }

    fn map(&self, len: u64) -> Result<Option<Bytes>, DiskError> {
        let call = self.call(Op::Map);
        let mut entered = self.enter(call)?;
        if len == 0 {
            return entered.done(call, None);
        }
        self.is_mapped.store(true, Ordering::Relaxed);
        let file = entered.world.tree.file_mut(self.ino).map_err(|errno| call.error(errno))?;
        if len > file.cache_len {
            return Err(call.error(EINVAL).at_offset(len));
        }
        // A copy: a mapped file does not change any more.
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| call.error(EFBIG))?];
        file.read(&mut bytes, 0);
        entered.done(call, Some(Bytes::from(bytes)))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut world = self.machine.lock();
        if self.process == world.process {
            world.counters.open_files -= 1;
            if let Ok(file) = world.tree.file_mut(self.ino) {
                file.handle_count -= 1;
            }
        }
    }
}

impl World {
    fn file_bytes_max(&self) -> u64 {
        self.limits.file_bytes_max.unwrap_or(FILE_BYTES_MAX).min(FILE_BYTES_MAX)
    }

    /// How many of `len` bytes at `offset` there is room for, and the error if that is not all.
    fn room_for(&self, ino: Ino, offset: u64, len: u64) -> Result<(u64, Option<Errno>), Errno> {
        let end = offset.checked_add(len).ok_or(EINVAL)?;
        if i64::try_from(end).is_err() {
            return Err(EINVAL);
        }
        if end > self.file_bytes_max() {
            return Err(EFBIG);
        }
        let mut free = self.free_pages();
        if free == u64::MAX || len == 0 {
            return Ok((len, None));
        }
        let file = self.tree.file(ino)?;
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            if file.cache.has_page(page) {
                continue;
            }
            if free == 0 {
                return Ok(((page * PAGE_BYTES).saturating_sub(offset), Some(self.no_space())));
            }
            free -= 1;
        }
        Ok((len, None))
    }
}
