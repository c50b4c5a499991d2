//! Repair: finds what is damaged, says what would be done about it and what it costs, and does it.
//!
//! Planning only looks, beside a live owner too. Applying owns the queue. Both go the same way, so that what is planned is what is
//! done; and what is done is made of what the disk holds at that moment, so that a repair that was killed is finished by the next.
//!
//! ```text
//!   lock ─> queue.meta ─> catalog ─> cursors ─> orphans ─> each stream: recover ─> losses ─> durable end ─> copies
//!                              └ originals to quarantine first ┘                                  │
//!                                     repair.new  written, synced, read back ──replace──> segment <┘
//! ```
//!
//! Invariants: whatever could be read before can be read afterwards, under the same seq; nothing is invented: a record, a name or a
//! number that is not proven stays missing; every file that is replaced or removed has a durable name in quarantine before; no state
//! in between is one that opening would read otherwise.

mod journals;
mod orphans;
mod report;
mod segments;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, DiskError, ErrorClass, FdBudget, FdLimit, FileCache, Lock, OsDisk};
use offsets::Offsets;
use offsets::journal::JournalError;
use thiserror::Error;
use wal_format::{QueueId, StreamId, StreamIdentity, WallTime};
use wal_store::{NoEvents, RecoverError, RewriteError, Room, StoreContext};

use crate::catalog::{Catalog, Entry};
use crate::core::{LOCK, strays, stream_dir};
use crate::meta::{self, Found};
use crate::options::fds_default;
use crate::{NameError, OptionsError};

pub(crate) use orphans::{header as segment_header, queue_of_segments};
pub use report::{NewLoss, OrphanInfo, RepairReport, RepairStep, StreamBlocked};
pub(crate) use segments::{MISSING_DIR, known_seqs};

/// The file a copy is written to. One that is left by a repair that was killed is removed by the next, and by the next open.
pub(crate) const REPAIR_NEW: &str = "repair.new";

/// A queue could not be repaired, or not to the end: run it again once the cause is gone. What was done is whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Somebody owns the queue.
    #[error("the queue is in use: {source}")]
    InUse {
        /// What is known about the owner.
        source: DiskError,
    },
    /// There is no queue here.
    #[error("there is no queue here: no {}, no journal, no stream was found", crate::meta::META)]
    NotAQueue,
    /// Parts of a queue are here, but nothing that tells which.
    #[error(
        "{} and every journal are missing or damaged, and no segment's header is sound: nothing tells which queue this is; restore \
         one of them from a copy",
        crate::meta::META
    )]
    Lost,
    /// A later version wrote this.
    #[error("{}: written by a later version of this program; repair it with that", path.display())]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog could not be read or written.
    #[error("catalog: {0}")]
    Catalog(#[from] JournalError),
    /// The cursors could not be read.
    #[error("cursors: {0}")]
    Cursors(#[from] offsets::OpenError),
    /// The cursors could not be written.
    #[error("cursors: {0}")]
    Save(#[from] offsets::SaveError),
    /// A segment could not be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// A segment could not be written again; it is as it was.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// A directory that was to be adopted cannot be.
    #[error("{dir} cannot be adopted as {name:?}: {reason}")]
    Adopt {
        /// The directory.
        dir: String,
        /// The name it was to have.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// A name cannot be a stream's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// What it was told beside the options makes no sense; nothing was done.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

impl RepairError {
    /// The disk's error, if it is one: which operation on which path, and what kind of answer it wants.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::InUse { source: error }
            | Self::Disk(error)
            | Self::Recover(RecoverError::Disk { source: error })
            | Self::Rewrite(RewriteError::Disk(error)) => Some(error),
            Self::Catalog(error)
            | Self::Cursors(offsets::OpenError::Journal(error))
            | Self::Save(offsets::SaveError::Journal(error)) => error.disk(),
            _ => None,
        }
    }
}

/// What a repair is asked for beside mending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Directories of streams that the catalog does not know, with the names they are to have from now on.
    pub adopt: Vec<(StreamId, String)>,
    /// When losses are found.
    pub now: WallTime,
}

impl RepairOptions {
    /// Nothing but mending, at this time.
    #[must_use]
    pub fn at(now: WallTime) -> Self {
        Self { adopt: Vec::new(), now }
    }

    /// Adopts a directory as a stream of that name.
    #[must_use]
    pub fn adopt(mut self, id: StreamId, name: impl Into<String>) -> Self {
        self.adopt.push((id, name.into()));
        self
    }
}

/// Says what is wrong with the queue in `dir` and what a repair would do; changes nothing, and works beside its owner.
///
/// # Errors
/// It could not be looked through.
pub fn plan(dir: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport, RepairError> {
    plan_on(Arc::new(OsDisk::open(dir.as_ref())?), options)
}

/// [`plan`] on a disk of the caller's.
///
/// # Errors
/// As for `plan`.
pub fn plan_on(disk: Arc<dyn Disk>, options: &RepairOptions) -> Result<RepairReport, RepairError> {
    Repair::new(disk, None, options).run()
}

/// Repairs the queue in `dir`, of which nobody else may be the owner.
///
/// # Errors
/// [`RepairError::InUse`] at once if somebody owns it. Anything else: what was done is whole and durable, what was not is as it was;
/// repairing again goes on from there.
pub fn apply(dir: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport, RepairError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.as_ref())?);
    #[cfg(feature = "crash-points")]
    let disk = disk::KillAt::from_env(disk)
        .map_err(|error| OptionsError { field: "PQ_CRASH", reason: error.to_string() })?;
    apply_on(disk, options)
}

/// [`apply`] on a disk of the caller's.
///
/// # Errors
/// As for `apply`.
pub fn apply_on(disk: Arc<dyn Disk>, options: &RepairOptions) -> Result<RepairReport, RepairError> {
    // Without a queue there is nothing to own, and no lock file is left behind.
    if matches!(meta::find(&*disk)?, Found::Nothing) {
        return Err(RepairError::NotAQueue);
    }
    let lock = disk.lock(Path::new(LOCK)).map_err(|source| match source.class() {
        ErrorClass::InUse => RepairError::InUse { source },
        _ => RepairError::Disk(source),
    })?;
    Repair::new(disk, Some(lock), options).run()
}

/// What a plan says of the queue's own files, and of directories that no stream stands for: the part of it in front of the streams. With
/// the catalog that it read.
pub(crate) fn plan_own_files(disk: &Arc<dyn Disk>) -> Result<(RepairReport, Catalog), RepairError> {
    let options = RepairOptions::default();
    let mut repair = Repair::new(Arc::clone(disk), None, &options);
    let Own { catalog, .. } = repair.own_files()?;
    repair.report.strays.sort_unstable();
    Ok((repair.report, catalog))
}

/// The queue's own files, read.
struct Own {
    queue: QueueId,
    catalog: Catalog,
    offsets: Offsets,
    /// Streams that are planned to be adopted only: the catalog does not know them.
    planned: Vec<Entry>,
}

/// One repair, planned or done.
struct Repair<'a> {
    disk: Arc<dyn Disk>,
    files: Arc<FileCache>,
    options: &'a RepairOptions,
    /// Held: things are done. `None`: they are planned.
    lock: Option<Box<dyn Lock>>,
    report: RepairReport,
}

impl<'a> Repair<'a> {
    fn new(disk: Arc<dyn Disk>, lock: Option<Box<dyn Lock>>, options: &'a RepairOptions) -> Self {
        let files = FileCache::new(FdBudget::new(FdLimit { total: fds_default(), reserved: 1 }));
        let report = RepairReport { applied: lock.is_some(), ..RepairReport::default() };
        Self { disk, files, options, lock, report }
    }

    /// Whether things are done, and not only planned.
    fn does(&self) -> bool {
        self.lock.is_some()
    }

    fn run(mut self) -> Result<RepairReport, RepairError> {
        let Own { queue, mut catalog, mut offsets, planned } = self.own_files()?;
        let entries: Vec<Entry> = catalog.living().cloned().chain(planned).collect();
        for entry in &entries {
            match self.stream(queue, &mut catalog, &mut offsets, entry) {
                // One stream that cannot be repaired blocks no other.
                Err(RepairError::Recover(error)) => {
                    let (stream, reason) = (entry.name.clone(), error.to_string());
                    self.report.blocked.push(StreamBlocked { stream, reason });
                }
                done => done?,
            }
        }
        self.report.strays.sort_unstable();
        Ok(self.report)
    }

    /// The queue's own files, before any stream.
    fn own_files(&mut self) -> Result<Own, RepairError> {
        let queue = self.identify()?;
        if self.does() {
            remove_leftover(&*self.disk)?;
        }
        let mut catalog = self.catalog(queue)?;
        let offsets = self.cursors(queue)?;
        let found = strays(&*self.disk, &catalog)?;
        let more = found.more();
        self.report.strays.extend(found.names.into_iter().chain(more));
        let planned = self.adopt(queue, &mut catalog, &found.orphans)?;
        Ok(Own { queue, catalog, offsets, planned })
    }

    /// The queue's id; its file is written again if it is gone or damaged.
    fn identify(&mut self) -> Result<QueueId, RepairError> {
        let (queue, from) = match meta::find(&*self.disk)? {
            Found::Id(queue) => return Ok(queue),
            Found::Rebuilt(queue) => (queue, "a journal"),
            Found::Nothing => return Err(RepairError::NotAQueue),
            Found::Version(path) => return Err(RepairError::Version { path }),
            Found::Lost => match queue_of_segments(&*self.disk)? {
                Some(queue) => (queue, "the segments"),
                None => return Err(RepairError::Lost),
            },
        };
        let path = Path::new(meta::META);
        let is_there = self.disk.stat(path).is_ok();
        let mut step = RepairStep::of(path);
        step.found.push(if is_there { "damaged" } else { "missing" }.to_owned());
        step.action = format!("write it again, with the queue's id as it stands in {from}");
        if is_there {
            step.kept = Some(self.keep(path)?);
        }
        if self.does() {
            meta::write(&*self.disk, queue)?;
        }
        self.report.steps.push(step);
        Ok(queue)
    }

    fn context(&self, queue: QueueId, entry: &Entry) -> StoreContext {
        StoreContext {
            disk: Arc::clone(&self.disk),
            files: Arc::clone(&self.files),
            room: Arc::new(Room::new(0)),
            identity: StreamIdentity { queue, stream: entry.id, incarnation: entry.incarnation },
            dir: stream_dir(entry.id),
            events: Arc::new(NoEvents),
        }
    }
}

/// Removes the copy that a repair that was killed left. It never was anybody's data: its original is in place.
pub(crate) fn remove_leftover(disk: &dyn Disk) -> Result<(), DiskError> {
    match disk.stat(Path::new(REPAIR_NEW)) {
        Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => disk.remove_file(Path::new(REPAIR_NEW)),
    }
}
