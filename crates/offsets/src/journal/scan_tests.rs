//! Writes put together from entries, sound and bad. Pure.

use wal_format::{EntryTag, JournalHeader, JournalKind, QueueId};

use super::{ENTRY_VERSION, KIND_LAST, KIND_MORE, Scan, scan};
use crate::journal::FileOutcome;

const HEADER: JournalHeader =
    JournalHeader { kind: JournalKind::CATALOG, queue: QueueId::new(77), generation: 5 };

/// A journal of writes, each a list of bodies; and where each entry begins.
fn journal(writes: &[&[&str]]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = HEADER.encode().to_vec();
    let mut begins = Vec::new();
    for write in writes {
        for (index, body) in write.iter().enumerate() {
            let mut indexed = u32::try_from(index).unwrap().to_le_bytes().to_vec();
            indexed.extend_from_slice(body.as_bytes());
            let kind = if index + 1 == write.len() { KIND_LAST } else { KIND_MORE };
            begins.push(bytes.len());
            let number = begins.len() as u64;
            HEADER.encode_entry(&mut bytes, number, EntryTag { version: ENTRY_VERSION, kind }, &indexed);
        }
    }
    (bytes, begins)
}

fn bodies(scan: &Scan) -> Vec<String> {
    scan.bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
}

/// Ruins an entry beyond mending.
fn ruin(bytes: &mut [u8], begin: usize) {
    for byte in &mut bytes[begin + 20..begin + 29] {
        *byte ^= 0x5a;
    }
}

const WRITES: [&[&str]; 4] = [&["s1", "s2", "s3"], &["a"], &["b1", "b2", "b3"], &["c"]];

#[test]
fn whole_writes_count_in_order() {
    let (bytes, _) = journal(&WRITES);
    let found = scan(&HEADER, &bytes);
    assert_eq!(found.outcome, FileOutcome::Current);
    assert_eq!(bodies(&found), ["s1", "s2", "s3", "a", "b1", "b2", "b3", "c"]);
    assert_eq!((found.entry_count, found.lost_count, found.mended_count, found.torn_bytes), (8, 0, 0, 0));
}

/// A bit that was mended and not told would stay in the file, where a second one makes it a hole.
#[test]
fn every_flipped_bit_is_mended_and_counted() {
    let (bytes, _) = journal(&WRITES);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let found = scan(&HEADER, &flipped);
        assert_eq!((found.outcome, bodies(&found).len()), (FileOutcome::Current, 8), "bit {bit}");
        assert_eq!((found.mended_count, found.lost_count), (1, 0), "bit {bit}");
    }
}

#[test]
fn zeros_behind_the_last_write_are_nothing() {
    let (mut bytes, _) = journal(&WRITES);
    bytes.extend([0; 5000]);
    let found = scan(&HEADER, &bytes);
    assert_eq!((bodies(&found).len(), found.torn_bytes), (8, 0));
}

#[test]
fn a_write_without_its_end_does_not_count() {
    let (bytes, begins) = journal(&WRITES[..3]);
    for end in begins[4] + 1..bytes.len() {
        let found = scan(&HEADER, &bytes[..end]);
        assert_eq!(bodies(&found), ["s1", "s2", "s3", "a"], "cut at {end}");
        assert!(found.torn_bytes <= (end - begins[4]) as u64);
        assert_eq!(found.lost_count, 0, "torn, not damaged");
    }
}

#[test]
fn a_last_write_with_a_hole_is_torn_whichever_entry_is_missing() {
    for missing in [4, 5, 6] {
        let (mut bytes, begins) = journal(&WRITES[..3]);
        ruin(&mut bytes, begins[missing]);
        let found = scan(&HEADER, &bytes);
        assert_eq!(bodies(&found), ["s1", "s2", "s3", "a"], "without entry {missing}");
        assert_eq!(found.lost_count, 0, "torn, not damaged");
    }
}

#[test]
fn a_hole_before_a_later_write_is_damage_and_what_is_left_counts() {
    let all = ["s1", "s2", "s3", "a", "b1", "b2", "b3", "c"];
    for (missing, outcome) in [
        (0, FileOutcome::Damaged),
        (2, FileOutcome::Damaged),
        (3, FileOutcome::Current),
        (5, FileOutcome::Current),
    ] {
        let (mut bytes, begins) = journal(&WRITES);
        ruin(&mut bytes, begins[missing]);
        let found = scan(&HEADER, &bytes);
        let left: Vec<_> =
            all.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, it)| *it).collect();
        assert_eq!(bodies(&found), left, "without entry {missing}");
        assert_eq!((found.outcome, found.lost_count), (outcome, 1), "without entry {missing}");
    }
}

#[test]
fn holes_across_two_writes_are_counted_where_they_belong() {
    let (mut bytes, begins) = journal(&WRITES);
    ruin(&mut bytes, begins[3]);
    ruin(&mut bytes, begins[4]);
    let found = scan(&HEADER, &bytes);
    assert_eq!(bodies(&found), ["s1", "s2", "s3", "b2", "b3", "c"]);
    assert_eq!(found.lost_count, 2);
    // Without the last write, the second one is only torn; the one before it is proven by what is left of it.
    let found = scan(&HEADER, &bytes[..begins[7]]);
    assert_eq!(bodies(&found), ["s1", "s2", "s3"]);
    assert_eq!(found.lost_count, 1);
}

#[test]
fn a_first_write_that_is_not_whole_makes_no_generation() {
    let (bytes, begins) = journal(&WRITES[..1]);
    assert_eq!(scan(&HEADER, &bytes[..begins[2]]).outcome, FileOutcome::Incomplete);
    assert_eq!(scan(&HEADER, &bytes[..64]).outcome, FileOutcome::Incomplete);
    assert_eq!(scan(&HEADER, &bytes[..63]).outcome, FileOutcome::Incomplete);
    assert_eq!(scan(&HEADER, &[]).outcome, FileOutcome::Empty);
    assert_eq!(scan(&HEADER, &[0; 63]).outcome, FileOutcome::Prepared);
    assert_eq!(scan(&HEADER, &[0; 9000]).outcome, FileOutcome::Prepared);
    for cut in 1..64 {
        let mut short = vec![0; 9000];
        short[..cut].copy_from_slice(&bytes[..cut]);
        assert_eq!(
            scan(&HEADER, &short).outcome,
            FileOutcome::Incomplete,
            "a write that failed after {cut} bytes"
        );
    }
    let mut headless = bytes;
    headless[..64].fill(0);
    assert_eq!(scan(&HEADER, &headless).outcome, FileOutcome::Incomplete);
}

#[test]
fn entries_of_a_later_version_make_it_a_file_of_that_version() {
    let (mut bytes, begins) = journal(&WRITES[..1]);
    let number = begins.len() as u64 + 1;
    HEADER.encode_entry(&mut bytes, number, EntryTag { version: 9, kind: 1 }, b"????");
    assert_eq!(scan(&HEADER, &bytes).outcome, FileOutcome::Version { found: 9 });
}

#[test]
fn an_index_that_cannot_be_is_passed_over() {
    let mut bytes = HEADER.encode().to_vec();
    let tag = EntryTag { version: ENTRY_VERSION, kind: KIND_LAST };
    HEADER.encode_entry(&mut bytes, 1, tag, &u32::MAX.to_le_bytes());
    HEADER.encode_entry(&mut bytes, 2, tag, &[1]);
    let found = scan(&HEADER, &bytes);
    assert_eq!((found.outcome, found.bodies.len()), (FileOutcome::Incomplete, 0));
}

mod random {
    use proptest::prelude::*;

    use super::super::scan;
    use super::{HEADER, WRITES, journal};

    proptest! {
        #[test]
        fn any_bytes_are_something(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            scan(&HEADER, &bytes);
        }

        #[test]
        fn any_change_of_a_journal_is_something(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let (mut bytes, _) = journal(&WRITES);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let found = scan(&HEADER, &bytes);
            prop_assert!(found.bodies.len() <= 8);
        }
    }
}

// Found by the simulation, seed 401: a write that stopped inside the header of a prepared file was reported as damage.
#[test]
fn a_write_that_ended_inside_the_header_is_no_damage() {
    let (sound, _) = journal(&WRITES);
    for end in 1..wal_format::JOURNAL_HEADER_BYTES {
        for space in [sound.len(), 4096] {
            let mut bytes = vec![0; space];
            bytes[..end].copy_from_slice(&sound[..end]);
            let found = scan(&HEADER, &bytes);
            assert_ne!(found.outcome, FileOutcome::Damaged, "{end} bytes");
            assert_eq!(bodies(&found).len(), 0);
        }
    }
}
