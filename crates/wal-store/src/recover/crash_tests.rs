//! Recovery that is itself interrupted, and logs of which any one bit, length or sector is wrong.

use disk::{Disk, OpenMode};
use sim_disk::{Fault, Moment, On, SimDisk, Survival};
use wal_format::{BATCH_HEADER_BYTES, BatchFlags, BatchHeader, FRAMES_BYTES_MAX, SegmentId, Seq, WallTime};

use super::*;
use crate::build::{
    IDENTITY, Seen, Segment, UNSYNCED_BYTES_MAX, context, dir, new_disk, payload, put_file, read_all,
};
use crate::segment_path;

/// A stream in which a recovery has everything to do: retired files, a void one, a rival, a damaged older segment without
/// a header, a torn newest segment and an unborn file.
fn eventful() -> (SimDisk, Evidence) {
    let disk = new_disk();
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let three = Segment::new(3, two.next, Some(&two)).batch(2).batch(2).batch(2);
    let void = Segment::new(4, three.next, Some(&three)).life(1).batch(1);
    let five = Segment::new(5, three.next, Some(&three)).batch(3).batch(2);
    let headless = three.clone().zero(0..4096).zero(three.batches[1].clone());
    let torn = five.clone().zero(five.frames(1));
    [&one, &two, &headless, &void, &torn].iter().for_each(|segment| segment.put(&disk));
    one.put_as(&disk, 6);
    put_file(&disk, &segment_path(&dir(), SegmentId::new(7)), &[0; 5000]);
    let floor = Some((Seq::new(5), SegmentId::new(2)));
    (disk, Evidence { floor, ..Evidence::default() })
}

fn outcome(disk: &SimDisk, evidence: &Evidence) -> (Recovery, Seen) {
    let recovery = recover(&context(disk), evidence).unwrap();
    let from = evidence.floor.map_or(1, |(seq, _)| seq.get());
    let seen = read_all(&context(disk), &recovery.segments, from, recovery.next_seq.get(), 1 << 20);
    (recovery, seen)
}

/// S23: the machine stops in every call of a recovery, and in every call of the one after it; the third is right.
#[test]
fn a_power_cut_in_any_call_of_a_recovery_and_of_the_next_one_changes_nothing() {
    let (disk, evidence) = eventful();
    let start = disk.snapshot();
    let (expected, seen) = outcome(&disk, &evidence);
    assert_eq!(seen.missing(), [8, 9]);
    assert_eq!(seen.seqs(), [5, 6, 7, 10, 11, 12, 13, 14]);
    let stop = |disk: &SimDisk, call: u64, moment: Moment, survival: &Survival| {
        disk.plan(Fault::halt(On::Any, call, moment));
        let stopped = recover(&context(disk), &evidence).is_err() || disk.is_halted();
        (disk.power_cut(survival), stopped)
    };
    let survivals = [Survival::Nothing, Survival::Everything, Survival::Seed(7)];
    let mut interrupted = 0;
    for call in 1..200 {
        let mut any = false;
        for (index, moment) in [Moment::Before, Moment::Middle, Moment::After].into_iter().enumerate() {
            for survival in &survivals {
                let (disk, stopped) = stop(&SimDisk::from_snapshot(&start), call, moment, survival);
                any |= stopped;
                let second = call * 7 % 40 + index as u64;
                let (disk, _) = stop(&disk, 1 + second, moment, survival);
                let (recovery, again) = outcome(&disk, &evidence);
                assert_eq!((&recovery.segments, recovery.next_seq), (&expected.segments, expected.next_seq));
                assert_eq!((&recovery.gaps, recovery.predecessor), (&expected.gaps, expected.predecessor));
                assert_eq!(
                    (again.records, again.gaps),
                    (seen.records.clone(), seen.gaps.clone()),
                    "call {call}"
                );
                interrupted += 1;
            }
        }
        if !any {
            assert!(call > 20, "only {call} calls");
            assert!(interrupted > 200);
            return;
        }
    }
    panic!("a recovery that never ends");
}

fn two_segments() -> [Segment; 2] {
    let one = Segment::new(1, 1, None).tag("p", "v").batch(2).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(1).tag("p", "w").batch(3).batch(2);
    [one, two]
}

/// Which record's payload a byte of the file belongs to.
fn record_at(segment: &Segment, byte: usize) -> Option<u64> {
    (1..segment.next).find(|seq| {
        let bytes = payload(*seq, 0);
        let at = segment.bytes.windows(bytes.len()).position(|window| window == bytes);
        at.is_some_and(|at| (at..at + bytes.len()).contains(&byte))
    })
}

/// S24: every bit of an older and of the newest segment; nothing but the files says what was durable.
#[test]
fn every_flipped_bit_costs_one_record_in_a_payload_and_none_elsewhere() {
    let segments = two_segments();
    for index in 0..2 {
        let segment = &segments[index];
        let records: Vec<_> = (0..segment.bytes.len()).map(|byte| record_at(segment, byte)).collect();
        // Every bit of the batches; in the header's block, which one checksum covers, some.
        let header = (0..4096 * 8).step_by(397);
        let disk = new_disk();
        segments.iter().for_each(|segment| segment.put(&disk));
        let path = segment_path(&dir(), segment.id);
        for bit in header.chain(4096 * 8..segment.bytes.len() * 8) {
            disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
            let (recovery, seen) = outcome(&disk, &Evidence::default());
            let hit: Vec<u64> = records[bit / 8].into_iter().collect();
            assert_eq!(seen.missing(), hit, "segment {index} byte {}", bit / 8);
            assert_eq!((recovery.next_seq.get(), seen.records.len()), (12, 11 - hit.len()));
            assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)));
            if index == 1 {
                let gaps: Vec<_> = recovery.gaps.iter().map(|gap| gap.from.get()).collect();
                assert_eq!(gaps, hit, "recovery reports it");
                assert!(recovery.report.quarantined.is_empty());
            }
            disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
        }
    }
}

/// S29: whatever a damaged length or count says, memory stays bounded by the file and nothing panics.
#[test]
fn lengths_and_counts_of_any_value_are_a_gap_or_nothing() {
    let segments = two_segments();
    for index in 0..2 {
        let segment = &segments[index];
        for batch in &segment.batches {
            // Every aligned word of the header and of the first frame's head.
            for word in (batch.start..batch.start + BATCH_HEADER_BYTES + 16).step_by(4) {
                for value in [0u32, 1, 0x7fff_ffff, u32::MAX - 1, u32::MAX, 1 << 30, (1 << 30) + 1] {
                    let mut damaged = segment.clone();
                    damaged.bytes[word..word + 4].copy_from_slice(&value.to_le_bytes());
                    let disk = new_disk();
                    segments[1 - index].put(&disk);
                    damaged.put(&disk);
                    let evidence = Evidence { durable_end: Some(Seq::new(12)), ..Evidence::default() };
                    let (recovery, seen) = outcome(&disk, &evidence);
                    assert_eq!(recovery.next_seq.get(), 12);
                    assert_eq!(seen.records.len() + seen.missing().len(), 11, "word at {word} is {value}");
                    assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)));
                    assert!(seen.missing().len() <= 3, "no more than the batch that was hit");
                }
            }
        }
    }
}

/// S21: a file that is longer than what was written to it.
#[test]
fn the_end_of_a_preallocated_or_recycled_file_is_found_by_its_content() {
    let old = Segment::new(1, 1, None).batch(9).batch(9).batch(9);
    let new = Segment::new(8, 40, None).batch(1);
    for (what, behind) in
        [("zeros", vec![0; 100_000]), ("old batches", old.bytes[new.bytes.len()..].to_vec())]
    {
        let disk = new_disk();
        let mut bytes = new.bytes.clone();
        bytes.extend(behind);
        put_file(&disk, &segment_path(&dir(), new.id), &bytes);
        let floor = Some((Seq::new(40), new.id));
        let (recovery, seen) = outcome(&disk, &Evidence { floor, ..Evidence::default() });
        assert_eq!((seen.seqs(), recovery.gaps.len()), (vec![40], 0), "{what}");
        assert_eq!(recovery.predecessor.unwrap().end_offset, new.end_offset());
        assert_eq!(recovery.report.dead_bytes, bytes.len() as u64 - new.end_offset());
    }
}

/// Headers under right checksums, each of which says that the rest of the file is its batch: verifying them all would read
/// the file's square.
#[test]
fn headers_nested_by_hand_are_not_all_verified() {
    const FILE_BYTES: usize = 3 << 20;
    let mut segment = Segment::new(1, 100_000, None).batch(1);
    let start = segment.bytes.len();
    segment.bytes.resize(FILE_BYTES, 0x11);
    for index in 0..2000 {
        let at = start + index * BATCH_HEADER_BYTES;
        let header = BatchHeader {
            flags: BatchFlags::NONE,
            codec: 0,
            stream: IDENTITY.stream,
            first_seq: Seq::new(1 + index as u64),
            prev_seq: 0,
            durable_seq: 0,
            append_time: WallTime::EPOCH,
            count: 1,
            frames_bytes: u32::try_from(FILE_BYTES - at - BATCH_HEADER_BYTES).unwrap(),
            batch_crc: 0,
        };
        segment.bytes[at..at + BATCH_HEADER_BYTES].copy_from_slice(&header.encode(&IDENTITY));
    }
    let disk = new_disk();
    segment.put(&disk);
    let before = disk.bytes_read();
    let floor = Some((Seq::new(100_000), segment.id));
    let (recovery, seen) = outcome(&disk, &Evidence { floor, ..Evidence::default() });
    assert_eq!((recovery.next_seq.get(), seen.seqs()), (100_001, vec![100_000]));
    let read = disk.bytes_read() - before;
    assert!(read < 32 * FILE_BYTES as u64, "{read} bytes were read");
}

/// S21: behind what a writer may have left unsynced nothing is looked for, unless something is known to be missing.
#[test]
fn a_file_is_searched_no_further_than_a_writer_may_have_left_it_unsynced() {
    let segment = Segment::new(1, 1, None).batch(3);
    let disk = new_disk();
    segment.put(&disk);
    disk.open(&segment_path(&dir(), segment.id), OpenMode::ReadWrite).unwrap().set_len(1 << 40).unwrap();
    let before = disk.bytes_read();
    let (recovery, seen) = outcome(&disk, &Evidence::default());
    assert_eq!((recovery.next_seq.get(), seen.seqs()), (4, vec![1, 2, 3]));
    let window = UNSYNCED_BYTES_MAX + u64::from(FRAMES_BYTES_MAX);
    assert!(disk.bytes_read() - before < window + window / 8);
}

/// S23: a file that is void, and alone in proving what was durable, is not unlinked before something else proves it.
#[test]
fn what_a_void_file_proves_is_still_known_to_the_next_recovery() {
    let gone = Segment::new(1, 1, None).batch(9);
    let torn = Segment::new(2, gone.next, Some(&gone)).batch(3);
    // The header is lost, and the frames of the one batch; its header tells that seqs 1 to 9 were durable.
    let left = torn.clone().zero(0..4096).zero(torn.frames(0));
    let disk = new_disk();
    left.put(&disk);
    let (first, _) = outcome(&disk, &Evidence::default());
    assert_eq!((first.next_seq.get(), first.gaps.iter().map(Gap::count).sum::<u64>()), (10, 9));
    let (second, _) = outcome(&disk, &Evidence::default());
    assert_eq!((second.next_seq, &second.gaps), (first.next_seq, &first.gaps));
    // The next segment makes it void for good.
    Segment::new(second.next_segment.get(), 10, None).batch(2).put(&disk);
    let (third, seen) = outcome(&disk, &Evidence::default());
    assert_eq!((third.next_seq.get(), third.report.unlinked), (12, vec![left.id]));
    assert_eq!((seen.seqs(), seen.missing().len()), (vec![10, 11], 9));
}
