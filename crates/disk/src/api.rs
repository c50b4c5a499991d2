//! The seam: the traits [`Disk`], [`File`] and [`Lock`].
//!
//! This is not a general file system: it has what a store of append-only files needs and nothing else. Every
//! call that can fail returns a [`DiskError`] that names the operation and the path.
//!
//! ```text
//!   Disk ── create, open ──> Arc<dyn File> ── read_at, write_all_at, sync_data, …
//!     └──── lock ──────────> Box<dyn Lock>    (held until dropped)
//! ```
//!
//! Invariants every implementation keeps, and the contract test checks:
//! - paths are relative to the disk's root; an absolute path, `..` or a symbolic link is an error, never followed;
//!   the empty path is the root itself;
//! - only regular files and directories are opened, and for writing only files with one name; new files are 0600, new
//!   directories 0700;
//! - nothing is replaced but by [`Disk::replace`]: create, link and rename onto an existing name fail with
//!   [`ErrorClass::Exists`];
//! - closing never syncs; what no sync covered may vanish with the power, in any subset of sectors and entries;
//! - no call allocates on success, except `create`, `open`, `lock`, `list` and `map`.
//!
//! [`ErrorClass::Exists`]: crate::ErrorClass::Exists

use std::fmt::Debug;
use std::io::IoSlice;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Advice, Cached, DirEntry, DiskError, FileStat, FileSystem, OpenMode, Space, SyncSite};

/// A directory tree that holds one queue, and the calls that change its names.
///
/// Object-safe; shared as `Arc<dyn Disk>`. All methods may be called from any number of threads.
pub trait Disk: Send + Sync + Debug {
    /// Creates an empty file, which must not exist, and opens it for reading and writing.
    ///
    /// On return: the file exists for this and later processes of this boot; its name is not durable until
    /// [`sync_dir`](Self::sync_dir) of its directory returned.
    /// If it does not return: the file exists or not; if it exists it is empty.
    ///
    /// # Errors
    /// `Exists` if the name is taken (by anything), `NotFound` without its directory, `RetryLater` without a
    /// descriptor, `NoSpace`, `ReadOnly`, `Device`. On error no file was left by this call.
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError>;

    /// Opens an existing regular file.
    ///
    /// On return: the descriptor is open; nothing on the disk changed.
    /// If it does not return: nothing changed.
    ///
    /// # Errors
    /// `NotFound`; `WrongKind` for a symbolic link, a directory or a special file, and with [`OpenMode::ReadWrite`] for a
    /// file with more than one name; `RetryLater` without a descriptor; `ReadOnly` for [`OpenMode::ReadWrite`] where
    /// writing is not allowed.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError>;

    /// Creates a directory, which must not exist.
    ///
    /// On return: it exists for this boot; durable once the *parent* directory was synced.
    /// If it does not return: it exists, empty, or not.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes all names in a directory durable: files created, linked, renamed and removed there.
    ///
    /// On return: the directory's entries as of the call survive power loss.
    /// If it does not return: any subset of the unsynced entry changes may be durable.
    ///
    /// # Errors
    /// After an error any subset of the changes is durable, and a later `Ok` proves nothing about them.
    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError>;

    /// Gives an existing file a second name, which must not exist.
    ///
    /// On return: both names show the same file; the new one is durable after a directory sync.
    /// If it does not return: the new name exists or not.
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `Unsupported` on file systems without hard links, and the general ones. On error the
    /// new name does not exist.
    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Renames a file or directory; never replaces.
    ///
    /// On return: the new name shows the file, the old name is gone; durable after a sync of both directories.
    /// If it does not return: the old or the new state; where the kernel lacks an atomic no-replace rename, for a
    /// moment both names.
    ///
    /// # Errors
    /// `Exists` if `to` is taken, `NotFound` without `from`. On error the file keeps at least its old name.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Renames a file over another one, which loses this name; in one step, so that the name always shows one of them.
    ///
    /// Sync the file first: the name may be durable before its bytes.
    ///
    /// On return: `to` shows the file, `from` is gone; durable after a sync of both directories.
    /// If it does not return: the old or the new state.
    ///
    /// # Errors
    /// `NotFound` without either of them, `WrongKind` if one is a directory, and the general ones. On error both names
    /// show what they showed.
    fn replace(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes the name of a file; its bytes go with its last name and last descriptor.
    ///
    /// On return: the name is gone for this boot; after a power loss it may be back until the directory was synced.
    /// If it does not return: gone or not.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind` for a directory, and the general ones. On error the name is still there.
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;

    /// Removes an empty directory.
    ///
    /// On return: as [`remove_file`](Self::remove_file).
    /// If it does not return: gone or not.
    ///
    /// # Errors
    /// `NotFound`, `NotEmpty`, `WrongKind` for a file.
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Shows each entry of a directory once, in no particular order, without `.` and `..`; stops at `Break`.
    ///
    /// Entries created or removed meanwhile may or may not be shown. Names are bytes: they need not be UTF-8.
    ///
    /// On return: all entries were shown, or `visit` broke off.
    /// If it does not return: nothing changed.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind`, `RetryLater`, `Device`; some entries may have been shown before.
    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError>;

    /// Takes the exclusive lock named by this file, creating the file if needed, without waiting.
    ///
    /// The lock is the kernel's, on a held descriptor: it ends with the process, and the file's existence means
    /// nothing. It excludes other [`Disk`]s and other processes, and a second call on this one. It also covers the
    /// directory that holds the file, so that it excludes even after somebody deleted the file.
    ///
    /// On return: the lock is held until the [`Lock`] is dropped.
    /// If it does not return: nobody holds it; the file may exist.
    ///
    /// # Errors
    /// `InUse` if somebody holds it, with what is known about them.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError>;

    /// The room on the device.
    ///
    /// # Errors
    /// `Device`, `Unsupported`.
    fn space(&self) -> Result<Space, DiskError>;

    /// Looks at one name, following nothing.
    ///
    /// # Errors
    /// `NotFound`, and the general ones.
    fn stat(&self, path: &Path) -> Result<FileStat, DiskError>;

    /// What the root lies on.
    ///
    /// # Errors
    /// `Device`, `Unsupported`.
    fn file_system(&self) -> Result<FileSystem, DiskError>;
}

/// An open regular file; all calls are positional, none moves a shared offset. Dropping it closes, and never syncs.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty without its length")]
pub trait File: Send + Sync + Debug {
    /// Reads from `offset` until `buf` is full or the file ends; returns how many bytes, short only at the end.
    ///
    /// On return: the bytes are the cache's, which after a failed sync may be ahead of the medium.
    /// If it does not return: nothing changed.
    ///
    /// # Errors
    /// `Device` for unreadable sectors; `buf` may be partly overwritten.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, DiskError>;

    /// Writes all slices, one behind the other, from `offset` on; the file grows as needed.
    ///
    /// Short writes, interruptions and more slices than one system call takes are handled here.
    ///
    /// On return: readers of this boot see the bytes; nothing is durable.
    /// If it does not return: any part of the bytes may be seen, and durable.
    ///
    /// # Errors
    /// After an error any prefix may have been written: the file is poisoned for further appends.
    fn write_all_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError>;

    /// Makes the bytes written so far, and the length needed to read them, durable; not the file's name.
    ///
    /// On return: every byte whose write returned before this call survives power loss.
    /// If it does not return: any subset of the unsynced sectors may be durable.
    ///
    /// # Errors
    /// After an error any subset is durable, the cache may show bytes the medium lacks, and a second call may
    /// return `Ok` without having written them: never write, sync or trust this file again.
    fn sync_data(&self, site: SyncSite) -> Result<(), DiskError>;

    /// The length in bytes.
    ///
    /// # Errors
    /// `Device`.
    fn len(&self) -> Result<u64, DiskError>;

    /// Cuts the file or extends it with zeros.
    ///
    /// On return: the new length is seen; durable after [`sync_data`](Self::sync_data).
    /// If it does not return: old or new length.
    ///
    /// # Errors
    /// `Unsupported` once this handle was mapped (a shorter file would kill readers of the map), and the general
    /// ones; on error the length is the old one.
    fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Reserves space for a range, extending the file with zeros if it ends before.
    ///
    /// On return: writes in the range do not fail for want of space (not on copy-on-write file systems).
    /// If it does not return: some part is reserved.
    ///
    /// # Errors
    /// `NoSpace`; `Unsupported` where the file system cannot: the caller goes on without.
    fn allocate(&self, range: Range<u64>) -> Result<(), DiskError>;

    /// Tells the kernel how a range will be used. `DropCache` takes effect only for clean pages: sync first.
    ///
    /// # Errors
    /// `Unsupported`; advice is never needed for correct results except `DropCache` before trusting a re-read.
    fn advise(&self, advice: Advice, range: Range<u64>) -> Result<(), DiskError>;

    /// Whether the page cache keeps any page of a range although it was told to drop them: what a read would return
    /// without asking the device.
    ///
    /// `None` is proof. The real disk cannot prove `Some`: a fast device may bring a page back before the question
    /// ends, so it says `Unknown`. Ask after `DropCache`. The question may drop clean pages and bring some back in, then from the medium. Pages
    /// that are dirty, being written, mapped or otherwise held are kept; where a file system lives in memory, all.
    ///
    /// # Errors
    /// `Device`.
    fn cached(&self, range: Range<u64>) -> Result<Cached, DiskError>;

    /// Maps the first `len` bytes for reading; `None` where maps are not supported or `len` is 0.
    ///
    /// Only for files that are final: from this call on nobody writes, cuts or recycles this file as long as any
    /// clone of the result lives (an unlink is fine). A map of a file that another program cuts kills the process.
    ///
    /// # Errors
    /// `Invalid` if the file is shorter than `len`; `RetryLater` without memory.
    fn map(&self, len: u64) -> Result<Option<Bytes>, DiskError>;
}

/// A held exclusive lock, released when dropped.
pub trait Lock: Send + Sync + Debug {
    /// Checks that the lock still excludes others from where this process stands.
    ///
    /// # Errors
    /// `InUse` in a forked child, which shares the descriptor but is not the owner; `NotFound` if the lock file is
    /// no longer the one that was locked (the lock on its directory still holds).
    fn verify(&self) -> Result<(), DiskError>;
}
