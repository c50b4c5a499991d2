//! The small types the traits speak in.

use std::ffi::OsStr;
use std::fmt::{self, Debug};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// For reading only.
    Read,
    /// For reading and writing.
    ReadWrite,
}

/// What the kernel is told about a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// Forget the cached pages of the range, so that the next read comes from the medium (clean pages only).
    DropCache,
    /// The range will be read from front to back.
    Sequential,
}

/// What of a range the page cache keeps when told to drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cached {
    /// Nothing: a read asks the device.
    None,
    /// At least one page.
    Some,
    /// It cannot be told: no proof either way.
    Unknown,
}

/// The name of a place in the code that syncs, such as `commit.batch`.
///
/// Counters, fault plans, crash points and the removal of one sync in tests go by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyncSite(&'static str);

impl SyncSite {
    /// Names a site; use `area.what`, lower case, one constant a call site.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for SyncSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Debug for SyncSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SyncSite({})", self.0)
    }
}

/// One name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The bare name.
    pub name: &'a OsStr,
    /// What stands behind it.
    pub kind: EntryKind,
}

/// What stands behind a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, device, socket or pipe: never opened.
    Other,
}

/// Which file it is, whatever its name, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device's number.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

/// What a name's file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: EntryKind,
    /// Length in bytes.
    pub len: u64,
    /// Number of names.
    pub link_count: u64,
    /// Identity.
    pub id: FileId,
}

/// Room on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size in bytes.
    pub total_bytes: u64,
    /// Bytes this user may still fill.
    pub available_bytes: u64,
    /// Files that may still be created; `u64::MAX` where there is no such limit.
    pub available_files: u64,
}
