//! Opening: the order of recovery, and the report of what was found.
//!
//! ```text
//!   lock → queue.meta → catalog → cursors → void the clean stop → half-deleted streams → each stream → strays
//! ```
//!
//! Nothing of a user's is deleted by it, and one damaged stream never blocks the rest: it is paused, with its reason, and tried again
//! when somebody asks for it.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use disk::{Disk, ErrorClass, FdBudget, FdLimit, FileCache};
use offsets::Offsets;
use scheduler::{Backoff, Cache, Policy};
use wal_format::{Incarnation, Now, QueueId, SegmentId, Seq, StreamId, StreamIdentity, WallTime};
use wal_store::{Evidence, Log, Room, StoreContext, recover};

use crate::catalog::{Catalog, Entry};
use crate::clock::locked;
use crate::meta::{self, Found};
use crate::options::{FDS_COMMON_MIN, FDS_HELD, FDS_RESERVED};
use crate::repair::remove_leftover;
use crate::{OpenError, OpenReport, Options, StreamReport};

use super::ages::Ages;
use super::consumer::ConsumerState;
use super::hub::{Hub, Signals};
use super::ids::{Ids, Seed};
use super::layout::{LOCK, QUEUE_DIR, STREAMS, STREAMS_DIR, ensure_dir, finish_delete, strays, stream_dir};
use super::listener::Listener;
use super::reserve::Reserve;
use super::{Core, Held, Ledger, Paused, StreamState, Streams};

impl Core {
    /// Opens the queue on this disk, creates it if there is none, recovers what the last owner left.
    ///
    /// # Errors
    /// Somebody owns it, a setting cannot be, or the disk refused the queue's own files.
    pub fn open(disk: Arc<dyn Disk>, options: Options, seed: Seed, now: Now) -> Result<Self, OpenError> {
        options.validate()?;
        let fds = budget(options.fds_max);
        let held_count = NonZeroUsize::new(FDS_HELD).unwrap_or(NonZeroUsize::MIN);
        let permit = fds.acquire_reserved(held_count);
        let lock = disk.lock(Path::new(LOCK)).map_err(|source| match source.class() {
            ErrorClass::InUse => OpenError::InUse { source },
            _ => OpenError::Disk(source),
        })?;
        let mut report = OpenReport::default();
        let mut ids = Ids::new(seed);
        let queue = identify(&*disk, &mut ids, &mut report)?;
        remove_leftover(&*disk)?;
        ensure_dir(&*disk, Path::new(STREAMS), QUEUE_DIR)?;
        // A directory made by an open that was killed before its sync counts from here on.
        disk.sync_dir(Path::new(""), QUEUE_DIR)?;
        disk.sync_dir(Path::new(STREAMS), STREAMS_DIR)?;
        let (catalog, found) = Catalog::open(Arc::clone(&disk), queue)?;
        note_journal(&mut report, &found.journal, found.ignored_count);
        let (offsets, found) = Offsets::open(Arc::clone(&disk), queue)?;
        note_journal(&mut report, &found.journal, found.ignored_count);
        note_file_system(&mut report, &*disk);
        let cache = Cache::new(policy(&options), backoff(&options), ids.draw());
        let signals = if options.push_back.is_some() { Signals::Off } else { Signals::On };
        let room = Room::new(usize::try_from(options.buffer_bytes_max).unwrap_or(usize::MAX));
        room.space().set_limit(options.bytes_max);
        let room = Arc::new(room);
        let mut core = Self {
            files: FileCache::new(Arc::clone(&fds)),
            reserve: Reserve::find(Arc::clone(&disk), Arc::clone(&room), options.reserve_bytes, now.instant),
            room,
            queue,
            hub: Arc::new(Hub::new(cache, signals)),
            ages: Ages::new(now.instant, offsets.open_time()),
            usage: super::usage::Usage::default(),
            ledger: Mutex::new(Ledger { catalog, offsets, last_tick: None, failures: 0 }),
            streams: RwLock::new(Streams::default()),
            report,
            phase: 0.into(),
            saves: 0.into(),
            ids: Mutex::new(ids),
            quiet: super::quiet::Quiet::default(),
            held: Mutex::new(Some(Held { _lock: lock, _permit: permit })),
            disk,
            options,
        };
        core.hub.saw(now.instant);
        let report = std::mem::take(&mut core.report);
        (core.streams, core.report) = core.open_streams(report, now)?;
        core.reserve.keep(now.instant);
        core.count_other(&locked(&core.ledger));
        // Over a limit that was lowered, or with an age: the tick looks at them.
        core.all_streams().iter().for_each(|stream| watch(&core.hub, stream));
        Ok(core)
    }

    fn open_streams(
        &self,
        mut report: OpenReport,
        now: Now,
    ) -> Result<(RwLock<Streams>, OpenReport), OpenError> {
        let ledger = &mut *locked(&self.ledger);
        report.clean = ledger.offsets.was_clean().is_some();
        let clean: HashMap<StreamId, SegmentId> =
            ledger.offsets.was_clean().map_or_else(HashMap::new, |stop| {
                stop.ends.iter().map(|(stream, end)| (*stream, end.segment)).collect()
            });
        // Before the first write of this run, recovery's among them.
        self.saving(now.instant, || ledger.offsets.void_clean_stop())?;
        let entries: Vec<Entry> = ledger.catalog.entries().cloned().collect();
        for entry in entries.iter().filter(|entry| entry.deleted) {
            if let Err(error) = finish_delete(&*self.disk, &self.files, ledger, entry.id) {
                report.notes.push(format!("deleted stream {:?} is not gone yet: {error}", entry.name));
            }
        }
        let known: Vec<StreamId> = entries.iter().map(|entry| entry.id).collect();
        for stream in ledger.offsets.streams() {
            if !known.contains(&stream) {
                report.notes.push(format!("cursors of an unknown stream {stream} are kept, but not used"));
            }
        }
        let opener = self.opener(now.wall);
        let mut streams = Streams::default();
        for entry in entries.into_iter().filter(|entry| !entry.deleted) {
            let (opened, told) = opener.open(ledger, &entry, clean.get(&entry.id).copied());
            report.streams.push(told);
            streams.add(entry, opened);
        }
        report.streams.sort_by(|a, b| a.name.cmp(&b.name));
        let found = strays(&*self.disk, &ledger.catalog)?;
        report.notes.extend(found.more());
        // Their entries are lost, perhaps: their ids are not given to others, who would find them in their place.
        ledger.catalog.spend(found.ids.into_iter().chain(ledger.offsets.streams()));
        report.strays = found.names;
        Ok((RwLock::new(streams), report))
    }

    pub(super) fn opener(&self, now: WallTime) -> Opener<'_> {
        let (disk, files, room, hub) = (&self.disk, &self.files, &self.room, &self.hub);
        Opener { disk, files, room, hub, queue: self.queue, now }
    }
}

impl Streams {
    pub(super) fn add(&mut self, entry: Entry, opened: Result<Arc<StreamState>, String>) {
        match opened {
            Ok(stream) => {
                self.by_name.insert(stream.name.clone(), stream.id);
                self.by_id.insert(stream.id, stream);
            }
            Err(reason) => {
                self.paused.insert(entry.name, Paused { id: entry.id, reason });
            }
        }
    }
}

/// What opening a stream needs of the core.
pub(super) struct Opener<'a> {
    disk: &'a Arc<dyn Disk>,
    files: &'a Arc<FileCache>,
    room: &'a Arc<Room>,
    hub: &'a Arc<Hub>,
    queue: QueueId,
    /// When losses are found.
    now: WallTime,
}

impl Opener<'_> {
    /// Recovers one stream and makes it run, or says why it cannot.
    pub(super) fn open(
        &self,
        ledger: &mut Ledger,
        entry: &Entry,
        clean: Option<SegmentId>,
    ) -> (Result<Arc<StreamState>, String>, StreamReport) {
        let mut told = StreamReport::of(&entry.name);
        let opened = self.try_open(ledger, entry, clean, &mut told);
        if let Err(reason) = &opened {
            tracing::warn!(stream = %entry.name, %reason, "stream paused");
            told.paused = Some(reason.clone());
        }
        (opened, told)
    }

    fn try_open(
        &self,
        ledger: &mut Ledger,
        entry: &Entry,
        clean: Option<SegmentId>,
        told: &mut StreamReport,
    ) -> Result<Arc<StreamState>, String> {
        let dir = stream_dir(entry.id);
        // The entry is durable before the directory: a crash in between leaves an entry alone.
        ensure_dir(&**self.disk, &dir, STREAMS_DIR).map_err(|e| e.to_string())?;
        let identity = StreamIdentity { queue: self.queue, stream: entry.id, incarnation: entry.incarnation };
        // The ear needs the readable end, which only the log can tell; nobody commits before both are there.
        let ear = Arc::new(Listener::new(entry.id, Arc::clone(self.hub), Seq::FIRST));
        let context = StoreContext {
            disk: Arc::clone(self.disk),
            files: Arc::clone(self.files),
            room: Arc::clone(self.room),
            identity,
            dir,
            events: Arc::clone(&ear) as _,
        };
        let recovery =
            recover(&context, &evidence_of(&ledger.offsets, entry.id, clean)).map_err(|e| e.to_string())?;
        let new = ledger.catalog.add_losses(entry.id, &recovery.gaps, self.now);
        let new = new.map_err(|e| e.to_string())?;
        told.fill(&recovery, &new);
        let log = Log::open(context, &recovery, entry.settings.clone()).map_err(|e| e.to_string())?;
        let _ = ear.cell.publish(log.ends().readable.get());
        let rotated: Vec<_> = recovery.segments.iter().map(|s| (s.id, s.end_seq)).collect();
        self.hub.open_stream(&ear, &rotated, recovery.next_segment);
        let losses = ledger.catalog.named(&entry.name).map(|e| e.losses.clone()).unwrap_or_default();
        let stream = StreamState::new(entry.name.clone(), log, ear, losses);
        add_consumers(ledger, &stream);
        watch(self.hub, &stream);
        Ok(Arc::new(stream))
    }
}

/// A stream with something a tick is to do about its limits is shown to the tick.
pub(super) fn watch(hub: &Hub, stream: &StreamState) {
    if stream.log.limits().age_max.is_some() || stream.log.space_pressure().excess > 0 {
        hub.touch(stream.id);
    }
}

fn add_consumers(ledger: &Ledger, stream: &StreamState) {
    let floor = ledger.offsets.floor(stream.id).map_or(Seq::FIRST, |floor| floor.seq);
    if let Some(trims) = ledger.offsets.trims(stream.id) {
        stream.dropped.set(trims);
    }
    stream.raise_floor(floor);
    for entry in ledger.offsets.consumers_of(stream.id) {
        if entry.incarnation == stream.identity.incarnation {
            let at = stream.dropped.lift(entry.cursor, floor);
            stream.add_consumer(ConsumerState::new(entry, stream.identity, at));
        }
    }
}

/// What the cursors say about a stream before its files are looked at.
pub(crate) fn evidence_of(offsets: &Offsets, stream: StreamId, clean: Option<SegmentId>) -> Evidence {
    let floor = offsets.floor(stream);
    Evidence {
        floor: floor.map(|floor| (floor.seq, floor.segment)),
        durable_end: offsets.durable_end(stream).map(|end| end.end),
        cursors_max: offsets.consumers_of(stream).map(|consumer| consumer.cursor).max(),
        floor_tags: floor.map(|floor| floor.tags.iter().map(tag_of).collect()).unwrap_or_default(),
        clean,
    }
}

fn tag_of(tag: &offsets::OwnedTag) -> wal_store::OwnedTag {
    wal_store::OwnedTag { producer: tag.producer.clone(), value: tag.value.clone(), at: tag.at }
}

fn identify(disk: &dyn Disk, ids: &mut Ids, report: &mut OpenReport) -> Result<QueueId, OpenError> {
    match meta::find(disk)? {
        Found::Id(queue) => Ok(queue),
        Found::Rebuilt(queue) => {
            meta::write(disk, queue)?;
            report.notes.push(format!("{} was missing or damaged and is written again", meta::META));
            Ok(queue)
        }
        Found::Nothing => {
            let queue = QueueId::new(ids.identity());
            meta::write(disk, queue)?;
            report.created = true;
            Ok(queue)
        }
        Found::Lost => Err(OpenError::Lost),
        Found::Version(path) => Err(OpenError::Version { path }),
    }
}

fn note_journal(report: &mut OpenReport, journal: &offsets::journal::JournalReport, ignored: u64) {
    if journal.is_damaged() {
        report.notes.extend(journal.files.iter().map(ToString::to_string));
        let (mended, lost) = (journal.mended_count, journal.lost_count);
        report.notes.push(format!("{mended} journal entries were mended, {lost} are lost"));
    }
    if ignored > 0 {
        report.notes.push(format!("{ignored} journal bodies were not understood"));
    }
}

/// A user should know where less is promised. A disk that cannot tell what it is promises nothing else than before.
fn note_file_system(report: &mut OpenReport, disk: &dyn Disk) {
    if let Ok(file_system) = disk.file_system()
        && let Some(notice) = file_system.notice()
    {
        tracing::warn!(%file_system, %notice, "durability depends on what the queue lies on");
        report.notes.push(format!("the queue lies on {file_system}: {notice}"));
    }
}

fn policy(options: &Options) -> Policy {
    options.push_back.map_or(Policy::Signal, |push_back| Policy::Poll { push_back })
}

fn backoff(options: &Options) -> Backoff {
    Backoff { first: options.backoff_first, max: options.backoff_max, jitter_percent: 20 }
}

/// The budget: as asked for, else the process's limit less a margin, and at least what is needed.
fn budget(fds_max: Option<usize>) -> Arc<FdBudget> {
    let total = fds_max.unwrap_or_else(crate::options::fds_default);
    let reserved = FDS_RESERVED.min(total.saturating_sub(FDS_COMMON_MIN));
    FdBudget::new(FdLimit { total, reserved })
}

/// A new life of a stream.
pub(super) fn new_incarnation(ids: &mut Ids) -> Incarnation {
    Incarnation::new(ids.identity())
}
