//! The disk as a file: a FUSE file system with one directory and in it one file, `disk`, for `losetup`.
//!
//! It is not a file system for anybody else: no times, no owners, nothing can be created. Writes bypass the page cache, so that a
//! read after a cut asks the disk. A flush of the loop device arrives as an fsync of the file.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::medium::{BLOCK_BYTES, Medium, Refusal};

/// The file's name.
pub(crate) const NAME: &str = "disk";
/// Names and sizes never change.
const TTL: Duration = Duration::from_secs(3600);
const DISK: INodeNo = INodeNo(2);

/// How long requests take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delays {
    pub(crate) write: Duration,
    pub(crate) flush: Duration,
}

/// What the file system and whoever controls the disk share.
#[derive(Clone)]
pub(crate) struct Shared {
    medium: Arc<Mutex<Medium>>,
    delays: Arc<Mutex<Delays>>,
}

impl Shared {
    pub(crate) fn new(medium: Medium) -> Self {
        Self { medium: Arc::new(Mutex::new(medium)), delays: Arc::default() }
    }

    pub(crate) fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn delays(&self) -> MutexGuard<'_, Delays> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file system.
pub(crate) struct Served(pub(crate) Shared);

impl Served {
    fn attr(&self, inode: INodeNo) -> Option<FileAttr> {
        let size = self.0.medium().len();
        match inode {
            INodeNo::ROOT => Some(attr(inode, FileType::Directory, 0)),
            DISK => Some(attr(inode, FileType::RegularFile, size)),
            _ => None,
        }
    }
}

fn attr(ino: INodeNo, kind: FileType, size: u64) -> FileAttr {
    let is_dir = kind == FileType::Directory;
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: if is_dir { 0o700 } else { 0o600 },
        nlink: if is_dir { 2 } else { 1 },
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: u32::try_from(BLOCK_BYTES).unwrap_or(512),
        flags: 0,
    }
}

fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::Broken => Errno::EIO,
        Refusal::Full => Errno::ENOSPC,
    }
}

impl Filesystem for Served {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = (parent == INodeNo::ROOT && name == NAME).then(|| self.attr(DISK)).flatten();
        match found {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _file: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(inode) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _file: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.0.medium().read(offset, size as usize);
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _file: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let delay = self.0.delays().write;
        sleep(delay);
        let written = self.0.medium().write(offset, data);
        match (written, u32::try_from(data.len())) {
            (Ok(()), Ok(len)) => reply.written(len),
            (Err(refusal), _) => reply.error(errno(refusal)),
            (_, Err(_)) => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _request: &Request, _inode: INodeNo, _file: FileHandle, _data: bool, reply: ReplyEmpty) {
        let delay = self.0.delays().flush;
        sleep(delay);
        let flushed = self.0.medium().flush();
        match flushed {
            Ok(()) => reply.ok(),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    /// Every close of a descriptor; a disk has nothing to say to it.
    fn flush(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _file: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _file: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, NAME),
        ];
        for (next, (inode, kind, name)) in (1..).zip(entries).filter(|(next, _)| *next > offset) {
            if reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
