//! Records that were shown while they were only written, and that a failing disk cost.

use sim_disk::{Fault, On, errno};
use wal_store::Want;

use super::rig::{Rig, second};
use crate::{GapReason, Options, ReadLevel, StreamSettings, SyncSetting};

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
