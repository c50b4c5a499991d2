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

mod held;
mod lone;
mod reader;
mod verify;

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, DiskError, FdBudget, FdLimit, FileCache, OsDisk};
use offsets::Offsets;
use offsets::journal::JournalError;
use serde::Serialize;
use thiserror::Error;
use wal_format::{QueueId, Seq, StreamIdentity};
use wal_store::{
    NoEvents, RecoverError, Room, ScanDepth, ScanReport, StoreContext, quarantine_bytes, scan_read_only,
    segment_path,
};

use crate::catalog::{Catalog, Entry};
use crate::core::{evidence_of, other_bytes, strays, stream_dir};
use crate::meta::{self, Found};
use crate::options::fds_default;
use crate::{Gap, Loss, OnFull, OpenError};

pub use held::{LossInfo, QuarantineInfo, QuarantineReport};
pub use lone::QuarantineReader;
pub use reader::InspectReader;
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

/// A queue, seen from outside.
#[derive(Debug)]
pub struct Inspection {
    disk: Arc<dyn Disk>,
    files: Arc<FileCache>,
    queue: QueueId,
}

/// A stream, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamInfo {
    /// Its name.
    pub name: String,
    /// Oldest kept seq.
    pub first: u64,
    /// End of what can be read.
    pub end: u64,
    /// The durable end as saved last; a live owner may be ahead of it.
    pub durable_end: u64,
    /// Segments that exist.
    pub segments: Vec<SegmentInfo>,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Most bytes they may have; `None`: no limit of its own.
    pub bytes_max: Option<u64>,
    /// What an append meets at a byte limit: `block`, `reject`, `drop-oldest`, `drop-newest`.
    pub on_full: &'static str,
    /// Seconds after which a segment is dropped; `None`: never.
    pub age_max_seconds: Option<f64>,
    /// Records known to be lost, ever.
    pub lost_records: u64,
    /// Which, as the owner remembers them.
    pub losses: Vec<LossInfo>,
    /// Records dropped to stay under a byte limit before every consumer had them, ever.
    pub trimmed_records: u64,
    /// Records dropped because they were too old before every consumer had them, ever.
    pub expired_records: u64,
    /// Its consumers.
    pub consumers: Vec<ConsumerInfo>,
}

/// A segment, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its id.
    pub id: u64,
    /// Its first seq.
    pub first: u64,
    /// Its end.
    pub end: u64,
    /// Bytes of its file.
    pub bytes: u64,
}

/// A consumer, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// Its saved cursor.
    pub cursor: u64,
    /// Records above it.
    pub lag_records: u64,
    /// How many of these limits dropped: they will be delivered as gaps.
    pub dropped_records: u64,
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
            Found::Lost => return Err(OpenError::Lost),
            Found::Version(path) => return Err(OpenError::Version { path }),
        };
        let files = FileCache::new(FdBudget::new(FdLimit { total: fds_default(), reserved: 1 }));
        Ok(Self { disk, files, queue })
    }

    /// Its streams, in the order of names.
    ///
    /// # Errors
    /// Something could not be read.
    pub fn streams(&self) -> Result<Vec<StreamInfo>, InspectError> {
        let catalog = self.catalog()?;
        catalog.living().map(|entry| self.stream_info(entry)).collect()
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

    /// Checks every byte of every stream.
    ///
    /// # Errors
    /// The check could not run; damage is no error.
    pub fn verify(&self) -> Result<VerifyReport, InspectError> {
        let (catalog, found) = Catalog::look(&self.disk, self.queue)?;
        let mut notes: Vec<String> = damage_of(&found).collect();
        let (_, found) = Offsets::read_only(Arc::clone(&self.disk), self.queue)?;
        notes.extend(damage_of(&found.journal));
        let checks = catalog.living().map(|entry| verify::check(self, entry));
        let streams = checks.collect::<Result<_, _>>()?;
        let found = strays(&*self.disk, &catalog)?;
        let more = found.more();
        Ok(VerifyReport { streams, notes, strays: found.names.into_iter().chain(more).collect() })
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

    fn stream_info(&self, entry: &Entry) -> Result<StreamInfo, InspectError> {
        let (scan, cursors) = self.scan(entry, ScanDepth::Ends)?;
        let dir = stream_dir(entry.id);
        let end = scan.end.get();
        let segment = |s: &wal_store::SegmentInfo| SegmentInfo {
            id: s.id.get(),
            first: s.first_seq.get(),
            end: s.end_seq.get(),
            // Retired between the scan and here: gone.
            bytes: self.disk.stat(&segment_path(&dir, s.id)).map_or(0, |stat| stat.len),
        };
        let trims = cursors.trims(entry.id).cloned().unwrap_or_default();
        let consumer = |c: &offsets::ConsumerEntry| ConsumerInfo {
            name: c.name.clone(),
            cursor: c.cursor.get(),
            lag_records: c.cursor.distance_to(scan.end),
            dropped_records: trims.ranges.iter().map(|t| t.from.max(c.cursor).distance_to(t.to)).sum(),
        };
        let limits = entry.settings.limits;
        Ok(StreamInfo {
            name: entry.name.clone(),
            first: scan.segments.first().map_or(end, |s| s.first_seq.get()),
            end,
            durable_end: cursors.durable_end(entry.id).map_or(1, |durable| durable.end.get()),
            segments: scan.segments.iter().map(segment).collect(),
            bytes: scan.file_bytes,
            bytes_max: limits.bytes_max,
            on_full: match limits.on_full {
                OnFull::Block => "block",
                OnFull::Reject => "reject",
                OnFull::DropOldest => "drop-oldest",
                OnFull::DropNewest => "drop-newest",
            },
            age_max_seconds: limits.age_max.map(|age| age.as_secs_f64()),
            trimmed_records: trims.trimmed_count,
            expired_records: trims.expired_count,
            lost_records: entry.losses.records_count(),
            losses: entry.losses.of(&entry.name).map(|loss| LossInfo::of(&loss)).collect(),
            consumers: cursors.consumers_of(entry.id).map(consumer).collect(),
        })
    }

    /// A scan, and the cursors as they were after it: what lies below their floor was retired meanwhile, and is no gap.
    fn scan(&self, entry: &Entry, depth: ScanDepth) -> Result<(ScanReport, Offsets), InspectError> {
        let before = self.cursors()?;
        let context = self.context(entry);
        let mut scan = scan_read_only(&context, &evidence_of(&before, entry.id, None), depth)?;
        let after = self.cursors()?;
        if let Some(floor) = after.floor(entry.id) {
            scan.gaps.retain(|gap| gap.to > floor.seq);
        }
        Ok((scan, after))
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

fn damage_of(journal: &offsets::journal::JournalReport) -> impl Iterator<Item = String> {
    let damaged = journal.is_damaged();
    journal.files.iter().filter(move |_| damaged).map(ToString::to_string)
}
