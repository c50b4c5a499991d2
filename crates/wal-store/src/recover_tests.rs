//! The table of recovery over files built from the format: each row, torn tails, damage, strays.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use disk::{Disk, Op};
use sim_disk::{Fault, On, SimDisk, Survival, errno};
use wal_format::{
    BatchFlags, Incarnation, Predecessor, SEGMENT_HEADER_BYTES, SegmentId, Seq, StreamIdentity,
};

use super::*;
use crate::build::{IDENTITY, Seen, Segment, context, dir, new_disk, payload, put_file, read_all};
use crate::{GapReason, QUARANTINE_DIR, segment_id, segment_path};

/// Recovers as a new process does, checks that doing it again says the same, and reads everything.
fn recovered(disk: &SimDisk, evidence: &Evidence) -> (Recovery, Seen) {
    let recovery = recover(&context(disk), evidence).unwrap();
    for survival in [Survival::Nothing, Survival::Everything] {
        let disk = SimDisk::from_snapshot(&disk.snapshot()).power_cut(&survival);
        let again = recover(&context(&disk), evidence).unwrap();
        assert_eq!(again.segments, recovery.segments, "recovery is a fixpoint");
        assert_eq!(
            (again.next_seq, &again.gaps, &again.tags),
            (recovery.next_seq, &recovery.gaps, &recovery.tags)
        );
        assert_eq!(again.predecessor, recovery.predecessor);
    }
    let from = evidence.floor.map_or(1, |(seq, _)| seq.get());
    let seen = read_all(&context(disk), &recovery.segments, from, recovery.next_seq.get(), 1 << 20);
    assert!(seen.records.iter().all(|(seq, bytes)| (0..3).any(|life| *bytes == payload(*seq, life))));
    (recovery, seen)
}

fn put(segments: &[&Segment]) -> SimDisk {
    let disk = new_disk();
    segments.iter().for_each(|segment| segment.put(&disk));
    disk
}

fn evidence(floor: u64, segment: u64, end: u64) -> Evidence {
    let floor = Some((Seq::new(floor), SegmentId::new(segment)));
    Evidence { floor, durable_end: Some(Seq::new(end)), ..Evidence::default() }
}

fn none() -> Evidence {
    Evidence::default()
}

fn gaps(recovery: &Recovery) -> Vec<(u64, u64)> {
    recovery.gaps.iter().map(|gap| (gap.from.get(), gap.to.get())).collect()
}

fn rows(recovery: &Recovery) -> Vec<Row> {
    recovery.report.rows.iter().map(|(row, _)| *row).collect()
}

fn list(disk: &SimDisk, dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let listed = disk.list(dir, &mut |entry| {
        names.push(entry.name.to_string_lossy().into_owned());
        ControlFlow::Continue(())
    });
    names.sort();
    listed.map_or(Vec::new(), |()| names)
}

fn names(disk: &SimDisk) -> Vec<u64> {
    list(disk, &dir()).iter().filter_map(|name| segment_id(name.as_ref())).map(SegmentId::get).collect()
}

fn quarantined(disk: &SimDisk) -> Vec<String> {
    list(disk, Path::new(QUARANTINE_DIR))
}

#[test]
fn an_empty_directory_is_a_fresh_stream_and_a_floor_is_kept_without_any_file() {
    let (recovery, _) = recovered(&new_disk(), &none());
    assert_eq!(
        (recovery.next_seq, recovery.next_segment, recovery.prev_seq),
        (Seq::FIRST, SegmentId::FIRST, 0)
    );
    assert_eq!((recovery.predecessor, recovery.gaps.len()), (None, 0));
    let (recovery, _) = recovered(&new_disk(), &evidence(40, 6, 40));
    assert_eq!((recovery.next_seq.get(), recovery.next_segment.get(), recovery.prev_seq), (40, 6, 39));
}

// S22: a stream that shows what is only written leaves seqs out after a crash, and the next crash tears the batch that would say so.
#[test]
fn seqs_left_out_in_front_of_a_torn_first_batch_are_not_lost() {
    let one = Segment::new(1, 1, None).batch(3);
    let whole = Segment::new(2, one.next, Some(&one)).skip_to(100).batch(2);
    for len in [SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + 30, whole.bytes.len() - 1] {
        let mut two = Segment::new(2, 100, Some(&one)).batch(2).cut(len);
        two.bytes[SEGMENT_HEADER_BYTES..].fill(0);
        let disk = put(&[&one, &two]);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!((recovery.next_seq.get(), gaps(&recovery)), (4, vec![]), "{len} bytes");
        assert_eq!((seen.seqs(), seen.missing()), (vec![1, 2, 3], vec![]));
        // The next run names what is left of it, and leaves seqs out once more.
        let mut three = Segment::new(3, 200, Some(&two.cut(SEGMENT_HEADER_BYTES)));
        three.prev = 3;
        three.batch(2).put(&disk);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!((recovery.next_seq.get(), gaps(&recovery)), (202, vec![]), "{len} bytes");
        assert_eq!(seen.seqs(), [1, 2, 3, 200, 201]);
        assert!(seen.gaps.iter().all(|gap| gap.reason == GapReason::NotDurable), "{:?}", seen.gaps);
    }
}

#[test]
fn an_undamaged_stream_is_kept_whole_and_only_its_newest_segment_is_read() {
    let one = Segment::new(1, 1, None).batch(3).padded(2);
    let two = Segment::new(2, one.next, Some(&one)).batch(4);
    let three = Segment::new(3, two.next, Some(&two)).tag("p", "x").batch(2).batch(1);
    let disk = put(&[&one, &two, &three]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!(seen.seqs(), (1..13).collect::<Vec<_>>());
    assert_eq!(rows(&recovery), [Row::R1]);
    assert_eq!((recovery.next_seq.get(), recovery.next_segment.get()), (13, 4));
    let named = Predecessor { id: three.id, end_offset: three.end_offset() };
    assert_eq!(recovery.predecessor, Some(named));
    assert_eq!((recovery.report.scanned_count, recovery.report.dead_bytes), (1, 0));
    let ends: Vec<_> =
        recovery.segments.iter().map(|s| (s.first_seq.get(), s.end_seq.get(), s.end_offset)).collect();
    assert_eq!(ends, [(1, 6, one.end_offset()), (6, 10, two.end_offset()), (10, 13, three.end_offset())]);
    assert_eq!(disk.count(Op::Write), 3, "recovery writes nothing");
}

#[test]
fn opening_reads_heads_and_the_newest_segment_whatever_the_backlog() {
    let mut segments = vec![Segment::new(1, 1, None).batch(200)];
    for id in 2..=30 {
        let last = &segments[id - 2];
        segments.push(Segment::new(id as u64, last.next, Some(last)).batch(200));
    }
    let disk = put(&segments.iter().collect::<Vec<_>>());
    let newest = segments[29].end_offset();
    let before = disk.bytes_read();
    let recovery = recover(&context(&disk), &none()).unwrap();
    let read = disk.bytes_read() - before;
    assert_eq!((recovery.next_seq.get(), recovery.report.scanned_count), (6001, 1));
    assert!(read <= 30 * 5000 + newest, "{read} bytes read to open {} bytes", newest * 30);
    assert_eq!(disk.count_at(collect::FILE_SITE), 1, "only the newest can be unsynced");
}

/// S17.
#[test]
fn cut_at_every_byte_of_the_last_two_batches_opens_with_the_exact_prefix_and_one_class() {
    let one = Segment::new(1, 1, None).batch(2);
    for padded in [false, true] {
        let two = Segment::new(2, one.next, Some(&one)).batch(3);
        let two = if padded { two.padded(2).padded(1) } else { two.batch(2).batch(1) };
        for cut in two.batches[1].start..=two.bytes.len() {
            // The zeros that pad a batch are all the same.
            if padded
                && two.batches.iter().any(|batch| batch.contains(&cut) && cut > batch.start + 700)
                && cut % 61 > 0
            {
                continue;
            }
            let disk = put(&[&one]);
            put_file(&disk, &segment_path(&dir(), two.id), &two.bytes[..cut]);
            let (recovery, seen) = recovered(&disk, &none());
            // What pads a batch is not the batch.
            let is_whole = |index: usize| {
                let frames = two.frames(index);
                let tail =
                    two.bytes[frames.clone()].iter().rev().take_while(|byte| padded && **byte == 0).count();
                frames.end - tail <= cut
            };
            let whole = (1..3).take_while(|index| is_whole(*index)).count();
            assert_eq!(seen.seqs(), (1..[6, 8, 9][whole]).collect::<Vec<_>>(), "cut at {cut}");
            assert!(recovery.gaps.is_empty() && recovery.report.quarantined.is_empty());
            let row = rows(&recovery)[0];
            let header_there = whole < 2 && cut >= two.batches[whole + 1].start + 64;
            assert_eq!(row, if header_there { Row::R2 } else { Row::R1 }, "cut at {cut}");
            assert_eq!(recovery.next_segment.get(), 3);
        }
    }
}

/// S18.
#[test]
fn zeros_and_rubbish_behind_the_end_are_dead_and_reported() {
    let one = Segment::new(1, 1, None).batch(3).batch(2);
    for zeros in [1, 15, 16, 63, 64, 100, 511, 4096, 65_536] {
        for pattern in [0u8, 1, 0xA5] {
            let disk = put(&[&one]);
            let tail: Vec<u8> =
                (0..zeros).map(|i| pattern.wrapping_mul((i * 7 + i / 251 + 1) as u8)).collect();
            disk.damage(segment_path(&dir(), one.id), |bytes| bytes.extend(&tail));
            let (recovery, seen) = recovered(&disk, &none());
            assert_eq!(seen.seqs(), [1, 2, 3, 4, 5]);
            assert_eq!((rows(&recovery), recovery.report.dead_bytes), (vec![Row::R1], zeros as u64));
            assert_eq!(recovery.predecessor.unwrap().end_offset, one.end_offset());
        }
    }
}

/// S19: any subset of the sectors of an unsynced suffix.
#[test]
fn any_subset_of_unsynced_sectors_leaves_a_prefix_of_whole_batches() {
    let durable = Segment::new(1, 1, None).batch(4);
    let mut all = durable.clone();
    for _ in 0..5 {
        all = all.batch(9);
    }
    let sectors = (all.bytes.len() - 1) / 512 - durable.bytes.len() / 512 + 1;
    let first = durable.bytes.len() / 512;
    assert!((6..=10).contains(&sectors), "{sectors} sectors");
    for mask in 0..1u32 << sectors {
        let mut bytes = all.bytes.clone();
        for sector in (0..sectors).filter(|sector| mask >> sector & 1 == 1) {
            let start = ((first + sector) * 512).max(durable.bytes.len());
            let end = ((first + sector + 1) * 512).min(bytes.len());
            bytes[start.min(end)..end].fill(0);
        }
        let disk = new_disk();
        put_file(&disk, &segment_path(&dir(), all.id), &bytes);
        let (recovery, seen) = recovered(&disk, &none());
        let whole = all
            .batches
            .iter()
            .take_while(|batch| bytes[(*batch).clone()] == all.bytes[(*batch).clone()])
            .count();
        let expected = [0, 4, 13, 22, 31, 40, 49][whole];
        assert_eq!(seen.seqs(), (1..=expected).collect::<Vec<_>>(), "mask {mask:b}");
        assert!(recovery.gaps.is_empty() && names(&disk) == [1]);
    }
}

/// S22: what a power cut leaves of the first write to a new segment.
#[test]
fn parts_of_a_new_segment_are_no_damage_and_no_gap() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2).batch(1);
    let header_only = two.clone().zero(4096..two.bytes.len());
    let batch_only = two.clone().zero(0..4096);
    let partial = |cut: usize| two.clone().cut(cut);
    let second_only = two.clone().zero(0..two.batches[0].end);
    for (what, file, seqs, ids) in [
        ("nothing", partial(0), 3, vec![1]),
        ("zeros", two.clone().zero(0..two.bytes.len()), 3, vec![1]),
        ("a part of the header", partial(1000), 3, vec![1]),
        ("the header", header_only, 3, vec![1, 2]),
        ("the header, short", partial(4096), 3, vec![1, 2]),
        ("batches without the header", batch_only, 6, vec![1, 2]),
        ("only the second batch", second_only, 3, vec![1]),
    ] {
        let disk = put(&[&one, &file]);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!(seen.seqs(), (1..=seqs).collect::<Vec<_>>(), "{what}");
        assert_eq!((gaps(&recovery), quarantined(&disk), names(&disk)), (vec![], vec![], ids), "{what}");
        assert_eq!(recovery.next_segment.get(), 3, "{what}");
    }
}

/// R0: retired files that came back, whatever is in them.
#[test]
fn files_below_the_floors_segment_are_unlinked_whatever_is_in_them() {
    let one = Segment::new(1, 1, None).batch(9);
    let three = Segment::new(3, 5, Some(&one)).batch(2);
    let disk = put(&[&one, &three]);
    put_file(&disk, &segment_path(&dir(), SegmentId::new(2)), b"anything");
    let (recovery, seen) = recovered(&disk, &evidence(5, 3, 5));
    assert_eq!((seen.seqs(), names(&disk)), (vec![5, 6], vec![3]));
    assert_eq!((recovery.report.count(Row::R0), gaps(&recovery)), (2, vec![]));
}

/// R0b and S26: failed syncs leave files and copies that the chain does not name.
#[test]
fn files_between_a_segment_and_its_predecessor_are_void() {
    let one = Segment::new(1, 1, None).batch(2);
    let failed = Segment::new(2, 3, Some(&one)).batch(2);
    let also_failed = Segment::new(3, 3, Some(&one)).batch(1).zero(0..4096);
    let four = Segment::new(4, 3, Some(&one)).batch(2).batch(1);
    let disk = put(&[&one, &failed, &also_failed, &four]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((seen.seqs(), names(&disk)), (vec![1, 2, 3, 4, 5], vec![1, 4]));
    assert_eq!((recovery.report.count(Row::R0b), gaps(&recovery), quarantined(&disk)), (2, vec![], vec![]));
}

/// R1 and R2: nothing proves that more was durable.
#[test]
fn a_torn_tail_above_what_is_durable_is_cut_and_counted() {
    let one = Segment::new(1, 1, None).batch(3).batch(2).batch(2);
    let torn = one.clone().zero(one.frames(1));
    let (recovery, seen) = recovered(&put(&[&torn]), &none());
    assert_eq!((seen.seqs(), rows(&recovery), gaps(&recovery)), (vec![1, 2, 3], vec![Row::R2], vec![]));
    assert_eq!(recovery.report.torn_bytes, (one.bytes.len() - one.batches[1].start) as u64);
    assert_eq!(
        (recovery.next_seq.get(), recovery.predecessor.unwrap().end_offset),
        (4, one.batches[1].start as u64)
    );
}

/// R3: by a saved end, by a cursor, by a later batch, by a floor.
#[test]
fn a_hole_below_what_is_proven_durable_is_a_gap_of_exactly_that() {
    let one = Segment::new(1, 1, None).durable(1).batch(3).batch(2);
    let named = one.clone().durable(6).batch(2);
    let holed = |segment: &Segment| segment.clone().zero(segment.batches[1].clone());
    let one = one.batch(2);
    let cursor = Evidence { cursors_max: Some(Seq::new(6)), ..none() };
    for (file, evidence) in [(holed(&one), evidence(1, 1, 6)), (holed(&one), cursor), (holed(&named), none())]
    {
        let (recovery, seen) = recovered(&put(&[&file]), &evidence);
        assert_eq!(
            (seen.seqs(), gaps(&recovery), seen.missing()),
            (vec![1, 2, 3, 6, 7], vec![(4, 6)], vec![4, 5])
        );
        assert!(rows(&recovery).contains(&Row::R3) && recovery.next_seq.get() == 8);
    }
    // Only up to D: what stands behind it and was voided by a cut does not come back (the model's F1).
    let voided = holed(&one).zero(one.batches[2].clone());
    let voided = voided.goes_on_at(9).batch(1);
    let (recovery, seen) = recovered(&put(&[&voided]), &evidence(1, 1, 6));
    assert_eq!((seen.seqs(), gaps(&recovery), recovery.next_seq.get()), (vec![1, 2, 3], vec![(4, 6)], 6));
    // A missing suffix.
    let short = one.clone().cut(one.batches[1].start);
    let (recovery, seen) = recovered(&put(&[&short]), &evidence(1, 1, 8));
    assert_eq!((seen.seqs(), gaps(&recovery), recovery.next_seq.get()), (vec![1, 2, 3], vec![(4, 8)], 8));
    assert_eq!(seen.missing(), [4, 5, 6, 7]);
}

/// R4.
#[test]
fn damage_before_the_end_a_successor_names_is_a_gap_and_dead_bytes_are_ignored() {
    let one = Segment::new(1, 1, None).batch(3).batch(2).batch(2);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    // Readers find what is inside a file that is as long as its successor says.
    let (_, seen) = recovered(&put(&[&one.clone().zero(one.batches[1].clone()), &two]), &none());
    assert_eq!((seen.missing(), seen.seqs()), (vec![4, 5], vec![1, 2, 3, 6, 7, 8, 9]));
    // Recovery finds it if the file is shorter.
    let short = one.clone().cut(one.batches[2].start + 70);
    let (recovery, seen) = recovered(&put(&[&short, &two]), &none());
    assert_eq!((gaps(&recovery), seen.seqs()), (vec![(6, 8)], vec![1, 2, 3, 4, 5, 8, 9]));
    assert!(rows(&recovery).contains(&Row::R4));
    // Behind the named end: a voided tail of an earlier life.
    let dead = one.clone().life(1).batch(4);
    let (recovery, seen) = recovered(&put(&[&dead, &two]), &none());
    assert_eq!((gaps(&recovery), seen.seqs()), (vec![], (1..10).collect::<Vec<_>>()));
    assert!((8..10).all(|seq| seen.records[&seq] == payload(seq, 0)));
}

/// R5: the headerless newest file, with batches below q in front, and copies elsewhere.
#[test]
fn batches_of_a_headerless_newest_file_count_from_q_on_where_they_stand() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, 2, Some(&one)).batch(2).batch(2).zero(0..4096);
    let disk = put(&[&one, &two]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((seen.seqs(), gaps(&recovery)), (vec![1, 2, 3, 4, 5], vec![]));
    assert_eq!(recovery.predecessor.unwrap().id.get(), 2);
    assert_eq!(rows(&recovery), [Row::R5, Row::R1]);
    // The model's A7: 1 lost and 2 kept in the older file, 1' in the headerless one: the voided 2 does not come back.
    let older = Segment::new(1, 1, None).batch(1).batch(1);
    let older = older.clone().zero(older.batches[0].clone());
    let newer = Segment::new(2, 1, None).life(1).batch(1).zero(0..4096);
    let (_, seen) = recovered(&put(&[&older, &newer]), &none());
    assert_eq!((seen.seqs(), &seen.records[&1]), (vec![1], &payload(1, 1)));
}

/// R6.
#[test]
fn an_older_file_without_a_header_is_read_by_its_batches_and_kept_safe_only_if_a_seq_is_missing() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2).batch(2);
    let three = Segment::new(3, two.next, Some(&two)).batch(2);
    let headless = two.clone().zero(0..4096);
    let disk = put(&[&one, &headless, &three]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((seen.seqs(), gaps(&recovery), quarantined(&disk)), ((1..10).collect(), vec![], vec![]));
    let holed = headless.zero(two.batches[0].clone());
    let disk = put(&[&one, &holed, &three]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((seen.missing(), gaps(&recovery)), (vec![4, 5], vec![(4, 6)]));
    assert_eq!(quarantined(&disk), ["0000000000000007-0000000000000002.damaged.seg"]);
    assert_eq!(names(&disk), [1, 2, 3], "it stays where it is, too");
    // Nothing at or above the floor: ignored.
    let disk = put(&[&one, &holed, &three]);
    let (recovery, seen) = recovered(&disk, &evidence(8, 1, 8));
    assert_eq!((seen.seqs(), gaps(&recovery), quarantined(&disk)), (vec![8, 9], vec![], vec![]));
}

/// R7.
#[test]
fn a_newer_version_refuses_the_stream_and_changes_nothing() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(1);
    let disk = put(&[&one, &two]);
    put_file(&disk, &segment_path(&dir(), SegmentId::new(3)), &next_version_header());
    let before = disk.files();
    let error = recover(&context(&disk), &none()).unwrap_err();
    assert!(matches!(error, RecoverError::NewerFormat { .. }) && !error.is_retryable(), "{error}");
    assert!(error.to_string().contains("0000000000000003.seg") && error.to_string().contains("version"));
    assert_eq!(disk.files(), before);
}

/// R7, behind a header that this version can read.
#[test]
fn a_batch_of_a_newer_version_refuses_the_stream_and_changes_nothing() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(1).batch(2).of_next_version(1);
    let disk = put(&[&one, &two]);
    let before = (disk.files(), disk.count(Op::RemoveFile), disk.count(Op::Link));
    for _ in 0..2 {
        let error = recover(&context(&disk), &none()).unwrap_err();
        let RecoverError::NewerFormat { path, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((path, *offset), (&segment_path(&dir(), two.id), two.batches[1].start as u64));
        assert!(!error.is_retryable());
    }
    assert_eq!((disk.files(), disk.count(Op::RemoveFile), disk.count(Op::Link)), before);
    assert_eq!(disk.read(segment_path(&dir(), two.id)), two.bytes);
}

/// A header as the next version of the format may write it, from the format's own golden files.
fn next_version_header() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wal-format/testdata");
    let disk = disk::OsDisk::open(&path).unwrap();
    let file = disk.open(Path::new("v1/next-version.headers"), disk::OpenMode::Read).unwrap();
    let mut bytes = vec![0; 4096];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// R8: every call of a recovery fails once.
#[test]
fn an_error_while_recovering_decides_nothing_and_the_next_try_is_right() {
    let make = || {
        let one = Segment::new(1, 1, None).batch(3);
        let void = Segment::new(2, 4, Some(&one)).batch(1);
        let three = Segment::new(3, 4, Some(&one)).batch(2);
        put(&[&one, &void, &three.clone().zero(three.batches[0].end - 3..three.batches[0].end)])
    };
    let disk = make();
    let (expected, _) = recovered(&disk, &none());
    let calls = disk.call_count();
    for call in 1..=calls {
        let disk = make();
        disk.plan(Fault::once(On::Any, call, errno::EIO));
        let failed = recover(&context(&disk), &none());
        if let Err(error) = failed {
            assert!(error.is_retryable(), "{error}");
        }
        disk.clear_faults();
        let again = recover(&context(&disk), &none()).unwrap();
        assert_eq!((again.segments, again.next_seq), (expected.segments.clone(), expected.next_seq));
    }
}

/// R9 and S27: files of other streams, other lives and other names.
#[test]
fn foreign_and_misnamed_files_are_never_decoded_as_ours_and_are_kept_safe() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let named = Some(Predecessor { id: one.id, end_offset: one.end_offset() });
    let other_life = StreamIdentity { incarnation: Incarnation::new(99), ..IDENTITY };
    let foreign = Segment::with(other_life, 3, 4, named).batch(5);
    let disk = put(&[&one, &two, &foreign]);
    one.put_as(&disk, 9);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((seen.seqs(), gaps(&recovery)), (vec![1, 2, 3, 4, 5], vec![]));
    assert_eq!(recovery.report.count(Row::R9), 2);
    assert_eq!(names(&disk), [1, 2]);
    assert_eq!(quarantined(&disk).len(), 2);
    assert_eq!(recovery.next_segment.get(), 10);
}

/// S31: an id the chain cannot have reached, with nothing of ours under it, is nobody's segment.
#[test]
fn a_strange_file_under_the_last_id_is_left_alone_and_ids_go_on() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let strange = segment_path(&dir(), SegmentId::new(u64::MAX));
    for bytes in [&b""[..], b"notes of mine", &[0; 9000]] {
        let disk = put(&[&one, &two]);
        put_file(&disk, &strange, bytes);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!((seen.seqs(), gaps(&recovery)), (vec![1, 2, 3, 4, 5], vec![]));
        assert_eq!(
            (recovery.next_segment.get(), recovery.report.beyond.as_slice()),
            (3, &[SegmentId::new(u64::MAX)][..])
        );
        assert_eq!((disk.read(&strange), quarantined(&disk)), (bytes.to_vec(), vec![]), "it is somebody's");
    }
    // A copy of ours, with its header or without, is a stranger like any other: it does not use ids up either.
    for copy in [one.clone(), one.clone().zero(0..4096)] {
        let disk = put(&[&one, &two]);
        copy.put_as(&disk, u64::MAX);
        let recovery = recover(&context(&disk), &none()).unwrap();
        assert_eq!((recovery.next_segment.get(), recovery.report.count(Row::R9)), (3, 1));
        assert_eq!((names(&disk), quarantined(&disk).len()), (vec![1, 2], 1));
    }
}

/// S45: an id of our own near the end still ends the ids.
#[test]
fn a_segment_of_ours_under_the_last_id_uses_ids_up() {
    let last = Segment::new(u64::MAX, 1, None).batch(3);
    let error = recover(&context(&put(&[&last])), &none()).unwrap_err();
    assert!(matches!(error, RecoverError::UsedUp), "{error}");
}

/// The last seq is nobody's: an end needs one more.
#[test]
fn seqs_are_used_up_one_before_the_last_and_nothing_is_touched() {
    let last = Seq::MAX.get();
    let one = Segment::new(1, 1, None).batch(2);
    let disk = put(&[&one]);
    let before = disk.files();
    for _ in 0..2 {
        let error = recover(&context(&disk), &evidence(1, 1, last)).unwrap_err();
        assert!(matches!(error, RecoverError::UsedUp) && !error.is_retryable(), "{error}");
    }
    assert_eq!((disk.files(), disk.read(segment_path(&dir(), one.id))), (before, one.bytes.clone()));
    let (recovery, seen) = recovered(&disk, &evidence(1, 1, last - 1));
    assert_eq!(
        (recovery.next_seq.get(), seen.seqs(), gaps(&recovery)),
        (last - 1, vec![1, 2], vec![(3, last - 1)])
    );
}

/// R10.
#[test]
fn a_newest_segment_without_a_batch_is_kept_as_a_link_of_the_chain() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one));
    let (recovery, seen) = recovered(&put(&[&one, &two]), &none());
    assert_eq!((seen.seqs(), rows(&recovery)), (vec![1, 2, 3], vec![Row::R1, Row::R10]));
    assert_eq!(recovery.predecessor, Some(Predecessor { id: two.id, end_offset: 4096 }));
    assert_eq!(recovery.segments.len(), 2);
}

/// R11 and S28.
#[test]
fn a_missing_segment_is_a_gap_of_exactly_its_seqs() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let three = Segment::new(3, two.next, Some(&two)).batch(2);
    let four = Segment::new(4, three.next, Some(&three)).batch(1);
    let all = [&one, &two, &three, &four];
    for (missing, expected) in [(0, vec![1, 2, 3]), (1, vec![4, 5]), (2, vec![6, 7])] {
        let kept: Vec<_> = all.iter().enumerate().filter(|(i, _)| *i != missing).map(|(_, s)| *s).collect();
        let (recovery, seen) = recovered(&put(&kept), &none());
        assert_eq!(seen.missing(), expected);
        assert_eq!(gaps(&recovery), [(expected[0], expected[expected.len() - 1] + 1)]);
        assert_eq!(seen.gaps[0].reason, GapReason::Lost);
    }
    let (recovery, seen) = recovered(&put(&all[..3]), &evidence(1, 1, 9));
    assert_eq!((seen.missing(), recovery.next_seq.get()), (vec![8], 9), "the newest: only what is proven");
}

/// S20 and S25 for the reader's side: a recycled file with old batches behind the new ones.
#[test]
fn old_batches_behind_the_end_of_a_recycled_file_never_come_back() {
    let old = Segment::new(1, 1, None).batch(2).batch(2).batch(2).batch(2);
    for fresh in 1..3 {
        let new = Segment::new(5, 20, None).life(1).batch(fresh);
        let mut bytes = old.bytes.clone();
        bytes[..new.bytes.len()].copy_from_slice(&new.bytes);
        let disk = new_disk();
        put_file(&disk, &segment_path(&dir(), new.id), &bytes);
        let (recovery, seen) = recovered(&disk, &evidence(20, 5, 20));
        assert_eq!(seen.seqs(), (20..20 + fresh).collect::<Vec<_>>());
        assert_eq!((gaps(&recovery), recovery.next_seq.get()), (vec![], 20 + fresh));
    }
    // Unborn: renamed to its next id, its new header never arrived.
    let newest = Segment::new(4, 9, Some(&old)).batch(2);
    let disk = put(&[&newest]);
    old.put_as(&disk, 5);
    let (recovery, seen) = recovered(&disk, &evidence(9, 4, 9));
    assert_eq!((seen.seqs(), names(&disk), quarantined(&disk)), (vec![9, 10], vec![4], vec![]));
    assert_eq!(recovery.next_segment.get(), 6);
}

/// S31.
#[test]
fn stray_names_are_ignored_and_listed() {
    use std::os::unix::ffi::OsStrExt;
    let one = Segment::new(1, 1, None).batch(3);
    let disk = put(&[&one]);
    for name in ["tmp", "0000000000000001.seg.bak", "x.seg", "000000000000000g.seg"] {
        put_file(&disk, &dir().join(name), b"x");
    }
    put_file(&disk, &dir().join(std::ffi::OsStr::from_bytes(b"\xff\xfe.seg")), b"x");
    disk.create_dir(&dir().join("0000000000000009.seg")).unwrap();
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!(
        (seen.seqs(), recovery.report.strays.len(), recovery.report.file_count),
        (vec![1, 2, 3], 6, 1)
    );
    assert_eq!(recovery.next_segment.get(), 2);
    assert_eq!(disk.files().len(), 6, "nothing was removed");
}

#[test]
fn a_clean_stop_is_believed_only_while_its_segment_is_the_newest() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let disk = put(&[&one, &two]);
    let stopped = |segment| Evidence { clean: Some(SegmentId::new(segment)), ..evidence(1, 1, 6) };
    let clean = recover(&context(&disk), &stopped(2)).unwrap();
    assert!(clean.report.clean && clean.shown_unsynced_max == 0);
    assert_eq!(disk.count_at(collect::FILE_SITE), 0);
    let unclean = recover(&context(&disk), &stopped(1)).unwrap();
    assert!(!unclean.report.clean && unclean.shown_unsynced_max > 0);
    assert_eq!(disk.count_at(collect::FILE_SITE), 1, "the older one is vouched for by its successor");
    assert_eq!(clean.segments, unclean.segments);
}

#[test]
fn the_last_tag_of_every_producer_is_found_and_void_ones_are_not() {
    let one = Segment::new(1, 1, None).tag("a", "1").batch(1).tag("b", "1").batch(1).tag("a", "2").batch(1);
    let two = Segment::new(2, 4, Some(&one)).tag("a", "2").tag("b", "1").batch(1).tag("b", "2").batch(1);
    let torn = two.clone().zero(two.batches[1].start + 70..two.batches[1].end);
    let empty = Segment::new(3, 5, Some(&two.clone().cut(two.batches[0].end)));
    let tags = |segments: &[&Segment], evidence: &Evidence| -> BTreeMap<String, String> {
        let (recovery, _) = recovered(&put(segments), evidence);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        recovery.tags.iter().map(|tag| (text(&tag.producer), text(&tag.value))).collect()
    };
    let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    assert_eq!(tags(&[&one], &none()), of(&[("a", "2"), ("b", "1")]));
    assert_eq!(tags(&[&one, &two], &none()), of(&[("a", "2"), ("b", "2")]));
    assert_eq!(tags(&[&one, &torn], &none()), of(&[("a", "2"), ("b", "1")]));
    assert_eq!(tags(&[&one, &two, &empty], &none()), of(&[("a", "2"), ("b", "1")]), "the newest is empty");
    let saved = OwnedTag { producer: b"c".to_vec(), value: b"9".to_vec(), at: Seq::FIRST };
    let floor = Evidence { floor_tags: vec![saved], ..none() };
    assert_eq!(tags(&[&two], &floor), of(&[("a", "2"), ("b", "2"), ("c", "9")]));
}

/// S30: whatever a payload looks like.
#[test]
fn payloads_that_look_like_batches_are_payloads() {
    let inner = Segment::new(1, 1, None).batch(2);
    let payloads = vec![inner.bytes[4096..].to_vec(), Vec::new(), inner.bytes.clone(), vec![0; 64]];
    // Only what is older than a record can be in it.
    let one = Segment::new(1, 1, None).batch(2).batch_of(&payloads, BatchFlags::NONE).batch(1);
    for file in [one.clone(), one.clone().zero(one.batches[1].start..one.batches[1].start + 64)] {
        let recovery = recover(&context(&put(&[&file])), &evidence(1, 1, 8)).unwrap();
        let seen = read_all(&context(&put(&[&file])), &recovery.segments, 1, 8, 1 << 20);
        assert!(seen.records.iter().all(|(seq, bytes)| match seq {
            3..7 => *bytes == payloads[*seq as usize - 3],
            _ => *bytes == payload(*seq, 0),
        }));
        assert_eq!(seen.records.len() + seen.missing().len(), 7);
    }
}
