//! The one error of this crate: which operation on which path failed, why, and what kind of answer it wants.
//!
//! An [`ErrorClass`] is a caller's answer, not the kernel's number: five classes of the system's errors with five
//! answers, and a few that say something about names.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::SyncSite;

/// An operation on the disk that failed. Cheap to clone, so that every waiter can be told.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{op} {}{}: {source}", path.display(), At(*offset, *site))]
pub struct DiskError {
    op: Op,
    path: PathBuf,
    offset: Option<u64>,
    site: Option<SyncSite>,
    source: Arc<io::Error>,
}

impl DiskError {
    /// An error of `op` on `path`.
    #[must_use]
    pub fn new(op: Op, path: &Path, source: io::Error) -> Self {
        Self { op, path: path.to_owned(), offset: None, site: None, source: Arc::new(source) }
    }

    /// Adds the byte offset in the file.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Adds the sync site.
    #[must_use]
    pub fn at_site(mut self, site: SyncSite) -> Self {
        self.site = Some(site);
        self
    }

    /// Which operation failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The path as the caller gave it, relative to the disk's root.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The byte offset of a failed read or write.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// The site of a failed sync.
    #[must_use]
    pub fn site(&self) -> Option<SyncSite> {
        self.site
    }

    /// What the system said.
    #[must_use]
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }

    /// What kind of answer it wants.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        ErrorClass::of(&self.source)
    }

    /// Whether the cause may go away by itself, so that a later attempt makes sense.
    ///
    /// This says nothing about a file that a failed write or sync poisoned: the later attempt is on a new file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.class().is_retryable()
    }
}

/// What a failed operation asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Out of descriptors or memory, interrupted, busy: try again a little later.
    RetryLater,
    /// No room: disk, quota or file-size limit. Wait for space.
    NoSpace,
    /// Writing is not allowed, now: read-only mount or missing permission.
    ReadOnly,
    /// The device failed, or the kernel said something nobody expects here.
    Device,
    /// Somebody else holds the lock.
    InUse,
    /// No such name.
    NotFound,
    /// The name is taken.
    Exists,
    /// The directory has entries.
    NotEmpty,
    /// A symbolic link, or a file where a directory was meant, or the other way round, or a special file.
    WrongKind,
    /// This file system or kernel cannot do that.
    Unsupported,
    /// The caller asked for something that makes no sense: a path outside the root, a length that overflows.
    Invalid,
}

impl ErrorClass {
    /// The class of a system error.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(raw) => Self::of_errno(Errno::from_raw_os_error(raw)),
            None => Self::of_kind(error.kind()),
        }
    }

    /// Whether the cause may go away by itself.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RetryLater | Self::NoSpace | Self::ReadOnly | Self::InUse)
    }

    fn of_errno(errno: Errno) -> Self {
        match errno {
            Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::NOBUFS
            | Errno::INTR
            | Errno::AGAIN
            | Errno::BUSY
            | Errno::TXTBSY
            | Errno::NOLCK
            | Errno::TIMEDOUT => Self::RetryLater,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::MLINK => Self::NoSpace,
            Errno::ROFS | Errno::ACCESS | Errno::PERM => Self::ReadOnly,
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::XDEV => Self::WrongKind,
            Errno::NOSYS | Errno::OPNOTSUPP => Self::Unsupported,
            Errno::INVAL | Errno::NAMETOOLONG | Errno::BADF | Errno::OVERFLOW => Self::Invalid,
            _ => Self::Device,
        }
    }

    fn of_kind(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::ResourceBusy => Self::InUse,
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::InvalidInput => Self::Invalid,
            io::ErrorKind::Unsupported => Self::Unsupported,
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => Self::WrongKind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                Self::RetryLater
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly,
            _ => Self::Device,
        }
    }
}

/// One kind of call of [`Disk`](crate::Disk) or [`File`](crate::File).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Op {
    Create,
    Open,
    CreateDir,
    SyncDir,
    Link,
    Rename,
    Replace,
    RemoveFile,
    RemoveDir,
    List,
    Lock,
    Space,
    Stat,
    FileSystem,
    Read,
    Write,
    SyncData,
    Len,
    SetLen,
    Allocate,
    Advise,
    Map,
}

impl Op {
    /// Every operation, in a fixed order.
    pub const ALL: [Self; 22] = [
        Self::Create,
        Self::Open,
        Self::CreateDir,
        Self::SyncDir,
        Self::Link,
        Self::Rename,
        Self::Replace,
        Self::RemoveFile,
        Self::RemoveDir,
        Self::List,
        Self::Lock,
        Self::Space,
        Self::Stat,
        Self::FileSystem,
        Self::Read,
        Self::Write,
        Self::SyncData,
        Self::Len,
        Self::SetLen,
        Self::Allocate,
        Self::Advise,
        Self::Map,
    ];

    /// The short name, as it stands in error texts and crash points.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::CreateDir => "create_dir",
            Self::SyncDir => "sync_dir",
            Self::Link => "link",
            Self::Rename => "rename",
            Self::Replace => "replace",
            Self::RemoveFile => "remove",
            Self::RemoveDir => "remove_dir",
            Self::List => "list",
            Self::Lock => "lock",
            Self::Space => "space",
            Self::Stat => "stat",
            Self::FileSystem => "file_system",
            Self::Read => "read",
            Self::Write => "write",
            Self::SyncData => "sync",
            Self::Len => "len",
            Self::SetLen => "set_len",
            Self::Allocate => "allocate",
            Self::Advise => "advise",
            Self::Map => "map",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where in a file or at which site, for the error's text.
struct At(Option<u64>, Option<SyncSite>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(offset) = self.0 {
            write!(f, " at byte {offset}")?;
        }
        if let Some(site) = self.1 {
            write!(f, " ({site})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
