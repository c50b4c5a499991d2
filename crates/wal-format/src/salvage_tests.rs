//! Salvage: what one flip costs, what more damage costs, and that nothing false comes out.

use super::*;
use crate::{
    BATCH_HEADER_BYTES, PAYLOAD_BYTES_MAX,
    layout::flip,
    testing::{IDENTITY, Write, batch_of, frames_of, record, seed},
};
use proptest::prelude::*;

const FIRST: Seq = Seq::new(10);

fn meta() -> Write {
    Write::Meta(b"app".to_vec(), b"17".to_vec())
}

fn run(header: &BatchHeader, frames: &[u8]) -> Vec<String> {
    salvage(&IDENTITY, header, frames).map(|item| describe(&item)).collect()
}

fn describe(item: &Salvaged<'_>) -> String {
    match item {
        Salvaged::Frame(Frame { seq: Some(seq), payload, .. }) => {
            format!("{seq} {}", String::from_utf8_lossy(payload))
        }
        Salvaged::Frame(_) => "meta".to_string(),
        Salvaged::Lost { from, to } => format!("lost {from}..{to}"),
        Salvaged::LostMeta { before } => format!("lost meta before {before}"),
    }
}

fn sample() -> (BatchHeader, Vec<u8>) {
    let writes = [meta(), record(b"zero"), record(b""), meta(), record(b"two"), record(b"three"), meta()];
    let (header, bytes) = batch_of(&IDENTITY, FIRST, &writes);
    (header, bytes[BATCH_HEADER_BYTES..].to_vec())
}

const WHOLE: [&str; 7] = ["meta", "10 zero", "11 ", "meta", "12 two", "13 three", "meta"];

#[test]
fn an_undamaged_batch_comes_out_whole() {
    let (header, frames) = sample();
    assert_eq!(run(&header, &frames), WHOLE);
    assert_eq!(
        run(&header, &[frames.as_slice(), b"next batch"].concat()),
        WHOLE,
        "what follows does not matter"
    );
}

/// The index in [`WHOLE`] of the frame that byte `at` belongs to, and whether it is in the head.
fn place(at: usize) -> (usize, bool) {
    let mut start = 0;
    for (index, payload) in [6, 4, 0, 6, 3, 5, 6].into_iter().enumerate() {
        if at < start + 16 + payload {
            return (index, at < start + 16);
        }
        start += 16 + payload;
    }
    panic!("byte {at} is behind the batch")
}

#[test]
fn a_flip_in_a_head_costs_nothing_and_one_in_a_payload_that_payload() {
    // S24
    let (header, mut frames) = sample();
    for bit in 0..frames.len() * 8 {
        flip(&mut frames, bit);
        let mut expected = WHOLE.map(String::from);
        let (index, in_head) = place(bit / 8);
        if !in_head {
            expected[index] = match index {
                0 => "lost meta before 10".to_string(),
                1 => "lost 10..11".to_string(),
                3 => "lost meta before 12".to_string(),
                4 => "lost 12..13".to_string(),
                5 => "lost 13..14".to_string(),
                6 => "lost meta before 14".to_string(),
                other => panic!("frame {other} has no payload"),
            };
        }
        assert_eq!(run(&header, &frames), expected, "bit {bit}");
        assert_eq!(flipped_bit(&IDENTITY, &header, &frames), Some(bit));
        flip(&mut frames, bit);
    }
}

#[test]
fn torn_and_whole_batches_have_no_flipped_bit() {
    // S19
    let (header, frames) = sample();
    assert_eq!(flipped_bit(&IDENTITY, &header, &frames), None);
    for length in 0..frames.len() {
        assert_eq!(flipped_bit(&IDENTITY, &header, &frames[..length]), None, "not all here");
        let mut torn = frames.clone();
        torn[length..].fill(0);
        let bits: u32 = torn.iter().zip(&frames).map(|(torn, whole)| (torn ^ whole).count_ones()).sum();
        assert_eq!(flipped_bit(&IDENTITY, &header, &torn).is_some(), bits == 1, "zeros from {length} on");
    }
    let writes: Vec<Write> = (0..64_u8).map(|n| record(&[n | 0x80; 300])).collect();
    let (header, bytes) = batch_of(&IDENTITY, FIRST, &writes);
    for sector in 0..bytes.len() / 512 - 1 {
        let mut frames = bytes[BATCH_HEADER_BYTES..].to_vec();
        frames[sector * 512..(sector + 1) * 512].fill(0);
        assert_eq!(flipped_bit(&IDENTITY, &header, &frames), None, "sector {sector}");
    }
}

#[test]
fn a_head_gone_altogether_costs_its_record() {
    let (header, frames) = sample();
    // Frame starts: meta 0, zero 22, "" 42, meta 58, two 80, three 99, meta 120.
    for (start, expected) in [
        (0, ["lost meta before 10", "10 zero", "11 ", "meta", "12 two", "13 three", "meta"].as_slice()),
        (22, &["meta", "lost 10..11", "11 ", "meta", "12 two", "13 three", "meta"]),
        (42, &["meta", "10 zero", "lost 11..12", "meta", "12 two", "13 three", "meta"]),
        (58, &["meta", "10 zero", "11 ", "lost meta before 12", "12 two", "13 three", "meta"]),
        (80, &["meta", "10 zero", "11 ", "meta", "lost 12..13", "13 three", "meta"]),
        (99, &["meta", "10 zero", "11 ", "meta", "12 two", "lost 13..14", "meta"]),
        (120, &["meta", "10 zero", "11 ", "meta", "12 two", "13 three", "lost meta before 14"]),
    ] {
        let mut damaged = frames.clone();
        damaged[start..start + 16].fill(0);
        assert_eq!(run(&header, &damaged), expected, "the head at {start}");
    }
}

#[test]
fn several_frames_gone_are_one_range() {
    let (header, frames) = sample();
    let mut damaged = frames.clone();
    damaged[22..99].fill(0xff);
    assert_eq!(run(&header, &damaged), ["meta", "lost 10..13", "13 three", "meta"]);
    damaged.fill(0);
    assert_eq!(run(&header, &damaged), ["lost 10..14"]);
}

#[test]
fn every_truncation_accounts_for_every_record() {
    // S17
    let (header, frames) = sample();
    for length in 0..=frames.len() {
        let out: Vec<Salvaged<'_>> = salvage(&IDENTITY, &header, &frames[..length]).collect();
        check_account(&header, &out);
        let kept =
            out.iter().filter(|item| matches!(item, Salvaged::Frame(frame) if frame.seq.is_some())).count();
        let whole = [42, 58, 99, 120].into_iter().filter(|end| *end <= length).count();
        assert_eq!(kept, whole, "cut to {length}");
    }
}

fn check_account(header: &BatchHeader, items: &[Salvaged<'_>]) {
    let mut next = header.first_seq;
    for item in items {
        match *item {
            Salvaged::Frame(frame) => {
                if let Some(seq) = frame.seq {
                    assert_eq!(seq, next);
                    next = next.checked_next().unwrap();
                }
            }
            Salvaged::Lost { from, to } => {
                assert_eq!(from, next);
                assert!(to > from);
                next = to;
            }
            Salvaged::LostMeta { before } => assert_eq!(before, next),
        }
    }
    assert_eq!(next, header.end_seq());
}

#[test]
fn frames_inside_a_payload_are_not_taken_for_records() {
    // S30: an archive of this very stream inside the record whose head is gone
    let (archive, _) = frames_of(&IDENTITY, Seq::FIRST, &vec![record(b"old"); 9]);
    let (header, bytes) = batch_of(&IDENTITY, FIRST, &[record(b"a"), record(&archive), record(b"b")]);
    let mut frames = bytes[BATCH_HEADER_BYTES..].to_vec();
    frames[17..33].fill(0x11);
    assert_eq!(run(&header, &frames), ["10 a", "lost 11..12", "12 b"]);
}

#[test]
fn lengths_that_lead_out_of_the_batch_are_no_frames() {
    // S29: sound heads that lie about their length; a defective writer
    let (header, frames) = sample();
    for length in [5, 1000, u32::try_from(PAYLOAD_BYTES_MAX).unwrap(), u32::MAX] {
        let mut damaged = frames.clone();
        damaged[22..26].copy_from_slice(&length.to_le_bytes());
        let sum = crate::checksum::crc(seed(&IDENTITY, FIRST), &damaged[22..34]);
        damaged[34..38].copy_from_slice(&sum.to_le_bytes());
        let out: Vec<Salvaged<'_>> = salvage(&IDENTITY, &header, &damaged).collect();
        check_account(&header, &out);
    }
}

#[test]
fn more_records_than_the_header_says_do_not_come_out() {
    let (header, frames) = sample();
    let short = BatchHeader { count: 2, ..header };
    assert_eq!(run(&short, &frames)[..5], ["meta", "10 zero", "11 ", "meta", "lost meta before 12"]);
}

#[test]
fn seqs_across_the_32_bit_border_are_found() {
    let first = Seq::new((1 << 32) - 2);
    let writes: Vec<Write> = (0..5_u8).map(|n| record(&[n; 50])).collect();
    let (header, bytes) = batch_of(&IDENTITY, first, &writes);
    let mut frames = bytes[BATCH_HEADER_BYTES..].to_vec();
    frames[3..150].fill(0xaa);
    let out: Vec<Salvaged<'_>> = salvage(&IDENTITY, &header, &frames).collect();
    assert_eq!(out[0], Salvaged::Lost { from: first, to: first.checked_add(3).unwrap() });
    assert!(matches!(out[1], Salvaged::Frame(frame) if frame.payload == [3; 50]));
    assert_eq!(out.len(), 3);
}

/// Sound heads that nest: each says that all bytes behind it are its payload, and lies about their checksum.
fn nested(count: u64, behind: &[u8]) -> Vec<u8> {
    let mut frames = vec![0xee; 16];
    for index in 0..count {
        let left = usize::try_from(count - index - 1).unwrap() * 16 + behind.len();
        let mut head = [0; FRAME_HEAD_BYTES];
        head[..4].copy_from_slice(&u32::try_from(left).unwrap().to_le_bytes());
        head[4] = 1;
        let sum = crate::checksum::crc(seed(&IDENTITY, Seq::new(FIRST.get() + index)), &head[..12]);
        head[12..].copy_from_slice(&sum.to_le_bytes());
        frames.extend_from_slice(&head);
    }
    frames.extend_from_slice(behind);
    frames
}

#[test]
fn heads_nested_by_hand_cost_no_more_than_the_effort() {
    let last = |count: u64| frames_of(&IDENTITY, Seq::new(FIRST.get() + count), &[record(b"last")]).0;
    for (count, expected) in [(3, ["lost 10..13", "13 last"]), (2000, ["lost 10..2010", "2010 last"])] {
        let frames = nested(count, &last(count));
        let (mut header, _) = batch_of(&IDENTITY, FIRST, &[record(b"x")]);
        header.count = u32::try_from(count).unwrap() + 1;
        header.frames_bytes = u32::try_from(frames.len()).unwrap();
        let mut salvaged = salvage(&IDENTITY, &header, &frames);
        let items: Vec<_> = salvaged.by_ref().map(|item| describe(&item)).collect();
        assert_eq!(items, expected);
        assert!(count < 2000 || salvaged.effort < frames.len(), "most of the effort was spent, and no more");
    }
}

proptest! {
    /// Whatever happens to the bytes, what comes out was written there, and every record is accounted for.
    #[test]
    fn nothing_false_comes_out(
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..12),
        holes in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..40, any::<u8>()), 0..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let writes: Vec<Write> = payloads.iter().map(|payload| record(payload)).collect();
        let (header, bytes) = batch_of(&IDENTITY, FIRST, &writes);
        let mut frames = bytes[BATCH_HEADER_BYTES..].to_vec();
        for (at, length, fill) in holes {
            let at = at.index(frames.len());
            let end = frames.len().min(at + length);
            frames[at..end].fill(fill);
        }
        if let Some(cut) = cut {
            frames.truncate(cut.index(frames.len()));
        }
        let out: Vec<Salvaged<'_>> = salvage(&IDENTITY, &header, &frames).collect();
        check_account(&header, &out);
        for item in out {
            if let Salvaged::Frame(frame) = item {
                let index = FIRST.distance_to(frame.seq.unwrap());
                prop_assert_eq!(frame.payload, payloads[usize::try_from(index).unwrap()].as_slice());
            }
        }
    }

    #[test]
    fn salvage_is_total(count in 1_u32..100_000, frames: Vec<u8>) {
        let (header, _) = batch_of(&IDENTITY, FIRST, &[record(b"x")]);
        let header = BatchHeader { count, frames_bytes: u32::MAX, ..header };
        let out: Vec<Salvaged<'_>> = salvage(&IDENTITY, &header, &frames).collect();
        check_account(&header, &out);
    }
}
