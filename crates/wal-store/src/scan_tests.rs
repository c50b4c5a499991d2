//! Looking without changing.

use disk::{Disk, Op};
use sim_disk::{Fault, On, SimDisk, errno};
use wal_format::Seq;

use super::*;
use crate::build::{Segment, context, dir, new_disk};
use crate::{recover, segment_path};

fn three() -> (SimDisk, Vec<Segment>) {
    let disk = new_disk();
    let one = Segment::new(1, 1, None).batch(3).padded(2).batch(4);
    let two = Segment::new(2, one.next, Some(&one)).batch(5).batch(2);
    let three = Segment::new(3, two.next, Some(&two)).tag("p", "v").batch(3).batch(1);
    let segments = vec![one, two, three];
    segments.iter().for_each(|segment| segment.put(&disk));
    (disk, segments)
}

fn scan(disk: &SimDisk, depth: ScanDepth) -> ScanReport {
    scan_read_only(&context(disk), &Evidence::default(), depth).unwrap()
}

#[test]
fn a_sound_stream_has_no_finding_and_nothing_is_changed() {
    let (disk, segments) = three();
    let before = (disk.files(), disk.unsynced().len());
    for depth in [ScanDepth::Ends, ScanDepth::EveryByte] {
        let report = scan(&disk, depth);
        assert!(!report.found_damage(), "{report:?}");
        assert_eq!((report.end, report.segments.len(), report.tags.len()), (Seq::new(21), 3, 1));
        assert_eq!(report.file_bytes, segments.iter().map(Segment::end_offset).sum::<u64>());
        assert_eq!(report.record_count, if depth == ScanDepth::Ends { 0 } else { 20 });
    }
    assert_eq!((disk.files(), disk.unsynced().len()), before);
    for op in [Op::SyncDir, Op::RemoveFile, Op::Link, Op::CreateDir, Op::Advise] {
        let built = if op == Op::SyncDir {
            6
        } else if op == Op::CreateDir {
            2
        } else {
            0
        };
        assert_eq!(disk.count(op), built, "{op}");
    }
    assert_eq!(disk.count(Op::SyncData), 3, "only those of building it");
}

#[test]
fn every_flipped_bit_is_found_where_it_is_with_what_it_costs() {
    let (disk, segments) = three();
    for (index, segment) in segments.iter().take(2).enumerate() {
        let path = segment_path(&dir(), segment.id);
        for bit in (0..segment.bytes.len() * 8).step_by(131) {
            disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
            let report = scan(&disk, ScanDepth::EveryByte);
            assert!(report.found_damage(), "segment {index} byte {}", bit / 8);
            assert_eq!(report.findings.len(), 1, "segment {index} byte {}: {:?}", bit / 8, report.findings);
            let finding = &report.findings[0];
            assert!(finding.offset <= bit as u64 / 8);
            let lost: u64 = finding.lost.iter().map(|(from, to)| from.distance_to(*to)).sum();
            assert_eq!(lost, report.gaps.iter().map(Gap::count).sum::<u64>());
            assert_eq!(report.record_count, 20 - lost);
            assert!(lost <= 1 && !finding.kind.to_string().is_empty());
            disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
        }
    }
}

#[test]
fn what_the_owner_is_just_writing_is_not_there_yet() {
    let (disk, segments) = three();
    let path = segment_path(&dir(), segments[2].id);
    let whole = segments[2].bytes.clone();
    for cut in segments[2].batches[1].start..whole.len() {
        disk.damage(&path, |bytes| {
            bytes.clear();
            bytes.extend(&whole[..cut]);
        });
        let report = scan(&disk, ScanDepth::EveryByte);
        assert!(!report.found_damage(), "cut at {cut}: {report:?}");
        assert_eq!((report.end, report.record_count), (Seq::new(20), 19));
    }
}

#[test]
fn a_cut_file_and_zeroed_bytes_are_named() {
    let (disk, segments) = three();
    disk.damage(segment_path(&dir(), segments[0].id), |bytes| bytes.truncate(segments[0].batches[2].start));
    let hole = segments[1].batches[0].clone();
    disk.damage(segment_path(&dir(), segments[1].id), |bytes| bytes[hole].fill(0));
    let report = scan(&disk, ScanDepth::EveryByte);
    let kinds: Vec<_> = report.findings.iter().map(|finding| (finding.segment.get(), finding.kind)).collect();
    assert_eq!(kinds, [(1, FindingKind::Missing), (2, FindingKind::NoBatch)]);
    assert_eq!(report.gaps.iter().map(|gap| (gap.from.get(), gap.to.get())).collect::<Vec<_>>(), [(6, 15)]);
    let recovery = recover(&context(&disk), &Evidence::default()).unwrap();
    assert_eq!(recovery.segments, report.segments, "a recovery decides the same");
    assert!(disk.stat(&segment_path(&dir(), segments[0].id)).is_ok());
}

// S37, S38
#[test]
fn a_disk_that_does_not_answer_ends_the_look_and_the_next_one_sees_everything() {
    let (disk, _) = three();
    let whole = scan(&disk, ScanDepth::EveryByte);
    for op in [Op::Open, Op::Read] {
        let before = disk.count(op);
        scan(&disk, ScanDepth::EveryByte);
        for call in 1..=disk.count(op) - before {
            disk.plan(Fault::once(On::Op(op), call, errno::EIO));
            let failed = scan_read_only(&context(&disk), &Evidence::default(), ScanDepth::EveryByte);
            let Err(RecoverError::Disk { source }) = failed else { panic!("{op} {call}: {failed:?}") };
            assert_eq!(source.op(), op);
            let again = scan(&disk, ScanDepth::EveryByte);
            assert_eq!((again.segments, again.record_count), (whole.segments.clone(), 20), "{op} {call}");
            disk.clear_faults();
        }
    }
}

// R7
#[test]
fn a_batch_of_a_newer_program_ends_the_look_wherever_it_stands() {
    for (index, batch) in [(0, 1), (2, 0), (2, 1)] {
        let (disk, mut segments) = three();
        let newer = segments.remove(index).of_next_version(batch);
        let path = segment_path(&dir(), newer.id);
        disk.damage(&path, |bytes| bytes.clone_from(&newer.bytes));
        let error = scan_read_only(&context(&disk), &Evidence::default(), ScanDepth::EveryByte).unwrap_err();
        let RecoverError::NewerFormat { path: named, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((named, *offset), (&path, newer.batches[batch].start as u64));
        assert!(!error.is_retryable());
    }
}
