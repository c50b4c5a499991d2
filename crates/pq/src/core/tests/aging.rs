//! Age limits under virtual time: what goes when, and that no clock, restart or crash makes it go early.

use std::time::Duration;

use sim_disk::Survival;
use wal_format::{Seq, WallTime};

use super::limits::{Given, ack_all, append, drain, settings};
use super::rig::Rig;
use crate::{GapReason, Limits, OnFull, Options, StreamSettings};

const AGE: Duration = Duration::from_secs(1600);
/// A sixteenth of it, and what a tick may be late.
const LATE: Duration = Duration::from_secs(101);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn aging() -> StreamSettings {
    let limits = Limits { bytes_max: None, on_full: OnFull::Block, age_max: Some(AGE) };
    StreamSettings { limits, ..settings(None, OnFull::Block) }
}

/// Lets time pass, stopping wherever something is due.
fn run(rig: &mut Rig, by: Duration) {
    let until = rig.now.instant.saturating_add(by);
    let mut stops = 0;
    while let Some(due) = rig.core.next_due(rig.now.instant).filter(|due| *due <= until) {
        stops += 1;
        assert!(stops < 1000, "it spins");
        let wait = due.saturating_since(rig.now.instant);
        rig.pass(wait.max(Duration::from_nanos(1)));
        step(rig);
    }
    let rest = until.saturating_since(rig.now.instant);
    rig.pass(rest);
    step(rig);
}

fn step(rig: &Rig) {
    rig.core.run_timers(rig.now.instant);
    rig.core.commit_due(rig.now);
    rig.core.tick_if_due(rig.now).unwrap();
}

// S59: whatever the wall clock does, records stay for their age and go soon after it; seqs and timers are as always.
#[test]
fn a_wall_clock_that_jumps_expires_nothing_early() {
    let walls: [fn(WallTime) -> WallTime; 3] = [
        |wall| WallTime::from_unix(wall.since_unix() + YEAR),
        |wall| WallTime::from_unix(wall.since_unix().saturating_sub(YEAR)),
        |wall| wall,
    ];
    for jump in walls {
        let mut rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &aging());
        let consumer = rig.consumer(&stream, "c");
        append(&rig, &stream, 100).unwrap();
        rig.commit(&stream);
        run(&mut rig, AGE / 2);
        rig.now.wall = jump(rig.now.wall);
        assert_eq!(append(&rig, &stream, 100).unwrap(), Seq::new(2));
        rig.commit(&stream);
        run(&mut rig, AGE / 2 - Duration::from_secs(1));
        assert_eq!(stream.floor(), Seq::FIRST, "not early");
        rig.now.wall = jump(rig.now.wall);
        run(&mut rig, AGE / 2 - Duration::from_secs(1));
        assert_eq!(stream.floor(), Seq::FIRST, "its segment holds a younger record");
        run(&mut rig, LATE);
        assert_eq!(stream.floor(), Seq::new(3), "soon after the youngest is old, the open segment too");
        assert_eq!(drain(&rig, &stream, &consumer), [Given::Gap(1, 3, GapReason::Expired)]);
        rig.ack(&consumer, 3);
        let counted = stream.consumer_stats(&consumer);
        assert_eq!((counted.acked_count, counted.expired_count, counted.trimmed_count), (0, 2, 0));
        run(&mut rig, AGE * 3);
        assert_eq!(rig.core.next_due(rig.now.instant), None, "an idle queue has nothing due");
    }
}

// Age is kept over restarts and crashes; a queue that is closed does not age, whatever the wall clock says.
#[test]
fn age_counts_the_time_the_queue_was_open_over_all_its_runs() {
    let ends: [fn(Rig) -> Rig; 3] = [Rig::restart, Rig::kill, |rig| rig.power_cut(&Survival::Nothing)];
    for (n, end) in ends.into_iter().enumerate() {
        let mut rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &aging());
        let consumer = rig.consumer(&stream, "c");
        append(&rig, &stream, 100).unwrap();
        rig.commit(&stream);
        drop((stream, consumer));
        for _ in 0..9 {
            // Each run begins at its own instant 0, a year later by the wall; one that is killed may lose a sixteenth.
            run(&mut rig, AGE / 10);
            rig = end(rig);
            rig.now.wall = WallTime::from_unix(rig.now.wall.since_unix() + YEAR);
            let stream = rig.stream("s");
            assert_eq!(stream.floor(), Seq::FIRST, "not early");
        }
        let lost = if n == 0 { Duration::ZERO } else { AGE };
        run(&mut rig, AGE / 10 + lost + LATE);
        let stream = rig.stream("s");
        assert_eq!(stream.floor(), Seq::new(2), "end {n}");
        let consumer = rig.consumer(&stream, "c");
        assert_eq!(drain(&rig, &stream, &consumer), [Given::Gap(1, 2, GapReason::Expired)]);
    }
}

#[test]
fn what_was_delivered_is_not_counted_as_expired_and_the_young_stay() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &aging());
    let (fast, slow) = (rig.consumer(&stream, "fast"), rig.consumer(&stream, "slow"));
    for _ in 0..20 {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
        run(&mut rig, AGE / 10);
        drain(&rig, &stream, &fast);
        ack_all(&rig, &stream, &fast);
    }
    run(&mut rig, Duration::from_secs(1));
    let floor = stream.floor().get();
    assert!((5..=11).contains(&floor), "about the older half: {floor}");
    let given = drain(&rig, &stream, &slow);
    assert_eq!(given[0], Given::Gap(1, floor, GapReason::Expired));
    assert_eq!(given.len() as u64, 1 + 21 - floor);
    rig.ack(&slow, 21);
    assert_eq!(stream.consumer_stats(&slow).expired_count, floor - 1);
    assert_eq!(stream.consumer_stats(&fast).expired_count, 0);
    assert_eq!(stream.consumer_stats(&fast).acked_count, 20);
}

// A trim and an expiry of one stream: each range with its own reason, across a crash.
#[test]
fn ranges_dropped_for_different_reasons_keep_them() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &aging());
    let consumer = rig.consumer(&stream, "c");
    for _ in 0..6 {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
    }
    run(&mut rig, AGE + LATE);
    let expired = stream.floor().get();
    assert_eq!(expired, 7);
    let limits = Limits { bytes_max: Some(18_000), on_full: OnFull::DropOldest, age_max: Some(AGE) };
    rig.core.set_limits(&stream, limits).unwrap();
    while stream.floor().get() == expired {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
        rig.core.tick_if_due(rig.now).unwrap();
    }
    let (trimmed, end) = (stream.floor().get(), stream.ends().durable.get());
    drop((stream, consumer));
    let rig = rig.power_cut(&Survival::Nothing);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    let given = drain(&rig, &stream, &consumer);
    assert_eq!(given[0], Given::Gap(1, expired, GapReason::Expired));
    assert_eq!(given[1], Given::Gap(expired, trimmed, GapReason::Trimmed));
    assert_eq!(given[2..], (trimmed..end).map(Given::Record).collect::<Vec<_>>());
    let stats = stream.stats();
    assert_eq!((stats.expired_records_count, stats.trimmed_records_count), (expired - 1, trimmed - expired));
}
