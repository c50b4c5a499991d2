//! For tests: segment files built byte by byte from the format, sound or damaged in any way, on a simulated disk.
//!
//! It writes what a writer of any past run may have left, so that reading and recovery are tested against the format and
//! not against the writer of today.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, FdBudget, FdLimit, FileCache, SyncSite};
use sim_disk::SimDisk;
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, FrameKind, Incarnation, Marks, Predecessor, QueueId,
    SegmentHeader, SegmentId, Seq, StreamId, StreamIdentity, Tag, WallTime, batch_checksum, encode_frame,
};

use crate::{
    Chunk, Gap, Item, NoEvents, ReadBuffers, ReadFrom, ReadLimits, Room, SegmentList, StoreContext,
    segment_path,
};

const SITE: SyncSite = SyncSite::new("test.build");

/// The identity of the stream under test.
pub(crate) const IDENTITY: StreamIdentity = StreamIdentity {
    queue: QueueId::new(0xABCD),
    stream: StreamId::new(7),
    incarnation: Incarnation::new(0x0123_4567_89AB_CDEF),
};

/// Bytes the writer of the built segments leaves unsynced at most.
pub(crate) const UNSYNCED_BYTES_MAX: u64 = 1 << 16;

/// The directory of the stream under test.
pub(crate) fn dir() -> PathBuf {
    PathBuf::from("streams/0000000000000007")
}

/// The context of a process that sees `disk`.
pub(crate) fn context(disk: &SimDisk) -> StoreContext {
    let budget = FdBudget::new(FdLimit { total: 16, reserved: 4 });
    StoreContext {
        disk: Arc::new(disk.clone()),
        files: FileCache::new(budget),
        room: Arc::new(Room::new(1 << 20)),
        identity: IDENTITY,
        dir: dir(),
        events: Arc::new(NoEvents),
    }
}

/// An empty disk with the stream's directory, durable.
pub(crate) fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("streams")).unwrap();
    disk.create_dir(&dir()).unwrap();
    disk.sync_dir(Path::new(""), SITE).unwrap();
    disk.sync_dir(Path::new("streams"), SITE).unwrap();
    disk.sync_dir(&dir(), SITE).unwrap();
    disk
}

/// The payload every builder gives a seq, in this life of the stream.
pub(crate) fn payload(seq: u64, life: u64) -> Vec<u8> {
    let len = 5 + usize::try_from(seq * 13 % 90).unwrap();
    (0..len).map(|i| u8::try_from((seq * 31 + life * 101 + i as u64 * 7) % 251).unwrap() | 1).collect()
}

/// One segment file under construction.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    pub(crate) bytes: Vec<u8>,
    /// Where each batch stands.
    pub(crate) batches: Vec<Range<usize>>,
    pub(crate) next: u64,
    pub(crate) prev: u64,
    /// What the next batches say is durable (exclusive end).
    pub(crate) durable_end: u64,
    /// Distinguishes payloads of records that once had the same seq.
    pub(crate) life: u64,
    tags: Vec<(Vec<u8>, Vec<u8>)>,
    identity: StreamIdentity,
}

impl Segment {
    /// A segment with a header, whose first record will be `first`.
    pub(crate) fn new(id: u64, first: u64, predecessor: Option<&Segment>) -> Self {
        let named = predecessor.map(|p| Predecessor { id: p.id, end_offset: p.end_offset() });
        Self::with(IDENTITY, id, first, named)
    }

    pub(crate) fn with(
        identity: StreamIdentity,
        id: u64,
        first: u64,
        predecessor: Option<Predecessor>,
    ) -> Self {
        let header = SegmentHeader {
            identity,
            segment: SegmentId::new(id),
            first_seq: Seq::new(first),
            created_at: WallTime::from_nanos(id.saturating_add(1_000)),
            unsynced_bytes_max: UNSYNCED_BYTES_MAX,
            predecessor,
        };
        Self {
            id: header.segment,
            bytes: header.encode().to_vec(),
            batches: Vec::new(),
            next: first,
            prev: first - 1,
            durable_end: first,
            life: 0,
            tags: Vec::new(),
            identity,
        }
    }

    pub(crate) fn end_offset(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn life(mut self, life: u64) -> Self {
        self.life = life;
        self
    }

    /// What the following batches say is durable.
    pub(crate) fn durable(mut self, end: u64) -> Self {
        self.durable_end = end;
        self
    }

    /// A tag in the next batch.
    pub(crate) fn tag(mut self, producer: &str, value: &str) -> Self {
        self.tags.push((producer.into(), value.into()));
        self
    }

    /// The writer skips seqs: the next batch begins at `first`.
    pub(crate) fn skip_to(mut self, first: u64) -> Self {
        self.next = first;
        self
    }

    /// A batch of `count` records with the usual payloads.
    pub(crate) fn batch(self, count: u64) -> Self {
        let (next, life) = (self.next, self.life);
        let payloads: Vec<_> = (next..next + count).map(|seq| payload(seq, life)).collect();
        self.batch_of(&payloads, BatchFlags::NONE)
    }

    /// As [`Segment::batch`], padded to the block.
    pub(crate) fn padded(self, count: u64) -> Self {
        let (next, life) = (self.next, self.life);
        let payloads: Vec<_> = (next..next + count).map(|seq| payload(seq, life)).collect();
        self.batch_of(&payloads, BatchFlags::PADDED)
    }

    pub(crate) fn batch_of(mut self, payloads: &[Vec<u8>], flags: BatchFlags) -> Self {
        let first = Seq::new(self.next);
        let mut frames = Vec::new();
        for (producer, value) in std::mem::take(&mut self.tags) {
            Tag::new(&producer, &value).unwrap().encode(&mut frames, &self.identity, first);
        }
        for (seq, payload) in (self.next..).zip(payloads) {
            let marks = Marks::new(u8::try_from(seq % 16).unwrap()).unwrap();
            encode_frame(&mut frames, &self.identity, Seq::new(seq), FrameKind::Record, marks, &[payload]);
        }
        let mut checksum = batch_checksum(&self.identity, first);
        checksum.update(&frames);
        let skipped = if self.prev + 1 < self.next { BatchFlags::SKIPPED } else { BatchFlags::NONE };
        let header = BatchHeader {
            flags: flags | skipped,
            codec: 0,
            stream: self.identity.stream,
            first_seq: first,
            prev_seq: self.prev,
            durable_seq: self.durable_end.min(self.next),
            append_time: WallTime::from_nanos(self.next * 1_000),
            count: u32::try_from(payloads.len()).unwrap(),
            frames_bytes: u32::try_from(frames.len()).unwrap(),
            batch_crc: checksum.get(),
        };
        let start = self.bytes.len();
        self.bytes.extend(header.encode(&self.identity));
        self.bytes.extend(frames);
        let end = usize::try_from(header.end_offset(start as u64)).unwrap();
        self.bytes.resize(end, 0);
        self.batches.push(start..end);
        self.prev = self.next + payloads.len() as u64 - 1;
        self.next = self.prev + 1;
        self
    }

    /// The file ends here.
    pub(crate) fn cut(mut self, len: usize) -> Self {
        self.bytes.truncate(len);
        self
    }

    /// The next batch names `next - 1` as the seq before it, without a word of skipping.
    pub(crate) fn goes_on_at(mut self, next: u64) -> Self {
        (self.next, self.prev) = (next, next - 1);
        self
    }

    /// The header of batch `index` is of the next version of the format, and sound: its checksum is right.
    pub(crate) fn of_next_version(mut self, index: usize) -> Self {
        let start = self.batches[index].start;
        let header = &mut self.bytes[start..start + BATCH_HEADER_BYTES];
        let first = BatchHeader::decode(header, &self.identity).unwrap().first_seq;
        header[4] += 1;
        let (covered, sum) = header.split_at_mut(BATCH_HEADER_BYTES - 4);
        let mut checksum = batch_checksum(&self.identity, first);
        checksum.update(covered);
        sum.copy_from_slice(&checksum.get().to_le_bytes());
        self
    }

    /// Zeros a range of the file.
    pub(crate) fn zero(mut self, range: Range<usize>) -> Self {
        self.bytes[range].fill(0);
        self
    }

    /// The bytes of the frames of batch `index`.
    pub(crate) fn frames(&self, index: usize) -> Range<usize> {
        let batch = self.batches[index].clone();
        batch.start + BATCH_HEADER_BYTES..batch.end
    }

    /// Puts the file on the disk, durable, under its name.
    pub(crate) fn put(&self, disk: &SimDisk) {
        self.put_as(disk, self.id.get());
    }

    pub(crate) fn put_as(&self, disk: &SimDisk, id: u64) {
        put_file(disk, &segment_path(&dir(), SegmentId::new(id)), &self.bytes);
    }
}

/// Puts a file on the disk, durable.
pub(crate) fn put_file(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    let file = disk.create(path).unwrap();
    file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    file.sync_data(SITE).unwrap();
    disk.sync_dir(path.parent().unwrap(), SITE).unwrap();
}

/// What a reader saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) records: BTreeMap<u64, Vec<u8>>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) reads: usize,
}

impl Seen {
    /// Seqs that are in a gap.
    pub(crate) fn missing(&self) -> Vec<u64> {
        self.gaps.iter().flat_map(|gap| gap.from.get()..gap.to.get()).collect()
    }

    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.records.keys().copied().collect()
    }

    /// Adds a chunk, checking that it is dense and begins at `at`.
    pub(crate) fn add(&mut self, at: Seq, chunk: &Chunk) {
        self.reads += 1;
        let mut expected = at;
        for item in &chunk.items {
            match item {
                Item::Gap(gap) => {
                    assert_eq!(gap.from, expected);
                    assert!(gap.to > gap.from);
                    match self.gaps.last_mut() {
                        Some(last) if last.to == gap.from && last.reason == gap.reason => last.to = gap.to,
                        _ => self.gaps.push(*gap),
                    }
                    expected = gap.to;
                }
                Item::Records(run) => {
                    assert_eq!(run.first(), expected);
                    for record in run.records() {
                        assert_eq!(record.seq, expected);
                        assert_eq!(u64::from(record.marks.get()), record.seq.get() % 16);
                        let known = self.records.insert(record.seq.get(), record.payload.to_vec());
                        assert_eq!(known, None);
                        expected = record.seq.checked_next().unwrap();
                    }
                    assert_eq!(run.end(), expected);
                }
            }
        }
        assert_eq!(chunk.next, expected);
    }
}

/// Everything a reader sees from `from` to `end`, with reads of at most `bytes_max` bytes.
pub(crate) fn read_all(
    ctx: &StoreContext,
    list: &SegmentList,
    from: u64,
    end: u64,
    bytes_max: usize,
) -> Seen {
    let mut buffers = ReadBuffers::default();
    read_with(ctx, list, from, end, bytes_max, &mut buffers)
}

pub(crate) fn read_with(
    ctx: &StoreContext,
    list: &SegmentList,
    from: u64,
    end: u64,
    bytes_max: usize,
    buffers: &mut ReadBuffers,
) -> Seen {
    let mut seen = Seen::default();
    let mut at = ReadFrom { seq: Seq::new(from), hint: None };
    loop {
        let chunk = list.read(ctx, at, Seq::new(end), ReadLimits { bytes_max }, buffers).unwrap();
        seen.add(at.seq, &chunk);
        if chunk.is_empty() {
            return seen;
        }
        at = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
    }
}
