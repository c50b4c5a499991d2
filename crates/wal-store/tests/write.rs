//! The writing half of the log over a simulated disk: appending, committing, waiting, rotating, failing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end")]

mod support;

mod write {
    mod commits;
    mod crashes;
    mod failures;
    mod limits;
    mod rotation;
    mod space;
    mod threads;
    mod waits;
}
