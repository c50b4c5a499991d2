//! Retirement.

use disk::{Disk, Op};
use sim_disk::{Fault, On, SimDisk, Survival, errno};
use wal_format::{SegmentId, Seq};

use super::*;
use crate::build::{Segment, context, dir, new_disk, read_all};
use crate::{Evidence, Recovery, Settings, recover};

fn three() -> (SimDisk, Recovery) {
    let disk = new_disk();
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let three = Segment::new(4, two.next, Some(&two)).batch(2);
    [&one, &two, &three].iter().for_each(|segment| segment.put(&disk));
    let recovery = recover(&context(&disk), &Evidence::default()).unwrap();
    (disk, recovery)
}

fn open(disk: &SimDisk, recovery: &Recovery) -> Log {
    let settings = Settings { record_bytes_max: 1000, ..Settings::default() };
    Log::open(context(disk), recovery, settings).unwrap()
}

fn names(disk: &SimDisk) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut add = |entry: disk::DirEntry<'_>| {
        ids.push(crate::segment_id(entry.name).unwrap().get());
        std::ops::ControlFlow::Continue(())
    };
    disk.list(&dir(), &mut add).unwrap();
    ids.sort_unstable();
    ids
}

#[test]
fn a_segment_is_planned_for_once_nothing_in_it_is_needed() {
    let (disk, recovery) = three();
    let log = open(&disk, &recovery);
    let plan = |below| log.plan_retire(Seq::new(below)).map(|point| (point.seq.get(), point.segment.get()));
    assert_eq!([plan(1), plan(3)], [None, None]);
    assert_eq!(plan(4), Some((4, 2)));
    assert_eq!(plan(5), Some((5, 2)));
    assert_eq!(plan(6), Some((6, 4)));
    assert_eq!(plan(8), Some((8, 5)), "the next id to be used");
}

#[test]
fn retiring_unlinks_ascending_with_one_directory_sync_and_twice_is_once() {
    let (disk, recovery) = three();
    let log = open(&disk, &recovery);
    assert_eq!(log.retire(SegmentId::new(4)).unwrap(), 2);
    assert_eq!((names(&disk), disk.count_at(RETIRE_SITE)), (vec![4], 1));
    assert_eq!(log.retire(SegmentId::new(4)).unwrap(), 0);
    assert_eq!(disk.count_at(RETIRE_SITE), 1);
    let seen = read_all(&context(&disk), &log.segments(), 1, 8, 1 << 20);
    assert_eq!(seen.seqs(), [6, 7]);
    assert!(seen.gaps.iter().all(|gap| gap.reason == crate::GapReason::Retired));
}

/// S46.
#[test]
fn a_failed_unlink_stops_there_is_listed_still_and_is_tried_again() {
    let (disk, recovery) = three();
    let log = open(&disk, &recovery);
    disk.plan(Fault::once(On::Op(Op::RemoveFile), 2, errno::EBUSY));
    let error = log.retire(SegmentId::new(5)).unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("1 segments retired"));
    assert_eq!(error.unlinked_count(), 1);
    assert_eq!(names(&disk), [2, 4]);
    assert_eq!(log.segments().iter().map(|s| s.id.get()).collect::<Vec<_>>(), [2, 4]);
    let seen = read_all(&context(&disk), &log.segments(), 4, 8, 1 << 20);
    assert_eq!(seen.seqs(), [4, 5, 6, 7], "reading goes on");
    assert_eq!(log.retire(SegmentId::new(5)).unwrap(), 2);
    assert_eq!(names(&disk), [] as [u64; 0]);
}

/// S13: unlinked files come back in any subset, and go again.
#[test]
fn retired_files_that_come_back_with_the_power_are_unlinked_again_without_a_gap() {
    let count = {
        let (disk, recovery) = three();
        disk.plan(Fault::once(On::Site(RETIRE_SITE), 1, errno::EIO));
        open(&disk, &recovery).retire(SegmentId::new(5)).unwrap_err();
        disk.unsynced().len()
    };
    assert_eq!(count, 3);
    for mask in 0..1 << count {
        let (disk, recovery) = three();
        disk.plan(Fault::once(On::Site(RETIRE_SITE), 1, errno::EIO));
        open(&disk, &recovery).retire(SegmentId::new(5)).unwrap_err();
        let disk = disk.power_cut(&Survival::Mask((0..count).map(|bit| mask >> bit & 1 == 1).collect()));
        let floor = Some((Seq::new(8), SegmentId::new(5)));
        let evidence = Evidence { floor, ..Evidence::default() };
        let again = recover(&context(&disk), &evidence).unwrap();
        assert_eq!(names(&disk), [] as [u64; 0]);
        assert!(again.gaps.is_empty());
        assert_eq!((again.next_seq.get(), again.next_segment.get()), (8, 5));
    }
}
