//! The table of section "end of turn": what follows from how a turn ended. Pure; the cache carries it out.
//!
//! | end of turn | MoreToRead | AtBound | Failed |
//! |---|---|---|---|
//! | lease open | due now | *caught up*: due now if dirty or if `reading < open_segment`; else asleep, unless the end moved | back-off, or due now if dirty |
//! | lease rotated | due now | *drained*: the segment is complete, on to the next, due now | back-off, or due now if dirty |
//! | older than a seek | due now | due now | due now |
//! | consumer gone | forget | forget | forget |

use crate::types::{Bound, Outcome};

/// What was said about a consumer while its lease was out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Note {
    /// Nothing. Signals and rotations leave no note: the end of the turn sees what they changed.
    Clean,
    /// Seek, settings or resume: due now, whatever the outcome.
    Dirty,
    /// Detached: forget it.
    Leaving,
}

/// Which reading of the consumer the lease belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Age {
    /// The present one.
    Current,
    /// One before a seek or a new attachment; what it read counts for nothing.
    Older,
}

/// Where the consumer's segment stands now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// `reading = open_segment`.
    AtOpen,
    /// `reading < open_segment`.
    Behind,
}

/// What to do with the consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// It is gone.
    Forget,
    /// The outcome is ignored; due now.
    Void,
    /// Due now.
    DueNow,
    /// `ReadComplete`: on to the next segment, due now.
    Complete,
    /// Asleep, unless `readable_end`, asked for again after `asleep` was set, moved above what was read.
    SleepUnlessMoved,
    /// Due later, by the count of failures.
    BackOff,
}

pub(crate) const fn end_of_turn(note: Note, age: Age, bound: Bound, outcome: Outcome, place: Place) -> Next {
    match (note, age, outcome, bound, place) {
        (Note::Leaving, ..) => Next::Forget,
        (_, Age::Older, ..) => Next::Void,
        (_, _, Outcome::MoreToRead { .. }, _, _) => Next::DueNow,
        (_, _, Outcome::AtBound, Bound::Rotated { .. }, _) => Next::Complete,
        (Note::Dirty, _, Outcome::AtBound, Bound::Open { .. }, _) => Next::DueNow,
        // The writer rotated while the turn ran: nobody will signal this segment again.
        (_, _, Outcome::AtBound, Bound::Open { .. }, Place::Behind) => Next::DueNow,
        (_, _, Outcome::AtBound, Bound::Open { .. }, Place::AtOpen) => Next::SleepUnlessMoved,
        (Note::Dirty, _, Outcome::Failed { .. }, _, _) => Next::DueNow,
        (_, _, Outcome::Failed { .. }, _, _) => Next::BackOff,
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
