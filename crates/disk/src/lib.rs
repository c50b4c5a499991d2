//! The file system as pq sees it: two small traits, the real disk, and a budget of open files.
//!
//! This is the only crate of the workspace that calls the operating system's file API. It holds no policy: it knows
//! nothing of records, segments or cursors. Whoever wants to test code against a disk that loses power uses these
//! traits with the simulated disk of the crate `sim-disk`.
//!
//! ```text
//!   Disk ── create, open ──> File        OsDisk: the real one, relative to a held directory
//!     └──── lock ──────────> Lock        KillAt: dies at named calls (feature `crash-points`)
//!
//!   FdBudget ── acquire ──> Permit       how many files may be open
//!   FileCache ── open ────> Held         idle files, closed on shortage
//! ```
//!
//! Linux is what it is written for and tested on.
//!
//! ```
//! use std::io::IoSlice;
//! use std::path::Path;
//! use disk::{Disk, OpenMode, OsDisk, SyncSite};
//!
//! const BATCH: SyncSite = SyncSite::new("example.batch");
//! const NAME: SyncSite = SyncSite::new("example.name");
//!
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path();
//! let disk = OsDisk::open(root)?;
//! let file = disk.create(Path::new("log"))?;
//! file.write_all_at(&[IoSlice::new(b"one "), IoSlice::new(b"two")], 0)?;
//! file.sync_data(BATCH)?; // the bytes are durable
//! disk.sync_dir(Path::new(""), NAME)?; // and so is the name
//!
//! let mut bytes = [0; 16];
//! let n = disk.open(Path::new("log"), OpenMode::Read)?.read_at(&mut bytes, 0)?;
//! assert_eq!(&bytes[..n], b"one two");
//! assert!(disk.create(Path::new("log")).is_err(), "nothing is ever replaced");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod budget;
mod cache;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
#[cfg(any(test, feature = "crash-points"))]
mod crash;
mod error;
mod file_system;
mod os;
mod sync;
mod types;

pub use api::{Disk, File, Lock};
pub use budget::{FdBudget, FdLimit, Permit};
pub use cache::{FileCache, Held};
#[cfg(any(test, feature = "crash-points"))]
pub use crash::{
    BadCrashPoint, CENSUS_VARIABLE, CRASH_VARIABLE, CrashMoment, CrashPoint, KillAt, parse_crash_points,
};
pub use error::{DiskError, ErrorClass, Op};
pub use file_system::{FileSystem, Notice};
pub use os::OsDisk;
pub use types::{Advice, Cached, DirEntry, EntryKind, FileId, FileStat, OpenMode, Space, SyncSite};
