//! A word by itself, and a ticket that holds one whose log is gone. What real threads do with them is tested from outside.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use wal_format::{Now, Seq};

use super::{WakerPlace, Word};
use crate::{CommitError, Level, Ticket};

fn register(word: &Word, place: &mut Option<WakerPlace>, level: Level) -> Option<Result<(), CommitError>> {
    word.register_waker(place, level, &mut Context::from_waker(Waker::noop()))
}

// The outcome comes between a future's test and its registration: nobody would wake it any more.
#[test]
fn a_future_that_registers_behind_the_outcome_is_told_at_once_and_leaves_no_waker() {
    let (failed, durable) = (Word::new(Weak::new()), Word::new(Weak::new()));
    failed.failed(CommitError::Closed, &mut Vec::new());
    durable.durable(&mut Vec::new());
    let mut place = None;
    assert!(matches!(register(&failed, &mut place, Level::Durable), Some(Err(CommitError::Closed))));
    assert!(matches!(register(&failed, &mut place, Level::Buffered), Some(Ok(()))));
    assert!(matches!(register(&durable, &mut place, Level::Durable), Some(Ok(()))));
    assert!(place.is_none());

    let pending = Word::new(Weak::new());
    assert!(register(&pending, &mut place, Level::Written).is_none() && place.is_some());
}

// The log goes between a ticket's test of its word and its call of the log: what the word says by then counts, and if it says
// nothing nobody will commit any more.
#[test]
fn a_ticket_whose_log_is_gone_is_answered_by_its_word_or_closed() {
    let word = Arc::new(Word::new(Weak::new()));
    let mut ticket = Ticket::new(Seq::new(3), Seq::new(5), Arc::clone(&word));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(ticket.wait(Level::Written, Now::default()), Err(CommitError::Closed)));
    assert!(matches!(ticket.poll(Level::Written, &mut cx), Poll::Ready(Err(CommitError::Closed))));
    word.written(&mut Vec::new());
    assert_eq!(ticket.wait(Level::Written, Now::default()).unwrap(), Seq::new(3));
    assert!(matches!(ticket.poll(Level::Written, &mut cx), Poll::Ready(Ok(Seq { .. }))));
    assert!(matches!(ticket.poll(Level::Durable, &mut cx), Poll::Ready(Err(CommitError::Closed))));
}
