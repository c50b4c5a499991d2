//! Losses as data: found at open or under a live reader, remembered, counted once.

use std::sync::Arc;

use pq::core::{Core, Seed};
use pq::inspect::Inspection;
use pq::{GapReason, Now, Options, Queue, Seq, Start, WallTime};
use sim_disk::{Fault, On, SimDisk, errno};
use wal_store::{ReadBuffers, Want};

use crate::{DEADLINE, simulated};

const SEGMENT: &str = "streams/0000000000000001/0000000000000001.seg";

fn spoil(disk: &SimDisk, payload: &str) {
    let at =
        disk.read(SEGMENT).windows(payload.len()).position(|window| window == payload.as_bytes()).unwrap()
            as u64;
    disk.corrupt(SEGMENT, at, 3);
    disk.corrupt(SEGMENT, at + 1, 5);
}

// S32: the reader moves on, what it met is remembered, the stop works and the next life knows.
#[test]
fn what_a_live_reader_meets_is_remembered_once() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    ["one", "two!", "three"].iter().for_each(|word| assert!(stream.append_durable(word).is_ok()));
    spoil(&disk, "two!");
    assert!(queue.losses().is_empty(), "nobody met it");
    let mut seen = Vec::new();
    let mut consumer = stream.consumer("c").unwrap();
    while let Some(delivery) = consumer.try_next().unwrap() {
        seen.extend(delivery.records().map(|record| record.seq.get()));
        assert!(delivery.gaps().all(|gap| gap.reason == GapReason::Lost));
        consumer.ack(&delivery).unwrap().wait().unwrap();
    }
    assert_eq!(seen, [1, 3]);
    let losses = queue.losses();
    let [loss] = &losses[..] else { panic!("one loss: {losses:?}") };
    assert_eq!((loss.stream.as_str(), loss.from, loss.to), ("s", Seq::new(2), Seq::new(3)));
    assert!(loss.found_at.is_some() && loss.reason == GapReason::Lost);
    assert_eq!((stream.losses(), stream.stats().lost_records_count), (losses.clone(), 1));
    // Another reader, and a look from outside, add nothing.
    let mut other = stream.consumer("d").unwrap();
    while let Some(delivery) = other.try_next().unwrap() {
        other.ack(&delivery).unwrap().wait().unwrap();
    }
    let outside = Inspection::open_on(Arc::new(disk.clone())).unwrap();
    assert_eq!((outside.losses().unwrap(), queue.losses()), (losses.clone(), losses.clone()));
    assert_eq!(outside.streams().unwrap()[0].losses.len(), 1);
    drop((consumer, other, stream));
    assert!(queue.close(DEADLINE).unwrap().clean);
    let queue = Queue::open_on(Arc::new(disk), Options::default()).unwrap();
    assert_eq!(queue.losses(), losses);
}

#[test]
fn a_catalog_that_cannot_be_written_holds_no_cursor_up_and_the_loss_is_written_down_later() {
    let now = Now { instant: pq::Instant::ZERO, wall: WallTime::from_nanos(5) };
    let disk = SimDisk::new();
    let core = Core::open(Arc::new(disk.clone()), Options::default(), Seed::Fixed(1), now).unwrap();
    let stream = core.open_stream("s", None, now).unwrap();
    let consumer = core.open_consumer(&stream, "c", Start::Oldest, now).unwrap();
    for word in ["one", "two!", "three"] {
        stream.log().append(word, now).unwrap();
        stream.log().commit(now, Want::Durable).unwrap();
    }
    spoil(&disk, "two!");
    while let Some(delivery) =
        core.next(&stream, &consumer, 1 << 20, &mut ReadBuffers::default(), now).unwrap()
    {
        core.acknowledge(&consumer, &delivery, delivery.next(), None).unwrap();
    }
    disk.plan(Fault::forever(On::Site(disk::SyncSite::new("catalog.loss")), 1, errno::EIO));
    disk.plan(Fault::forever(On::Site(disk::SyncSite::new("journal.generation")), 1, errno::EIO));
    let report = core.tick(now).unwrap();
    assert_eq!((report.cursors_count, report.losses_count, core.losses().len()), (1, 0, 0));
    assert_eq!(consumer.saved(), Seq::new(4));
    disk.clear_faults();
    assert!(core.next_due(now.instant).is_some(), "it is tried again by itself");
    let report = core.tick(now).unwrap();
    assert_eq!((report.losses_count, core.losses().len()), (1, 1));
    assert_eq!(core.tick(now).unwrap().losses_count, 0);
    assert!(core.close(|| now).unwrap().clean);
}
