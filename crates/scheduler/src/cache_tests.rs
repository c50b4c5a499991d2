//! The two tables carried out by the cache, every row × every event, and what the lines of `due` make of them.
//! Longer stories are the scripts under `tests/`.

use std::cell::Cell;

use super::*;
use crate::{Bound, Lease, Outcome, TurnEnd};

const STREAM: StreamId = StreamId::new(1);
const KEY: Key = Key::new(STREAM, ConsumerId::new(1));
const NOW: Instant = Instant::from_nanos(1_000_000_000);
const LATER: Instant = Instant::from_nanos(90_000_000_000);

const fn seq(n: u64) -> Seq {
    Seq::new(n)
}

const fn segment(n: u64) -> SegmentId {
    SegmentId::new(n)
}

const fn key(n: u64) -> Key {
    Key::new(STREAM, ConsumerId::new(n))
}

fn at(end: u64) -> impl Fn(StreamId) -> Seq {
    move |_| seq(end)
}

fn backoff() -> Backoff {
    Backoff { first: Duration::from_secs(1), max: Duration::from_secs(8), jitter_percent: 0 }
}

fn after(seconds: u64) -> Instant {
    NOW.saturating_add(Duration::from_secs(seconds))
}

fn failed(at: u64) -> Outcome {
    Outcome::Failed { at: seq(at), wait_min: Duration::ZERO }
}

/// A stream whose segment 1 ends at 10 and whose segment 2 is open.
fn cache(policy: Policy) -> Cache {
    let mut cache = Cache::new(policy, backoff(), 1);
    cache.open_stream(STREAM, &[(segment(1), seq(10))], segment(2));
    cache
}

fn lease(cache: &mut Cache, readable_end: u64) -> Lease {
    cache.lease_key(KEY, NOW, &at(readable_end)).expect("due")
}

fn phase(cache: &Cache) -> Option<Phase> {
    cache.view(KEY).map(|view| view.phase)
}

/// A cache whose only consumer has just read to 20, the end of the open segment.
fn caught_up(policy: Policy, mode: Mode) -> Cache {
    let mut cache = cache(policy);
    let _ = cache.attach(KEY, seq(15), mode, NOW);
    let lease = lease(&mut cache, 20);
    let _ = cache.end_turn(lease, Outcome::AtBound, NOW, &at(20));
    cache
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Said {
    Nothing,
    Kick,
    Seek,
    Rotate,
    Signal,
    Detach,
    DetachAttach,
    CloseStream,
}

/// What one turn led to.
#[derive(PartialEq, Debug)]
enum Then {
    /// At this seq of this segment.
    DueNow(u64, u64),
    CaughtUp(Option<Instant>),
    BackOff(Instant),
    Gone,
}

/// Runs one turn from seq 5 (rotated, end 10) or 15 (open, to 20) to its end, with `said` in the middle.
fn turn(policy: Policy, from: u64, said: Said, outcome: Outcome, end_then: u64) -> (Then, TurnEnd, bool) {
    let mut cache = cache(policy);
    let _ = cache.attach(KEY, seq(from), Mode::Pool, NOW);
    let lease = lease(&mut cache, 20);
    match said {
        Said::Nothing => {}
        Said::Kick => assert!(cache.kick(KEY, NOW).is_empty()),
        Said::Seek => assert!(cache.seek(KEY, seq(3), NOW).is_empty()),
        Said::Rotate => assert!(cache.rotated(STREAM, seq(20), segment(3), NOW).is_empty()),
        Said::Signal => assert!(cache.signal(STREAM, NOW).is_empty()),
        Said::Detach => assert_eq!(cache.detach(KEY), Detached::AfterTurn),
        Said::DetachAttach => {
            assert_eq!(cache.detach(KEY), Detached::AfterTurn);
            assert_eq!(cache.detach(KEY), Detached::Unknown);
            assert!(cache.attach(KEY, seq(3), Mode::Pool, NOW).is_empty());
        }
        Said::CloseStream => cache.close_stream(STREAM),
    }
    assert!(cache.lease_key(KEY, LATER, &at(20)).is_none(), "at most one lease per key");
    assert!(cache.lease(LATER, &at(20)).is_none(), "at most one lease per key");
    let asked = Cell::new(0);
    let end = cache.end_turn(lease, outcome, NOW, &|_| {
        asked.set(asked.get() + 1);
        seq(end_then)
    });
    assert!(asked.get() <= 1, "asleep is set at most once a turn");
    let then = match cache.view(KEY) {
        None => Then::Gone,
        Some(view) => match view.phase {
            Phase::Due(_) => Then::DueNow(view.reading.get(), view.at.get()),
            Phase::CaughtUp(due) => Then::CaughtUp(due),
            Phase::BackOff { until, .. } => Then::BackOff(until),
            Phase::Leased => panic!("the lease came back"),
        },
    };
    let due = matches!(then, Then::DueNow(..));
    assert_eq!(end.woken.pool_count, usize::from(due), "who is due is woken");
    assert_eq!(cache.has_due(NOW), due);
    assert_eq!(cache.next_due(), end.due);
    (then, end, asked.get() == 1)
}

/// One expectation: a lease's start, its outcome, what was said meanwhile, the readable end then, and what follows.
type Row = (u64, Outcome, Said, u64, Then);

#[test]
fn every_row_of_the_end_of_turn_table_is_carried_out() {
    use Then::{BackOff, CaughtUp, DueNow, Gone};
    let more = |at| Outcome::MoreToRead { at: seq(at) };
    let bound = Outcome::AtBound;
    let in_one = BackOff(after(1));
    let rows: Vec<Row> = vec![
        // Open, more to read.
        (15, more(17), Said::Nothing, 20, DueNow(2, 17)),
        (15, more(17), Said::Kick, 20, DueNow(2, 17)),
        (15, more(17), Said::Rotate, 20, DueNow(2, 17)),
        (15, more(17), Said::Signal, 20, DueNow(2, 17)),
        // Open, caught up.
        (15, bound, Said::Nothing, 20, CaughtUp(None)),
        (15, bound, Said::Nothing, 21, DueNow(2, 20)),
        (15, bound, Said::Kick, 20, DueNow(2, 20)),
        (15, bound, Said::Rotate, 20, DueNow(2, 20)),
        (15, bound, Said::Signal, 21, DueNow(2, 20)),
        (15, bound, Said::Signal, 20, CaughtUp(None)),
        // Open, failed: only seek, settings and resume cut the back-off short.
        (15, failed(15), Said::Nothing, 20, BackOff(after(1))),
        (15, failed(15), Said::Kick, 20, DueNow(2, 15)),
        (15, failed(15), Said::Rotate, 20, BackOff(after(1))),
        (15, failed(15), Said::Signal, 21, BackOff(after(1))),
        // Rotated.
        (5, more(7), Said::Nothing, 20, DueNow(1, 7)),
        (5, more(7), Said::Kick, 20, DueNow(1, 7)),
        (5, bound, Said::Nothing, 20, DueNow(2, 10)),
        (5, bound, Said::Kick, 20, DueNow(2, 10)),
        (5, bound, Said::Rotate, 20, DueNow(2, 10)),
        (5, failed(6), Said::Nothing, 20, in_one),
        (5, failed(6), Said::Kick, 20, DueNow(1, 6)),
    ];
    for (from, outcome, said, end, expected) in rows {
        let (then, turn_end, asked) = turn(Policy::Signal, from, said, outcome, end);
        assert_eq!(then, expected, "from {from}, {outcome:?}, {said:?} meanwhile, readable to {end}");
        let completed = (from == 5 && outcome == bound).then(|| segment(1));
        assert_eq!(turn_end.completed, completed, "only a drained segment is read complete");
        let wanted_to_sleep = matches!(then, CaughtUp(_)) || (end == 21 && outcome == bound);
        assert_eq!(asked, wanted_to_sleep, "asleep is set by who is about to sleep and by nobody else");
    }
    for outcome in [more(7), bound, failed(6)] {
        for said in [Said::Detach, Said::CloseStream] {
            assert_eq!(turn(Policy::Signal, 5, said, outcome, 20).0, Gone, "{said:?} {outcome:?}");
        }
        for said in [Said::Seek, Said::DetachAttach] {
            let (then, turn_end, _) = turn(Policy::Signal, 5, said, outcome, 20);
            assert_eq!((then, turn_end.completed), (DueNow(1, 3), None), "{said:?} {outcome:?}");
        }
    }
}

#[test]
fn a_poll_is_on_the_grid_and_within_push_back() {
    let policy = Policy::Poll { push_back: Duration::from_secs(4) };
    let (then, ..) = turn(policy, 15, Said::Nothing, Outcome::AtBound, 20);
    assert_eq!(then, Then::CaughtUp(Some(after(3))), "1 s after the start, polls fall on 4 s, 8 s …");
    let (then, ..) = turn(policy, 15, Said::Nothing, Outcome::AtBound, 21);
    assert_eq!(then, Then::DueNow(2, 20));
}

/// Something that happens to the cache; how many pool turns it says became due.
type Happening = fn(&mut Cache) -> usize;

#[test]
fn every_event_does_to_the_due_the_sleeping_and_the_failing_what_the_table_says() {
    let due = || {
        let mut cache = cache(Policy::Signal);
        let _ = cache.attach(KEY, seq(15), Mode::Pool, Instant::ZERO);
        cache
    };
    let asleep = || caught_up(Policy::Signal, Mode::Pool);
    let failing = || {
        let mut cache = due();
        let lease = lease(&mut cache, 20);
        let _ = cache.end_turn(lease, failed(15), NOW, &at(20));
        cache
    };
    let events: [(&str, Happening); 6] = [
        ("signal", |c| c.signal(STREAM, LATER).pool_count),
        ("rotate", |c| c.rotated(STREAM, seq(20), segment(3), LATER).pool_count),
        ("seek", |c| c.seek(KEY, seq(16), LATER).pool_count),
        ("kick", |c| c.kick(KEY, LATER).pool_count),
        ("detach", |c| usize::from(c.detach(KEY) != Detached::Forgotten)),
        ("close", |c| {
            c.close_stream(STREAM);
            0
        }),
    ];
    let backed_off = Some(Phase::BackOff { until: after(1), failures: 1 });
    let now_due = Some(Phase::Due(LATER));
    let still = Some(Phase::Due(Instant::ZERO));
    let table = [
        // On one that is due, on one asleep, on one in back-off.
        ("signal", [still, now_due, backed_off]),
        ("rotate", [still, now_due, backed_off]),
        ("seek", [still, now_due, now_due]),
        ("kick", [still, now_due, now_due]),
        ("detach", [None, None, None]),
        ("close", [None, None, None]),
    ];
    for ((name, event), (row, expected)) in events.into_iter().zip(table) {
        assert_eq!(name, row);
        for (mut cache, expected) in [due(), asleep(), failing()].into_iter().zip(expected) {
            let before = phase(&cache);
            let woken = event(&mut cache);
            assert_eq!(phase(&cache), expected, "{name} on {before:?}");
            let became_due = expected == now_due;
            assert_eq!(woken, usize::from(became_due), "{name} on {before:?} wakes who became due, once");
            assert_eq!(cache.next_due().is_none(), expected.is_none(), "nobody forgotten stands in a line");
        }
    }
}

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
