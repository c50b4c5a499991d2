//! Batches as a whole: round trip, truncation, flips, and the search for the next one.

use super::*;
use crate::{
    Marks, Tag,
    layout::flip,
    testing::{IDENTITY, Write, batch_of, forge_header, forge_payload, forge_sums, frames_of, record, seed},
};
use proptest::prelude::*;

fn sample(first: u64) -> (BatchHeader, Vec<u8>) {
    let writes = [
        Write::Meta(b"app".to_vec(), b"offset 17".to_vec()),
        Write::Record(b"hello".to_vec(), 5),
        record(b""),
        record(&[0; 40]),
        Write::Meta(b"".to_vec(), b"".to_vec()),
        record(b"the last one"),
        Write::Meta(b"app".to_vec(), b"offset 18".to_vec()),
    ];
    batch_of(&IDENTITY, Seq::new(first), &writes)
}

fn read(bytes: &[u8]) -> Result<BatchView<'_>, DecodeError> {
    read_batch(&IDENTITY, bytes)
}

#[test]
fn frames_come_in_order_with_seqs_marks_and_tags() {
    let (header, bytes) = sample(70);
    let batch = read(&bytes).unwrap();
    assert_eq!((batch.header(), batch.bytes()), (&header, bytes.len()));
    assert!(batch.is_well_formed());
    let seqs: Vec<Option<u64>> = batch.frames().map(|frame| frame.seq.map(Seq::get)).collect();
    assert_eq!(seqs, [None, Some(70), Some(71), Some(72), None, Some(73), None]);
    let frames: Vec<Frame<'_>> = batch.frames().collect();
    assert_eq!((frames[1].payload, frames[1].marks.get()), (&b"hello"[..], 5));
    assert_eq!((frames[2].payload, frames[2].marks), (&b""[..], Marks::NONE));
    assert_eq!(Tag::decode(frames[6].payload).unwrap().value(), b"offset 18");
}

#[test]
fn every_truncation_needs_more_and_says_how_much() {
    // S17
    let (_, bytes) = sample(1);
    for length in 0..bytes.len() {
        let wanted = if length < 64 { 64 } else { bytes.len() };
        assert_eq!(read(&bytes[..length]).unwrap_err(), DecodeError::NeedMore { bytes: wanted }, "{length}");
    }
    assert!(read(&[bytes.as_slice(), &[9; 9]].concat()).is_ok(), "what follows does not matter");
}

#[test]
fn every_flipped_bit_is_seen() {
    // S24
    let (_, mut bytes) = sample(1);
    for bit in 0..bytes.len() * 8 {
        flip(&mut bytes, bit);
        let error = read(&bytes).unwrap_err();
        match error {
            DecodeError::BadMagic | DecodeError::BadHeader => assert!(bit < 64 * 8),
            DecodeError::Mismatch => assert!(bit >= 64 * 8),
            other => panic!("bit {bit}: {other}"),
        }
        flip(&mut bytes, bit);
    }
}

#[test]
fn a_header_with_a_flipped_bit_costs_nothing() {
    // S24
    let (header, mut bytes) = sample(1);
    for bit in 0..64 * 8 {
        flip(&mut bytes, bit);
        let repaired = BatchHeader::repair(&bytes, &IDENTITY).unwrap();
        let batch = verify_batch(&IDENTITY, &repaired, &bytes[64..]).unwrap();
        assert_eq!((batch.header(), batch.frames().count()), (&header, 7));
        flip(&mut bytes, bit);
    }
}

#[test]
fn zeros_are_no_batch() {
    assert_eq!(read(&[0; 65_536]).unwrap_err(), DecodeError::Zeros);
    assert_eq!(find_batch(&IDENTITY, &[0; 65_536], 0), None);
}

#[test]
fn a_zeroed_sector_is_seen() {
    // S19
    let (_, bytes) = batch_of(&IDENTITY, Seq::FIRST, &vec![record(&[7; 100]); 100]);
    for sector in 0..bytes.len() / 512 {
        let mut torn = bytes.clone();
        torn[sector * 512..(sector + 1) * 512].fill(0);
        let error = read(&torn).unwrap_err();
        assert_eq!(error, if sector == 0 { DecodeError::Zeros } else { DecodeError::Mismatch });
    }
}

#[test]
fn a_copy_under_another_identity_never_decodes() {
    // S27
    let (_, bytes) = sample(1);
    let reborn = StreamIdentity { incarnation: crate::Incarnation::new(1), ..IDENTITY };
    assert_eq!(read_batch(&reborn, &bytes).unwrap_err(), DecodeError::BadHeader);
    assert_eq!(find_batch(&reborn, &bytes, 0), None);
    let other = StreamIdentity { stream: crate::StreamId::new(10), ..IDENTITY };
    assert_eq!(read_batch(&other, &bytes).unwrap_err(), DecodeError::Foreign);
    assert_eq!(find_batch(&other, &bytes, 0), None);
}

#[test]
fn frames_of_an_earlier_batch_never_match_a_later_header() {
    // S25: same lengths, same payloads, other seqs
    let (old, new) = (
        batch_of(&IDENTITY, Seq::new(1), &[record(b"same")]),
        batch_of(&IDENTITY, Seq::new(2), &[record(b"same")]),
    );
    let mixed = [&new.1[..64], &old.1[64..]].concat();
    assert_eq!(read(&mixed).unwrap_err(), DecodeError::Mismatch);
}

#[test]
fn a_batch_checksum_of_zero_is_legal() {
    // S30: the last four payload bytes are chosen so that the sum over all frames is 0; they change the frame's own sums
    // too, so the forger looks for a payload by trying.
    let first = Seq::new(44);
    let found = (0_u32..).find_map(|n| {
        let (frames, _) = frames_of(&IDENTITY, first, &[record(&n.to_le_bytes())]);
        let sum = crate::checksum::crc(seed(&IDENTITY, first), &frames);
        (sum & 0xfff == 0).then_some(frames)
    });
    assert!(found.is_some(), "sums are spread evenly");
    // A frame whose payload crc is 0, alone in its batch.
    let payload = forge_payload(seed(&IDENTITY, first), 0);
    let (_, bytes) = batch_of(&IDENTITY, first, &[record(&payload)]);
    assert_eq!(read(&bytes).unwrap().frames().next().unwrap().payload, payload);
}

#[test]
fn payloads_that_are_frames_batches_or_empty_come_back() {
    // S30
    let (_, inner) = sample(1);
    let (frame, _) = frames_of(&IDENTITY, Seq::new(5), &[record(b"inner")]);
    let payloads: [&[u8]; 5] = [&frame, &inner, b"", &[0; 16], &frame];
    let writes: Vec<Write> = payloads.iter().map(|payload| record(payload)).collect();
    let (_, bytes) = batch_of(&IDENTITY, Seq::new(5), &writes);
    let batch = read(&bytes).unwrap();
    assert!(batch.frames().map(|frame| frame.payload).eq(payloads));
    assert!(batch.is_well_formed());
}

#[test]
fn malformed_frames_under_right_checksums_end_the_iteration() {
    // S29
    let (_, bytes) = batch_of(&IDENTITY, Seq::FIRST, &[record(b"one"), record(b"two"), record(b"six")]);
    let second = 64 + 16 + 3;
    for (at, field) in [
        (second, u32::MAX.to_le_bytes()),
        (second, 4_u32.to_le_bytes()),
        (second, 0_u32.to_le_bytes()),
        (second, 23_u32.to_le_bytes()),
        (second + 4, [0, 0, 0, 0]),
        (second + 4, [1, 1, 0, 0]),
        (second + 4, [9, 0, 0, 0]),
        (second + 4, [2, 0, 0, 0]),
    ] {
        let mut forged = bytes.clone();
        forged[at..at + 4].copy_from_slice(&field);
        let forged = forge_sums(&forged, &IDENTITY);
        let batch = read(&forged).unwrap();
        assert!(!batch.is_well_formed(), "{field:?} at {at}");
        assert!(batch.frames().filter(|frame| frame.seq.is_some()).count() < 3);
    }
    for count in [1_u32, 2, 3] {
        let forged = forge_header(&bytes, &IDENTITY, 48, &count.to_le_bytes());
        let batch = read(&forged).unwrap();
        assert_eq!(batch.frames().count(), count as usize);
        assert_eq!(batch.is_well_formed(), count == 3);
        assert_eq!(batch.frames().next_seq(), Seq::FIRST);
    }
}

#[test]
fn the_search_finds_every_batch_behind_any_filler() {
    let (one, two) = (sample(1), sample(5));
    for filler in 0..130 {
        let bytes = [&vec![0x50; filler], one.1.as_slice(), &vec![0; filler], two.1.as_slice()].concat();
        assert_eq!(find_batch(&IDENTITY, &bytes, 0), Some((filler, one.0)));
        let at = filler * 2 + one.1.len();
        assert_eq!(find_batch(&IDENTITY, &bytes, filler + 1), Some((at, two.0)));
        assert_eq!(find_batch(&IDENTITY, &bytes, at), Some((at, two.0)));
        assert_eq!(find_batch(&IDENTITY, &bytes, at + 1), None);
    }
    assert_eq!(find_batch(&IDENTITY, &one.1, usize::MAX), None);
    assert_eq!(find_batch(&IDENTITY, &one.1[..63], 0), None, "a torn header is not found");
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let payload = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..80),
        1 => proptest::collection::vec(any::<u8>(), 0..3000),
        1 => Just(Vec::new()),
    ];
    let write = prop_oneof![
        4 => (payload, 0_u8..16).prop_map(|(payload, marks)| Write::Record(payload, marks)),
        1 => (proptest::collection::vec(any::<u8>(), 0..100), proptest::collection::vec(any::<u8>(), 0..100))
            .prop_map(|(producer, value)| Write::Meta(producer, value)),
    ];
    proptest::collection::vec(write, 0..40).prop_map(|mut writes| {
        writes.push(record(b"at least one"));
        writes
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(first in 1..u64::MAX - 1000, writes in writes()) {
        let (header, bytes) = batch_of(&IDENTITY, Seq::new(first), &writes);
        let batch = read(&bytes).unwrap();
        prop_assert_eq!(batch.header(), &header);
        prop_assert!(batch.is_well_formed());
        let mut frames = batch.frames();
        let mut seq = first;
        for write in &writes {
            let frame = frames.next().unwrap();
            match write {
                Write::Record(payload, marks) => {
                    prop_assert_eq!(frame.seq, Some(Seq::new(seq)));
                    prop_assert_eq!((frame.payload, frame.marks.get()), (payload.as_slice(), *marks));
                    seq += 1;
                }
                Write::Meta(producer, value) => {
                    let tag = Tag::decode(frame.payload).unwrap();
                    prop_assert_eq!(frame.seq, None);
                    prop_assert_eq!((tag.producer(), tag.value()), (producer.as_slice(), value.as_slice()));
                }
            }
        }
        prop_assert_eq!(frames.next(), None);
        prop_assert_eq!(frames.next_seq(), header.end_seq());
    }

    #[test]
    fn reading_is_total(bytes: Vec<u8>) {
        prop_assert!(read(&bytes).is_err());
        prop_assert_eq!(find_batch(&IDENTITY, &bytes, 0), None);
    }
}
