//! Lives that end in the middle of any call, by a kill or a power cut, one after the other: what was told durable is
//! there, in order, with its bytes, and the log goes on.

use std::collections::BTreeMap;

use sim_disk::{Fault, Moment, On, SimDisk, Survival, errno};
use wal_format::Seq;
use wal_store::{
    Evidence, Level, Log, ReadBuffers, ReadFrom, ReadLimits, Record, Settings, SyncSetting, recover,
};

use crate::support::{World, at, settings};

/// What must be true of a stream over all its lives.
#[derive(Default)]
struct Model {
    payloads: BTreeMap<u64, Vec<u8>>,
    /// Everything below was told durable.
    durable: u64,
    /// Seqs whose tickets were told an error.
    failed: Vec<u64>,
}

/// How a life is lived.
#[derive(Debug, Clone, Copy)]
struct Life {
    sync: SyncSetting,
    /// The call in which the machine stops.
    halt: (u64, Moment),
    /// A call that fails before.
    failing: Option<u64>,
    survival: Option<u64>,
}

/// Mixes a number well; the seed of a run is its only input.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn life_settings(sync: SyncSetting) -> Settings {
    Settings { sync, segment_bytes_max: 7_000, unsynced_bytes_max: 3_000, ..settings() }
}

/// Recovers, checks everything that must be there, and goes on until the machine stops.
fn live(model: &mut Model, disk: SimDisk, life: Life, number: u64) -> SimDisk {
    let world = World::on(disk, 4 << 20);
    let recovery = recover(&world.context(), &Evidence::default()).unwrap();
    assert!(
        recovery.next_seq.get() >= model.durable,
        "durable {} > next {}",
        model.durable,
        recovery.next_seq
    );
    model.payloads.retain(|seq, _| *seq < recovery.next_seq.get());
    let log = Log::open(world.context(), &recovery, life_settings(life.sync)).unwrap();
    check(model, &log);
    if let Some(k) = life.failing {
        world.disk.plan(Fault::once(On::Any, k, errno::EIO));
    }
    world.disk.plan(Fault::halt(On::Any, life.halt.0, life.halt.1));
    for n in 1..12_u64 {
        step(model, &log, number, n);
        if world.disk.is_halted() {
            break;
        }
    }
    // What the dying process still tries must change nothing.
    drop(log);
    match life.survival {
        Some(seed) => world.disk.power_cut(&Survival::Seed(seed)),
        None => world.disk.kill(),
    }
}

fn step(model: &mut Model, log: &Log, number: u64, n: u64) {
    let payload = vec![(number * 16 + n) as u8; (mix(number * 100 + n) % 1500) as usize];
    let records = vec![Record::new(&payload); 1 + (n % 3) as usize];
    let Ok(ticket) = log.append_batch(&records, None, at(n)) else { return };
    for seq in ticket.seq().get()..ticket.end().get() {
        model.payloads.insert(seq, payload.clone());
    }
    let level = if n.is_multiple_of(2) { Level::Written } else { Level::Durable };
    let outcome = ticket.wait(level, at(n));
    if outcome.is_err() {
        model.failed.extend(ticket.seq().get()..ticket.end().get());
    } else if level == Level::Durable || ticket.peek(Level::Durable).is_some() {
        model.durable = ticket.end().get();
    }
    if n.is_multiple_of(5) {
        let _ = log.rotate(at(n));
    }
}

/// Every seq below the end is read, in order, with its bytes; none that was told durable is missing.
fn check(model: &Model, log: &Log) {
    let end = log.ends().readable;
    let mut from = ReadFrom { seq: Seq::FIRST, hint: None };
    let mut buffers = ReadBuffers::default();
    let mut read = Vec::new();
    while from.seq < end {
        let chunk = log.read(from, end, ReadLimits { bytes_max: 4096 }, &mut buffers).unwrap();
        assert!(chunk.next > from.seq, "no progress at {}", from.seq);
        for gap in chunk.gaps() {
            for seq in gap.from.get()..gap.to.get() {
                assert!(model.failed.contains(&seq), "{seq} is missing: {gap:?}");
            }
        }
        read.extend(chunk.records().map(|record| (record.seq.get(), record.payload.to_vec())));
        from = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
    }
    let expected: Vec<_> = read.iter().map(|(seq, _)| (*seq, model.payloads[seq].clone())).collect();
    assert!(read == expected, "bytes differ");
}

/// Three lives, each ended in call `k`, then a last one that only reads.
fn lives(seed: u64, sync: SyncSetting, failing: bool) {
    let mut model = Model::default();
    let mut disk = World::new().disk;
    for number in 1..=4_u64 {
        let dice = |n: u64| mix(seed.wrapping_mul(31).wrapping_add(number * 8 + n));
        let moment = [Moment::Before, Moment::Middle, Moment::After][(dice(0) % 3) as usize];
        let halt = (1 + dice(1) % 50, moment);
        let failing = failing.then(|| 1 + dice(2) % 40);
        let survival = (dice(3) % 4 != 0).then(|| dice(4));
        disk = live(&mut model, disk, Life { sync, halt, failing, survival }, number);
    }
    let world = World::on(disk, 4 << 20);
    let recovery = recover(&world.context(), &Evidence::default()).unwrap();
    let log = Log::open(world.context(), &recovery, life_settings(sync)).unwrap();
    model.payloads.retain(|seq, _| *seq < recovery.next_seq.get());
    assert!(recovery.next_seq.get() >= model.durable);
    check(&model, &log);
}

fn many_lives(sync: SyncSetting, failing: bool) {
    for seed in 0..30 {
        let lived = std::panic::catch_unwind(|| lives(seed, sync, failing));
        assert!(lived.is_ok(), "seed {seed}, {sync:?}, failing: {failing}");
    }
}

#[test]
fn lives_that_sync_each_batch_lose_nothing_told_durable() {
    // S11, S17, S20, S22, S23
    many_lives(SyncSetting::EachBatch, false);
}

#[test]
fn lives_that_sync_lazily_lose_nothing_told_durable() {
    // S03, S19
    many_lives(SyncSetting::Never, false);
}

#[test]
fn lives_with_a_failing_call_lose_nothing_told_durable() {
    // S04, S26
    many_lives(SyncSetting::EachBatch, true);
    many_lives(SyncSetting::Never, true);
}
