//! A stream whose disk fails: every line arrives once, in order.

use std::num::NonZeroUsize;
use std::time::Duration;

use pq::{FdLimit, Options, Queue, StreamSettings};
use sim_disk::{Fault, On, SimDisk, errno};

use super::*;

struct Rig {
    dir: tempfile::TempDir,
    disk: SimDisk,
    queue: Queue,
    feeder: Feeder,
    buffer: Vec<u8>,
    told: Vec<String>,
}

impl Rig {
    fn new(lines: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.log"), lines).unwrap();
        let disk = SimDisk::new();
        let queue = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
        let settings = StreamSettings {
            record_bytes_max: 1000,
            batch_bytes_max: 2000,
            retry_after: Duration::from_millis(1),
            probe_after: Duration::from_millis(1),
            ..StreamSettings::default()
        };
        let feeder = Feeder::new(queue.stream_with("s", settings).unwrap());
        let buffer = vec![0; feeder.buffer_bytes()];
        let mut rig = Self { dir, disk, queue, feeder, buffer, told: Vec::new() };
        let path = rig.dir.path().join("a.log");
        rig.feeder.offer(&path, &fs::metadata(&path).unwrap(), AtEnd::Finish);
        rig
    }

    fn turn(&mut self) -> Turn {
        let fds = FdBudget::new(FdLimit { total: 8, reserved: NonZeroUsize::MIN.get() });
        let told = &mut self.told;
        self.feeder.turn(&fds, &mut self.buffer, &mut |text| told.push(text)).unwrap()
    }

    fn feed(&mut self) {
        while self.turn() != Turn::Finished {
            let _ = self.feeder.stream().commit_blocking();
        }
    }

    fn stored(&self) -> String {
        let mut consumer = self.queue.stream("s").unwrap().consumer("c").unwrap();
        let mut stored = Vec::new();
        while let Some(delivery) = consumer.try_next().unwrap() {
            delivery.records().for_each(|record| lines::join(&record, &mut stored));
        }
        String::from_utf8(stored).unwrap()
    }
}

fn lines() -> String {
    (0..1000).map(|n| format!("line {n}\n")).collect()
}

// S04
#[test]
fn what_the_stream_gave_up_is_read_again() {
    let mut rig = Rig::new(&lines());
    assert_eq!(rig.turn(), Turn::Progress);
    rig.feeder.stream().commit_blocking().unwrap();
    assert_eq!(rig.turn(), Turn::Progress);
    rig.disk.plan(Fault::forever(On::Any, 0, errno::EIO));
    while !rig.told.iter().any(|text| text.contains("reading them again")) {
        let _ = rig.feeder.stream().commit_blocking();
        rig.turn();
    }
    rig.disk.clear_faults();
    rig.feed();
    assert_eq!(rig.stored(), lines());
}

// S33
#[test]
fn a_file_is_finished_when_all_of_it_is_durable() {
    let mut rig = Rig::new("one\ntwo");
    rig.disk.plan(Fault::forever(On::Any, 0, errno::ENOSPC));
    assert_eq!(rig.turn(), Turn::Progress);
    let full = rig.feeder.stream().commit_blocking().unwrap_err();
    assert!(full.is_retryable(), "{full}");
    assert_eq!(rig.turn(), Turn::Unproven);
    rig.disk.clear_faults();
    rig.feed();
    assert_eq!(rig.stored(), "one\ntwo");
}
