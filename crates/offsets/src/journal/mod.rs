//! A journal of small bodies in generations of files, for state that fits in memory.
//!
//! Filled in below; see [`Journal`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, DiskError, SyncSite};
pub use wal_format::JournalKind;
use wal_format::QueueId;

mod bodies;
mod names;

pub use bodies::Bodies;
pub use names::Generation;

/// Limits of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// A generation is replaced once it is this many times its snapshot ...
    pub compact_ratio: u64,
    /// ... and at least this long, in bytes.
    pub compact_bytes_min: u64,
    /// No journal file is read or written beyond this, in bytes.
    pub file_bytes_max: u64,
}

/// What became of one file of a journal at open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOutcome {
    /// The highest valid generation: this is the state.
    Current,
}

/// One file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: FileOutcome,
}

/// What opening a journal found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalReport {
    /// One line a file, by generation.
    pub files: Vec<FileReport>,
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Written by a later version.
    #[error("{path}: format version {version}; open it with a newer version of this program", path = .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it names.
        version: u16,
    },
    /// The journal must start a new generation: use [`Journal::compact`] or [`Journal::save`].
    #[error("journal {prefix}: a new generation with a full snapshot is needed first")]
    NeedsSnapshot {
        /// The journal's prefix.
        prefix: String,
    },
}

impl JournalError {
    /// Whether trying again later may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_retryable())
    }
}

/// The writer of a journal; one a prefix.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
}

impl Journal {
    /// Opens.
    ///
    /// # Errors
    /// `JournalError`.
    pub fn open(
        disk: Arc<dyn Disk>,
        prefix: &str,
        kind: JournalKind,
        queue: QueueId,
    ) -> Result<(Self, Vec<Vec<u8>>, JournalReport), JournalError> {
        let _ = (prefix, kind, queue);
        let _ = Path::new("");
        Ok((Self { disk }, Vec::new(), JournalReport::default()))
    }

    /// One write + one sync.
    ///
    /// # Errors
    /// `JournalError`.
    pub fn append(&mut self, bodies: &Bodies, site: SyncSite) -> Result<(), JournalError> {
        let _ = (bodies, site, &self.disk);
        todo!()
    }

    /// A new generation with exactly this snapshot.
    ///
    /// # Errors
    /// `JournalError`.
    pub fn compact(&mut self, snapshot: &Bodies, site: SyncSite) -> Result<(), JournalError> {
        let _ = (snapshot, site);
        todo!()
    }

    /// [`append`](Self::append) if it can, a new generation of `snapshot` (the state *before* `changes`) and
    /// `changes` if it must.
    ///
    /// # Errors
    /// `JournalError`.
    pub fn save(
        &mut self,
        changes: &Bodies,
        snapshot: impl FnOnce(&mut Bodies),
        site: SyncSite,
    ) -> Result<(), JournalError> {
        let _ = (changes, site);
        snapshot(&mut Bodies::new());
        todo!()
    }
}
