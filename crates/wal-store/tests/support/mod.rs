//! A world for one log: a simulated disk, a budget, and what was told to the outside.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use disk::{Disk, FdBudget, FdLimit, FileCache};
use sim_disk::SimDisk;
use wal_format::{
    BatchHeader, FrameKind, Incarnation, Instant, Now, QueueId, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentId, Seq, StreamId, StreamIdentity, WallTime, read_batch,
};
use wal_store::{Events, Log, Recovery, Room, Settings, StoreContext};

pub(crate) const DIR: &str = "streams/0000000000000007";

pub(crate) fn identity() -> StreamIdentity {
    StreamIdentity { queue: QueueId::new(5), stream: StreamId::new(7), incarnation: Incarnation::new(9) }
}

/// A moment, in milliseconds since open.
pub(crate) fn at(millis: u64) -> Now {
    let nanos = millis * 1_000_000;
    Now { instant: Instant::from_nanos(nanos), wall: WallTime::from_nanos(1_000_000_000_000 + nanos) }
}

/// What a log told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Enlist,
    Due(Instant),
    Readable(Seq),
    Rotated(Seq, SegmentId),
}

#[derive(Debug, Default)]
pub(crate) struct Ears(pub(crate) Mutex<Vec<Told>>);

impl Ears {
    pub(crate) fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Events for Ears {
    fn enlist(&self, _stream: StreamId) {
        self.0.lock().unwrap().push(Told::Enlist);
    }
    fn due(&self, _stream: StreamId, at: Instant) {
        self.0.lock().unwrap().push(Told::Due(at));
    }
    fn readable(&self, _stream: StreamId, end: Seq) {
        self.0.lock().unwrap().push(Told::Readable(end));
    }
    fn rotated(&self, _stream: StreamId, old_end: Seq, new_open: SegmentId) {
        self.0.lock().unwrap().push(Told::Rotated(old_end, new_open));
    }
}

pub(crate) struct World {
    pub(crate) disk: SimDisk,
    pub(crate) ears: Arc<Ears>,
    pub(crate) room: Arc<Room>,
    pub(crate) files: Arc<FileCache>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_room(64 << 20)
    }

    pub(crate) fn with_room(bytes: usize) -> Self {
        let disk = SimDisk::new();
        for dir in ["streams", DIR] {
            disk.create_dir(Path::new(dir)).unwrap();
        }
        let site = disk::SyncSite::new("test.setup");
        for dir in ["", "streams"] {
            disk.sync_dir(Path::new(dir), site).unwrap();
        }
        Self::on(disk, bytes)
    }

    pub(crate) fn on(disk: SimDisk, bytes: usize) -> Self {
        let files = FileCache::new(FdBudget::new(FdLimit { total: 32, reserved: 8 }));
        Self { disk, ears: Arc::default(), room: Arc::new(Room::new(bytes)), files }
    }

    pub(crate) fn context(&self) -> StoreContext {
        StoreContext {
            disk: Arc::new(self.disk.clone()),
            files: Arc::clone(&self.files),
            room: Arc::clone(&self.room),
            identity: identity(),
            dir: PathBuf::from(DIR),
            events: self.ears.clone(),
        }
    }

    pub(crate) fn log(&self, settings: Settings) -> Log {
        Log::open(self.context(), &Recovery::fresh(), settings).unwrap()
    }

    /// The segments on the disk as a process sees them, decoded without any of the crate under test.
    pub(crate) fn files(&self) -> Vec<Decoded> {
        self.disk.files().iter().map(|path| decode(&self.disk.read(path), path)).collect()
    }

    /// All payloads that stand in whole batches, along the chain, as a process sees them.
    pub(crate) fn payloads(&self) -> Vec<(u64, Vec<u8>)> {
        chain(&self.files())
    }

    /// The same after a power cut that lost everything not synced.
    pub(crate) fn durable_payloads(&self) -> Vec<(u64, Vec<u8>)> {
        let copy = SimDisk::from_snapshot(&self.disk.snapshot());
        let left = copy.power_cut(&sim_disk::Survival::Nothing);
        let files: Vec<_> = left.files().iter().map(|path| decode(&left.read(path), path)).collect();
        chain(&files)
    }
}

/// A segment file, decoded.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) path: PathBuf,
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) batches: Vec<(u64, BatchHeader)>,
    pub(crate) records: Vec<(u64, Vec<u8>, u64)>,
    pub(crate) metas: Vec<Vec<u8>>,
    pub(crate) len: u64,
}

pub(crate) fn decode(bytes: &[u8], path: &Path) -> Decoded {
    let header = bytes.get(..SEGMENT_HEADER_BYTES).and_then(|bytes| SegmentHeader::decode(bytes).ok());
    let mut decoded = Decoded {
        path: path.to_owned(),
        header,
        batches: Vec::new(),
        records: Vec::new(),
        metas: Vec::new(),
        len: bytes.len() as u64,
    };
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    while let Some(rest) = bytes.get(offset as usize..).filter(|rest| !rest.is_empty()) {
        let Ok(batch) = read_batch(&identity(), rest) else { break };
        decoded.batches.push((offset, *batch.header()));
        for frame in batch.frames() {
            match frame.kind {
                FrameKind::Record => {
                    decoded.records.push((frame.seq.unwrap().get(), frame.payload.to_vec(), offset));
                }
                FrameKind::Meta => decoded.metas.push(frame.payload.to_vec()),
            }
        }
        offset = batch.header().end_offset(offset);
    }
    decoded
}

/// Follows the predecessors from the newest segment with a header back.
fn chain(files: &[Decoded]) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut next = files.iter().filter(|file| !file.batches.is_empty()).max_by(|a, b| a.path.cmp(&b.path));
    let mut end = u64::MAX;
    while let Some(file) = next {
        let header = file.header.expect("a batch without a header");
        let mut records: Vec<_> =
            file.records.iter().filter(|r| r.2 < end).map(|r| (r.0, r.1.clone())).collect();
        records.append(&mut all);
        all = records;
        next = header.predecessor.map(|p| {
            end = p.end_offset;
            let name = format!("{:016x}.seg", p.id.get());
            files.iter().find(|file| file.path.ends_with(&name)).expect("a predecessor is missing")
        });
    }
    all
}

/// Settings for tests: waits of a nanosecond, so that back-offs sleep for nothing.
pub(crate) fn settings() -> Settings {
    Settings {
        retry_after: Duration::from_nanos(1),
        probe_after: Duration::from_millis(10),
        segment_age_max: None,
        ..Settings::default()
    }
}

pub(crate) fn seqs(payloads: &[(u64, Vec<u8>)]) -> Vec<u64> {
    payloads.iter().map(|(seq, _)| *seq).collect()
}
