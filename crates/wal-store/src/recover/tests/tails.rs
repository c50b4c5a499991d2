//! Torn tails: every cut, any subset of sectors, rubbish behind the end, parts of a new segment.

use super::*;

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
