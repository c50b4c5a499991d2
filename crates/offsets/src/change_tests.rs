//! Bodies of changes: round trip by way of [`State`], hostile bytes.

use proptest::prelude::*;
use wal_format::{ConsumerId, Seq};

use super::{BODY_BYTES_SOFT, BodyError, ChangeWriter, decode};
use crate::entry::CursorMove;
use crate::journal::Bodies;
use crate::state::State;

fn write(changes: impl FnOnce(&mut ChangeWriter<'_>)) -> Bodies {
    let mut bodies = Bodies::new();
    let mut write = ChangeWriter::new(&mut bodies);
    changes(&mut write);
    write.finish();
    bodies
}

#[test]
fn many_items_make_several_bodies_of_bounded_length() {
    let bodies = write(|write| {
        for id in 0..5000 {
            write.cursor(&CursorMove::forward(ConsumerId::new(id), Seq::new(id * 1000 + 1)));
        }
    });
    assert!(bodies.len() > 5);
    assert!(bodies.iter().all(|body| body.len() < BODY_BYTES_SOFT + 64));
    let mut count = 0;
    for body in bodies.iter() {
        decode(body, |_| count += 1).expect("sound");
    }
    assert_eq!(count, 5000);
}

// S29: counts and lengths that promise more than is there.
#[test]
fn a_length_without_its_bytes_is_malformed() {
    for length in [
        &[251, 0xff, 0xff][..],
        &[252, 0xff, 0xff, 0xff, 0xff],
        &[253, 255, 255, 255, 255, 255, 255, 255, 255],
    ] {
        // A cursor: consumer, seq, no hint, acked ranges of this count.
        let mut body = vec![2, 1, 1, 0];
        body.extend_from_slice(length);
        assert_eq!(decode(&body, |_| ()), Err(BodyError::Malformed));
        // A tag: stream, a producer of this length.
        let mut body = vec![4, 1];
        body.extend_from_slice(length);
        assert_eq!(decode(&body, |_| ()), Err(BodyError::Malformed));
    }
    assert_eq!(decode(&[], |_| ()), Err(BodyError::Malformed));
    assert_eq!(decode(&[11, 0], |_| ()), Err(BodyError::Malformed));
    assert_eq!(decode(&[15], |_| ()), Err(BodyError::UnknownKind(15)));
    assert_eq!(decode(&[0], |_| ()), Err(BodyError::UnknownKind(0)));
}

#[test]
fn a_clean_stop_that_lost_an_end_is_none() {
    let bodies = write(|write| {
        write.clean_stop(&[]);
        write.clean_stop_void();
    });
    assert_eq!(bodies.iter().collect::<Vec<_>>(), [&[9, 0][..], &[11]]);
    let mut state = State::default();
    assert_eq!(state.replay(&[9, 2]), Ok(0));
    assert_eq!(state.replay(&[10, 1, 5, 1, 0]), Ok(0));
    assert!(state.clean.is_some());
    state.replayed();
    assert!(state.clean.is_none());
}

#[test]
fn a_cursor_of_nobody_is_ignored_and_counted() {
    let bodies = write(|write| write.cursor(&CursorMove::forward(ConsumerId::new(5), Seq::new(9))));
    let mut state = State::default();
    let ignored: u64 = bodies.iter().map(|body| state.replay(body).expect("known kind")).sum();
    assert_eq!((ignored, state), (1, State::default()));
}

proptest! {
    #[test]
    fn any_bytes_decode_to_something(kind in 0..16u8, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut body = vec![kind];
        body.extend(bytes);
        let mut state = State::default();
        let _ = state.replay(&body);
        state.replayed();
        // What it became can be written and read back.
        let bodies = write(|write| state.snapshot(write));
        let mut again = State::default();
        for body in bodies.iter() {
            prop_assert_eq!(again.replay(body), Ok(0));
        }
        again.replayed();
        prop_assert_eq!(again.consumers, state.consumers);
        prop_assert_eq!(again.floors, state.floors);
        prop_assert_eq!(again.open_time, state.open_time);
    }
}
