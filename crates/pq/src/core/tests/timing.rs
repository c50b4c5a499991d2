//! What names a time is met in virtual time: a driver that jumps to whatever is due next.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use wal_format::Instant;
use wal_store::ReadBuffers;

use super::rig::{Rig, second};
use crate::core::{Turn, TurnResult};
use crate::{Options, StreamSettings, SyncSetting};

/// Runs what is due now: timers, lanes, turns of sinks (all delivered at once), the tick. Returns what was delivered.
fn run_now(rig: &Rig) -> Vec<(u64, Instant)> {
    let mut delivered = Vec::new();
    loop {
        rig.core.run_timers(rig.now.instant);
        let committed = rig.core.commit_due(rig.now);
        let mut turns = 0;
        while let Some(turn) = rig.core.lease(rig.now.instant) {
            turns += 1;
            deliver(rig, turn, &mut delivered);
        }
        rig.core.tick_if_due(rig.now).unwrap();
        if committed == 0 && turns == 0 {
            return delivered;
        }
    }
}

fn deliver(rig: &Rig, mut turn: Turn, delivered: &mut Vec<(u64, Instant)>) {
    while let Some(delivery) = turn.read(1 << 20, &mut ReadBuffers::default()).unwrap() {
        delivered.extend(delivery.records().map(|r| (r.seq.get(), rig.now.instant)));
        let consumer = Arc::clone(&turn.consumer);
        rig.core.ack(&consumer, delivery.next(), None, delivery.next_hint(), None).unwrap();
    }
    turn.end(TurnResult::Handed, rig.now.instant);
}

/// Lets time pass up to `until`, stopping wherever something is due. Fails if it stops without anything changing.
fn run_until(rig: &mut Rig, until: Instant) -> Vec<(u64, Instant)> {
    let mut delivered = run_now(rig);
    let mut stops = 0;
    while let Some(due) = rig.core.next_due(rig.now.instant).filter(|due| *due <= until) {
        stops += 1;
        assert!(stops < 100_000, "it spins");
        let wait = due.saturating_since(rig.now.instant);
        rig.pass(wait.max(Duration::from_nanos(1)));
        delivered.extend(run_now(rig));
    }
    let rest = until.saturating_since(rig.now.instant);
    rig.pass(rest);
    delivered.extend(run_now(rig));
    delivered
}

fn after(rig: &Rig, by: Duration) -> Instant {
    rig.now.instant.saturating_add(by)
}

// S48: one record at random times 0 to 5 s apart, each delivered within 50 ms with signals, within the push-back with polls.
fn trickle(waits: &[u64], push_back: Option<Duration>, limit: Duration) {
    let mut rig = Rig::new(Options { push_back, ..Options::default() });
    let stream = rig.stream("s");
    rig.sink(&stream, "c");
    let mut appended = Vec::new();
    let mut delivered = Vec::new();
    for wait in waits {
        let until = after(&rig, Duration::from_millis(*wait));
        delivered.extend(run_until(&mut rig, until));
        appended.push((rig.append(&stream, b"x").get(), rig.now.instant));
    }
    let until = after(&rig, limit);
    delivered.extend(run_until(&mut rig, until));
    assert_eq!(delivered.len(), appended.len());
    for ((seq, at), (got, when)) in appended.iter().zip(&delivered) {
        assert_eq!(seq, got);
        assert!(when.saturating_since(*at) <= limit, "seq {seq}: appended {at}, delivered {when}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    // S48
    #[test]
    fn a_trickle_is_delivered_in_time(waits in proptest::collection::vec(0_u64..5_000, 1..40)) {
        trickle(&waits, None, Duration::from_millis(50));
        // Its batch is committed within the interval, and then it is looked at within the push-back.
        trickle(&waits, Some(Duration::from_millis(300)), Duration::from_millis(320));
    }
}

// S41: an age limit of 1 s, 100 rotations under steady load, each racing with a reader that has just caught up.
#[test]
fn rotations_by_age_lose_and_delay_nothing() {
    for push_back in [None, Some(Duration::from_millis(200))] {
        let mut rig = Rig::new(Options { push_back, ..Options::default() });
        let settings = StreamSettings { segment_age_max: Some(second(1)), ..StreamSettings::default() };
        let stream = rig.stream_with("s", &settings);
        rig.sink(&stream, "c");
        let mut delivered = Vec::new();
        let mut last = 0;
        for _ in 0..1_000 {
            let until = after(&rig, Duration::from_millis(100));
            delivered.extend(run_until(&mut rig, until));
            last = rig.append(&stream, b"x").get();
        }
        let until = after(&rig, second(2));
        delivered.extend(run_until(&mut rig, until));
        let seqs: Vec<u64> = delivered.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (1..=last).collect::<Vec<_>>());
        let rotations = stream.log.counters().rotations;
        assert!(rotations >= 90, "{rotations} rotations");
        let pause = push_back.unwrap_or(Duration::from_millis(100)) * 2;
        for pair in delivered.windows(2) {
            let [(seq, a), (_, b)] = pair else { unreachable!() };
            assert!(b.saturating_since(*a) <= pause, "a pause of {:?} behind {seq}", b.saturating_since(*a));
        }
        // What was delivered is gone: only the newest segment may stand.
        assert!(stream.log.segments().len() <= 2, "{} segments", stream.log.segments().len());
    }
}

// F05, F16: a part-filled batch is committed by the interval; afterwards an idle queue has nothing due, ever.
#[test]
fn an_idle_queue_has_no_timer() {
    let mut rig = Rig::new(Options::default());
    let settings = StreamSettings { segment_age_max: None, ..StreamSettings::default() };
    let stream = rig.stream_with("s", &settings);
    rig.sink(&stream, "c");
    run_now(&rig);
    assert_eq!(rig.core.next_due(rig.now.instant), None);
    rig.append(&stream, b"x");
    let due = rig.core.next_due(rig.now.instant).unwrap();
    assert_eq!(due, after(&rig, stream.settings.commit_interval));
    let until = after(&rig, second(10));
    assert_eq!(run_until(&mut rig, until).len(), 1);
    assert_eq!(rig.core.next_due(rig.now.instant), None, "idle again");
    assert_eq!(stream.ends().durable.get(), 2);
}

#[test]
fn a_failing_turn_comes_back_later_and_later_and_holds_nobody_up() {
    let mut rig = Rig::new(Options::default());
    let (dead, alive) = (rig.stream("dead"), rig.stream("alive"));
    rig.sink(&dead, "c");
    rig.sink(&alive, "c");
    rig.append(&dead, b"x");
    rig.commit(&dead);
    let mut tries = Vec::new();
    let end = after(&rig, second(120));
    while rig.now.instant < end {
        rig.core.run_timers(rig.now.instant);
        while let Some(turn) = rig.core.lease(rig.now.instant) {
            if turn.stream() == "dead" && !turn.is_at_bound() {
                tries.push(rig.now.instant);
                turn.end(TurnResult::Failed { wait_min: Duration::ZERO }, rig.now.instant);
            } else {
                deliver(&rig, turn, &mut Vec::new());
            }
        }
        rig.pass(Duration::from_millis(10));
    }
    assert!((7..=16).contains(&tries.len()), "{} tries in 120 s", tries.len());
    let waits: Vec<_> = tries.windows(2).map(|pair| pair[1].saturating_since(pair[0])).collect();
    assert!(waits.iter().all(|wait| *wait <= second(31)));
    assert!(waits.first().unwrap() < &Duration::from_millis(150));
}

// DESIGN 5: a stream that never syncs by itself syncs what a cursor covers before the cursor is saved.
#[test]
fn a_cursor_never_passes_what_is_durable() {
    let rig = Rig::new(Options::default());
    let settings = StreamSettings {
        sync: SyncSetting::Never,
        read_level: crate::ReadLevel::Written,
        ..StreamSettings::default()
    };
    let stream = rig.stream_with("s", &settings);
    for n in 0..5_u8 {
        rig.append(&stream, &[n]);
        stream.log.commit(rig.now, wal_store::Want::Batch).unwrap();
    }
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 5, "shown as soon as it is written");
    rig.ack(&consumer, 6);
    rig.core.tick(rig.now).unwrap();
    assert_eq!(consumer.saved().get(), 6);
    assert_eq!(stream.ends().durable.get(), 6);
}
