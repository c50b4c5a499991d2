//! Bytes to records and back, at every limit.

use super::*;

const WIDE: Limits = Limits { record_bytes_max: 100, records_max: 100, batch_bytes_max: 10_000 };

/// Splits as a source does, with no look behind the records themselves: `with_pieces` sees (piece, has line feed).
fn pieces(chunk: &[u8], limits: Limits, rest: Rest) -> (Vec<(Vec<u8>, bool)>, usize) {
    let mut found = Vec::new();
    let mut taken = 0;
    while let Some((piece, length)) = next_piece(&chunk[taken..], limits.record_bytes_max, rest) {
        found.push((piece.to_vec(), length > piece.len()));
        taken += length;
    }
    (found, taken)
}

fn joined(pieces: &[(Vec<u8>, bool)]) -> Vec<u8> {
    pieces.iter().flat_map(|(piece, lf)| piece.iter().copied().chain(lf.then_some(b'\n'))).collect()
}

#[test]
fn every_input_comes_back_byte_for_byte() {
    let inputs: &[&[u8]] = &[
        b"",
        b"\n",
        b"\n\n",
        b"a",
        b"a\n",
        b"a\r\n\r\nb\r",
        b"\xff\xfe\n\x00\n",
        "多字節\nß".as_bytes(),
        b"0123456789abcdef\n0123456\n01234567\n012345678",
    ];
    for input in inputs {
        for record_bytes_max in [1, 2, 7, 8, 9, 100] {
            let (found, taken) = pieces(input, Limits { record_bytes_max, ..WIDE }, Rest::Take);
            assert_eq!((joined(&found).as_slice(), taken), (*input, input.len()), "limit {record_bytes_max}");
            assert!(found.iter().all(|(piece, _)| piece.len() <= record_bytes_max));
        }
    }
}

#[test]
fn a_line_of_exactly_the_limit_is_not_split() {
    let limits = Limits { record_bytes_max: 4, ..WIDE };
    assert_eq!(pieces(b"abcd\n", limits, Rest::Keep).0, [(b"abcd".to_vec(), true)]);
    assert_eq!(pieces(b"abcde\n", limits, Rest::Keep).0, [(b"abcd".to_vec(), false), (b"e".to_vec(), true)]);
    assert_eq!(pieces(b"abcd", limits, Rest::Keep), (vec![], 0), "the line feed may still come");
}

#[test]
fn what_follows_the_last_line_feed_waits_unless_nothing_more_comes() {
    assert_eq!(pieces(b"a\nbc", WIDE, Rest::Keep).1, 2);
    assert_eq!(pieces(b"a\nbc", WIDE, Rest::Take).1, 4);
}

#[test]
fn a_chunk_is_cut_at_the_limits_of_a_batch() {
    let mut records = Vec::new();
    let taken = split(b"a\nb\nc\n", Limits { records_max: 2, ..WIDE }, Rest::Take, &mut records);
    assert_eq!((records.len(), taken), (2, 4));
    let mut records = Vec::new();
    let taken = split(b"a\nb\nc\n", Limits { batch_bytes_max: 17, ..WIDE }, Rest::Take, &mut records);
    assert_eq!((records.len(), taken), (1, 2));
}

#[test]
fn a_line_feed_is_found_at_every_place() {
    for length in 0..40 {
        for at in 0..length {
            let mut bytes = vec![b'x'; length];
            bytes[at] = b'\n';
            assert_eq!(find_line_feed(&bytes), Some(at));
        }
        assert_eq!(find_line_feed(&vec![0x0b; length]), None);
    }
}
