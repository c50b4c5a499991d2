//! Looking at a queue without owning it: beside a live owner, without its lock, changing nothing.
//!
//! ```text
//!   queue.meta ─> catalog ─> cursors ─┬─ streams(): what there is
//!                                     ├─ read():    records, up to what is there at each call
//!                                     └─ verify():  every byte
//! ```
//!
//! What the owner is just writing is "not yet there", and what it retires meanwhile is passed over: neither is damage. Everything is
//! read anew by each call.

mod gone;
mod held;
mod lone;
mod reader;
mod streams;
mod verify;

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, DiskError, FdBudget, FdLimit, FileCache, OsDisk};
use offsets::Offsets;
use offsets::journal::JournalError;
use serde::Serialize;
use thiserror::Error;
use wal_format::{QueueId, Seq, StreamIdentity};
use wal_store::{NoEvents, RecoverError, Room, StoreContext, quarantine_bytes};

use crate::catalog::{Catalog, Entry};
use crate::core::{other_bytes, stream_dir};
use crate::meta::{self, Found};
use crate::options::fds_default;
use crate::repair::{OrphanInfo, RepairError, plan_own_files, queue_of_segments};
use crate::{Gap, Loss, OpenError};

pub use held::{LossInfo, QuarantineInfo, QuarantineReport};
pub use lone::QuarantineReader;
pub use reader::InspectReader;
pub use streams::{ConsumerInfo, SegmentInfo, StreamInfo};
pub use verify::{StreamCheck, VerifyReport};

/// A queue could not be looked at.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// A file or directory could not be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog could not be read.
    #[error("catalog: {0}")]
    Catalog(#[from] JournalError),
    /// The cursors could not be read.
    #[error("cursors: {0}")]
    Cursors(#[from] offsets::OpenError),
    /// A stream's segments could not be looked through.
    #[error(transparent)]
    Scan(#[from] RecoverError),
    /// A segment could not be read.
    #[error(transparent)]
    Read(#[from] wal_store::ReadError),
    /// The queue's own files could not be looked through.
    #[error(transparent)]
    Own(#[from] RepairError),
    /// A file in quarantine could not be read as a segment.
    #[error("{name}: {reason}")]
    Quarantined {
        /// The file, relative to the queue's directory.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// There is no stream of that name.
    #[error("there is no stream {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
}

impl InspectError {
    /// The disk's error, if it is one: which operation on which path, and what kind of answer it wants.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::Disk(error)
            | Self::Scan(RecoverError::Disk { source: error })
            | Self::Read(wal_store::ReadError::Disk { source: error, .. }) => Some(error),
            Self::Catalog(error) | Self::Cursors(offsets::OpenError::Journal(error)) => error.disk(),
            Self::Own(error) => error.disk(),
            _ => None,
        }
    }
}

/// A queue, seen from outside.
#[derive(Debug)]
pub struct Inspection {
    disk: Arc<dyn Disk>,
    files: Arc<FileCache>,
    queue: QueueId,
}

/// What a queue takes on the disk.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct DiskUse {
    /// All of it, in bytes: segments, journals with the space they took ahead, the reserve, quarantine.
    pub bytes: u64,
    /// Quarantine's part.
    pub quarantine_bytes: u64,
}

impl Inspection {
    /// Looks at the queue in `dir`.
    ///
    /// # Errors
    /// There is no queue, or its metadata cannot be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(OsDisk::open(dir.as_ref())?))
    }

    /// [`Inspection::open`] on a disk of the caller's.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<Self, OpenError> {
        let queue = match meta::find(&*disk)? {
            Found::Id(queue) | Found::Rebuilt(queue) => queue,
            Found::Nothing => return Err(OpenError::NotAQueue),
            Found::Lost => queue_of_segments(&*disk)?.ok_or(OpenError::Lost)?,
            Found::Version(path) => return Err(OpenError::Version { path }),
        };
        let files = FileCache::new(FdBudget::new(FdLimit { total: fds_default(), reserved: 1 }));
        Ok(Self { disk, files, queue })
    }

    /// Its streams, in the order of names. One whose files cannot be looked through hides no other: it says why
    /// ([`StreamInfo::unreadable`]).
    ///
    /// # Errors
    /// The queue's own files could not be read.
    pub fn streams(&self) -> Result<Vec<StreamInfo>, InspectError> {
        let catalog = self.catalog()?;
        let mut streams = Vec::new();
        for entry in catalog.living() {
            streams.extend(self.stream_info(entry)?);
        }
        Ok(streams)
    }

    /// What it takes on the disk, given its streams as [`Inspection::streams`] told them.
    ///
    /// # Errors
    /// Something could not be read.
    pub fn disk_use(&self, streams: &[StreamInfo]) -> Result<DiskUse, InspectError> {
        let segments: u64 = streams.iter().map(|stream| stream.bytes).sum();
        let bytes = segments.saturating_add(other_bytes(&*self.disk)?);
        Ok(DiskUse { bytes, quarantine_bytes: quarantine_bytes(&*self.disk)? })
    }

    /// Reads a stream from a seq on (the oldest kept if that is above it).
    ///
    /// # Errors
    /// There is no such stream.
    pub fn read(&self, stream: &str, from: Seq) -> Result<InspectReader, InspectError> {
        let entry = self.entry(stream)?;
        let context = self.context(&entry);
        Ok(InspectReader::new(Arc::clone(&self.disk), self.queue, context, from))
    }

    /// Checks every byte of every stream, and the queue's own files as a plan of a repair does. A stream whose files cannot be looked
    /// through hides no other: that is damage of it.
    ///
    /// # Errors
    /// The queue's own files could not be read; damage is no error.
    pub fn verify(&self) -> Result<VerifyReport, InspectError> {
        let (own, catalog) = plan_own_files(&self.disk)?;
        let mut streams = Vec::new();
        for entry in catalog.living() {
            streams.extend(verify::check(self, entry)?);
        }
        Ok(VerifyReport { streams, notes: verify::notes(&own), strays: own.strays })
    }

    /// Directories with segments that no stream stands for: the catalog that named them is lost, or they were put there. `pq repair`
    /// makes them streams again, by names that are given to it.
    ///
    /// # Errors
    /// Something could not be read.
    pub fn orphans(&self) -> Result<Vec<OrphanInfo>, InspectError> {
        let (own, _) = plan_own_files(&self.disk)?;
        Ok(own.orphans.into_iter().filter(OrphanInfo::is_left).collect())
    }

    /// Every loss the owner remembers, by stream.
    ///
    /// # Errors
    /// Something could not be read.
    pub fn losses(&self) -> Result<Vec<Loss>, InspectError> {
        Ok(self.catalog()?.living().flat_map(|entry| entry.losses.of(&entry.name)).collect())
    }

    /// What is in quarantine: files that only the user removes.
    ///
    /// # Errors
    /// Something could not be read.
    pub fn quarantine(&self) -> Result<QuarantineReport, InspectError> {
        held::quarantine(&*self.disk, &self.catalog()?)
    }

    /// Reads a file in quarantine, by its bare name there: what can be read of it, in the order of seqs.
    ///
    /// # Errors
    /// There is no such file, nothing says whose it is, or it could not be read.
    pub fn read_quarantined(&self, name: &str) -> Result<QuarantineReader, InspectError> {
        QuarantineReader::open(self, name)
    }

    /// Known losses of a stream, those the owner remembers.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn gaps(&self, stream: &str) -> Result<Vec<Gap>, InspectError> {
        Ok(self.entry(stream)?.losses.gaps())
    }

    fn catalog(&self) -> Result<Catalog, InspectError> {
        Ok(Catalog::look(&self.disk, self.queue)?.0)
    }

    fn entry(&self, stream: &str) -> Result<Entry, InspectError> {
        let missing = || InspectError::NotFound { name: stream.to_owned() };
        self.catalog()?.named(stream).cloned().ok_or_else(missing)
    }

    fn cursors(&self) -> Result<Offsets, InspectError> {
        Ok(Offsets::read_only(Arc::clone(&self.disk), self.queue)?.0)
    }

    fn context(&self, entry: &Entry) -> StoreContext {
        let (queue, stream, incarnation) = (self.queue, entry.id, entry.incarnation);
        self.context_of(StreamIdentity { queue, stream, incarnation })
    }

    fn context_of(&self, identity: StreamIdentity) -> StoreContext {
        StoreContext {
            disk: Arc::clone(&self.disk),
            files: Arc::clone(&self.files),
            room: Arc::new(Room::new(0)),
            identity,
            dir: stream_dir(identity.stream),
            events: Arc::new(NoEvents),
        }
    }
}
