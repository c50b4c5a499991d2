//! R9 and what else is not this stream's: foreign files, ids out of reach, recycled bytes, stray names, payloads that look like batches.

use super::*;

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
