//! Every event against everything a consumer may be doing.

use super::*;

const CLEAN: Doing = Doing::Leased(Note::Clean);
const DIRTY: Doing = Doing::Leased(Note::Dirty);
const LEAVING: Doing = Doing::Leased(Note::Leaving);

const DOINGS: [Doing; 6] = [Doing::Due, Doing::CaughtUp, Doing::BackOff, CLEAN, DIRTY, LEAVING];

#[test]
fn every_row_of_the_table_is_as_written() {
    use Effect::{DueNow, Forget, Leave, Unchanged};
    let dirty = Leave(Note::Dirty);
    let leaving = Leave(Note::Leaving);
    let table = [
        (Event::Signal, [Unchanged, DueNow, Unchanged, Unchanged, Unchanged, Unchanged]),
        (Event::Rotate, [Unchanged, DueNow, Unchanged, Unchanged, Unchanged, Unchanged]),
        (Event::Kick, [Unchanged, DueNow, DueNow, dirty, dirty, dirty]),
        (Event::Leave, [Forget, Forget, Forget, leaving, leaving, leaving]),
    ];
    for (event, row) in table {
        for (doing, expected) in DOINGS.into_iter().zip(row) {
            assert_eq!(effect(event, doing), expected, "{event:?} on {doing:?}");
        }
    }
}
