//! A whole log over a simulated disk, in every interleaving of its locks and words (bounded preemptions):
//! `RUSTFLAGS="--cfg loom" cargo test -p wal-store --lib loom`.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, FdBudget, FdLimit, FileCache};
use sim_disk::SimDisk;
use wal_format::{Incarnation, Now, QueueId, StreamId, StreamIdentity};

use crate::{Level, Log, NoEvents, ReadLevel, Recovery, Room, Settings, StoreContext, SyncSetting, Want};

fn log(sync: SyncSetting) -> Log {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("log")).unwrap();
    let context = StoreContext {
        disk: Arc::new(disk),
        files: FileCache::new(FdBudget::new(FdLimit { total: 8, reserved: 2 })),
        room: Arc::new(Room::new(4 << 20)),
        identity: StreamIdentity {
            queue: QueueId::new(1),
            stream: StreamId::new(1),
            incarnation: Incarnation::new(1),
        },
        dir: "log".into(),
        events: Arc::new(NoEvents),
    };
    let settings = Settings { sync, read_level: ReadLevel::Written, ..Settings::default() };
    Log::open(context, &Recovery::fresh(), settings).unwrap()
}

fn model(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(check);
}

fn append_and_wait(log: &Log, level: Level) {
    let ticket = log.append("x", Now::default()).unwrap();
    let seq = ticket.wait(level, Now::default()).unwrap();
    let ends = log.ends();
    let reached = if level == Level::Durable { ends.durable } else { ends.written };
    assert!(reached > seq);
}

#[test]
fn loom_two_durable_waiters_always_wake() {
    // S47
    model(3, || {
        let log = log(SyncSetting::EachBatch);
        let other = log.clone();
        let thread = loom::thread::spawn(move || append_and_wait(&other, Level::Durable));
        append_and_wait(&log, Level::Durable);
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_waiter_beside_a_committer_always_wakes() {
    // S47
    model(3, || {
        let log = log(SyncSetting::Never);
        log.append("first", Now::default()).unwrap();
        log.commit(Now::default(), Want::Batch).unwrap();
        let other = log.clone();
        let thread = loom::thread::spawn(move || append_and_wait(&other, Level::Durable));
        log.append("x", Now::default()).unwrap();
        log.commit(Now::default(), Want::Batch).unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn loom_waiters_of_different_levels_and_a_late_want_always_wake() {
    // S01, S47
    model(3, || {
        let log = log(SyncSetting::Never);
        let ticket = log.append("first", Now::default()).unwrap();
        log.commit(Now::default(), Want::Batch).unwrap();
        let other = log.clone();
        let thread = loom::thread::spawn(move || append_and_wait(&other, Level::Written));
        ticket.wait(Level::Durable, Now::default()).unwrap();
        thread.join().unwrap();
    });
}
