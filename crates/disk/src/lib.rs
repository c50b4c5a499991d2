//! The file system as pq sees it: two small traits, the real disk, and a budget of open files.

mod api;
mod budget;
mod cache;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
mod file_system;
mod os;
mod sync;

pub use api::{
    Advice, Cached, DirEntry, Disk, EntryKind, File, FileId, FileStat, Lock, OpenMode, Space, SyncSite,
};
pub use budget::{FdBudget, FdLimit, Permit};
pub use cache::{FileCache, Held};
pub use error::{DiskError, ErrorClass, Op};
pub use file_system::{FileSystem, Notice};
pub use os::OsDisk;
