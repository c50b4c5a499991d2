//! Segments of one stream: where a seq stands, what follows what, and what retirement leaves.

use super::*;

const fn id(n: u64) -> SegmentId {
    SegmentId::new(n)
}

const fn seq(n: u64) -> Seq {
    Seq::new(n)
}

/// 3 ends at 40, 4 is empty, 5 never held a record, 6 ends at 75, 7 is open.
fn stream() -> StreamState {
    StreamState::new(&[(id(3), seq(40)), (id(4), seq(40)), (id(6), seq(75))], id(7))
}

#[test]
fn a_seq_stands_in_the_first_segment_that_ends_above_it() {
    let s = stream();
    for (at, segment) in [(1, 3), (39, 3), (40, 6), (74, 6), (75, 7), (u64::MAX, 7)] {
        assert_eq!(s.segment_of(seq(at)), id(segment), "seq {at}");
    }
}

#[test]
fn segments_follow_each_other_over_empty_ids() {
    let s = stream();
    for (of, next) in [(1, 3), (3, 4), (4, 6), (5, 6), (6, 7), (7, 7)] {
        assert_eq!(s.after(id(of)), id(next), "after {of}");
    }
    assert_eq!(s.at_or_after(id(4)), (id(4), Some(seq(40))));
    assert_eq!(s.at_or_after(id(5)), (id(6), Some(seq(75))));
    assert_eq!(s.at_or_after(id(7)), (id(7), None));
}

#[test]
fn rotation_keeps_the_final_end_and_retirement_forgets_it() {
    let mut s = stream();
    s.rotate(seq(80), id(9));
    assert_eq!((s.open(), s.at_or_after(id(7))), (id(9), (id(7), Some(seq(80)))));
    s.retire(id(7));
    assert_eq!(s.at_or_after(id(3)), (id(7), Some(seq(80))));
    s.retire(id(99));
    assert_eq!(s.at_or_after(id(3)), (id(9), None));
}

#[test]
#[cfg(not(debug_assertions))]
fn an_open_segment_that_does_not_grow_is_ignored() {
    let mut s = stream();
    s.rotate(seq(80), id(7));
    assert_eq!((s.open(), s.segment_of(seq(76))), (id(7), id(7)));
}
