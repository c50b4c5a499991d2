//! Segments that are retired, cursors ahead, streams and keys nobody knows, consumers and streams that come back.

use super::*;

#[test]
fn a_segment_retired_before_its_last_empty_turn_is_stepped_over() {
    let mut cache = caught_up(Policy::Signal, Mode::Pool);
    let _ = cache.rotated(STREAM, seq(20), segment(3), NOW);
    cache.retired(STREAM, segment(3));
    let lease = lease(&mut cache, 25);
    assert_eq!((lease.reading, lease.bound), (segment(3), Bound::Open { to: seq(25) }));
}

#[test]
fn a_segment_retired_during_its_last_turn_still_completes() {
    let mut cache = cache(Policy::Signal);
    let _ = cache.attach(KEY, seq(5), Mode::Pool, NOW);
    let lease = lease(&mut cache, 20);
    cache.retired(STREAM, segment(2));
    let end = cache.end_turn(lease, Outcome::AtBound, NOW, &at(20));
    assert_eq!(end.completed, Some(segment(1)));
    assert_eq!(cache.view(KEY).map(|view| view.reading), Some(segment(2)));
}

#[test]
fn a_cursor_ahead_of_the_log_sleeps_and_does_not_spin() {
    // S14: the log was cut behind the cursor; the reader decides about the gap, the cache only waits.
    let mut cache = cache(Policy::Signal);
    let _ = cache.attach(KEY, seq(50), Mode::Pool, NOW);
    let lease = lease(&mut cache, 20);
    assert!(lease.is_empty());
    let end = cache.end_turn(lease, Outcome::AtBound, NOW, &at(30));
    assert_eq!(end, TurnEnd::default(), "readable moved, but not above what this consumer has");
    assert_eq!(cache.view(KEY).map(|view| view.at), Some(seq(50)));
}

#[test]
fn the_safety_poll_counts_what_the_writer_never_signalled_and_nothing_else() {
    let every = Duration::from_secs(1);
    let asleep = || {
        let mut cache = Cache::new(Policy::Signal, backoff(), 1).with_safety_poll(every);
        cache.open_stream(STREAM, &[], segment(1));
        let _ = cache.attach(KEY, seq(1), Mode::Pool, NOW);
        let lease = lease(&mut cache, 5);
        let end = cache.end_turn(lease, Outcome::AtBound, NOW, &at(5));
        assert_eq!(end.due, Some(after(1)));
        cache
    };
    let poll = |cache: &mut Cache, readable: u64, signalled: Said| {
        let lease = cache.lease(after(1), &at(readable)).expect("the safety poll is due");
        if signalled == Said::Signal {
            let _ = cache.signal(STREAM, after(1));
        }
        let _ = cache.end_turn(lease, Outcome::AtBound, after(1), &at(readable));
        cache.counters().safety_find_count
    };
    assert_eq!(poll(&mut asleep(), 5, Said::Nothing), 0, "nothing there");
    assert_eq!(poll(&mut asleep(), 6, Said::Nothing), 1, "a lost wake-up");
    assert_eq!(poll(&mut asleep(), 6, Said::Signal), 0, "the poll was merely first");
}

#[test]
fn unknown_keys_and_streams_are_no_errors() {
    let mut cache = Cache::new(Policy::Signal, backoff(), 1);
    assert!(cache.attach(KEY, seq(1), Mode::Pool, NOW).is_empty());
    assert!(cache.signal(STREAM, NOW).is_empty());
    assert!(cache.rotated(STREAM, seq(1), segment(2), NOW).is_empty());
    assert!(cache.seek(KEY, seq(1), NOW).is_empty());
    assert!(cache.kick(KEY, NOW).is_empty());
    cache.retired(STREAM, segment(2));
    cache.close_stream(STREAM);
    assert_eq!(cache.detach(KEY), Detached::Unknown);
    assert_eq!((cache.state(KEY), cache.next_due(), cache.lease(NOW, &at(1)).is_none()), (None, None, true));
}

#[test]
fn attaching_again_moves_and_may_change_the_mode() {
    let mut cache = caught_up(Policy::Signal, Mode::Pool);
    let before = cache.seek_number(KEY);
    assert_eq!(cache.attach(KEY, seq(2), Mode::Pull, NOW).pull, [KEY]);
    assert!(cache.seek_number(KEY) > before);
    assert!(cache.lease(LATER, &at(20)).is_none(), "no longer the pool's");
    assert!(cache.signal(STREAM, NOW).is_empty(), "no longer asleep");
    assert_eq!(lease(&mut cache, 20).from, seq(2));
}

#[test]
fn the_same_stream_opened_after_a_close_waits_for_the_old_lease() {
    // S44: nobody of the old life reads in the new one.
    let mut cache = cache(Policy::Signal);
    let _ = cache.attach(KEY, seq(5), Mode::Pool, NOW);
    let old = lease(&mut cache, 20);
    cache.close_stream(STREAM);
    cache.open_stream(STREAM, &[], segment(9));
    assert!(cache.attach(KEY, seq(1), Mode::Pool, NOW).is_empty());
    assert!(cache.lease(NOW, &at(1)).is_none());
    let end = cache.end_turn(old, Outcome::AtBound, NOW, &at(1));
    assert_eq!((end.woken.pool_count, end.completed), (1, None));
    let new = lease(&mut cache, 4);
    assert_eq!((new.from, new.reading), (seq(1), segment(9)));
}
