//! A disk in memory with a power switch and fault plans, for tests.
//!
//! [`SimDisk`] implements [`disk::Disk`] as a kernel over a device does: a *cache*, which all processes of a boot see,
//! and a *medium*, which is all that a power cut leaves. It is deterministic: no clock, no thread, no random number of
//! its own. It is not a model of one file system; it allows whatever any of them is allowed to do.
//!
//! ```text
//!            write ┌───────┐  sync_data   ┌────────┐
//!   process ──────>│ cache │─────────────>│ medium │ ── power_cut ──> the next process
//!      │           └───────┘  sync_dir    └────────┘
//!      └ kill: the cache stays   any subset of unsynced sectors (512 B), lengths and names survives
//! ```
//!
//! - A rename is one change; creating, linking and removing are one each; all wait for `sync_dir`.
//! - A length may be durable before its bytes: then they are zeros.
//! - A failed `sync_data` reports once. Its sectors are clean from then on, the cache shows them, the medium lacks
//!   them; writing them again does not help before the file was cut below them. A later sync answers `Ok` and makes
//!   durable what was written since, behind the hole.
//! - A failed `sync_dir` leaves its changes pending.
//! - Closing does nothing.
//!
//! ```
//! use std::io::IoSlice;
//! use std::path::Path;
//! use disk::{Disk, OpenMode, SyncSite};
//! use sim_disk::{SimDisk, Survival};
//!
//! const SITE: SyncSite = SyncSite::new("example.batch");
//!
//! let disk = SimDisk::new();
//! let file = disk.create(Path::new("log"))?;
//! disk.sync_dir(Path::new(""), SITE)?;
//! file.write_all_at(&[IoSlice::new(b"durable")], 0)?;
//! file.sync_data(SITE)?;
//! file.write_all_at(&[IoSlice::new(b" lost")], 7)?;
//!
//! let disk = disk.power_cut(&Survival::Nothing);
//! assert_eq!(disk.read("log"), b"durable");
//! assert!(file.len().is_err(), "a handle of the process that died");
//! assert!(disk.open(Path::new("log"), OpenMode::Read).is_ok());
//! # Ok::<(), disk::DiskError>(())
//! ```

mod control;
pub mod errno;
mod fault;
mod file_node;
mod gate;
mod pages;
mod power;
mod sim_disk;
mod sim_file;
mod tree;
mod unsynced;
mod world;

use std::sync::Arc;

pub use control::Snapshot;
pub use fault::{Fault, Moment, On};
pub use gate::Gate;
pub use power::{Survival, Unsynced};

/// A simulated disk as one process sees it. Clones are the same process on the same machine.
#[derive(Clone)]
pub struct SimDisk {
    machine: Arc<world::Machine>,
    process: world::Process,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").field("process", &self.process).finish_non_exhaustive()
    }
}
