//! The checksum: known values, seeds, and the way back.

use super::*;
use crate::testing::{IDENTITY, forge_payload};
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn the_polynomial_is_castagnoli() {
    assert_eq!(crc(0, b"123456789"), 0xe306_9283);
    assert_eq!(crc(0, &[0; 32]), 0x8a91_36aa);
    assert_eq!(crc(crc(0, b"1234"), b"56789"), 0xe306_9283);
}

#[test]
fn a_seed_is_the_checksum_of_incarnation_and_seq() {
    let mut bytes = IDENTITY.incarnation.get().to_le_bytes().to_vec();
    bytes.extend_from_slice(&77_u64.to_le_bytes());
    assert_eq!(StreamSeed::of(IDENTITY.incarnation).at(Seq::new(77)), crc(0, &bytes));
    assert_eq!(seed_at(&IDENTITY, Seq::new(77)), crc(0, &bytes));
}

#[test]
fn every_flip_is_located_up_to_a_segment_header() {
    for covered_bytes in [0, 1, 12, 60, 4092] {
        let sound = vec![0x5a_u8; covered_bytes];
        let stored = crc(0, &sound);
        let step = if covered_bytes > 100 { 97 } else { 1 };
        for bit in (0..covered_bytes * 8).step_by(step) {
            let mut flipped = sound.clone();
            crate::layout::flip(&mut flipped, bit);
            assert_eq!(locate_flip(stored, crc(0, &flipped), covered_bytes), Some(bit));
        }
        for bit in 0..32 {
            let flipped = stored ^ 1 << bit;
            assert_eq!(locate_flip(flipped, stored, covered_bytes), Some(covered_bytes * 8 + bit));
        }
        assert_eq!(locate_flip(stored, stored, covered_bytes), None);
    }
}

/// What every bit of a segment header leaves in its checksum is different, so a repair is never ambiguous.
#[test]
fn all_single_bit_syndromes_of_a_segment_header_are_distinct() {
    let mut syndromes: HashSet<u32> = (0..32).map(|bit| 1 << bit).collect();
    for bit in 0..8 {
        let mut state = crc(0, &[1 << bit]) ^ crc(0, &[0]);
        assert!(syndromes.insert(state));
        for _ in 1..4092 {
            state = !crc(!state, &[0]);
            assert!(syndromes.insert(state));
        }
    }
    assert_eq!(syndromes.len(), 4096 * 8);
    assert!(!syndromes.contains(&0));
}

#[test]
fn seqs_across_the_32_bit_border_are_recovered() {
    let stream = StreamSeed::of(IDENTITY.incarnation);
    let (from, end) = (Seq::new((7 << 32) - 2), Seq::new((7 << 32) + 2));
    for seq in from.get()..=end.get() {
        let sum = crc(stream.at(Seq::new(seq)), b"twelve bytes");
        assert_eq!(stream.seq_of(sum, b"twelve bytes", from, end), Some(Seq::new(seq)));
    }
    let below = crc(stream.at(Seq::new((7 << 32) - 3)), b"twelve bytes");
    assert_eq!(stream.seq_of(below, b"twelve bytes", from, end), None);
}

proptest! {
    #[test]
    fn unwinding_undoes_a_checksum(seed: u32, bytes: Vec<u8>) {
        prop_assert_eq!(unwind(crc(seed, &bytes), &bytes), seed);
    }

    #[test]
    fn a_head_tells_its_seq(incarnation: u128, from in 1_u64..u64::MAX - 100_000, ahead in 0_u64..100_000, bytes: [u8; 12]) {
        let stream = StreamSeed::of(Incarnation::new(incarnation));
        let seq = Seq::new(from + ahead);
        let sum = crc(stream.at(seq), &bytes);
        prop_assert_eq!(stream.seq_of(sum, &bytes, Seq::new(from), Seq::new(from + 100_000)), Some(seq));
    }

    #[test]
    fn pieces_add_up(first: Vec<u8>, second: Vec<u8>, seq: u64) {
        let mut pieces = batch_checksum(&IDENTITY, Seq::new(seq));
        pieces.update(&first);
        pieces.update(&second);
        let mut whole = batch_checksum(&IDENTITY, Seq::new(seq));
        whole.update(&[first, second].concat());
        prop_assert_eq!(pieces.get(), whole.get());
    }

    #[test]
    fn any_checksum_can_be_forged_by_four_bytes(seed: u32, sum: u32) {
        prop_assert_eq!(crc(seed, &forge_payload(seed, sum)), sum);
    }
}
