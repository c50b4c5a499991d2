//! What the lines of `due` make of the tables: who becomes due, who is told, and when.

use super::*;

#[test]
fn creating_makes_due_and_finds_the_segment() {
    for (cursor, reading) in [(1, 1), (9, 1), (10, 2), (99, 2)] {
        let mut cache = cache(Policy::Signal);
        assert_eq!(cache.attach(KEY, seq(cursor), Mode::Pull, NOW).pull, [KEY]);
        let view = cache.view(KEY).expect("attached");
        assert_eq!((view.reading, view.phase), (segment(reading), Phase::Due(NOW)));
        let rotated = reading == 1;
        assert_eq!(view.state == WalState::Rotated, rotated, "Rotated iff reading < open_segment");
    }
}

#[test]
fn one_signal_wakes_all_who_caught_up_each_by_its_mode() {
    let mut cache = cache(Policy::Signal);
    for n in 1..=4 {
        let mode = if n % 2 == 0 { Mode::Pull } else { Mode::Pool };
        let _ = cache.attach(key(n), seq(20), mode, NOW);
        let lease = cache.lease_key(key(n), NOW, &at(20)).expect("due");
        assert!(lease.is_empty(), "nothing to read, no file to open");
        assert_eq!(cache.end_turn(lease, Outcome::AtBound, NOW, &at(20)), TurnEnd::default());
    }
    let woken = cache.signal(STREAM, NOW);
    assert_eq!((woken.pool_count, woken.pull), (2, vec![key(2), key(4)]));
    assert!(cache.signal(STREAM, NOW).is_empty(), "who is due is not woken again");
    assert_eq!(cache.counters().empty_lease_count, 4);
}

#[test]
fn the_oldest_due_goes_first_and_a_busy_consumer_goes_to_the_end_of_the_line() {
    let mut cache = cache(Policy::Signal);
    for n in [3, 1, 2] {
        let _ = cache.attach(key(n), seq(11), Mode::Pool, NOW);
    }
    let mut order = Vec::new();
    for round in 0..6 {
        let lease = cache.lease(NOW, &at(99)).expect("due");
        order.push(lease.key.consumer.get());
        let more = Outcome::MoreToRead { at: seq(12 + round) };
        let _ = cache.end_turn(lease, more, NOW, &at(99));
    }
    assert_eq!(order, [3, 1, 2, 3, 1, 2]);
}

#[test]
fn a_turn_marked_later_than_the_workers_watch_says_is_leased_all_the_same() {
    let mut cache = caught_up(Policy::Signal, Mode::Pool);
    let _ = cache.signal(STREAM, LATER);
    assert!(cache.has_due(NOW) && cache.due_count(NOW) == 1);
    assert!(cache.lease(NOW, &at(21)).is_some());
}

#[test]
fn failures_double_the_delay_until_progress_or_a_kick() {
    let mut cache = cache(Policy::Signal);
    let _ = cache.attach(KEY, seq(11), Mode::Pool, NOW);
    let fail = |cache: &mut Cache, outcome| {
        let lease = cache.lease(Instant::MAX, &at(20)).expect("due by then");
        let end = cache.end_turn(lease, outcome, NOW, &at(20));
        end.due.expect("a failing consumer is tried again").saturating_since(NOW).as_secs()
    };
    let delays: Vec<u64> = (0..6).map(|_| fail(&mut cache, failed(11))).collect();
    assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
    assert_eq!(fail(&mut cache, failed(13)), 1, "a part was handed over: the count starts again");
    assert_eq!(fail(&mut cache, failed(13)), 2);
    let _ = cache.kick(KEY, NOW);
    assert_eq!(fail(&mut cache, failed(13)), 1, "resumed: the count starts again");
    let wait_min = Duration::from_secs(120);
    assert_eq!(fail(&mut cache, Outcome::Failed { at: seq(13), wait_min }), 120, "Retry-After beats the cap");
    let lease = cache.lease(Instant::MAX, &at(20)).expect("due");
    let _ = cache.end_turn(lease, Outcome::MoreToRead { at: seq(14) }, NOW, &at(20));
    assert_eq!(cache.view(KEY).map(|view| view.failures), Some(0), "a delivery ends the row of failures");
}

#[test]
fn time_tells_a_pull_consumer_once_and_the_pool_as_long_as_it_is_due() {
    let mut cache = cache(Policy::Poll { push_back: Duration::from_secs(2) });
    for (n, mode) in [(1, Mode::Pull), (2, Mode::Pool)] {
        let _ = cache.attach(key(n), seq(20), mode, NOW);
        let lease = cache.lease_key(key(n), NOW, &at(20)).expect("due");
        let _ = cache.end_turn(lease, Outcome::AtBound, NOW, &at(20));
    }
    assert_eq!(cache.next_due(), Some(after(1)));
    assert!(cache.wake_due(NOW).is_empty());
    let woken = cache.wake_due(after(1));
    assert_eq!((woken.pool_count, woken.pull), (1, vec![key(1)]));
    let again = cache.wake_due(after(1));
    assert_eq!((again.pool_count, again.pull.len()), (1, 0));
    assert!(cache.lease_key(key(1), NOW, &at(20)).is_some(), "told is due, whatever its watch says");
    assert_eq!(cache.lease(after(1), &at(20)).map(|lease| lease.key), Some(key(2)));
    assert_eq!(cache.next_due(), None);
}

#[test]
fn a_busy_pool_does_not_hide_the_end_of_a_back_off() {
    let mut cache = cache(Policy::Signal);
    for (n, mode) in [(1, Mode::Pull), (2, Mode::Pool), (3, Mode::Pool)] {
        let _ = cache.attach(key(n), seq(11), mode, NOW);
    }
    let failing = cache.lease_key(key(1), NOW, &at(20)).expect("due");
    let _ = cache.end_turn(failing, failed(11), NOW, &at(20));
    let failing = cache.lease_key(key(2), after(1), &at(20)).expect("due");
    let _ = cache.end_turn(failing, failed(11), after(1), &at(20));
    assert_eq!(cache.next_due(), Some(NOW), "the third has been due since it was attached");
    assert_eq!(cache.next_timer(NOW), Some(after(1)), "the first waits to be told");
    assert_eq!(cache.next_timer(after(3)), Some(after(1)), "however late its timer comes");
    assert_eq!(cache.wake_due(after(1)).pull, [key(1)]);
    assert_eq!(cache.next_timer(after(1)), Some(after(2)), "the second's back-off");
    assert_eq!(cache.next_timer(after(2)), None, "the pool is told that by `has_due`");
    assert!(cache.has_due(after(2)));
}
