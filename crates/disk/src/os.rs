//! The real disk: everything relative to one held directory handle, by system calls through rustix.
//!
//! It is not portable: Linux is what it is written for and tested on. It caches nothing and starts no thread.
//!
//! ```text
//!   root (held descriptor)
//!     ├─ open, create: one openat2 beneath the root, no symbolic link anywhere on the way
//!     └─ names (link, rename, remove, stat): the parent by the same openat2, then one …at call on the bare name
//! ```
//!
//! Invariants: no absolute path is used after the root was opened, so moving the queue's directory while it is open
//! is harmless; every descriptor is close-on-exec; an interrupted call is repeated, never reported.

mod file;
mod lock;
mod map;
mod resolve;
mod rw;
mod size_limit;

use std::ffi::OsStr;
use std::fs::{DirBuilder, File as StdFile};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use self::file::OsFile;
use self::resolve::Root;
use crate::{
    DirEntry, Disk, DiskError, EntryKind, File, FileId, FileStat, FileSystem, Lock, Op, OpenMode, Space,
    SyncSite,
};

/// Bytes of the buffer on the stack through which a directory is listed.
const LIST_BUFFER_BYTES: usize = 8192;

const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const DIR_MODE: Mode = Mode::RWXU;

/// A directory of the real file system.
#[derive(Debug)]
pub struct OsDisk {
    root: Root,
    path: PathBuf,
}

impl OsDisk {
    /// Opens an existing directory as a disk's root. The root itself may be named through symbolic links.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind` if it is not a directory, `ReadOnly` without permission, `RetryLater`.
    pub fn open(root: &Path) -> Result<Self, DiskError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = retry_on_intr(|| fs::open(root, flags, Mode::empty()))
            .map_err(|errno| DiskError::new(Op::Open, root, errno.into()))?;
        Ok(Self { root: Root::new(handle), path: root.to_owned() })
    }

    /// Creates the directory, with its parents, where they are missing, makes their names durable, and opens it.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `NoSpace`. On error some parents may exist.
    pub fn create(root: &Path) -> Result<Self, DiskError> {
        let fail = |error| DiskError::new(Op::CreateDir, root, error);
        let missing: Vec<&Path> =
            root.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(fail)?;
        for dir in missing {
            let parent = match dir.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            StdFile::open(parent).and_then(|handle| handle.sync_all()).map_err(fail)?;
        }
        Self::open(root)
    }

    /// The path the disk was opened with, for messages.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Opens a directory for reading its entries or syncing them.
    fn open_dir(&self, op: Op, path: &Path) -> Result<OwnedFd, DiskError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        self.root.open(path, flags, Mode::empty()).map_err(|errno| DiskError::new(op, path, errno.into()))
    }

    /// Opens a file and refuses what is not regular, and for writing what has other names: it may be somebody's own file,
    /// linked here.
    fn open_file(&self, op: Op, path: &Path, flags: OFlags) -> Result<Arc<dyn File>, DiskError> {
        let fail = |errno: Errno| DiskError::new(op, path, errno.into());
        resolve::name_of(path).map_err(fail)?;
        // Without NONBLOCK, opening a pipe that somebody put here would wait for its other end.
        let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
        if flags.contains(OFlags::RDWR) {
            size_limit::look_again();
        }
        let fd = self.root.open(path, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode).map_err(fail)?;
        let stat = fs::fstat(&fd).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if flags.contains(OFlags::RDWR) && stat.st_nlink > 1 => {
                Err(fail(Errno::LOOP))
            }
            FileType::RegularFile => Ok(Arc::new(OsFile::new(fd, path))),
            FileType::Directory => Err(fail(Errno::ISDIR)),
            _ => Err(fail(Errno::LOOP)),
        }
    }

    /// Runs a call on (parent directory, bare name).
    fn at_parent<T>(
        &self,
        op: Op,
        path: &Path,
        call: impl Fn(rustix::fd::BorrowedFd<'_>, &OsStr) -> rustix::io::Result<T>,
    ) -> Result<T, DiskError> {
        self.root
            .with_parent(path, |dir, name| retry_on_intr(|| call(dir, name)))
            .map_err(|errno| DiskError::new(op, path, errno.into()))
    }
}

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        self.open_file(Op::Create, path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::ReadWrite => OFlags::RDWR,
        };
        self.open_file(Op::Open, path, flags)
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.at_parent(Op::CreateDir, path, |dir, name| fs::mkdirat(dir, name, DIR_MODE))
    }

    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        let dir = self.open_dir(Op::SyncDir, path).map_err(|error| error.at_site(site))?;
        retry_on_intr(|| fs::fsync(&dir))
            .map_err(|errno| DiskError::new(Op::SyncDir, path, errno.into()).at_site(site))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.two_names(Op::Link, from, to, |from_dir, from_name, to_dir, to_name| {
            // A link to a symbolic link would be one.
            let stat = fs::statat(from_dir, from_name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(Errno::LOOP);
            }
            fs::linkat(from_dir, from_name, to_dir, to_name, AtFlags::empty()).map_err(|errno| match errno {
                // What the kernel says where the file system has no hard links.
                Errno::PERM => Errno::OPNOTSUPP,
                other => other,
            })
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.two_names(Op::Rename, from, to, |from_dir, from_name, to_dir, to_name| {
            match fs::renameat_with(from_dir, from_name, to_dir, to_name, RenameFlags::NOREPLACE) {
                // Some file systems lack the flag: the second name first, then the first one away.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    fs::linkat(from_dir, from_name, to_dir, to_name, AtFlags::empty())?;
                    fs::unlinkat(from_dir, from_name, AtFlags::empty())
                }
                result => result,
            }
        })
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.two_names(Op::Replace, from, to, |from_dir, from_name, to_dir, to_name| {
            // The kernel's rename would make the name if it is not there, and would follow nothing but take anything.
            for (dir, name) in [(from_dir, from_name), (to_dir, to_name)] {
                match FileType::from_raw_mode(fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) {
                    FileType::RegularFile => {}
                    FileType::Directory => return Err(Errno::ISDIR),
                    _ => return Err(Errno::LOOP),
                }
            }
            fs::renameat(from_dir, from_name, to_dir, to_name)
        })
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.at_parent(Op::RemoveFile, path, |dir, name| fs::unlinkat(dir, name, AtFlags::empty()))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.at_parent(Op::RemoveDir, path, |dir, name| fs::unlinkat(dir, name, AtFlags::REMOVEDIR))
    }

    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        let fail = |errno: Errno| DiskError::new(Op::List, path, errno.into());
        let dir = self.open_dir(Op::List, path)?;
        let mut buffer = [MaybeUninit::uninit(); LIST_BUFFER_BYTES];
        let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                other => other.map_err(fail)?,
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind_of(FileType::from_raw_mode(stat.st_mode)),
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(fail(errno)),
                },
                known => kind_of(known),
            };
            if visit(DirEntry { name, kind }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        let name = resolve::name_of(path).map_err(|errno| DiskError::new(Op::Lock, path, errno.into()))?;
        let dir = self.open_dir(Op::Lock, path.parent().unwrap_or(Path::new("")))?;
        Ok(Box::new(lock::OsLock::take(dir, name, path)?))
    }

    fn space(&self) -> Result<Space, DiskError> {
        let stat = retry_on_intr(|| fs::fstatvfs(self.root.fd()))
            .map_err(|errno| DiskError::new(Op::Space, Path::new(""), errno.into()))?;
        Ok(Space {
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            // Some file systems make inodes as they go and say 0 of 0.
            available_files: if stat.f_files == 0 { u64::MAX } else { stat.f_favail },
        })
    }

    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        if path.as_os_str().is_empty() {
            let stat = fs::fstat(self.root.fd());
            return stat.map(stat_of).map_err(|errno| DiskError::new(Op::Stat, path, errno.into()));
        }
        self.at_parent(Op::Stat, path, |dir, name| fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))
            .map(stat_of)
    }

    fn file_system(&self) -> Result<FileSystem, DiskError> {
        let stat = retry_on_intr(|| fs::fstatfs(self.root.fd()))
            .map_err(|errno| DiskError::new(Op::FileSystem, Path::new(""), errno.into()))?;
        // The kernel's field is a signed word; the numbers are 32 bits wide.
        Ok(FileSystem::from_magic((stat.f_type as u64) & 0xFFFF_FFFF))
    }
}

impl OsDisk {
    /// Runs a call on two names, each with its parent directory; the error names the source, or the target when it
    /// exists.
    fn two_names(
        &self,
        op: Op,
        from: &Path,
        to: &Path,
        call: impl Fn(
            rustix::fd::BorrowedFd<'_>,
            &OsStr,
            rustix::fd::BorrowedFd<'_>,
            &OsStr,
        ) -> rustix::io::Result<()>,
    ) -> Result<(), DiskError> {
        let result = self.root.with_parent(from, |from_dir, from_name| {
            if from.parent() == to.parent() {
                let to_name = resolve::name_of(to)?;
                return retry_on_intr(|| call(from_dir, from_name, from_dir, to_name));
            }
            self.root.with_parent(to, |to_dir, to_name| {
                retry_on_intr(|| call(from_dir, from_name, to_dir, to_name))
            })
        });
        result.map_err(|errno| {
            let path = if errno == Errno::EXIST { to } else { from };
            DiskError::new(op, path, errno.into())
        })
    }
}

fn stat_of(stat: Stat) -> FileStat {
    FileStat {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        link_count: stat.st_nlink,
        id: id_of(&stat),
    }
}

fn id_of(stat: &Stat) -> FileId {
    FileId { device: stat.st_dev, inode: stat.st_ino }
}

fn kind_of(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        _ => EntryKind::Other,
    }
}

#[cfg(test)]
mod tests;
