//! A journal of small bodies in generations of files, for state that fits in memory.
//!
//! **Is**: what the cursors and the catalog stand on. **Is not**: a log of records; it knows nothing of what its
//! bodies mean.
//!
//! ```text
//!   <prefix>-<generation>      header | write 1: snapshot (+ changes) | write 2 | write 3 | zeros ...
//!                                       └ entry entry entry ┘           one write + one sync each
//! ```
//!
//! Each entry (see `wal_format`) bears its number in the file; its tag says whether it is the last of its write, its
//! body begins with its index in the write (`u32`, little-endian). So a write is all or nothing after a crash,
//! however many bodies it has, and an entry of a later write proves that all earlier ones were durable: then what is
//! bad in between is damage, not tearing, and what is sound is kept. One flipped bit is mended.
//!
//! Invariants:
//! - a generation counts only if its first write, a whole snapshot, is whole; of those the highest wins;
//! - it is durable, with its name, before an older one is removed;
//! - a file of which a write or sync failed is never written again; no file of an earlier run ever is; the next save
//!   goes to a new generation with a full snapshot;
//! - if an incomplete newer generation might be found complete after a crash, nobody appends to the older one.
//!
//! Space: each generation's space is taken ahead with zeros, and so is a spare file for the next one, so that saves
//! and compaction go on when the disk is full (not on copy-on-write file systems, and not when another program takes
//! the space between the removal of an old generation and the making of the next spare).

mod bodies;
mod error;
mod generation;
mod names;
mod open;
mod report;
mod scan;
mod write;

pub use bodies::Bodies;
pub use error::JournalError;
pub use names::Generation;
pub use report::{FileOutcome, FileReport, JournalReport, Removal};
pub use wal_format::JournalKind;
pub use write::Journal;

/// The call sites at which a journal syncs by itself; saves bear their caller's.
pub mod sites {
    use disk::SyncSite;

    /// A new generation's bytes.
    pub const GENERATION: SyncSite = SyncSite::new("journal.generation");
    /// The directory, after a new generation was written.
    pub const DIRECTORY: SyncSite = SyncSite::new("journal.directory");
    /// The directory, after older generations were removed and a spare was made.
    pub const CLEANUP: SyncSite = SyncSite::new("journal.cleanup");
    /// A spare's zeros.
    pub const SPARE: SyncSite = SyncSite::new("journal.spare");
    /// Files and directory before they are read, so that what is read is what the medium holds.
    pub const OPEN: SyncSite = SyncSite::new("journal.open");
}

/// Limits of a journal, in bytes and ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// A generation is replaced once it is this many times its snapshot ...
    pub compact_ratio: u64,
    /// ... and at least this long, in bytes.
    pub compact_bytes_min: u64,
    /// No journal file is written beyond this, in bytes; at most, and by default, 256 MiB.
    pub file_bytes_max: u64,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { compact_ratio: 8, compact_bytes_min: 64 << 10, file_bytes_max: 256 << 20 }
    }
}
