//! A whole log over a simulated disk, in every interleaving of its locks and words (bounded preemptions):
//! `RUSTFLAGS="--cfg loom" cargo test -p wal-store --lib loom`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

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
    let check = Arc::new(check);
    model.check(move || {
        let check = Arc::clone(&check);
        spawn(move || check()).join().unwrap();
    });
}

/// A thread with a stack that holds a segment's header.
fn spawn(body: impl FnOnce() + Send + 'static) -> loom::thread::JoinHandle<()> {
    loom::thread::Builder::new().stack_size(0x2_0000).spawn(body).unwrap()
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
        let thread = spawn(move || append_and_wait(&other, Level::Durable));
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
        let thread = spawn(move || append_and_wait(&other, Level::Durable));
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
        let thread = spawn(move || append_and_wait(&other, Level::Written));
        ticket.wait(Level::Durable, Now::default()).unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn loom_three_waiters_always_wake() {
    // S47
    model(2, || {
        let log = log(SyncSetting::EachBatch);
        let others = [Level::Durable, Level::Written].map(|level| {
            let log = log.clone();
            spawn(move || append_and_wait(&log, level))
        });
        append_and_wait(&log, Level::Durable);
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn loom_a_future_registered_beside_a_commit_is_always_woken() {
    model(3, || {
        let log = log(SyncSetting::EachBatch);
        let mut ticket = log.append("x", Now::default()).unwrap();
        let other = log.clone();
        let committer = spawn(move || drop(other.commit(Now::default(), Want::Batch).unwrap()));
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let first = ticket.poll(Level::Durable, &mut Context::from_waker(&waker));
        committer.join().unwrap();
        assert!(first.is_ready() || woken.0.load(Ordering::SeqCst), "registered, and not woken");
        assert!(ticket.poll(Level::Durable, &mut Context::from_waker(&waker)).is_ready());
    });
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
