//! Records that were shown while they were only written, and that a failing disk cost.

use sim_disk::{Fault, On, errno};
use wal_format::Seq;
use wal_store::Want;

use super::limits;
use super::rig::{Rig, second};
use crate::core::StreamState;
use crate::{AppendError, GapReason, OnFull, Options, ReadLevel, StreamSettings, SyncSetting};

fn lazy() -> StreamSettings {
    StreamSettings { sync: SyncSetting::Never, read_level: ReadLevel::Written, ..StreamSettings::default() }
}

/// Three records, shown, then given up because no sync succeeds; the disk is sound again.
fn given_up() -> Rig {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &lazy());
    let shown = rig.consumer(&stream, "shown");
    rig.append(&stream, b"durable");
    rig.commit(&stream);
    for n in 0..3_u8 {
        rig.append(&stream, &[n]);
        stream.log.commit(rig.now, Want::Batch).unwrap();
    }
    assert_eq!(rig.drain(&stream, &shown).len(), 4);
    rig.ack(&shown, 5);
    rig.disk.plan(Fault::forever(On::Op(disk::Op::SyncData), 1, errno::EIO));
    while stream.log.rotate(rig.now).is_err_and(|error| error.is_retryable()) {
        rig.pass(second(1));
    }
    rig.disk.clear_faults();
    rig
}

/// Lets time pass until nothing is due; fails if that never comes.
fn until_idle(rig: &mut Rig) {
    for _ in 0..100 {
        rig.core.run_timers(rig.now.instant);
        rig.core.commit_due(rig.now);
        rig.core.tick_if_due(rig.now).unwrap();
        let Some(due) = rig.core.next_due(rig.now.instant) else { return };
        rig.pass(due.saturating_since(rig.now.instant));
    }
    panic!("something is due for ever: {:?}", rig.core.next_due(rig.now.instant));
}

#[test]
fn readers_wait_without_an_error_and_get_a_gap_once_something_is_stored_behind_it() {
    let mut rig = given_up();
    let stream = rig.stream_with("s", &lazy());
    let late = rig.consumer(&stream, "late");
    assert_eq!(rig.drain(&stream, &late).len(), 1, "what is durable, and no error behind it");
    until_idle(&mut rig);
    let next = rig.append(&stream, b"next");
    assert_eq!(next.get(), 5, "no seq is given again");
    rig.commit(&stream);
    let delivery = rig.next(&stream, &late, 1 << 20).unwrap();
    let gaps: Vec<_> = delivery.gaps().map(|gap| (gap.from.get(), gap.to.get(), gap.reason)).collect();
    assert_eq!(gaps, [(2, 5, GapReason::NotDurable)]);
    assert_eq!(rig.drain(&stream, &late), [(5, b"next".to_vec())]);
    until_idle(&mut rig);
    assert_eq!(rig.core.tick(rig.now).map(|report| report.cursors_count).unwrap(), 0, "all is saved");
}

#[test]
fn a_stop_behind_given_up_records_is_not_taken_for_a_clean_one() {
    let mut rig = given_up();
    until_idle(&mut rig);
    let now = rig.now;
    assert!(!rig.core.close(|| now).unwrap().clean);
    let rig = rig.kill();
    assert!(!rig.core.report().clean);
    let stream = rig.stream_with("s", &lazy());
    assert!(rig.append(&stream, b"next").get() >= 5, "seqs that readers saw are not given again");
}

/// Room for one segment, and not for another batch in a file of its own when that is full.
const LIMIT: u64 = 10_000;

/// A stream whose limit is about one segment, which is full; all of it is acknowledged, and what was appended behind it was given up by a disk
/// that failed in `failing` and is sound again.
fn full_behind_given_up(settings: &StreamSettings, failing: &[disk::Op]) -> Rig {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", settings);
    let consumer = rig.consumer(&stream, "c");
    while stream.log.bytes_used() < 5_500 {
        limits::append(&rig, &stream, 100).unwrap();
        rig.commit(&stream);
    }
    limits::append(&rig, &stream, 100).unwrap();
    for op in failing {
        rig.disk.plan(Fault::forever(On::Op(*op), 1, errno::EIO));
    }
    while stream.log.counters().records_failed == 0 {
        let _ = stream.log.commit(rig.now, Want::Durable);
        rig.pass(second(1));
    }
    rig.disk.clear_faults();
    limits::drain(&rig, &stream, &consumer);
    limits::ack_all(&rig, &stream, &consumer);
    rig
}

/// Appends a record as soon as there is room for it; fails if there never is.
fn append_in_time(rig: &mut Rig, stream: &StreamState, what: &str) -> Seq {
    for _ in 0..20 {
        match limits::append(rig, stream, 600) {
            Ok(seq) => return seq,
            Err(AppendError::Full { .. } | AppendError::Dropped { .. } | AppendError::Paused) => {}
            Err(other) => panic!("{what}: {other}"),
        }
        rig.pass(second(1));
        rig.core.run_timers(rig.now.instant);
        rig.core.commit_due(rig.now);
        rig.core.tick_if_due(rig.now).unwrap();
    }
    panic!("{what}: it waits for ever, {} bytes", stream.log.bytes_used());
}

fn limited(on_full: OnFull, (sync, read_level): (SyncSetting, ReadLevel)) -> StreamSettings {
    StreamSettings { sync, read_level, ..limits::settings(Some(LIMIT), on_full) }
}

const LAZY: (SyncSetting, ReadLevel) = (SyncSetting::Never, ReadLevel::Written);

// S50, S42: what was given up is no reason to wait for ever on a disk that is sound again, whatever the policy.
#[test]
fn a_full_stream_goes_on_behind_given_up_records_by_itself() {
    for on_full in [OnFull::Block, OnFull::Reject, OnFull::DropOldest, OnFull::DropNewest] {
        for level in [(SyncSetting::EachBatch, ReadLevel::Durable), LAZY] {
            for failing in [&[disk::Op::SyncData][..], &[disk::Op::SyncData, disk::Op::RemoveFile]] {
                let what = format!("{on_full:?}, {level:?}, {failing:?}");
                let mut rig = full_behind_given_up(&limited(on_full, level), failing);
                let stream = rig.stream("s");
                let seq = append_in_time(&mut rig, &stream, &what);
                rig.commit(&stream);
                assert_eq!(stream.ends().durable, seq.checked_next().unwrap(), "{what}");
                assert!(stream.log.bytes_used() <= LIMIT, "{what}");
            }
        }
    }
}

// What readers saw is not given again, although the segment in front of it had to go: the next run cannot ask it.
#[test]
fn seqs_that_were_shown_and_given_up_are_not_given_again_without_the_segment_in_front_of_them() {
    let mut rig = full_behind_given_up(&limited(OnFull::Block, LAZY), &[disk::Op::SyncData]);
    let stream = rig.stream("s");
    let shown = append_in_time(&mut rig, &stream, "shown");
    assert!(stream.log.segments().is_empty(), "all of it went");
    drop(stream);
    let rig = rig.kill();
    let stream = rig.stream("s");
    assert!(limits::append(&rig, &stream, 100).unwrap() >= shown);
}
