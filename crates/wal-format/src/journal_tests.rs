//! The journal envelope: round trip, torn tails, damage in the middle, and other files' entries.

use super::*;
use crate::layout::flip;
use proptest::prelude::*;

const HEADER: JournalHeader =
    JournalHeader { kind: JournalKind::CURSORS, queue: QueueId::new(77), generation: 5 };
const TAG: EntryTag = EntryTag { version: 3, kind: 2 };

fn entries(header: &JournalHeader, bodies: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (body, number) in bodies.iter().zip(1..) {
        header.encode_entry(&mut out, number, TAG, body);
    }
    out
}

fn run(bytes: &[u8]) -> Vec<String> {
    HEADER.scan(bytes).map(describe).collect()
}

fn describe(item: JournalItem<'_>) -> String {
    match item {
        JournalItem::Entry(entry) => format!("{} {}", entry.number, String::from_utf8_lossy(entry.body)),
        JournalItem::Damaged { from, to } => format!("damaged {from}..{to}"),
        JournalItem::Tail { offset } => format!("tail at {offset}"),
    }
}

fn forge(at: usize, field: &[u8]) -> [u8; JOURNAL_HEADER_BYTES] {
    let mut bytes = HEADER.encode();
    bytes[at..at + field.len()].copy_from_slice(field);
    let sum = crc(0, &bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn every_flipped_bit_of_a_file_header_is_seen_and_repaired() {
    let mut bytes = HEADER.encode();
    for bit in 0..JOURNAL_HEADER_BYTES * 8 {
        flip(&mut bytes, bit);
        assert!(matches!(JournalHeader::decode(&bytes), Err(DecodeError::BadMagic | DecodeError::BadHeader)));
        assert_eq!(JournalHeader::repair(&bytes), Some(HEADER));
        flip(&mut bytes, bit);
    }
    assert_eq!(JournalHeader::decode(&bytes), Ok(HEADER));
}

#[test]
fn file_headers_of_every_wrong_sort_have_their_own_answer() {
    // S16
    for length in 0..JOURNAL_HEADER_BYTES {
        let error = JournalHeader::decode(&HEADER.encode()[..length]);
        assert_eq!(error, Err(DecodeError::NeedMore { bytes: JOURNAL_HEADER_BYTES }));
    }
    assert_eq!(JournalHeader::decode(&[0; 64]), Err(DecodeError::Zeros));
    assert_eq!(JournalHeader::decode(&[1; 64]), Err(DecodeError::BadMagic));
    assert_eq!(JournalHeader::decode(&forge(8, &[2, 0])), Err(DecodeError::Version { found: 2, known: 1 }));
    assert_eq!(JournalHeader::decode(&forge(10, &[4, 0])), Err(DecodeError::Incompatible { flags: 4 }));
    assert_eq!(JournalHeader::decode(&forge(10, &[0, 4])), Ok(HEADER), "compatible flags are ignored");
    assert_eq!(JournalHeader::decode(&forge(40, &[9; 20])), Ok(HEADER), "reserved bytes are ignored");
    assert_eq!(JournalHeader::decode(&forge(12, &[0])), Err(DecodeError::Malformed));
    assert_eq!(JournalHeader::decode(&forge(13, &[1])), Err(DecodeError::Malformed));
}

#[test]
fn entries_come_back_in_order() {
    let bytes = entries(&HEADER, &[b"one", b"", b"three"]);
    assert_eq!(run(&bytes), ["1 one", "2 ", "3 three"]);
    let first = HEADER.scan(&bytes).next();
    assert_eq!(first, Some(JournalItem::Entry(Entry { number: 1, tag: TAG, body: b"one" })));
    assert_eq!(run(&[]), [""; 0]);
}

#[test]
fn every_truncation_is_a_tail() {
    let bytes = entries(&HEADER, &[b"one", b"", b"three"]);
    let ends = [0, 27, 51, 80];
    for length in 0..bytes.len() {
        let whole = ends.iter().rposition(|end| *end <= length).unwrap();
        let mut expected: Vec<String> =
            ["1 one", "2 ", "3 three"][..whole].iter().map(ToString::to_string).collect();
        if length > ends[whole] {
            expected.push(format!("tail at {}", ends[whole]));
        }
        assert_eq!(run(&bytes[..length]), expected, "cut to {length}");
    }
}

#[test]
fn zeros_and_rubbish_behind_are_a_tail() {
    // S18
    let bytes = entries(&HEADER, &[b"one"]);
    for filler in [vec![0; 1], vec![0; 5000], vec![0xff; 25], b"stray".to_vec()] {
        assert_eq!(run(&[bytes.as_slice(), &filler].concat()), ["1 one", "tail at 27"]);
    }
    assert_eq!(run(&[0; 4096]), ["tail at 0"]);
}

#[test]
fn one_flip_costs_the_entry_whose_body_it_hits() {
    // S24
    let mut bytes = entries(&HEADER, &[b"one", b"", b"three"]);
    for bit in 0..bytes.len() * 8 {
        flip(&mut bytes, bit);
        let expected = match bit / 8 {
            24..27 => ["damaged 1..2", "2 ", "3 three"],
            75..80 => ["1 one", "2 ", "tail at 51"],
            _ => ["1 one", "2 ", "3 three"],
        };
        assert_eq!(run(&bytes), expected, "bit {bit}");
        flip(&mut bytes, bit);
    }
}

#[test]
fn a_hole_costs_the_entries_it_covers() {
    let bodies: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; 100]).collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let mut bytes = entries(&HEADER, &bodies);
    bytes[1000..1512].fill(0);
    let items: Vec<JournalItem<'_>> = HEADER.scan(&bytes).collect();
    // Entries take 124 bytes: the hole begins in number 9 and ends in number 13.
    assert_eq!(items[8], JournalItem::Damaged { from: 9, to: 14 });
    assert_eq!(items.len(), 8 + 1 + 27);
}

#[test]
fn entries_of_another_file_never_decode() {
    for other in [
        JournalHeader { kind: JournalKind::CATALOG, ..HEADER },
        JournalHeader { queue: QueueId::new(78), ..HEADER },
        JournalHeader { generation: 4, ..HEADER },
    ] {
        let old = entries(&other, &[b"one", b"two", b"three"]);
        assert_eq!(run(&old), ["tail at 0"]);
        let ours = entries(&HEADER, &[b"one"]);
        assert_eq!(run(&[ours.as_slice(), &old].concat()), ["1 one", "tail at 27"]);
    }
}

#[test]
fn a_body_that_is_an_entry_is_not_taken_for_one() {
    let inner = entries(&JournalHeader { generation: 4, ..HEADER }, &[b"one", b"two"]);
    let mut bytes = entries(&HEADER, &[&inner, b"two"]);
    assert_eq!(HEADER.scan(&bytes).count(), 2);
    bytes[0..24].fill(0x77);
    assert_eq!(run(&bytes), ["damaged 1..2", "2 two"]);
}

#[test]
fn lengths_and_numbers_at_their_extremes_are_no_entry() {
    // S29
    let sound = entries(&HEADER, &[b"one"]);
    let max = u32::try_from(ENTRY_BODY_BYTES_MAX).unwrap();
    for length in [0, 1, 2, 4, max, max + 1, u32::MAX] {
        let mut bytes = sound.clone();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let sum = crc(HEADER.seed(1), &bytes[..20]);
        bytes[20..24].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(run(&bytes), ["tail at 0"], "length {length}");
    }
    for number in [2, 3, u64::MAX] {
        let mut cut = Vec::new();
        HEADER.encode_entry(&mut cut, number, TAG, b"x");
        cut.pop();
        assert_eq!(run(&[sound.as_slice(), &cut].concat()), ["1 one", "tail at 27"], "number {number}");
    }
}

#[test]
fn the_last_number_of_the_type_is_read() {
    // S45
    let mut bytes = Vec::new();
    HEADER.encode_entry(&mut bytes, 1, TAG, b"a");
    HEADER.encode_entry(&mut bytes, u64::MAX, TAG, b"z");
    assert_eq!(
        run(&bytes),
        ["1 a".to_string(), format!("damaged 2..{}", u64::MAX), format!("{} z", u64::MAX)]
    );
}

#[test]
fn a_flipped_bit_of_a_body_is_located() {
    let sound = entries(&HEADER, &[b"a body of some bytes"]);
    assert_eq!(HEADER.flipped_bit(&sound, 1), None);
    for bit in 0..20 * 8 {
        let mut bytes = sound.clone();
        flip(&mut bytes, ENTRY_HEAD_BYTES * 8 + bit);
        assert_eq!(HEADER.flipped_bit(&bytes, 1), Some(bit));
        assert_eq!(HEADER.flipped_bit(&bytes, 2), None, "another number's");
        flip(&mut bytes, ENTRY_HEAD_BYTES * 8 + (bit + 9) % 160);
        assert_eq!(HEADER.flipped_bit(&bytes, 1), None, "two bits");
    }
}

#[test]
fn heads_nested_by_hand_cost_no_more_than_the_effort() {
    // Each head is sound and says that all bytes behind it are its body.
    let nested = |count: u64| {
        let mut last = Vec::new();
        HEADER.encode_entry(&mut last, count + 2, TAG, b"last");
        let mut bytes = Vec::new();
        for index in 0..count {
            let left = usize::try_from(count - index - 1).unwrap() * ENTRY_HEAD_BYTES + last.len();
            let mut entry = Vec::new();
            HEADER.encode_entry(&mut entry, index + 2, TAG, &vec![1; left]);
            bytes.extend_from_slice(&entry[..ENTRY_HEAD_BYTES]);
        }
        bytes.extend_from_slice(&last);
        bytes
    };
    assert_eq!(run(&nested(3)), ["damaged 1..5", "5 last"]);
    let bytes = nested(2000);
    let mut scan = HEADER.scan(&bytes);
    let items: Vec<_> = scan.by_ref().collect();
    assert_eq!(items.first(), Some(&JournalItem::Damaged { from: 1, to: 2002 }));
    assert!(scan.effort < bytes.len(), "most of the effort was spent, and no more");
}

proptest! {
    #[test]
    fn what_is_written_is_read(bodies: Vec<Vec<u8>>, generation: u64, queue: u128) {
        let header = JournalHeader { generation, queue: QueueId::new(queue), ..HEADER };
        prop_assert_eq!(JournalHeader::decode(&header.encode()), Ok(header));
        let slices: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let bytes = entries(&header, &slices);
        let items: Vec<JournalItem<'_>> = header.scan(&bytes).collect();
        prop_assert_eq!(items.len(), bodies.len());
        for ((item, body), number) in items.into_iter().zip(&bodies).zip(1..) {
            prop_assert_eq!(item, JournalItem::Entry(Entry { number, tag: TAG, body }));
        }
    }

    #[test]
    fn scanning_is_total(bytes: Vec<u8>) {
        let tail = JournalItem::Tail { offset: 0 };
        prop_assert!(HEADER.scan(&bytes).all(|item| item == tail));
    }
}
