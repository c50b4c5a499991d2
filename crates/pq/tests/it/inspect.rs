//! Looking at a queue from outside.

use std::sync::Arc;

use pq::inspect::Inspection;
use pq::{OpenError, Seq};
use sim_disk::SimDisk;

use crate::{DEADLINE, simulated, take};

fn payloads(inspection: &Inspection, from: u64) -> Vec<String> {
    let mut reader = inspection.read("s", Seq::new(from)).unwrap();
    let mut all = Vec::new();
    while let Some(delivery) = reader.next().unwrap() {
        all.extend(delivery.records().map(|r| String::from_utf8(r.payload.to_vec()).unwrap()));
    }
    all
}

#[test]
fn a_live_queue_can_be_looked_at_and_is_left_as_it_is() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    ["one", "two", "three"].iter().for_each(|word| assert!(stream.append_durable(word).is_ok()));
    let mut consumer = stream.consumer("c").unwrap();
    take(&mut consumer, 3);
    consumer.ack_to(Seq::new(3)).unwrap().wait().unwrap();
    let written = disk.bytes_written();
    let seen = Inspection::open_on(Arc::new(disk.clone())).unwrap();
    let info = seen.streams().unwrap().remove(0);
    assert_eq!((info.name.as_str(), info.first, info.end, info.durable_end), ("s", 1, 4, 4));
    assert_eq!((info.consumers[0].cursor, info.consumers[0].lag_records), (3, 1));
    assert_eq!(info.segments.len(), 1);
    assert_eq!(payloads(&seen, 1), ["one", "two", "three"]);
    assert_eq!(payloads(&seen, 3), ["three"]);
    let report = seen.verify().unwrap();
    assert!(!report.is_damaged(), "{report:?}");
    assert_eq!((report.streams[0].records_count, report.streams[0].batches_count), (3, 3));
    assert_eq!(disk.bytes_written(), written);
    // A reader goes on where it was when more came.
    let mut reader = seen.read("s", Seq::new(4)).unwrap();
    assert!(reader.next().unwrap().is_none());
    stream.append_durable("four").unwrap();
    assert_eq!(reader.next().unwrap().unwrap().first(), Seq::new(4));
    assert!(seen.read("t", Seq::FIRST).is_err());
}

#[test]
fn damage_is_told_exactly() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    ["one", "two", "three"].iter().for_each(|word| assert!(stream.append_durable(word).is_ok()));
    stream.rotate().unwrap();
    stream.append_durable("four").unwrap();
    queue.close(DEADLINE).unwrap();
    // A bit of the payload `two`.
    let path = "streams/0000000000000001/0000000000000001.seg";
    let at = disk.read(path).windows(3).position(|window| window == b"two").unwrap();
    disk.corrupt(path, at as u64, 3);
    let seen = Inspection::open_on(Arc::new(disk.clone())).unwrap();
    let report = seen.verify().unwrap();
    assert!(report.is_damaged());
    let check = &report.streams[0];
    assert_eq!(check.lost.len(), 1);
    assert_eq!((check.lost[0].0, check.lost[0].1), (2, 3));
    assert_eq!(check.records_count, 3);
    assert_eq!(payloads(&seen, 1), ["one", "three", "four"]);
}

#[test]
fn where_there_is_no_queue_nothing_is_made() {
    let disk = SimDisk::new();
    assert!(matches!(Inspection::open_on(Arc::new(disk.clone())), Err(OpenError::NotAQueue)));
    assert!(disk.files().is_empty());
}
