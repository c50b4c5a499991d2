//! Frames by themselves: heads, lengths, marks and tags.

use super::*;
use crate::{
    layout::{Layout, flip},
    testing::{IDENTITY, forge_payload, seed},
};
use std::collections::HashSet;

const SEQ: Seq = Seq::new(321);

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(&mut out, &IDENTITY, SEQ, FrameKind::Record, Marks::NONE, &[payload]);
    out
}

fn head_of(bytes: &[u8]) -> [u8; FRAME_HEAD_BYTES] {
    bytes[..FRAME_HEAD_BYTES].try_into().unwrap()
}

fn forge(length: u32, kind: u8, flags: u8, zero: [u8; 2]) -> [u8; FRAME_HEAD_BYTES] {
    Layout::new()
        .put(&length.to_le_bytes())
        .put(&[kind, flags])
        .put(&zero)
        .put(&[0; 4])
        .seal(|covered| crc(seed(&IDENTITY, SEQ), covered))
}

fn read(head: &[u8; FRAME_HEAD_BYTES]) -> Option<Head> {
    Head::read_sound(head, seed(&IDENTITY, SEQ))
}

#[test]
fn slices_are_one_payload() {
    let mut pieces = Vec::new();
    let slices: [&[u8]; 4] = [b"a", b"", b"bc", b"def"];
    encode_frame(&mut pieces, &IDENTITY, SEQ, FrameKind::Record, Marks::NONE, &slices);
    assert_eq!(pieces, frame(b"abcdef"));
    assert_eq!(pieces.len(), frame_bytes(6));
    assert_eq!(frame_head(&IDENTITY, SEQ, FrameKind::Record, Marks::NONE, &slices), head_of(&pieces));
}

#[test]
fn all_single_bit_syndromes_of_a_head_are_distinct() {
    let sound = head_of(&frame(b"payload"));
    let seed = seed(&IDENTITY, SEQ);
    let mut syndromes = HashSet::new();
    for bit in 0..128 {
        let mut near = sound;
        flip(&mut near, bit);
        assert!(read(&near).is_none(), "bit {bit}");
        let stored = u32::from_le_bytes(near[12..].try_into().unwrap());
        assert!(syndromes.insert(crc(seed, &near[..12]) ^ stored), "bit {bit}");
    }
}

#[test]
fn a_head_decodes_only_at_its_seq() {
    let head = head_of(&frame(b"payload"));
    assert!(read(&head).is_some());
    for seq in (1..1000).filter(|seq| *seq != SEQ.get()) {
        assert!(Head::read_sound(&head, seed(&IDENTITY, Seq::new(seq))).is_none());
    }
}

#[test]
fn lengths_are_bounded() {
    // S29
    let max = u32::try_from(PAYLOAD_BYTES_MAX).unwrap();
    for (length, kind, ok) in [
        (0, KIND_RECORD, true),
        (1, KIND_RECORD, true),
        (max, KIND_RECORD, true),
        (max + 1, KIND_RECORD, false),
        (u32::MAX, KIND_RECORD, false),
        (0, KIND_META, true),
        (256, KIND_META, true),
        (257, KIND_META, false),
        (u32::MAX, KIND_META, false),
    ] {
        assert_eq!(read(&forge(length, kind, 0, [0; 2])).is_some(), ok, "length {length} of kind {kind}");
    }
}

#[test]
fn unknown_kinds_and_incompatible_flags_are_refused_and_compatible_ones_ignored() {
    for kind in (0..=255).filter(|kind| ![KIND_RECORD, KIND_META].contains(kind)) {
        assert!(read(&forge(0, kind, 0, [0; 2])).is_none(), "kind {kind}");
    }
    for flags in 0..=255_u8 {
        let head = read(&forge(0, KIND_RECORD, flags, [0; 2]));
        assert_eq!(head.map(|head| head.marks.get()), (flags & 3 == 0).then_some(flags >> 4));
    }
    assert!(read(&forge(0, KIND_RECORD, 0, [1, 0])).is_none());
    assert!(read(&forge(0, KIND_RECORD, 0, [0, 1])).is_none());
}

#[test]
fn zeros_are_no_head_under_any_seed() {
    let zeros = [0; FRAME_HEAD_BYTES];
    assert!(Head::read(&zeros).is_none());
    // A seed under which the checksum of twelve zeros is 0 exists; the kind still says no.
    assert!(Head::read_sound(&zeros, crate::checksum::unwind(0, &[0; 12])).is_none());
}

#[test]
fn a_checksum_of_zero_is_legal() {
    // S30
    let seed = seed(&IDENTITY, SEQ);
    let bytes = frame(&forge_payload(seed, 0));
    assert_eq!(bytes[8..12], [0; 4], "the payload's checksum is 0");
    let head = read(&head_of(&bytes)).unwrap();
    assert!(head.vouches_for(&bytes[16..], seed));
}

#[test]
#[should_panic(expected = "a payload of 257 bytes: the limit is 256")]
fn a_long_meta_frame_is_a_programmers_error() {
    encode_frame(&mut Vec::new(), &IDENTITY, SEQ, FrameKind::Meta, Marks::NONE, &[&[0; 257]]);
}

#[test]
fn marks_are_four_bits() {
    assert_eq!(Marks::new(15).map(Marks::get), Some(15));
    assert_eq!(Marks::new(16), None);
    assert_eq!(Marks::new(0), Some(Marks::NONE));
}

#[test]
fn tags_come_back_at_every_length_that_fits() {
    let bytes = [7_u8; 300];
    for producer in 0..=256 {
        for value in [0, 1, 255 - producer.min(255), 256 - producer, 300 - producer.min(45)] {
            let (producer, value) = (&bytes[..producer], &bytes[..value]);
            let length = 1 + producer.len() + value.len();
            match Tag::new(producer, value) {
                Ok(tag) => {
                    assert!(length <= META_BYTES_MAX);
                    let mut out = Vec::new();
                    tag.encode(&mut out, &IDENTITY, SEQ);
                    assert_eq!(out.len(), tag.frame_bytes());
                    assert_eq!(Tag::decode(&out[FRAME_HEAD_BYTES..]), Ok(tag));
                    assert_eq!((tag.producer(), tag.value()), (producer, value));
                }
                Err(error) => {
                    assert!(length > META_BYTES_MAX);
                    assert_eq!(error, TagTooLong { bytes: length });
                }
            }
        }
    }
    assert_eq!(
        TagTooLong { bytes: 257 }.to_string(),
        "a tag of 257 bytes, its length byte included: the limit is 256"
    );
}

#[test]
fn contradictory_tags_are_malformed() {
    assert_eq!(Tag::decode(&[]), Err(DecodeError::Malformed));
    assert_eq!(Tag::decode(&[1]), Err(DecodeError::Malformed));
    assert_eq!(Tag::decode(&[255, 0]), Err(DecodeError::Malformed));
    assert_eq!(Tag::decode(&[0; 257]), Err(DecodeError::Malformed));
    assert_eq!(Tag::decode(&[0]), Tag::new(&[], &[]).map_err(|_| DecodeError::Malformed));
}
