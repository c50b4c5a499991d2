//! What the tests share: a script of changes, the public state as a value, and a disk with a quota and a hook.

use std::io::IoSlice;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use disk::{
    Advice, Cached, DirEntry, Disk, DiskError, EntryKind, File, FileStat, FileSystem, Lock, Op, OpenMode,
    Space, SyncSite,
};
use offsets::journal::JournalOptions;
use offsets::{
    AckedRange, ConsumerEntry, CursorMove, Direction, DurableEnd, Floor, FloorReason, NewConsumer, Offsets,
    OwnedTag, Position, Save, SaveError, sites,
};
use sim_disk::SimDisk;
use wal_format::{ConsumerId, Incarnation, QueueId, SegmentId, Seq, StreamId, WallTime};

pub(crate) const QUEUE: QueueId = QueueId::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

/// Small files, so that a few saves reach a compaction.
pub(crate) const SMALL: JournalOptions =
    JournalOptions { compact_ratio: 2, compact_bytes_min: 600, file_bytes_max: 1 << 20 };

pub(crate) fn stream(id: u64) -> StreamId {
    StreamId::new(id)
}

pub(crate) fn new_consumer(of: u64, name: &str) -> NewConsumer {
    NewConsumer {
        stream: stream(of),
        incarnation: Incarnation::new(u128::from(of) << 64 | 7),
        name: name.to_owned(),
        created_at: WallTime::from_nanos(1_700_000_000_000_000_000),
        cursor: Seq::FIRST,
        hint: None,
    }
}

pub(crate) fn end(end: u64) -> DurableEnd {
    DurableEnd { end: Seq::new(end), segment: SegmentId::new(1 + end / 100), offset: 4096 + end * 10 }
}

pub(crate) fn floor(seq: u64) -> Floor {
    Floor {
        seq: Seq::new(seq),
        segment: SegmentId::new(1 + seq / 100),
        reason: FloorReason::Delivered,
        tags: vec![OwnedTag {
            producer: b"tail".to_vec(),
            value: seq.to_le_bytes().to_vec(),
            at: Seq::new(seq),
        }],
    }
}

/// Everything [`Offsets`] says, as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) consumers: Vec<ConsumerEntry>,
    pub(crate) floors: Vec<(StreamId, Floor)>,
    pub(crate) ends: Vec<(StreamId, DurableEnd)>,
    pub(crate) next: ConsumerId,
    pub(crate) clean: Option<Vec<(StreamId, DurableEnd)>>,
}

pub(crate) fn view(offsets: &Offsets) -> View {
    let streams = offsets.streams();
    View {
        consumers: offsets.consumers().cloned().collect(),
        floors: streams.iter().filter_map(|&id| Some((id, offsets.floor(id)?.clone()))).collect(),
        ends: streams.iter().filter_map(|&id| Some((id, offsets.durable_end(id)?))).collect(),
        next: offsets.next_consumer_id(),
        clean: offsets.was_clean().map(|clean| clean.ends.clone()),
    }
}

pub(crate) fn open(disk: &SimDisk) -> Offsets {
    Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL).expect("opens").0
}

/// One step of a script.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(u64, &'static str),
    Remove(u64),
    Forget(u64),
    /// Moves a consumer to a seq, with a note, saving the stream's floor and end too.
    Move {
        consumer: u64,
        to: u64,
        of: u64,
    },
    Seek {
        consumer: u64,
        to: u64,
    },
    Compact,
    CleanStop,
    Void,
}

pub(crate) fn run(offsets: &mut Offsets, step: &Step) -> Result<(), SaveError> {
    match *step {
        Step::Create(of, name) => offsets.create_consumer(new_consumer(of, name)).map(|_| ()),
        Step::Remove(consumer) => offsets.remove_consumer(ConsumerId::new(consumer)),
        Step::Forget(of) => offsets.forget_stream(stream(of)),
        Step::Move { consumer, to, of } => {
            let cursor = CursorMove {
                consumer: ConsumerId::new(consumer),
                cursor: Seq::new(to),
                hint: Some(Position { segment: SegmentId::new(1 + to / 100), offset: 4096 + to }),
                acked_above: vec![AckedRange { from: Seq::new(to + 2), to: Seq::new(to + 5) }],
                note: Some(format!("line {to}").into_bytes()),
                direction: Direction::Forward,
            };
            let save = Save {
                cursors: &[cursor],
                floors: &[(stream(of), floor(to))],
                durable_ends: &[(stream(of), end(to + 50))],
                ..Save::default()
            };
            offsets.save(&save, sites::SAVE)
        }
        Step::Seek { consumer, to } => {
            let cursors = [CursorMove::seek(ConsumerId::new(consumer), Seq::new(to))];
            offsets.save(&Save { cursors: &cursors, ..Save::default() }, sites::SAVE)
        }
        Step::Compact => offsets.compact(),
        Step::CleanStop => offsets.clean_stop(&[(stream(1), end(900)), (stream(2), end(800))]),
        Step::Void => offsets.void_clean_stop(),
    }
}

/// Creates, saves, compactions by length and by request, a seek, removals, a clean stop.
pub(crate) fn script() -> Vec<Step> {
    let mut steps = vec![Step::Create(1, "a"), Step::Create(1, "b"), Step::Create(2, "a")];
    for round in 1..=4 {
        steps.push(Step::Move { consumer: 1, to: round * 10, of: 1 });
        steps.push(Step::Move { consumer: 3, to: round * 7, of: 2 });
    }
    steps.extend([
        Step::Remove(2),
        Step::Compact,
        Step::Seek { consumer: 1, to: 3 },
        Step::Create(3, "c"),
        Step::Move { consumer: 4, to: 12, of: 3 },
        Step::Forget(3),
        Step::CleanStop,
        Step::Void,
        Step::Move { consumer: 3, to: 40, of: 2 },
    ]);
    steps
}

/// What an undisturbed run says before the first step and after each.
pub(crate) fn views(steps: &[Step]) -> Vec<View> {
    let mut offsets = open(&SimDisk::new());
    let mut views = vec![view(&offsets)];
    for step in steps {
        run(&mut offsets, step).expect("an undisturbed step");
        views.push(view(&offsets));
    }
    views
}

pub(crate) type Hook = Box<dyn FnOnce() + Send>;

/// A disk with a quota over the lengths of its files, and a hook that runs once, after the next listing.
#[derive(Clone)]
pub(crate) struct Wrapped {
    inner: Arc<dyn Disk>,
    shared: Arc<Shared>,
}

struct Shared {
    quota: AtomicU64,
    used: AtomicU64,
    after_list: Mutex<Option<Hook>>,
}

impl std::fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wrapped")
    }
}

impl Wrapped {
    pub(crate) fn new(inner: Arc<dyn Disk>) -> Self {
        let shared =
            Shared { quota: AtomicU64::new(u64::MAX), used: AtomicU64::new(0), after_list: Mutex::new(None) };
        Self { inner, shared: Arc::new(shared) }
    }

    /// From now on nothing may grow.
    pub(crate) fn fill(&self) {
        self.shared.quota.store(self.used(), Ordering::SeqCst);
    }

    pub(crate) fn used(&self) -> u64 {
        self.shared.used.load(Ordering::SeqCst)
    }

    pub(crate) fn after_next_list(&self, hook: Hook) {
        *self.shared.after_list.lock().expect("not poisoned") = Some(hook);
    }
}

impl Shared {
    fn grow(&self, path: &Path, op: Op, from: u64, to: u64) -> Result<(), DiskError> {
        let more = to.saturating_sub(from);
        if more > 0 && self.used.load(Ordering::SeqCst) + more > self.quota.load(Ordering::SeqCst) {
            return Err(DiskError::new(op, path, std::io::Error::from(std::io::ErrorKind::StorageFull)));
        }
        self.used.fetch_add(more, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug)]
struct WrappedFile {
    inner: Arc<dyn File>,
    shared: Arc<Shared>,
    path: std::path::PathBuf,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl File for WrappedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.inner.read_at(buf, offset)
    }
    fn write_all_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        let bytes: usize = bufs.iter().map(|buf| buf.len()).sum();
        self.shared.grow(&self.path, Op::Write, self.inner.len()?, offset + bytes as u64)?;
        self.inner.write_all_at(bufs, offset)
    }
    fn sync_data(&self, site: SyncSite) -> Result<(), DiskError> {
        self.inner.sync_data(site)
    }
    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.inner.set_len(len)
    }
    fn allocate(&self, range: Range<u64>) -> Result<(), DiskError> {
        self.shared.grow(&self.path, Op::Allocate, self.inner.len()?, range.end)?;
        self.inner.allocate(range)
    }
    fn advise(&self, advice: Advice, range: Range<u64>) -> Result<(), DiskError> {
        self.inner.advise(advice, range)
    }
    fn cached(&self, range: Range<u64>) -> Result<Cached, DiskError> {
        self.inner.cached(range)
    }
    fn map(&self, len: u64) -> Result<Option<bytes::Bytes>, DiskError> {
        self.inner.map(len)
    }
}

impl Wrapped {
    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(WrappedFile { inner, shared: Arc::clone(&self.shared), path: path.to_owned() })
    }
}

impl Disk for Wrapped {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        Ok(self.wrap(path, self.inner.create(path)?))
    }
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        Ok(self.wrap(path, self.inner.open(path, mode)?))
    }
    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        self.inner.sync_dir(path, site)
    }
    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.inner.link(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.inner.rename(from, to)
    }
    fn replace(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.inner.replace(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let stat = self.inner.stat(path);
        self.inner.remove_file(path)?;
        if let Ok(FileStat { kind: EntryKind::File, len, .. }) = stat {
            self.shared.used.fetch_sub(len, Ordering::SeqCst);
        }
        Ok(())
    }
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.inner.remove_dir(path)
    }
    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        self.inner.list(path, visit)?;
        let hook = self.shared.after_list.lock().expect("not poisoned").take();
        if let Some(hook) = hook {
            hook();
        }
        Ok(())
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        self.inner.lock(path)
    }
    fn space(&self) -> Result<Space, DiskError> {
        self.inner.space()
    }
    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        self.inner.stat(path)
    }
    fn file_system(&self) -> Result<FileSystem, DiskError> {
        self.inner.file_system()
    }
}
