//! The two tables carried out by the cache, every row × every event. Beside it: who is woken and when (`wakes`), what is at the edge of
//! segments and lives (`edges`), and every interleaving of small worlds (`explore`). Longer stories are the scripts under `tests/`.

mod edges;
mod explore;
mod wakes;

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
