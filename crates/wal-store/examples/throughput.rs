//! Measures a log on the real disk: `cargo run --release -p wal-store --example throughput -- DIR [put|memory|one|group N|batch]`.
//!
//! It prints one line a measurement. Compare ratios in one run only: devices have moods.
#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and starts threads; the crate does not"
)]
#![expect(clippy::unwrap_used, reason = "a measurement that fails may end")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use disk::{Disk, FdBudget, FdLimit, FileCache, OsDisk};
use wal_format::{Incarnation, Now, QueueId, StreamId, StreamIdentity, WallTime};
use wal_store::{Level, Log, NoEvents, Recovery, Room, Settings, StoreContext, SyncSetting, Want};

const PAYLOAD: [u8; 256] = [7; 256];

struct Clock(Instant);

impl Clock {
    fn now(&self) -> Now {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).unwrap();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Now { instant: wal_format::Instant::from_nanos(nanos), wall: WallTime::from_unix(wall) }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = PathBuf::from(args.first().expect("a directory to measure in"));
    let what = args.get(1).map_or("all", String::as_str);
    let threads: Vec<usize> = args.get(2).map_or(vec![1, 4, 16, 64], |n| vec![n.parse().unwrap()]);
    let all = what == "all";
    if all || what == "memory" {
        memory(&root);
    }
    if all || what == "put" {
        put(&root);
    }
    if all || what == "batch" {
        batch(&root);
    }
    if all || what == "one" {
        one(&root);
    }
    if all || what == "group" {
        threads.into_iter().for_each(|threads| group(&root, threads));
    }
}

fn log(root: &Path, settings: Settings) -> Log {
    let name = format!("wal-store-{}", std::process::id());
    let path = root.join(&name);
    let _ = std::fs::remove_dir_all(&path);
    let disk = OsDisk::create(&path).unwrap();
    disk.create_dir(Path::new("log")).unwrap();
    let context = StoreContext {
        disk: Arc::new(disk),
        files: FileCache::new(FdBudget::new(FdLimit { total: 64, reserved: 8 })),
        room: Arc::new(Room::new(256 << 20)),
        identity: StreamIdentity {
            queue: QueueId::new(1),
            stream: StreamId::new(1),
            incarnation: Incarnation::new(u128::from(std::process::id())),
        },
        dir: "log".into(),
        events: Arc::new(NoEvents),
    };
    Log::open(context, &Recovery::fresh(), settings).unwrap()
}

fn report(name: &str, records: u64, took: Duration, log: &Log) {
    let rate = records as f64 / took.as_secs_f64();
    let counters = log.counters();
    println!(
        "{name}: {rate:.0} records/s, {:.0} MB/s, {} syncs, {} records a sync, {} segments, {} chunks allocated",
        rate * 256.0 / 1e6,
        counters.syncs,
        counters.records / counters.syncs.max(1),
        counters.segments_created,
        counters.chunks_allocated,
    );
}

/// Appends alone; the commits in between are not counted.
fn memory(root: &Path) {
    let clock = Clock(Instant::now());
    let log = log(root, Settings { sync: SyncSetting::Never, ..Settings::default() });
    let mut took = Duration::ZERO;
    let (rounds, each) = (64_u64, 32_000_u64);
    for _ in 0..rounds {
        let now = clock.now();
        let start = Instant::now();
        for _ in 0..each {
            log.append(&PAYLOAD, now).unwrap();
        }
        took += start.elapsed();
        log.commit(now, Want::Batch).unwrap();
    }
    report("memory (append only)", rounds * each, took, &log);
}

/// Appends of one thread, written by itself a MiB at a time, never synced by setting.
fn put(root: &Path) {
    let clock = Clock(Instant::now());
    let log = log(root, Settings { sync: SyncSetting::Never, ..Settings::default() });
    let records = 2_000_000_u64;
    let start = Instant::now();
    let mut now = clock.now();
    for n in 0..records {
        log.append(&PAYLOAD, now).unwrap();
        if n % 4096 == 4095 {
            now = clock.now();
            log.commit(now, Want::Batch).unwrap();
        }
    }
    report("put (1 thread, write a MiB, no sync asked)", records, start.elapsed(), &log);
}

/// Durable batches of 1,000.
fn batch(root: &Path) {
    let clock = Clock(Instant::now());
    let log = log(root, Settings::default());
    let records = vec![wal_store::Record::new(&PAYLOAD); 1000];
    let start = Instant::now();
    for _ in 0..2000 {
        let now = clock.now();
        log.append_batch(&records, None, now).unwrap().wait(Level::Durable, now).unwrap();
    }
    report("durable batches of 1,000", 2_000_000, start.elapsed(), &log);
}

/// Durable appends of one thread.
fn one(root: &Path) {
    let clock = Clock(Instant::now());
    let log = log(root, Settings::default());
    let mut times = Vec::new();
    for _ in 0..3000 {
        let now = clock.now();
        let start = Instant::now();
        log.append(&PAYLOAD, now).unwrap().wait(Level::Durable, now).unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    let total: Duration = times.iter().sum();
    report("durable append (1 thread)", 3000, total, &log);
    println!("  p50 {:?}, p99 {:?}", times[1500], times[2970]);
}

/// Durable appends of many threads.
fn group(root: &Path, threads: usize) {
    let clock = Clock(Instant::now());
    let log = log(root, Settings::default());
    let each = 200_000 / (threads * threads.ilog2().max(1) as usize).max(20) as u64;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let now = clock.now();
                    log.append(&PAYLOAD, now).unwrap().wait(Level::Durable, now).unwrap();
                }
            });
        }
    });
    report(&format!("durable append ({threads} threads)"), each * threads as u64, start.elapsed(), &log);
}
