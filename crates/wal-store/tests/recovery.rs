//! Random lives of a log over a disk that loses whatever it may, against an oracle that knows only what callers saw.
//!
//! After every recovery: nothing told durable is missing, nothing is shown that was never appended, nothing that was once
//! gone comes back, no seq shows two payloads, no gap and no quarantine without damage, and recovering again decides the
//! same. With one flipped bit somewhere: at most one record is missing, in a gap of exactly its seq.

#![expect(clippy::unwrap_used, reason = "a test's helpers stop the test")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, FdBudget, FdLimit, FileCache, Op, SyncSite};
use proptest::prelude::*;
use sim_disk::{Fault, Moment, On, SimDisk, Survival, errno};
use wal_format::{Incarnation, Instant, Now, QueueId, SegmentId, Seq, StreamId, StreamIdentity, WallTime};
use wal_store::{
    Evidence, GapReason, Level, Log, NoEvents, QUARANTINE_DIR, ReadBuffers, ReadFrom, ReadLimits, Recovery,
    Room, SegmentList, Settings, StoreContext, SyncSetting, Ticket, Want, recover,
};

const DIR: &str = "streams/0000000000000003";

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    Commit(Want),
    Rotate,
    /// A consumer reads and acknowledges everything durable; its cursor is saved.
    Drain,
    /// The floor is saved at the cursor.
    Floor,
    /// Segments below the saved floor are unlinked; the directory's sync fails or not.
    Retire(bool),
    /// The n-th next sync of a segment fails; which sectors got through is the seed's choice.
    FailSync(u8, u64),
    /// The n-th next call fails.
    FailAny(u8),
    /// The kernel writes some of the cache back.
    WriteBack(u64),
    Stop,
    Kill,
    Cut(u64),
    /// A kill or a power cut (by a seed), and another power cut in the n-th call of the recovery.
    CutTwice(Option<u64>, u8, u64),
    Flip(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let want = prop_oneof![Just(Want::Batch), Just(Want::Durable)];
    prop_oneof![
        10 => (1..4u8).prop_map(Step::Append),
        8 => want.prop_map(Step::Commit),
        3 => Just(Step::Rotate),
        3 => Just(Step::Drain),
        2 => Just(Step::Floor),
        2 => any::<bool>().prop_map(Step::Retire),
        2 => (1..4u8, any::<u64>()).prop_map(|(n, seed)| Step::FailSync(n, seed)),
        1 => (1..9u8).prop_map(Step::FailAny),
        1 => any::<u64>().prop_map(Step::WriteBack),
        1 => Just(Step::Stop),
        2 => Just(Step::Kill),
        4 => any::<u64>().prop_map(Step::Cut),
        2 => (any::<Option<u64>>(), 1..30u8, any::<u64>()).prop_map(|(first, n, second)| Step::CutTwice(first, n, second)),
        2 => any::<u64>().prop_map(Step::Flip),
    ]
}

/// What the cursor journal of a queue would hold, durable.
#[derive(Debug, Clone)]
struct Saved {
    cursor: u64,
    floor: (u64, u64),
    durable_end: u64,
    clean: Option<u64>,
}

struct World {
    disk: SimDisk,
    log: Option<Log>,
    sync: SyncSetting,
    saved: Saved,
    uid: u64,
    /// Seq of everything ever appended.
    appended: BTreeMap<u64, u64>,
    tickets: Vec<(Ticket, Vec<u64>)>,
    /// What must be there, by seq: told durable, or shown by a recovery.
    held: BTreeMap<u64, u64>,
    /// What a recovery did not show any more.
    voided: HashSet<u64>,
    flipped: bool,
    lost: BTreeSet<u64>,
    next: u64,
}

fn context(disk: &SimDisk) -> StoreContext {
    StoreContext {
        disk: Arc::new(disk.clone()),
        files: FileCache::new(FdBudget::new(FdLimit { total: 16, reserved: 4 })),
        room: Arc::new(Room::new(4 << 20)),
        identity: StreamIdentity {
            queue: QueueId::new(1),
            stream: StreamId::new(3),
            incarnation: Incarnation::new(77),
        },
        dir: PathBuf::from(DIR),
        events: Arc::new(NoEvents),
    }
}

fn now(uid: u64) -> Now {
    // Far apart, so that retries and probes are always due.
    Now { instant: Instant::from_nanos(uid * 3_600_000_000_000), wall: WallTime::from_nanos(uid) }
}

fn payload(uid: u64) -> Vec<u8> {
    let len = 8 + (uid * 37 % 400) as usize;
    uid.to_le_bytes().into_iter().chain((8..len).map(|i| (i as u64 * uid % 253) as u8 | 1)).collect()
}

impl World {
    fn new(sync: SyncSetting) -> Self {
        let disk = SimDisk::new();
        let site = SyncSite::new("test.setup");
        for (dir, parent) in [("streams", ""), (DIR, "streams")] {
            disk.create_dir(Path::new(dir)).unwrap();
            disk.sync_dir(Path::new(parent), site).unwrap();
        }
        let saved = Saved { cursor: 1, floor: (1, 1), durable_end: 1, clean: None };
        let mut world = Self {
            disk,
            log: None,
            sync,
            saved,
            uid: 0,
            appended: BTreeMap::new(),
            tickets: Vec::new(),
            held: BTreeMap::new(),
            voided: HashSet::new(),
            flipped: false,
            lost: BTreeSet::new(),
            next: 1,
        };
        world.start();
        world
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            floor: Some((Seq::new(self.saved.floor.0), SegmentId::new(self.saved.floor.1))),
            durable_end: Some(Seq::new(self.saved.durable_end)),
            cursors_max: Some(Seq::new(self.saved.cursor)),
            floor_tags: Vec::new(),
            clean: self.saved.clean.map(SegmentId::new),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            segment_bytes_max: 9_000,
            unsynced_bytes_max: 2_000,
            batch_bytes_max: 2_000,
            record_bytes_max: 1_000,
            segment_age_max: None,
            sync: self.sync,
            ..Settings::default()
        }
    }

    /// What callers were told becomes what must hold.
    fn note_acks(&mut self) {
        for (ticket, uids) in &self.tickets {
            if let Some(Ok(first)) = ticket.peek(Level::Durable) {
                self.held.extend((first.get()..).zip(uids.iter().copied()));
            }
        }
    }

    fn start(&mut self) {
        let recovery = recover(&context(&self.disk), &self.evidence()).unwrap();
        self.check(&recovery);
        self.saved.clean = None;
        self.tickets.clear();
        self.log = Some(Log::open(context(&self.disk), &recovery, self.settings()).unwrap());
    }

    fn shown(&self, list: &SegmentList, end: Seq) -> (BTreeMap<u64, u64>, BTreeSet<u64>) {
        let ctx = context(&self.disk);
        let (mut records, mut missing) = (BTreeMap::new(), BTreeSet::new());
        let mut from = ReadFrom { seq: Seq::new(self.saved.floor.0), hint: None };
        let mut buffers = ReadBuffers::default();
        while from.seq < end {
            let chunk = list.read(&ctx, from, end, ReadLimits { bytes_max: 3_000 }, &mut buffers).unwrap();
            if chunk.is_empty() {
                missing.extend(from.seq.get()..end.get());
                break;
            }
            for record in chunk.records() {
                let uid = u64::from_le_bytes(record.payload[..8].try_into().unwrap());
                assert_eq!(record.payload, payload(uid), "bytes of {}", record.seq);
                records.insert(record.seq.get(), uid);
            }
            for gap in chunk.gaps().filter(|gap| gap.reason == GapReason::Lost) {
                missing.extend(gap.from.get()..gap.to.get());
            }
            from = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
        }
        (records, missing)
    }

    fn check(&mut self, recovery: &Recovery) {
        let floor = self.saved.floor.0;
        let (shown, missing) = self.shown(&recovery.segments, recovery.next_seq);
        let reported: BTreeSet<u64> =
            recovery.gaps.iter().flat_map(|gap| gap.from.get()..gap.to.get()).collect();
        assert!(reported.is_subset(&missing), "reported {reported:?}, found by reading {missing:?}");
        if !self.flipped {
            assert!(missing.is_empty(), "a gap without damage: {missing:?}");
            assert!(self.quarantine_is_empty(), "quarantine without damage");
        }
        for (seq, uid) in self.held.range(floor..) {
            match shown.get(seq) {
                Some(there) => assert_eq!(there, uid, "seq {seq} shows another payload"),
                None => {
                    assert!(missing.contains(seq), "seq {seq} was told durable and is silently gone");
                    self.lost.insert(*seq);
                }
            }
        }
        assert!(self.lost.len() <= usize::from(self.flipped), "lost {:?}", self.lost);
        for (seq, uid) in shown.range(floor..) {
            assert!(!self.voided.contains(uid), "seq {seq} came back");
            assert_eq!(self.appended.get(uid), Some(seq), "seq {seq} was never appended so");
        }
        let next = recovery.next_seq.get();
        assert!(
            self.held.keys().all(|seq| *seq < next) && self.saved.cursor <= next,
            "a seq would be used again"
        );
        let kept: HashSet<u64> = shown.values().copied().collect();
        let gone = self.appended.iter().filter(|(uid, seq)| **seq >= floor && !kept.contains(uid));
        self.voided.extend(gone.map(|(uid, _)| *uid));
        self.held.extend(shown);
        self.lost.iter().for_each(|seq| {
            self.held.remove(seq);
        });
        self.next = next;
    }

    fn quarantine_is_empty(&self) -> bool {
        let mut empty = true;
        let listed = self.disk.list(Path::new(QUARANTINE_DIR), &mut |_| {
            empty = false;
            std::ops::ControlFlow::Continue(())
        });
        listed.is_err() || empty
    }

    fn restart(&mut self, disk: SimDisk) {
        self.note_acks();
        self.log = None;
        self.disk = disk;
    }

    fn take(&mut self, step: &Step) {
        let at = now(self.uid + 1);
        match step {
            Step::Append(count) => {
                self.saved.clean = None;
                let uids: Vec<u64> = (1..=u64::from(*count)).map(|n| self.uid + n).collect();
                self.uid += u64::from(*count);
                for uid in uids {
                    let Ok(ticket) = self.log().append(&payload(uid)[..], at) else { continue };
                    self.appended.insert(uid, ticket.seq().get());
                    self.tickets.push((ticket, vec![uid]));
                }
            }
            Step::Commit(want) => drop(self.log().commit(at, *want)),
            Step::Rotate => drop(self.log().rotate(at)),
            Step::Drain => {
                let end = self.log().ends().durable;
                self.saved = Saved { cursor: end.get(), durable_end: end.get(), clean: None, ..self.saved };
            }
            Step::Floor => {
                if let Some(point) = self.log().plan_retire(Seq::new(self.saved.cursor)) {
                    self.saved.floor = (point.seq.get(), point.segment.get());
                }
            }
            Step::Retire(fails) => {
                if *fails {
                    self.disk.plan(Fault::once(On::Op(Op::SyncDir), 1, errno::EIO));
                }
                drop(self.log().retire(SegmentId::new(self.saved.floor.1)));
                self.disk.clear_faults();
            }
            Step::FailSync(n, seed) => {
                self.disk.set_seed(*seed);
                self.disk.plan(Fault::once(On::Op(Op::SyncData), u64::from(*n), errno::EIO));
            }
            Step::FailAny(n) => self.disk.plan(Fault::once(On::Any, u64::from(*n), errno::EIO)),
            Step::WriteBack(seed) => self.disk.write_back(&Survival::Seed(*seed)),
            Step::Stop => self.stop(at),
            Step::Kill => self.die(None),
            Step::Cut(seed) => self.die(Some(*seed)),
            Step::CutTwice(first, call, second) => {
                self.note_acks();
                let disk = match first {
                    Some(seed) => self.disk.power_cut(&Survival::Seed(*seed)),
                    None => self.disk.kill(),
                };
                self.restart(disk);
                self.disk.plan(Fault::halt(On::Any, u64::from(*call), Moment::Middle));
                drop(recover(&context(&self.disk), &self.evidence()));
                self.disk = self.disk.power_cut(&Survival::Seed(*second));
                self.start();
            }
            Step::Flip(seed) => self.flip(*seed),
        }
        self.note_acks();
    }

    fn die(&mut self, cut: Option<u64>) {
        self.note_acks();
        let disk = match cut {
            Some(seed) => self.disk.power_cut(&Survival::Seed(seed)),
            None => self.disk.kill(),
        };
        self.restart(disk);
        self.start();
    }

    fn stop(&mut self, at: Now) {
        self.disk.clear_faults();
        if let Ok(end) = self.log().close(at) {
            self.note_acks();
            self.saved.durable_end = end.end.get();
            self.saved.clean = end.segment.map(SegmentId::get);
        }
        let disk = self.disk.kill();
        self.restart(disk);
        self.start();
    }

    fn flip(&mut self, seed: u64) {
        let files: Vec<PathBuf> = self
            .disk
            .files()
            .into_iter()
            .filter(|path| path.starts_with(DIR) && !self.disk.read(path).is_empty())
            .collect();
        if self.flipped || files.is_empty() {
            return;
        }
        let path = &files[(seed % files.len() as u64) as usize];
        let medium = self.disk.read_medium(path);
        let bits = medium.len() as u64 * 8;
        // Only what is on the medium and in the cache alike: a flip of what was never written is no damage.
        if bits > 0 && medium == self.disk.read(path) {
            let bit = seed / 7 % bits;
            self.disk.corrupt(path, bit / 8, (bit % 8) as u32);
            self.flipped = true;
        }
    }
}

/// Whether a bit may flip in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flips {
    None,
    One,
}

fn live(sync: SyncSetting, steps: &[Step], flips: Flips) {
    let mut world = World::new(sync);
    let allowed = |step: &&Step| flips == Flips::One || !matches!(step, Step::Flip(_));
    for step in steps.iter().filter(allowed) {
        world.take(step);
    }
    world.die(Some(0));
    world.die(None);
}

fn sync() -> impl Strategy<Value = SyncSetting> {
    prop_oneof![Just(SyncSetting::EachBatch), Just(SyncSetting::Never)]
}

proptest! {
    // S03 S04 S11 S13 S14 S15 S19 S20 S22 S23 S26
    #[test]
    fn nothing_durable_is_lost_and_nothing_comes_back(
        sync in sync(), steps in prop::collection::vec(step(), 1..40)
    ) {
        live(sync, &steps, Flips::None);
    }

    // S24
    #[test]
    fn one_flipped_bit_costs_at_most_one_record(
        sync in sync(), steps in prop::collection::vec(step(), 1..40)
    ) {
        live(sync, &steps, Flips::One);
    }
}
