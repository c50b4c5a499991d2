//! The table of recovery, row by row: R0 to R8, R10, R11.

use super::*;

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

/// Nothing names where the older file ends once the header behind it is gone, but the first batch there says which seqs were left out.
#[test]
fn a_torn_batch_is_not_told_lost_where_a_headerless_file_says_its_seqs_were_left_out() {
    let one = Segment::new(1, 1, None).batch(3);
    let mut two = Segment::new(2, 20, Some(&one));
    two.prev = one.prev;
    let two = two.batch(2);
    let three = Segment::new(3, two.next, Some(&two)).batch(1);
    let torn = one.batch(1);
    let torn = torn.clone().zero(torn.frames(1));
    for segments in [vec![&torn, &two, &three], vec![&torn, &two.clone().zero(0..4096), &three]] {
        let (recovery, seen) = recovered(&put(&segments), &none());
        assert_eq!((gaps(&recovery), seen.seqs()), (vec![], vec![1, 2, 3, 20, 21, 22]));
    }
}

/// The newest file has lost its header, but its first batch says what its writer left out: that is dead in the file before, and stays
/// dead once what was recovered is saved as durable.
#[test]
fn what_a_headerless_tail_says_was_left_out_neither_comes_back_nor_is_told_lost() {
    let one = Segment::new(1, 1, None).batch(3);
    let mut two = Segment::new(2, 20, Some(&one));
    two.prev = one.prev;
    let two = two.batch(2).zero(0..4096);
    let torn = one.clone().batch(1).batch(1);
    let torn = torn.clone().zero(torn.frames(1));
    let given_up = one.clone().batch(1);
    for older in [&torn, &given_up] {
        let (recovery, seen) = recovered(&put(&[older, &two]), &none());
        assert_eq!((gaps(&recovery), seen.seqs()), (vec![], vec![1, 2, 3, 20, 21]));
    }
    // What was durable and is damaged is lost, and no more than that.
    let cut = one.clone().cut(one.frames(0).end - 3);
    let (recovery, seen) = recovered(&put(&[&cut, &two]), &evidence(1, 1, 4));
    assert_eq!((gaps(&recovery), seen.seqs()), (vec![(3, 4)], vec![1, 2, 20, 21]));
}

/// Files are believed by where they stand: an older one that was renamed to be the newest, and lost its header, takes nothing from others.
#[test]
fn a_renamed_file_without_a_header_does_not_pass_for_the_newest() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let disk = put(&[&two]);
    one.zero(0..4096).put_as(&disk, 9);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!((gaps(&recovery), seen.seqs()), (vec![(1, 4)], vec![4, 5]));
    assert_eq!(quarantined(&disk), ["0000000000000007-0000000000000009.stranger.seg"]);
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
