//! Every row of the end-of-turn table against every column, every note, age and place.

use std::time::Duration;

use wal_format::Seq;

use super::*;

const OPEN: Bound = Bound::Open { to: Seq::new(5) };
const ROTATED: Bound = Bound::Rotated { end: Seq::new(5) };
const MORE: Outcome = Outcome::MoreToRead { at: Seq::new(3) };
const FAILED: Outcome = Outcome::Failed { at: Seq::new(1), wait_min: Duration::ZERO };

/// Each line: bound, place, outcome, then what follows when nothing was said and when the consumer is dirty.
const TABLE: [(Bound, Place, Outcome, Next, Next); 12] = [
    (OPEN, Place::AtOpen, MORE, Next::DueNow, Next::DueNow),
    (OPEN, Place::AtOpen, Outcome::AtBound, Next::SleepUnlessMoved, Next::DueNow),
    (OPEN, Place::AtOpen, FAILED, Next::BackOff, Next::DueNow),
    (OPEN, Place::Behind, MORE, Next::DueNow, Next::DueNow),
    (OPEN, Place::Behind, Outcome::AtBound, Next::DueNow, Next::DueNow),
    (OPEN, Place::Behind, FAILED, Next::BackOff, Next::DueNow),
    (ROTATED, Place::Behind, MORE, Next::DueNow, Next::DueNow),
    (ROTATED, Place::Behind, Outcome::AtBound, Next::Complete, Next::Complete),
    (ROTATED, Place::Behind, FAILED, Next::BackOff, Next::DueNow),
    // A rotated lease while reading = open_segment would need open_segment to shrink. The table answers all the same.
    (ROTATED, Place::AtOpen, MORE, Next::DueNow, Next::DueNow),
    (ROTATED, Place::AtOpen, Outcome::AtBound, Next::Complete, Next::Complete),
    (ROTATED, Place::AtOpen, FAILED, Next::BackOff, Next::DueNow),
];

#[test]
fn every_row_of_the_table_is_as_written() {
    let mut rows = 0;
    for (bound, place, outcome, clean, dirty) in TABLE {
        for (note, expected) in [(Note::Clean, clean), (Note::Dirty, dirty)] {
            let next = end_of_turn(note, Age::Current, bound, outcome, place);
            assert_eq!(next, expected, "{note:?} {bound:?} {outcome:?} {place:?}");
            rows += 1;
        }
    }
    assert_eq!(rows, 2 * 2 * 2 * 3, "notes × bounds × places × outcomes");
}

#[test]
fn an_older_lease_changes_nothing_and_a_leaving_consumer_is_forgotten_whatever_the_outcome() {
    for (bound, place, outcome, ..) in TABLE {
        for note in [Note::Clean, Note::Dirty] {
            assert_eq!(end_of_turn(note, Age::Older, bound, outcome, place), Next::Void);
        }
        for age in [Age::Current, Age::Older] {
            assert_eq!(end_of_turn(Note::Leaving, age, bound, outcome, place), Next::Forget);
        }
    }
}
