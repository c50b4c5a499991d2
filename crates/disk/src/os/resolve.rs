//! From a relative path to a descriptor, without ever leaving the root or following a symbolic link.
//!
//! One `openat2` where the kernel has it; else one `openat` a component. Names are checked first, so that both ways
//! refuse the same paths.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result, retry_on_intr};

/// A held root directory.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    /// Cleared for good when the kernel, or a sandbox, refuses `openat2`.
    has_openat2: AtomicBool,
}

impl Root {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, has_openat2: AtomicBool::new(true) }
    }

    #[cfg(test)]
    pub(super) fn without_openat2(fd: OwnedFd) -> Self {
        Self { fd, has_openat2: AtomicBool::new(false) }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Opens the file or directory at `path`; the empty path is the root.
    pub(super) fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        check(path)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if self.has_openat2.load(Ordering::Relaxed) {
            match self.open_beneath(path, flags, mode) {
                Err(Errno::NOSYS) => {}
                // A sandbox that does not know the call says PERM to all of it; an ordinary refusal repeats below.
                Err(Errno::PERM) => return self.open_by_component(path, flags, mode),
                result => return result,
            }
            self.has_openat2.store(false, Ordering::Relaxed);
        }
        self.open_by_component(path, flags, mode)
    }

    /// Calls with the parent directory of `path` and its last name.
    pub(super) fn with_parent<T>(
        &self,
        path: &Path,
        call: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T>,
    ) -> Result<T> {
        check(path)?;
        let name = name_of(path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                let dir = self.open(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
                call(dir.as_fd(), name)
            }
            _ => call(self.fd(), name),
        }
    }

    fn open_beneath(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            // The kernel says AGAIN when a rename somewhere raced with the walk.
            match fs::openat2(&self.fd, path, flags, mode, resolve) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                result => return result,
            }
        }
    }

    fn open_by_component(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let walk = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir: Option<OwnedFd> = None;
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let at = dir.as_ref().map_or(self.fd(), AsFd::as_fd);
            let (flags, mode) =
                if components.peek().is_some() { (walk, Mode::empty()) } else { (flags, mode) };
            let next = retry_on_intr(|| fs::openat(at, component.as_os_str(), flags, mode))?;
            dir = Some(next);
        }
        dir.ok_or(Errno::INVAL)
    }
}

/// The last name of a path that names something below the root.
pub(super) fn name_of(path: &Path) -> Result<&OsStr> {
    match path.components().next_back() {
        Some(Component::Normal(name)) => Ok(name),
        _ => Err(Errno::INVAL),
    }
}

/// Refuses whatever is not a plain relative path.
fn check(path: &Path) -> Result<()> {
    if path.components().all(|component| matches!(component, Component::Normal(_))) {
        Ok(())
    } else {
        Err(Errno::INVAL)
    }
}
