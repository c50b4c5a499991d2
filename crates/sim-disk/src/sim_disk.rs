//! The simulated disk as a [`Disk`]: what one process sees of the machine.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{
    DirEntry, Disk, DiskError, EntryKind, File, FileId, FileStat, FileSystem, Lock, Op, OpenMode, Space,
    SyncSite,
};

use crate::SimDisk;
use crate::errno::{ELOOP, EMFILE, ENOENT};
use crate::fault::{Call, Effect, Moment};
use crate::pages::PAGE_BYTES;
use crate::sim_file::SimFile;
use crate::tree::{Errno, Ino, Node, Tree};
use crate::world::{Entered, Machine, Process, World};

/// Said to be there when no capacity was set.
const UNLIMITED_BYTES: u64 = 1 << 40;

impl SimDisk {
    fn enter<'a>(&'a self, call: Call<'_>) -> Result<Entered<'a>, DiskError> {
        self.machine.enter(self.process, call)
    }

    /// A call that changes names.
    fn change(
        &self,
        call: Call<'_>,
        change: impl FnOnce(&mut Tree, u64) -> Result<(), Errno>,
    ) -> Result<(), DiskError> {
        let mut entered = self.enter(call)?;
        entered.world.check_writable(&call)?;
        let order = entered.world.next_order();
        change(&mut entered.world.tree, order).map_err(|errno| call.error(errno))?;
        entered.done(call, ())
    }

    fn handle(
        &self,
        mut entered: Entered<'_>,
        call: Call<'_>,
        ino: Ino,
        mode: OpenMode,
    ) -> Result<Arc<dyn File>, DiskError> {
        entered.world.opened(ino).map_err(|errno| call.error(errno))?;
        let file = SimFile::new(&self.machine, self.process, ino, call.path, mode);
        if let Err(error) = entered.done(call, ()) {
            // Its drop takes the machine's lock, which `done` has given back.
            drop(file);
            return Err(error);
        }
        Ok(Arc::new(file))
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        let call = call(Op::Create, path);
        let mut entered = self.enter(call)?;
        let world = &mut *entered.world;
        world.check_writable(&call)?;
        world.check_handles().map_err(|errno| call.error(errno))?;
        if world.free_pages() == 0 {
            return Err(call.error(world.no_space()));
        }
        let order = world.next_order();
        let ino = world.tree.create_file(path, order).map_err(|errno| call.error(errno))?;
        self.handle(entered, call, ino, OpenMode::ReadWrite)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        let call = call(Op::Open, path);
        let entered = self.enter(call)?;
        if mode == OpenMode::ReadWrite {
            entered.world.check_writable(&call)?;
        }
        entered.world.check_handles().map_err(|errno| call.error(errno))?;
        let tree = &entered.world.tree;
        tree.parent(path).map_err(|errno| call.error(errno))?;
        let ino = tree.resolve(path).map_err(|errno| call.error(errno))?;
        if mode == OpenMode::ReadWrite && tree.file(ino).is_ok_and(|file| file.link_count > 1) {
            return Err(call.error(ELOOP));
        }
        self.handle(entered, call, ino, mode)
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.change(call(Op::CreateDir, path), |tree, order| tree.create_dir(path, order))
    }

    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        let call = Call { site: Some(site), ..call(Op::SyncDir, path) };
        let mut entered = self.enter(call)?;
        let is_halted_midway = matches!(entered.effect, Some(Effect::Halt(Moment::Middle)));
        let world = &mut *entered.world;
        let dir = world.tree.resolve(path).map_err(|errno| call.error(errno))?;
        world.tree.dir(dir).map_err(|errno| call.error(errno))?;
        if !world.ignored.contains(&site) && !is_halted_midway {
            world.tree.sync_dir(dir);
        }
        entered.done(call, ())
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.change(call(Op::Link, from), |tree, order| tree.link(from, to, order))
            .map_err(|error| name_target(error, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.change(call(Op::Rename, from), |tree, order| tree.rename(from, to, order))
            .map_err(|error| name_target(error, to))
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.change(call(Op::Replace, from), |tree, order| tree.replace(from, to, order))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.change(call(Op::RemoveFile, path), |tree, order| tree.remove_file(path, order))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.change(call(Op::RemoveDir, path), |tree, order| tree.remove_dir(path, order))
    }

    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        let call = call(Op::List, path);
        let entered = self.enter(call)?;
        let tree = &entered.world.tree;
        let dir = tree.resolve(path).and_then(|ino| tree.dir(ino)).map_err(|errno| call.error(errno))?;
        let entries: Vec<_> =
            dir.cache.iter().map(|(name, ino)| (name.clone(), kind_of(tree.nodes.get(ino)))).collect();
        // The visitor may use the disk: not under the machine's lock.
        entered.done(call, ())?;
        for (name, kind) in &entries {
            if visit(DirEntry { name, kind: *kind }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        let call = call(Op::Lock, path);
        let mut entered = self.enter(call)?;
        let world = &mut *entered.world;
        let (dir, _) = world.tree.parent(path).map_err(|errno| call.error(errno))?;
        if world.locks.contains_key(&dir) {
            let held = std::io::Error::new(std::io::ErrorKind::ResourceBusy, "another owner holds it");
            return Err(DiskError::new(call.op, path, held));
        }
        let ino = match world.tree.resolve(path) {
            Ok(ino) => ino,
            Err(ENOENT) => {
                world.check_writable(&call)?;
                let order = world.next_order();
                world.tree.create_file(path, order).map_err(|errno| call.error(errno))?
            }
            Err(errno) => return Err(call.error(errno)),
        };
        world.locks.insert(dir, self.process);
        let lock = SimLock {
            machine: Arc::clone(&self.machine),
            process: self.process,
            dir,
            ino,
            path: path.to_owned(),
        };
        entered.done(call, Box::new(lock) as Box<dyn Lock>)
    }

    fn space(&self) -> Result<Space, DiskError> {
        let call = call(Op::Space, Path::new(""));
        let entered = self.enter(call)?;
        let world = &entered.world;
        let total_bytes = world.limits.space().map_or(UNLIMITED_BYTES, |(bytes, _)| bytes);
        let available_bytes = total_bytes.min(world.free_pages().saturating_mul(PAGE_BYTES));
        entered.done(call, Space { total_bytes, available_bytes, available_files: u64::MAX })
    }

    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        let call = call(Op::Stat, path);
        let entered = self.enter(call)?;
        let tree = &entered.world.tree;
        let inode = tree.resolve(path).map_err(|errno| call.error(errno))?;
        let (len, link_count) = tree.file(inode).map_or((0, 2), |file| (file.cache_len, file.link_count));
        let kind = kind_of(tree.nodes.get(&inode));
        entered.done(call, FileStat { kind, len, link_count, id: FileId { device: 1, inode } })
    }

    fn file_system(&self) -> Result<FileSystem, DiskError> {
        let call = call(Op::FileSystem, Path::new(""));
        self.enter(call)?.done(call, FileSystem::Simulated)
    }
}

impl World {
    fn check_handles(&self) -> Result<(), Errno> {
        match self.limits.open_files {
            Some(limit) if self.counters.open_files >= limit => Err(EMFILE),
            _ => Ok(()),
        }
    }

    /// Counts a new handle.
    fn opened(&mut self, ino: Ino) -> Result<(), Errno> {
        self.tree.file_mut(ino)?.handle_count += 1;
        self.counters.open_files += 1;
        self.counters.open_files_peak = self.counters.open_files_peak.max(self.counters.open_files);
        Ok(())
    }
}

/// A held lock; it covers the directory, as the real one does.
#[derive(Debug)]
struct SimLock {
    machine: Arc<Machine>,
    process: Process,
    dir: Ino,
    ino: Ino,
    path: PathBuf,
}

impl Lock for SimLock {
    fn verify(&self) -> Result<(), DiskError> {
        let world = self.machine.lock();
        let call = call(Op::Lock, &self.path);
        let named = world.tree.resolve(&self.path).map_err(|errno| call.error(errno))?;
        if named == self.ino && self.process == world.process { Ok(()) } else { Err(call.error(ENOENT)) }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut world = self.machine.lock();
        if world.locks.get(&self.dir) == Some(&self.process) && world.process == self.process {
            world.locks.remove(&self.dir);
        }
    }
}

fn call(op: Op, path: &Path) -> Call<'_> {
    Call { op, path, site: None }
}

/// A taken name is the target's fault.
fn name_target(error: DiskError, to: &Path) -> DiskError {
    if error.class() == disk::ErrorClass::Exists {
        let errno = error.io_error().raw_os_error().unwrap_or_default();
        DiskError::new(error.op(), to, std::io::Error::from_raw_os_error(errno))
    } else {
        error
    }
}

fn kind_of(node: Option<&Node>) -> EntryKind {
    match node {
        Some(Node::Dir(_)) => EntryKind::Dir,
        _ => EntryKind::File,
    }
}
