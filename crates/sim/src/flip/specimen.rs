//! The queue that is harmed: built once by the product itself on a simulated disk, with everything about it written down.
//!
//! ```text
//!   stream s   segment 1: delivered to all, retired     floor ┐
//!              segment 2: older, its end named by 3    <──────┘
//!              segment 3: newest, at least 64 KiB
//!   consumers  slow (stays at the floor), a and b (moved in several saves)
//!   stream t   one record, never harmed
//! ```
//!
//! It is stopped in one of two ways: cleanly, or by kill -9 in the middle of a write, with durable batches behind the last save.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use disk::Op;
use pq::core::{Core, CoreConsumer, CoreStream, Seed};
use pq::{Instant, Now, Options, Seq, Start, StreamSettings, Tag, WallTime};
use sim_disk::{Fault, Moment, On, SimDisk, Snapshot};
use wal_format::SEGMENT_HEADER_BYTES;
use wal_store::{Record, Want, segment_path};

use crate::flip::map::SegmentMap;

/// The stream that is harmed.
pub(crate) const STREAM: &str = "s";
/// A stream that is not.
pub(crate) const OTHER: &str = "t";
/// The consumer that holds the floor and reads everything.
pub(crate) const SLOW: &str = "slow";
/// What the record of [`OTHER`] holds.
pub(crate) const OTHER_PAYLOAD: &[u8] = b"never harmed";
/// How much stands in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// A newest segment of 64 KiB and more: for harms of segments.
    Large,
    /// A few records: for harms of the queue's own files, which need not be read past every time.
    Small,
}

impl Size {
    /// Bytes that the segments reach at least, oldest first.
    const fn segments_bytes_min(self) -> [u64; 3] {
        match self {
            Self::Large => [5 << 10, 20 << 10, 66 << 10],
            Self::Small => [5 << 10, 5 << 10, 8 << 10],
        }
    }
}

/// How the last owner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `close` returned, and said that the stop was clean.
    Clean,
    /// kill -9 in the middle of a write.
    Killed,
}

impl Stop {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean stop",
            Self::Killed => "kill -9",
        }
    }
}

/// A stopped queue and the truth about it.
#[derive(Debug)]
pub(crate) struct Specimen {
    pub(crate) stop: Stop,
    pub(crate) snapshot: Snapshot,
    /// `payloads[i]` is what the record of seq i + 1 holds.
    pub(crate) payloads: Vec<Vec<u8>>,
    /// First seq that must still be there.
    pub(crate) floor: u64,
    /// The durable end that was saved last, exclusive.
    pub(crate) saved_end: u64,
    /// The segments above the floor, oldest first.
    pub(crate) segments: Vec<SegmentMap>,
    /// Consumers, with the cursors each was saved at, in order.
    pub(crate) consumers: Vec<(&'static str, Vec<u64>)>,
}

/// The time at which everything happens.
pub(crate) fn now() -> Now {
    Now { instant: Instant::ZERO, wall: WallTime::from_nanos(1 << 60) }
}

/// The options every owner uses.
pub(crate) fn options() -> Options {
    let stream = StreamSettings {
        segment_age_max: None,
        segment_bytes_max: 16 << 20,
        commit_interval: Duration::from_secs(3600),
        ..StreamSettings::default()
    };
    // Small buffers: they are made anew for each of a million opens.
    Options { stream, fds_max: Some(64), buffer_bytes_max: 2 << 20, ..Options::default() }
}

impl Specimen {
    /// Builds a queue and stops it.
    pub(crate) fn build(stop: Stop, size: Size) -> Self {
        Builder::new().build(stop, size)
    }

    /// The exclusive end of what was acknowledged.
    pub(crate) fn end(&self) -> u64 {
        self.payloads.len() as u64 + 1
    }

    /// The files of the queue's own state that hold something, with their lengths in bytes.
    pub(crate) fn state_files(&self) -> Vec<(PathBuf, u64)> {
        let disk = SimDisk::from_snapshot(&self.snapshot);
        let files = disk.files().into_iter().filter(|path| path.components().count() == 1);
        let files = files.map(|path| (disk.read(&path), path));
        let held = files.filter(|(bytes, _)| bytes.iter().any(|byte| *byte != 0));
        held.map(|(bytes, path)| (path, bytes.len() as u64)).collect()
    }
}

struct Builder {
    disk: SimDisk,
    core: Core,
    stream: CoreStream,
    payloads: Vec<Vec<u8>>,
    random: u64,
    consumers: Vec<(CoreConsumer, Vec<u64>)>,
}

const CONSUMERS: [&str; 3] = [SLOW, "a", "b"];
/// Lengths of payloads, one after the other, over and over.
const LENGTHS: [usize; 12] = [0, 1, 17, 64, 200, 513, 1400, 33, 4096, 7, 9000, 300];

impl Builder {
    fn new() -> Self {
        let disk = SimDisk::new();
        let core =
            Core::open(Arc::new(disk.clone()), options(), Seed::Fixed(1), now()).expect("an empty disk");
        let other = core.open_stream(OTHER, None, now()).expect("a new stream");
        other.log().append(OTHER_PAYLOAD, now()).expect("room");
        other.log().commit(now(), Want::Durable).expect("a healthy disk");
        let stream = core.open_stream(STREAM, None, now()).expect("a new stream");
        let register =
            |name| core.open_consumer(&stream, name, Start::Oldest, now()).expect("a new consumer");
        let consumers = CONSUMERS.map(register).into_iter().map(|consumer| (consumer, vec![1])).collect();
        Self { disk, core, stream, payloads: Vec::new(), random: 7, consumers }
    }

    fn build(mut self, stop: Stop, size: Size) -> Specimen {
        let [retired, older, newest] = size.segments_bytes_min();
        self.batches_until(retired);
        self.rotate();
        let floor = self.payloads.len() as u64 + 1;
        for index in 0..CONSUMERS.len() {
            self.deliver(index, floor);
        }
        self.save();
        self.batches_until(older);
        self.rotate();
        let (first_newest, mut saves) = (self.payloads.len() as u64 + 1, 1);
        while self.newest_bytes() < newest || saves < 5 {
            self.batch();
            if saves < 5 {
                self.deliver(1 + saves % 2, first_newest + saves as u64);
                self.save();
                saves += 1;
            }
        }
        let mut saved_end = self.payloads.len() as u64 + 1;
        if stop == Stop::Killed {
            self.deliver(1, saved_end);
            self.save();
            (0..5).for_each(|_| self.batch());
        } else {
            saved_end = self.payloads.len() as u64 + 1;
        }
        self.stop(stop, floor, saved_end)
    }

    fn stop(self, stop: Stop, floor: u64, saved_end: u64) -> Specimen {
        let Self { disk, core, stream, payloads, consumers, .. } = self;
        let context = stream.log().context();
        let (identity, dir) = (context.identity, context.dir.clone());
        let kept: Vec<_> = stream.log().segments().iter().copied().collect();
        let disk = match stop {
            Stop::Clean => {
                drop(stream);
                assert!(core.close(now).expect("a healthy disk").clean);
                disk
            }
            Stop::Killed => {
                disk.plan(Fault::halt(On::OpPath(Op::Write, ".seg".into()), 1, Moment::Middle));
                stream.log().append(&[0x55; 700], now()).expect("room");
                assert!(stream.log().commit(now(), Want::Durable).is_err(), "the process dies in it");
                disk.kill()
            }
        };
        let map = |info: &wal_store::SegmentInfo| {
            let path = segment_path(&dir, info.id);
            SegmentMap::read(&identity, path.clone(), &disk.read(&path), info.end_offset)
                .expect("a sound file")
        };
        let segments: Vec<SegmentMap> = kept.iter().map(map).collect();
        let names = CONSUMERS.into_iter();
        let specimen = Specimen {
            stop,
            snapshot: disk.snapshot(),
            payloads,
            floor,
            saved_end,
            segments,
            consumers: names.zip(consumers.into_iter().map(|(_, saved)| saved)).collect(),
        };
        drop(core);
        specimen.check();
        specimen
    }

    fn newest_bytes(&self) -> u64 {
        self.stream.log().segments().last().map_or(0, |segment| segment.end_offset)
    }

    fn batches_until(&mut self, bytes: u64) {
        self.batch();
        while self.newest_bytes() < bytes {
            self.batch();
        }
    }

    fn rotate(&self) {
        self.stream.log().rotate(now()).expect("a healthy disk");
    }

    /// A batch of 1 to 5 records, some with a tag.
    fn batch(&mut self) {
        let count = 1 + self.draw() % 5;
        let first = self.payloads.len();
        for _ in 0..count {
            let payload = self.payload();
            self.payloads.push(payload);
        }
        let records: Vec<Record<'_>> = self.payloads[first..].iter().map(|p| Record::new(p)).collect();
        let value = first.to_le_bytes();
        let tag = Tag::new(b"source", &value).ok().filter(|_| count.is_multiple_of(2));
        self.stream.log().append_batch(&records, tag, now()).expect("room");
        self.stream.log().commit(now(), Want::Durable).expect("a healthy disk");
    }

    fn payload(&mut self) -> Vec<u8> {
        let index = self.payloads.len();
        if index % 13 == 6 {
            // A payload that holds batches of this very stream (S30).
            let context = self.stream.log().context();
            if let Some(segment) = self.stream.log().segments().first() {
                let bytes = self.disk.read(segment_path(&context.dir, segment.id));
                return bytes[SEGMENT_HEADER_BYTES..].iter().copied().take(900).collect();
            }
        }
        // No zero bytes, so that a block of zeros always changes something.
        (0..LENGTHS[index % LENGTHS.len()]).map(|_| 1 + (self.draw() % 255) as u8).collect()
    }

    fn draw(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Delivers up to `to` to a consumer, and acknowledges it.
    fn deliver(&mut self, index: usize, to: u64) {
        let (consumer, saved) = &mut self.consumers[index];
        let mut buffers = wal_store::ReadBuffers::default();
        while let Some(delivery) =
            self.core.next(&self.stream, consumer, 1 << 20, &mut buffers, now()).expect("a healthy disk")
        {
            let to = Seq::new(to).min(delivery.next());
            if to > delivery.first() {
                self.core.acknowledge(consumer, &delivery, to, None).expect("it was delivered");
            }
        }
        saved.push(consumer.cursor().get());
        // What was read and not acknowledged is read again.
        self.core.release(consumer);
        *consumer = self
            .core
            .open_consumer(&self.stream, CONSUMERS[index], Start::Oldest, now())
            .expect("given back");
    }

    fn save(&self) {
        self.core.tick(now()).expect("a healthy disk");
    }
}

impl Specimen {
    /// What the rest relies on.
    fn check(&self) {
        assert_eq!(self.segments.len(), 2, "the first one was retired");
        assert!(self.floor > 1 && self.segments[0].first_seq == self.floor);
        assert_eq!(self.segments[1].end_seq, self.end());
        for (name, saved) in &self.consumers {
            assert!(saved.windows(2).all(|pair| pair[0] <= pair[1]), "{name}: {saved:?}");
        }
    }
}
