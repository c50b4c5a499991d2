//! The segment header: every bit, every length, versions and flags.

use super::*;
use crate::testing::IDENTITY;
use proptest::prelude::*;

fn header() -> SegmentHeader {
    SegmentHeader {
        identity: IDENTITY,
        segment: SegmentId::new(4),
        first_seq: Seq::new(1000),
        created_at: WallTime::from_nanos(5),
        unsynced_bytes_max: 64 << 20,
        predecessor: Some(Predecessor { id: SegmentId::new(3), end_offset: 123_456 }),
    }
}

fn forge(at: usize, field: &[u8]) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = header().encode();
    bytes[at..at + field.len()].copy_from_slice(field);
    let sum = crc(0, &bytes[..4092]);
    bytes[4092..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn every_flipped_bit_is_seen_and_repaired() {
    // S24
    let sound = header().encode();
    let mut bytes = sound;
    for bit in (0..104 * 8).chain((104 * 8..4088 * 8).step_by(61)).chain(4088 * 8..4096 * 8) {
        flip(&mut bytes, bit);
        assert!(matches!(SegmentHeader::decode(&bytes), Err(DecodeError::BadMagic | DecodeError::BadHeader)));
        assert_eq!(SegmentHeader::repair(&bytes), Some(header()), "bit {bit}");
        flip(&mut bytes, bit);
    }
}

#[test]
fn two_flipped_bits_are_not_repaired_into_something_else() {
    let mut bytes = header().encode();
    flip(&mut bytes, 8 * 70);
    flip(&mut bytes, 8 * 90 + 3);
    assert_eq!(SegmentHeader::repair(&bytes), None);
}

#[test]
fn every_truncation_needs_more() {
    // S22
    let bytes = header().encode();
    for length in 0..SEGMENT_HEADER_BYTES {
        let error = SegmentHeader::decode(&bytes[..length]).unwrap_err();
        assert_eq!(error, DecodeError::NeedMore { bytes: SEGMENT_HEADER_BYTES });
        assert!(error.is_retryable());
    }
    assert_eq!(SegmentHeader::repair(&bytes[..4095]), None);
}

#[test]
fn a_header_torn_at_a_sector_is_no_header() {
    // S22
    for sectors in 1..8 {
        let mut bytes = header().encode();
        bytes[sectors * 512..].fill(0);
        assert_eq!(SegmentHeader::decode(&bytes), Err(DecodeError::BadHeader));
        assert_eq!(SegmentHeader::repair(&bytes), None);
    }
}

#[test]
fn zeros_are_no_header() {
    assert_eq!(SegmentHeader::decode(&[0; 4096]), Err(DecodeError::Zeros));
    assert_eq!(SegmentHeader::decode(&[0xff; 4096]), Err(DecodeError::BadMagic));
    assert_eq!(SegmentHeader::repair(&[0; 4096]), None);
}

#[test]
fn the_next_version_is_named() {
    let error = SegmentHeader::decode(&forge(8, &[2, 0])).unwrap_err();
    assert_eq!(error, DecodeError::Version { found: 2, known: 1 });
    assert!(error.is_newer_format());
    assert_eq!(error.to_string(), "format version 2 is newer than the newest this program reads, 1");
}

#[test]
fn incompatible_flags_are_refused_and_compatible_ones_ignored() {
    for bit in 0..8 {
        let flags: u16 = 1 << bit;
        let error = SegmentHeader::decode(&forge(10, &flags.to_le_bytes())).unwrap_err();
        assert_eq!(error, DecodeError::Incompatible { flags });
        assert_eq!(SegmentHeader::decode(&forge(10, &(flags << 8).to_le_bytes())), Ok(header()));
    }
    assert_eq!(SegmentHeader::decode(&forge(104, &[1; 3988])), Ok(header()), "reserved bytes are ignored");
}

#[test]
fn contradictory_fields_are_malformed() {
    // S29
    let zero = 0_u64.to_le_bytes();
    for (at, field) in [(12, 1), (56, 0), (64, 0), (88, 4), (88, 5), (88, u64::MAX)] {
        let field = u64::to_le_bytes(field);
        let field = if at == 12 { &field[..4] } else { &field };
        assert_eq!(SegmentHeader::decode(&forge(at, field)), Err(DecodeError::Malformed), "{at}");
    }
    let stray_end = forge(88, &zero);
    assert_eq!(
        SegmentHeader::decode(&stray_end),
        Err(DecodeError::Malformed),
        "an end without a predecessor"
    );
    for at in [48, 72, 80, 96] {
        assert!(SegmentHeader::decode(&forge(at, &u64::MAX.to_le_bytes())).is_ok());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        queue: u128, incarnation: u128, stream: u64, segment in 1..u64::MAX, first in 1..u64::MAX,
        created: u64, unsynced: u64, before: u64, end_offset: u64,
    ) {
        let before = before % segment;
        let written = SegmentHeader {
            identity: StreamIdentity {
                queue: QueueId::new(queue),
                stream: StreamId::new(stream),
                incarnation: Incarnation::new(incarnation),
            },
            segment: SegmentId::new(segment),
            first_seq: Seq::new(first),
            created_at: WallTime::from_nanos(created),
            unsynced_bytes_max: unsynced,
            predecessor: (before > 0).then_some(Predecessor { id: SegmentId::new(before), end_offset }),
        };
        let mut bytes = written.encode().to_vec();
        bytes.push(7);
        prop_assert_eq!(SegmentHeader::decode(&bytes), Ok(written));
    }

    #[test]
    fn decoding_is_total(bytes: Vec<u8>) {
        prop_assert!(SegmentHeader::decode(&bytes).is_err());
        let mut block = [0; 4096];
        let length = bytes.len().min(4096);
        block[..length].copy_from_slice(&bytes[..length]);
        prop_assert!(SegmentHeader::decode(&block).is_err());
    }
}
