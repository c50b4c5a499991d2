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

/// Everything that was in the queue's hands was given up, and nothing more is taken until the disk is better.
fn pause(disk: &SimDisk, stream: &Stream) {
    disk.plan(Fault::forever(On::Any, 1, errno::EIO));
    let ticket = stream.append("one").unwrap();
    while ticket.peek().is_none_or(|settled| settled.is_ok_and(|_| true)) {
        let _ = stream.commit_blocking();
    }
    assert!(stream.append("two").is_err_and(|error| error.is_retryable()));
}

#[test]
fn a_stop_ends_the_waiting_for_a_stream_that_takes_nothing() {
    let (disk, stream) = stream();
    let (stdin, stop) = Stdin::new().unwrap();
    pause(&disk, &stream);
    drop(stop);
    let begun = Instant::now();
    assert!(stdin.append_patiently((&stream, WhenFull::Wait), &[Record::from("three")]).is_err());
    assert!(begun.elapsed() < PATIENCE, "it waited as long as for a disk that may come back");
}
