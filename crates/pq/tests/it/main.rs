//! The queue as its users see it, on real directories and on a simulated disk. No test sleeps: what must happen meanwhile is held by
//! a gate of the simulated disk, and what must happen at all is waited for.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only functions marked as tests")]

mod basics;
mod full;
mod hostile;
mod inspect;
mod limits;
mod losses;
mod names;
mod owners;
mod repair;
mod runtime;
mod sinks;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pq::{Consumer, Options, Queue};
use sim_disk::SimDisk;

/// Long enough for any machine; nothing waits this long unless it is broken.
const DEADLINE: Duration = Duration::from_secs(60);

fn simulated() -> (SimDisk, Queue) {
    let disk = SimDisk::new();
    let queue = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    (disk, queue)
}

/// Payloads of the next `count` records.
fn take(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
        all.extend(delivery.records().map(|record| String::from_utf8(record.payload.to_vec()).unwrap()));
    }
    assert_eq!(all.len(), count);
    all
}

/// Gives the processor away until it is so.
fn until(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "it never was");
        std::thread::yield_now();
    }
}
