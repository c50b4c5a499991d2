//! Seqs that are left out: after an unclean stop of a stream whose readers see what is only written, and after records that were given
//! up. Each of these was found by the simulation.

use std::sync::Arc;
use std::time::Duration;

use disk::Op;
use sim_disk::{Fault, Moment, On, Survival, errno};

use super::rig::Rig;
use crate::core::StreamState;
use crate::{GapReason, Options, ReadLevel, StreamSettings, SyncSetting};

/// A stream that shows what is written, and syncs when asked to.
fn written() -> StreamSettings {
    StreamSettings { sync: SyncSetting::Never, read_level: ReadLevel::Written, ..StreamSettings::default() }
}

/// A stream that lost its unsynced end to a power cut: the next seq lies far behind.
fn after_a_power_cut() -> (Rig, Arc<StreamState>) {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &written());
    rig.append_numbers(&stream, 3);
    rig.commit(&stream);
    rig.append(&stream, b"shown, and lost");
    stream.log.commit(rig.now, wal_store::Want::Batch).unwrap();
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).last().unwrap().0, 4);
    drop((stream, consumer));
    let rig = rig.power_cut(&Survival::Nothing);
    let stream = rig.stream("s");
    assert!(stream.ends().appended.get() > 5);
    (rig, stream)
}

// Seed 4096.
#[test]
fn a_clean_stop_does_not_bring_seqs_back_that_were_shown() {
    let (rig, stream) = after_a_power_cut();
    drop(stream);
    let rig = rig.restart();
    let stream = rig.stream("s");
    assert!(rig.append(&stream, b"new").get() > 4, "seq 4 was shown with other bytes");
    rig.commit(&stream);
    drop(stream);
    let rig = rig.restart();
    let stream = rig.stream("s");
    let end = stream.ends().durable;
    assert_eq!(
        rig.append(&stream, b"next"),
        end,
        "nothing is left out behind a clean stop of a stream in order"
    );
}

// Seeds 3405, 3681: a power cut took the first batch of a new segment and left its header.
#[test]
fn a_segment_that_lost_its_first_batch_is_no_damage() {
    for seed in 0..40 {
        let (rig, stream) = after_a_power_cut();
        rig.append(&stream, &[7; 900]);
        rig.disk.plan(Fault::halt(On::OpPath(Op::Write, ".seg".into()), 1, Moment::After));
        let _ = stream.log.try_commit(rig.now, wal_store::Want::Durable);
        drop(stream);
        let rig = rig.power_cut(&Survival::Seed(seed));
        assert_eq!(rig.core.report().streams[0].gaps, [], "seed {seed}");
        let stream = rig.stream("s");
        rig.append(&stream, b"new");
        rig.commit(&stream);
        let consumer = rig.consumer(&stream, "c");
        let mut records = 0;
        while let Some(delivery) = rig.next(&stream, &consumer, 1 << 20) {
            assert!(
                delivery.gaps().all(|gap| gap.reason == GapReason::NotDurable),
                "seed {seed}: {delivery:?}"
            );
            records += delivery.records_count();
        }
        assert!((4..=5).contains(&records), "seed {seed}: {records}");
    }
}

// Seed 2618: readers were told of an end that nothing stands at, and tried again for ever.
#[test]
fn a_reader_in_front_of_seqs_that_were_given_up_waits_in_peace() {
    let (mut rig, stream) = after_a_power_cut();
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 3);
    rig.append(&stream, b"given up");
    rig.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 8, errno::EIO));
    while rig.disk.count(Op::SyncData) < 100 && stream.log.commit(rig.now, wal_store::Want::Durable).is_err()
    {
        assert!(rig.next(&stream, &consumer, 1 << 20).is_none());
        rig.pass(Duration::from_secs(1));
    }
    assert!(rig.next(&stream, &consumer, 1 << 20).is_none());
    rig.append(&stream, b"new");
    rig.commit(&stream);
    let delivery = rig.next(&stream, &consumer, 1 << 20).unwrap();
    assert_eq!(delivery.gaps().next().unwrap().reason, GapReason::NotDurable);
}

// Seed 11253: with all segments retired nothing told any more how far the last run may have shown.
#[test]
fn seqs_that_were_shown_stay_used_when_all_segments_are_retired() {
    let (rig, stream) = after_a_power_cut();
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 3);
    rig.ack(&consumer, 4);
    rig.core.tick(rig.now).unwrap();
    assert!(stream.log.segments().is_empty());
    drop((stream, consumer));
    let rig = rig.power_cut(&Survival::Nothing);
    let stream = rig.stream("s");
    assert!(rig.append(&stream, b"new").get() > 4, "seq 4 was shown with other bytes");
}

// Seed 9870: a refusal was still to be tried again when there was nothing left to try, at once and for ever.
#[test]
fn nothing_is_tried_again_once_a_refused_batch_was_given_up() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append(&stream, b"refused, then given up");
    rig.disk.plan(Fault::once(On::Op(Op::Create), 1, errno::ENOSPC));
    assert!(stream.log.commit(rig.now, wal_store::Want::Durable).is_err());
    rig.pass(Duration::from_secs(1));
    rig.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 4, errno::EIO));
    while stream.log.commit(rig.now, wal_store::Want::Durable).is_err() {
        rig.pass(Duration::from_secs(1));
    }
    for _ in 0..10 {
        rig.pass(Duration::from_secs(1));
        rig.core.run_timers(rig.now.instant);
        rig.core.commit_due(rig.now);
        rig.core.tick_if_due(rig.now).unwrap();
    }
    assert_eq!(rig.core.next_due(rig.now.instant), None);
}
