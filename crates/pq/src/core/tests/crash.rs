//! Crashes between any two steps, one scenario each; random ones are in `model.rs`.

use std::time::Duration;

use sim_disk::Survival;
use wal_format::Seq;

use super::rig::Rig;
use crate::core::AckDone;
use crate::{AckError, GapReason, Options, StreamSettings};

const CUTS: [Survival; 6] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::Seed(1),
    Survival::Seed(2),
    Survival::Seed(3),
    Survival::Prefix(1),
];

fn payloads(records: &[(u64, Vec<u8>)]) -> Vec<&[u8]> {
    records.iter().map(|(_, payload)| payload.as_slice()).collect()
}

// S20: records of both lives are there; a torn tail is never appended to.
#[test]
fn records_of_two_lives_survive_two_power_cuts() {
    for first in &CUTS {
        for second in &CUTS {
            let rig = Rig::new(Options::default());
            let stream = rig.stream("s");
            rig.append(&stream, b"one");
            rig.commit(&stream);
            rig.append(&stream, b"lost, or not");
            drop(stream);
            let rig = rig.power_cut(first);
            let stream = rig.stream("s");
            let kept = stream.ends().durable;
            rig.append(&stream, b"two");
            rig.commit(&stream);
            drop(stream);
            let rig = rig.power_cut(second);
            let stream = rig.stream("s");
            let consumer = rig.consumer(&stream, "c");
            let records = rig.drain(&stream, &consumer);
            assert_eq!(records.first().unwrap().1, b"one", "{first:?} {second:?}");
            assert_eq!(records.last().unwrap(), &(kept.get(), b"two".to_vec()), "{first:?} {second:?}");
        }
    }
}

#[test]
fn a_kill_keeps_what_was_written_and_the_cursor_that_was_saved() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 10);
    rig.commit(&stream);
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 10);
    rig.ack(&consumer, 4);
    rig.core.tick(rig.now).unwrap();
    rig.ack(&consumer, 8);
    drop((stream, consumer));
    rig = rig.kill();
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    let records = rig.drain(&stream, &consumer);
    assert_eq!(records.first().unwrap().0, 4, "from the saved cursor, not from the acknowledged one");
    assert_eq!(records.len(), 7);
}

// S61: a clean stop costs no duplicate.
#[test]
fn a_clean_stop_saves_the_last_acknowledgement() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 10);
    rig.commit(&stream);
    rig.append(&stream, b"committed by the stop");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 10);
    rig.ack(&consumer, 11);
    drop((stream, consumer));
    let rig = rig.restart();
    assert!(rig.core.report().clean);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(payloads(&rig.drain(&stream, &consumer)), [b"committed by the stop"]);
}

// S62: twice, late, out of range, after reopening.
#[test]
fn an_acknowledgement_never_moves_a_cursor_back() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 5);
    rig.commit(&stream);
    let consumer = rig.consumer(&stream, "c");
    let ack = |to: u64| rig.core.ack(&consumer, Seq::new(to), None, None, None);
    assert_eq!(ack(2), Err(AckError::NotDelivered { to: Seq::new(2), next: Seq::new(1) }));
    assert_eq!(rig.drain(&stream, &consumer).len(), 5);
    assert_eq!(ack(4), Ok(AckDone::ChangedFirst));
    assert_eq!(ack(4), Ok(AckDone::Nothing), "twice");
    assert_eq!(ack(2), Ok(AckDone::Nothing), "late");
    assert_eq!(ack(7), Err(AckError::NotDelivered { to: Seq::new(7), next: Seq::new(6) }));
    assert_eq!(consumer.cursor(), Seq::new(4));
    drop((stream, consumer));
    let rig = rig.restart();
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(
        rig.core.ack(&consumer, Seq::new(2), None, None, None),
        Ok(AckDone::Nothing),
        "after reopening"
    );
    assert_eq!(consumer.cursor(), Seq::new(4));
}

#[test]
fn an_acknowledgement_of_an_older_reading_changes_nothing() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 5);
    rig.commit(&stream);
    let consumer = rig.consumer(&stream, "c");
    let delivery = rig.next(&stream, &consumer, 1 << 20).unwrap();
    let (_, seek) = delivery.made_for().unwrap();
    let to = rig.core.seek(&stream, &consumer, crate::Start::Seq(Seq::new(2)), rig.now.instant).unwrap();
    assert_eq!(to, Seq::new(2));
    let late = rig.core.ack(&consumer, delivery.next(), Some(seek), None, None);
    assert_eq!(late, Ok(AckDone::Nothing));
    assert_eq!(consumer.cursor(), Seq::new(2));
    assert_eq!(rig.drain(&stream, &consumer).first().unwrap().0, 2);
}

// S13: a crash at each call of cursor → floor → unlink → forget always reopens, and delivers from the saved cursor.
#[test]
fn retirement_may_stop_at_any_call() {
    let settings = StreamSettings { segment_age_max: None, ..StreamSettings::default() };
    for k in 1..40 {
        for moment in [sim_disk::Moment::Before, sim_disk::Moment::Middle, sim_disk::Moment::After] {
            let rig = Rig::new(Options::default());
            let stream = rig.stream_with("s", &settings);
            for n in 0..6_u8 {
                rig.append(&stream, &[n]);
                stream.log.rotate(rig.now).unwrap();
            }
            let consumer = rig.consumer(&stream, "c");
            assert_eq!(rig.drain(&stream, &consumer).len(), 6);
            rig.ack(&consumer, 5);
            rig.disk.plan(sim_disk::Fault::halt(sim_disk::On::Any, k, moment));
            let done = rig.core.tick(rig.now).is_ok();
            let halted = rig.disk.is_halted();
            drop((stream, consumer));
            let rig = rig.power_cut(&Survival::Seed(k));
            let stream = rig.stream("s");
            let consumer = rig.consumer(&stream, "c");
            let records = rig.drain(&stream, &consumer);
            let first = records.first().unwrap().0;
            assert!(first == 5 || (halted && first == 1), "k {k} {moment:?} done {done}: first {first}");
            assert_eq!(records.last().unwrap().0, 6);
            if !halted {
                assert_eq!(stream.log.segments().len(), 2, "k {k}: what was delivered is unlinked");
                return;
            }
        }
    }
    panic!("more calls than expected");
}

#[test]
fn a_failed_save_unlinks_nothing_and_is_tried_again() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    for n in 0..3_u8 {
        rig.append(&stream, &[n]);
        stream.log.rotate(rig.now).unwrap();
    }
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 3);
    rig.core.tick(rig.now).unwrap();
    rig.ack(&consumer, 4);
    rig.disk.plan(sim_disk::Fault::forever(sim_disk::On::Any, 1, sim_disk::errno::ENOSPC));
    assert!(rig.core.tick(rig.now).is_err());
    assert_eq!(stream.log.segments().len(), 3);
    rig.disk.clear_faults();
    rig.pass(Duration::from_secs(10));
    rig.core.run_timers(rig.now.instant);
    let report = rig.core.tick_if_due(rig.now).unwrap();
    assert_eq!((report.cursors_count, report.retired_count), (1, 3));
    assert_eq!(rig.core.next_due(rig.now.instant), None, "nothing is left to be done");
}

#[test]
fn a_lost_segment_is_a_gap_in_its_place_and_is_counted_once() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    for n in 0..3_u8 {
        rig.append(&stream, &[n]);
        stream.log.rotate(rig.now).unwrap();
    }
    let path = wal_store::segment_path(&stream.log.context().dir, wal_format::SegmentId::new(2));
    drop(stream);
    let rig = rig.restart();
    disk::Disk::remove_file(&rig.disk, &path).unwrap();
    let mut rig = rig.restart();
    for _ in 0..2 {
        let stream = rig.stream("s");
        assert_eq!(stream.losses().len(), 1, "known, and once");
        let consumer = rig.consumer(&stream, "c");
        let mut seqs = Vec::new();
        let mut gaps = Vec::new();
        while let Some(delivery) = rig.next(&stream, &consumer, 1 << 20) {
            seqs.extend(delivery.records().map(|r| r.seq.get()));
            gaps.extend(delivery.gaps());
        }
        assert_eq!(seqs, [1, 3]);
        let gap = gaps.first().unwrap();
        assert_eq!((gaps.len(), gap.from.get(), gap.to.get(), gap.reason), (1, 2, 3, GapReason::Lost));
        drop((stream, consumer));
        rig = rig.restart();
    }
}

// S44: a stream created again under its name never meets what was before.
#[test]
fn a_deleted_stream_is_gone_and_its_name_is_free() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 5);
    rig.commit(&stream);
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(rig.drain(&stream, &consumer).len(), 5);
    rig.ack(&consumer, 6);
    rig.core.tick(rig.now).unwrap();
    rig.core.delete_stream("s", rig.now).unwrap();
    assert_eq!(rig.core.names(), Vec::<String>::new());
    assert!(stream.log.append(b"x".as_slice(), rig.now).is_err());
    assert!(rig.core.ack(&consumer, Seq::new(6), None, None, None).is_err());
    let again = rig.stream("s");
    assert_ne!(again.id, stream.id);
    assert_ne!(again.identity.incarnation, stream.identity.incarnation);
    rig.append(&again, b"new");
    rig.commit(&again);
    drop((stream, consumer, again));
    let rig = rig.power_cut(&Survival::Nothing);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(payloads(&rig.drain(&stream, &consumer)), [b"new"]);
}

// S50: what nobody will ever write holds no memory that others wait for, also where somebody still has a handle.
#[test]
fn a_stream_deleted_while_the_disk_refuses_gives_its_room_back_and_answers_its_tickets() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    let ticket = stream.log.append(b"never".as_slice(), rig.now).unwrap();
    assert!(rig.core.room().used() > 0);
    rig.disk.plan(sim_disk::Fault::forever(sim_disk::On::Op(disk::Op::Create), 1, sim_disk::errno::EMFILE));
    rig.core.delete_stream("s", rig.now).unwrap();
    assert_eq!(rig.core.room().used(), 0);
    let told = ticket.wait(wal_store::Level::Durable, rig.now);
    assert!(matches!(told, Err(wal_store::CommitError::NotWritten { .. })), "{told:?}");
}

#[test]
fn deletion_may_stop_at_any_call() {
    for k in 1..60 {
        let rig = Rig::new(Options::default());
        let stream = rig.stream("s");
        let other = rig.stream("other");
        rig.append(&stream, b"old");
        rig.append(&other, b"kept");
        rig.commit(&stream);
        rig.commit(&other);
        rig.disk.plan(sim_disk::Fault::halt(sim_disk::On::Any, k, sim_disk::Moment::Middle));
        let _ = rig.core.delete_stream("s", rig.now);
        let halted = rig.disk.is_halted();
        drop((stream, other));
        let rig = rig.power_cut(&Survival::Seed(k));
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        let records = rig.drain(&stream, &consumer);
        assert!(records.is_empty() || (halted && payloads(&records) == [b"old"]), "k {k}");
        let other = rig.stream("other");
        let consumer = rig.consumer(&other, "c");
        assert_eq!(payloads(&rig.drain(&other, &consumer)), [b"kept"]);
        if !halted {
            return;
        }
    }
    panic!("more calls than expected");
}

// S13: the sync of a new stream's directory fails, and so does taking the directory away again.
#[test]
fn a_directory_whose_sync_failed_is_durable_before_anything_in_it_is() {
    let rig = Rig::new(Options::default());
    drop(rig.stream("other"));
    for op in [disk::Op::SyncDir, disk::Op::RemoveDir] {
        rig.disk.plan(sim_disk::Fault::once(sim_disk::On::Op(op), 1, sim_disk::errno::EIO));
    }
    let paused = rig.core.stream("s", None, rig.now);
    assert!(matches!(paused, Err(crate::StreamError::Paused { .. })));
    rig.disk.clear_faults();
    let stream = rig.stream("s");
    rig.append(&stream, b"kept");
    rig.commit(&stream);
    drop(stream);
    let rig = rig.power_cut(&Survival::Nothing);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(payloads(&rig.drain(&stream, &consumer)), [b"kept"]);
}

// S13, S28: the queue's own files are created in an order that always opens again.
#[test]
fn creation_may_stop_at_any_call() {
    for k in 1..120 {
        let disk = sim_disk::SimDisk::new();
        disk.plan(sim_disk::Fault::halt(sim_disk::On::Any, k, sim_disk::Moment::Middle));
        let now = wal_format::Now::default();
        let opened = crate::core::Core::open(
            std::sync::Arc::new(disk.clone()),
            Options::default(),
            crate::core::Seed::Fixed(k),
            now,
        );
        let done = opened.and_then(|core| {
            let stream = core.stream("s", None, now).map_err(|_| crate::OpenError::NotAQueue)?;
            stream.log.append(b"x".as_slice(), now).map_err(|_| crate::OpenError::NotAQueue)?;
            let durable = stream.log.commit(now, wal_store::Want::Durable);
            durable.map_err(|_| crate::OpenError::NotAQueue)
        });
        let halted = disk.is_halted();
        let rig = Rig::on(disk.power_cut(&Survival::Seed(k)), Options::default(), 7);
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        let records = rig.drain(&stream, &consumer);
        assert!(records.len() == 1 || done.is_err(), "k {k}: a durable record is lost");
        if !halted {
            return;
        }
    }
    panic!("more calls than expected");
}

#[test]
fn a_lost_queue_meta_is_written_again() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append(&stream, b"x");
    rig.commit(&stream);
    let id = rig.core.id();
    drop(stream);
    let rig = rig.restart();
    disk::Disk::remove_file(&rig.disk, std::path::Path::new(crate::meta::META)).unwrap();
    let rig = rig.restart();
    assert_eq!(rig.core.id(), id);
    assert_eq!(rig.core.names(), ["s"]);
    assert!(!rig.core.report().created);
    assert_eq!(rig.core.report().notes.len(), 1);
}

#[test]
fn a_flipped_bit_of_queue_meta_costs_nothing_even_without_a_journal() {
    let rig = Rig::new(Options::default());
    let id = rig.core.id();
    let snapshot = rig.disk.kill().snapshot();
    for bit in 0..512 {
        let disk = sim_disk::SimDisk::from_snapshot(&snapshot);
        disk.corrupt(crate::meta::META, bit / 8, (bit % 8) as u32);
        for name in disk.files() {
            if name.to_str().is_some_and(|name| name.contains('-')) {
                disk::Disk::remove_file(&disk, &name).unwrap();
            }
        }
        let rig = Rig::on(disk, Options::default(), 9);
        assert_eq!((rig.core.id(), rig.core.report().created), (id, false), "bit {bit}");
    }
}

// S28: the catalog is lost, its streams' directories are not.
#[test]
fn a_directory_whose_entry_is_lost_is_listed_and_never_adopted() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.append_numbers(&stream, 3);
    rig.commit(&stream);
    let lost = stream.id;
    drop(stream);
    let rig = rig.kill();
    let disk = rig.disk.kill();
    for name in disk.files() {
        if name.to_str().is_some_and(|name| name.starts_with("catalog-")) {
            disk::Disk::remove_file(&disk, &name).unwrap();
        }
    }
    disk::Disk::create_dir(&disk, std::path::Path::new("streams/ffffffffffffffff")).unwrap();
    let old: Vec<_> = disk.files().into_iter().filter(|path| path.starts_with("streams")).collect();
    let rig = Rig::on(disk, Options::default(), 9);
    assert!(rig.core.report().strays.iter().any(|stray| *stray == format!("streams/{:016x}", lost.get())));
    let stream = rig.stream("t");
    assert_ne!(stream.id, lost);
    rig.append(&stream, b"new");
    rig.commit(&stream);
    let files = rig.disk.files();
    assert!(!old.is_empty() && old.iter().all(|path| files.contains(path)), "nothing of it is touched");
}
