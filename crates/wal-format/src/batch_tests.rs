//! The batch header: every bit, every length, every extreme, and other streams' bytes.

use super::*;
use crate::{
    Incarnation,
    layout::flip,
    testing::{IDENTITY, Write, batch_of, forge_header, record},
};
use proptest::prelude::*;
use std::collections::HashSet;

fn sample() -> (BatchHeader, Vec<u8>) {
    batch_of(&IDENTITY, Seq::new(500), &[record(b"one"), record(b"two"), record(b"three")])
}

#[test]
fn every_flipped_bit_is_seen_and_repaired() {
    // S24
    let (header, mut bytes) = sample();
    for bit in 0..BATCH_HEADER_BYTES * 8 {
        flip(&mut bytes, bit);
        let error = BatchHeader::decode(&bytes, &IDENTITY).unwrap_err();
        assert!(matches!(error, DecodeError::BadMagic | DecodeError::BadHeader), "bit {bit}: {error}");
        assert_eq!(BatchHeader::repair(&bytes, &IDENTITY), Some(header), "bit {bit}");
        flip(&mut bytes, bit);
    }
}

/// With the first seq in the seed too, every bit leaves another difference in the checksum: no repair is ambiguous.
#[test]
fn all_single_bit_syndromes_of_a_header_are_distinct() {
    let (_, mut bytes) = sample();
    let mut syndromes = HashSet::new();
    for bit in 0..BATCH_HEADER_BYTES * 8 {
        flip(&mut bytes, bit);
        let sealed = forge_header(&bytes, &IDENTITY, 0, &[]);
        let (right, stored) = (word(&sealed), word(&bytes));
        assert!(syndromes.insert(right ^ stored), "bit {bit}");
        flip(&mut bytes, bit);
    }
    assert!(!syndromes.contains(&0));
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[60..64].try_into().unwrap())
}

#[test]
fn every_truncation_needs_more() {
    let (_, bytes) = sample();
    for length in 0..BATCH_HEADER_BYTES {
        let error = BatchHeader::decode(&bytes[..length], &IDENTITY);
        assert_eq!(error, Err(DecodeError::NeedMore { bytes: BATCH_HEADER_BYTES }));
        assert_eq!(BatchHeader::repair(&bytes[..length], &IDENTITY), None);
    }
}

#[test]
fn zeros_are_no_header() {
    assert_eq!(BatchHeader::decode(&[0; 64], &IDENTITY), Err(DecodeError::Zeros));
    assert_eq!(BatchHeader::repair(&[0; 64], &IDENTITY), None);
    assert_eq!(BatchHeader::decode(&[0xff; 64], &IDENTITY), Err(DecodeError::BadMagic));
}

#[test]
fn bytes_of_another_stream_or_incarnation_never_decode() {
    // S27
    let (_, bytes) = sample();
    for bit in 0..128 {
        let incarnation = Incarnation::new(IDENTITY.incarnation.get() ^ 1 << bit);
        let other = StreamIdentity { incarnation, ..IDENTITY };
        assert_eq!(BatchHeader::decode(&bytes, &other), Err(DecodeError::BadHeader));
        assert_eq!(BatchHeader::repair(&bytes, &other), None, "another incarnation is no flipped bit");
    }
    for bit in 0..64 {
        let other = StreamIdentity { stream: StreamId::new(9 ^ 1 << bit), ..IDENTITY };
        assert_eq!(BatchHeader::decode(&bytes, &other), Err(DecodeError::Foreign));
        assert_eq!(BatchHeader::repair(&bytes, &other), None, "another stream is no flipped bit");
    }
}

#[test]
fn the_next_version_is_named() {
    let (_, bytes) = sample();
    let error = BatchHeader::decode(&forge_header(&bytes, &IDENTITY, 4, &[2]), &IDENTITY).unwrap_err();
    assert_eq!(error, DecodeError::Version { found: 2, known: 1 });
    let error = BatchHeader::decode(&forge_header(&bytes, &IDENTITY, 5, &[1]), &IDENTITY).unwrap_err();
    assert_eq!(error, DecodeError::Codec { found: 1 });
    assert!(error.is_newer_format());
}

#[test]
fn incompatible_flags_are_refused_and_compatible_ones_ignored() {
    let (header, bytes) = sample();
    for bit in 2..8 {
        let flags: u16 = 1 << bit;
        let forged = forge_header(&bytes, &IDENTITY, 6, &flags.to_le_bytes());
        assert_eq!(BatchHeader::decode(&forged, &IDENTITY), Err(DecodeError::Incompatible { flags }));
    }
    for bit in 8..16 {
        let flags: u16 = 1 << bit | 3;
        let forged = forge_header(&bytes, &IDENTITY, 6, &flags.to_le_bytes());
        let read = BatchHeader::decode(&forged, &IDENTITY).unwrap();
        assert!(read.flags.contains(BatchFlags::SKIPPED | BatchFlags::PADDED));
        assert_eq!(BatchHeader { flags: BatchFlags::NONE, ..read }, header);
    }
}

#[test]
fn extreme_fields_are_malformed_or_read_as_they_are() {
    // S29: first seq 500, three records, 3 * 16 + 11 bytes of frames
    let (_, bytes) = sample();
    let decode =
        |at, field: &[u8]| BatchHeader::decode(&forge_header(&bytes, &IDENTITY, at, field), &IDENTITY);
    let malformed = Err(DecodeError::Malformed);
    let max = u64::MAX.to_le_bytes();
    for (at, bad) in [(16, 0_u64), (24, 500), (24, u64::MAX), (32, 501), (32, u64::MAX)] {
        assert_eq!(decode(at, &bad.to_le_bytes()), malformed, "{bad} at {at}");
    }
    assert_eq!(decode(16, &max), malformed, "first seq + count is above the type");
    assert_eq!(decode(16, &(u64::MAX - 2).to_le_bytes()), malformed);
    assert_eq!(decode(16, &(u64::MAX - 3).to_le_bytes()).unwrap().end_seq(), Seq::MAX);
    for (at, good) in [(24, 0_u64), (24, 499), (32, 0), (32, 500), (40, 0), (40, u64::MAX)] {
        assert!(decode(at, &good.to_le_bytes()).is_ok(), "{good} at {at}");
    }
    for (count, frames_bytes, ok) in [
        (0, 16, false),
        (1, 15, false),
        (1, 16, true),
        (1, 0, false),
        (1, FRAMES_BYTES_MAX, true),
        (1, FRAMES_BYTES_MAX + 1, false),
        (1, u32::MAX, false),
        (FRAMES_BYTES_MAX / 16, FRAMES_BYTES_MAX, true),
        (FRAMES_BYTES_MAX / 16 + 1, FRAMES_BYTES_MAX, false),
        (u32::MAX, FRAMES_BYTES_MAX, false),
    ] {
        let field = [count.to_le_bytes(), frames_bytes.to_le_bytes()].concat();
        assert_eq!(decode(48, &field).is_ok(), ok, "{count} records in {frames_bytes} bytes");
    }
}

#[test]
fn a_padded_batch_ends_at_a_block_of_the_file() {
    let (header, bytes) = sample();
    let length = bytes.len() as u64;
    assert_eq!(header.bytes(), length);
    assert_eq!(header.end_offset(4096), 4096 + length);
    let padded = BatchHeader { flags: BatchFlags::PADDED, ..header };
    assert_eq!(padded.end_offset(4096), 8192);
    assert_eq!(padded.end_offset(8192 - length), 8192, "an exact fit is not padded");
    assert_eq!(padded.end_offset(8193 - length), 12288);
    assert_eq!(padded.end_offset(u64::MAX - 10), u64::MAX);
    assert_eq!(header.end_offset(u64::MAX - 10), u64::MAX);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        stream: u64, first in 1..u64::MAX - u64::from(u32::MAX), prev: u64, durable: u64, time: u64,
        count in 1..=FRAMES_BYTES_MAX / 16, more: u32, batch_crc: u32, flags in 0_u16..4, compatible: u8,
    ) {
        let least = count * 16;
        let header = BatchHeader {
            flags: BatchFlags(flags | u16::from(compatible) << 8),
            codec: 0,
            stream: StreamId::new(stream),
            first_seq: Seq::new(first),
            prev_seq: prev % first,
            durable_seq: durable % first,
            append_time: WallTime::from_nanos(time),
            count,
            frames_bytes: least + more % (FRAMES_BYTES_MAX - least + 1),
            batch_crc,
        };
        let identity = StreamIdentity { stream: header.stream, ..IDENTITY };
        prop_assert_eq!(BatchHeader::decode(&header.encode(&identity), &identity), Ok(header));
    }
}

#[test]
fn a_batch_may_start_at_the_top_of_the_seqs() {
    // S45
    let top = Seq::new(u64::MAX - 1);
    let (header, bytes) = batch_of(&IDENTITY, top, &[Write::Record(vec![1], 0)]);
    assert_eq!(BatchHeader::decode(&bytes, &IDENTITY), Ok(header));
    assert_eq!(header.end_seq(), Seq::MAX);
}
