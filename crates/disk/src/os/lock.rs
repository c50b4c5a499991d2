//! The lock of one owner: the kernel's, on held descriptors.
//!
//! Two locks, taken together: one on the lock file, for honest tools that look at it, and one on the directory that
//! holds it, which excludes even when somebody deleted the file and the next process made a new one. Both end with
//! the process, whatever way it ends. The file's existence and its content, a pid for messages, mean nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, getpid};

use crate::{DiskError, FileId, Lock, Op};

/// The lock's two descriptors.
#[derive(Debug)]
pub(super) struct OsLock {
    file: OwnedFd,
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
    owner: Pid,
}

impl OsLock {
    /// Locks the directory and the file `name` in it.
    pub(super) fn take(dir: OwnedFd, name: &OsStr, path: &Path) -> Result<Self, DiskError> {
        let fail = |errno: Errno| DiskError::new(Op::Lock, path, errno.into());
        try_flock(&dir).map_err(|errno| refusal(errno, &dir, name, path))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Without NONBLOCK, opening a pipe that somebody put here would wait for its other end.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = retry_on_intr(|| fs::openat(&dir, name, flags, mode)).map_err(fail)?;
        let stat = fs::fstat(&file).map_err(fail)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(fail(Errno::LOOP));
        }
        try_flock(&file).map_err(|errno| refusal(errno, &dir, name, path))?;
        let owner = getpid();
        // A file with other names may be somebody's own, linked here: it is locked, and its bytes are left alone.
        if stat.st_nlink == 1 {
            // Only a courtesy for whoever is refused: a full disk must not keep the owner out.
            let text = format!("{}\n", owner.as_raw_nonzero());
            let _ = super::size_limit::allows(text.len() as u64)
                .and_then(|()| fs::ftruncate(&file, 0))
                .and_then(|()| rustix::io::pwrite(&file, text.as_bytes(), 0));
        }
        Ok(Self { file, dir, name: name.to_owned(), path: path.to_owned(), owner })
    }
}

impl Lock for OsLock {
    fn verify(&self) -> Result<(), DiskError> {
        let fail = |errno: Errno| DiskError::new(Op::Lock, &self.path, errno.into());
        if getpid() != self.owner {
            let text = format!("this process was forked from the owner, pid {}", self.owner.as_raw_nonzero());
            return Err(in_use(&self.path, text));
        }
        let held = super::id_of(&fs::fstat(&self.file).map_err(fail)?);
        let named: FileId =
            super::id_of(&fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?);
        if held == named { Ok(()) } else { Err(fail(Errno::NOENT)) }
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        // A child forked just now holds copies of the descriptors until it execs, so closing alone would not release;
        // and a child that drops its copy must not release the owner's.
        if getpid() == self.owner {
            for fd in [&self.file, &self.dir] {
                let _ = retry_on_intr(|| fs::flock(fd, FlockOperation::Unlock));
            }
        }
    }
}

fn try_flock(fd: &OwnedFd) -> rustix::io::Result<()> {
    retry_on_intr(|| fs::flock(fd.as_fd(), FlockOperation::NonBlockingLockExclusive))
}

/// The error for a lock that was not given, with the owner's pid where the file tells it.
fn refusal(errno: Errno, dir: &OwnedFd, name: &OsStr, path: &Path) -> DiskError {
    if errno != Errno::WOULDBLOCK {
        return DiskError::new(Op::Lock, path, errno.into());
    }
    match recorded_owner(dir, name) {
        Some(pid) => in_use(path, format!("another owner holds it (pid {pid})")),
        None => in_use(path, "another owner holds it".to_owned()),
    }
}

fn in_use(path: &Path, text: String) -> DiskError {
    DiskError::new(Op::Lock, path, io::Error::new(io::ErrorKind::ResourceBusy, text))
}

fn recorded_owner(dir: &OwnedFd, name: &OsStr) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::openat(dir, name, flags, Mode::empty()).ok()?;
    let mut text = [0; 16];
    let n = rustix::io::pread(&file, &mut text, 0).ok()?;
    std::str::from_utf8(text.get(..n)?).ok()?.trim_end().parse().ok()
}
