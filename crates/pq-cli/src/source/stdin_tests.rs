//! Stdin while the disk fails.

use std::sync::Arc;

use pq::{Options, Queue};
use sim_disk::{Fault, On, SimDisk, errno};

use super::*;

fn stream() -> (SimDisk, Stream) {
    let disk = SimDisk::new();
    let queue = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    (disk, queue.stream("s").unwrap())
}

// S33
#[test]
fn a_full_disk_is_waited_for() {
    let (disk, stream) = stream();
    let (stdin, _stop) = Stdin::new().unwrap();
    disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
    let ticket = stream.append("one").unwrap();
    let mut told = Vec::new();
    let committed = stdin.commit(&stream, &mut |text| {
        told.push(text);
        disk.clear_faults();
    });
    committed.unwrap();
    ticket.wait().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_stop_ends_the_waiting() {
    let (disk, stream) = stream();
    let (stdin, stop) = Stdin::new().unwrap();
    disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
    let _ticket = stream.append("one").unwrap();
    drop(stop);
    assert!(stdin.commit(&stream, &mut |_| {}).is_err());
}

// S04
#[test]
fn what_is_given_up_is_told() {
    let (disk, stream) = stream();
    disk.plan(Fault::forever(On::Any, 1, errno::EIO));
    let mut losses = Losses::default();
    losses.watch(stream.append("one").unwrap());
    let lost = loop {
        let _ = stream.commit_blocking();
        let lost = losses.settle();
        if !lost.is_empty() {
            break lost;
        }
    };
    assert_eq!(lost.len(), 1);
}
