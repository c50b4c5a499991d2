//! The table of events: what an event does to a consumer, by what the consumer is doing. Pure; the cache carries it out.
//!
//! | event | due | asleep, caught up | in back-off | leased |
//! |---|---|---|---|---|
//! | signal (a commit became readable), rotate | unchanged | due now | unchanged | unchanged: the end of the turn sees it |
//! | seek, settings, resume | unchanged | due now | due now | dirty |
//! | remove, delete stream, stop | forget | forget | forget | forget at the end of the turn |
//!
//! Creation and opening have no column to stand in: the consumer is due now.

use crate::turn::Note;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A commit became readable.
    Signal,
    /// The writer closed a segment.
    Rotate,
    /// Seek, settings, resume, a new attachment.
    Kick,
    /// Removed, its stream deleted, stopped.
    Leave,
}

/// What the consumer is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    Due,
    CaughtUp,
    BackOff,
    Leased(Note),
}

/// What the event does to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Unchanged,
    DueNow,
    /// The lease is out: leave a note for its end.
    Leave(Note),
    Forget,
}

pub(crate) const fn effect(event: Event, doing: Doing) -> Effect {
    match (event, doing) {
        (Event::Signal | Event::Rotate, Doing::CaughtUp) => Effect::DueNow,
        (Event::Signal | Event::Rotate, Doing::Due | Doing::BackOff | Doing::Leased(_)) => Effect::Unchanged,
        (Event::Kick, Doing::CaughtUp | Doing::BackOff) => Effect::DueNow,
        (Event::Kick, Doing::Due) => Effect::Unchanged,
        // Attaching again is the only kick that reaches a consumer who is leaving; it calls it back.
        (Event::Kick, Doing::Leased(_)) => Effect::Leave(Note::Dirty),
        (Event::Leave, Doing::Leased(_)) => Effect::Leave(Note::Leaving),
        (Event::Leave, Doing::Due | Doing::CaughtUp | Doing::BackOff) => Effect::Forget,
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
