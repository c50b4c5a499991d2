//! Byte limits and their policies: what is accepted, what is dropped, what readers are told, at each edge and over crashes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim_disk::{Fault, Moment, On, SimDisk, Survival};
use wal_format::Seq;

use super::rig::Rig;
use crate::core::reserve::OfDisk;
use crate::core::{ConsumerState, StreamState};
use crate::{AppendError, FullOf, GapReason, Item, Limits, OnFull, Options, StreamSettings};

/// Header of a segment and of a batch: what a new batch may need beside its frames.
const OVERHEAD: u64 = 4096 + 64;
const SEGMENT: u64 = 6000;

pub(super) fn settings(bytes_max: Option<u64>, on_full: OnFull) -> StreamSettings {
    StreamSettings {
        segment_bytes_max: SEGMENT,
        segment_age_max: None,
        batch_bytes_max: 1200,
        record_bytes_max: 600,
        limits: Limits { bytes_max, on_full, age_max: None },
        ..StreamSettings::default()
    }
}

/// What a consumer is given, in order: a record's seq, or a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Record(u64),
    Gap(u64, u64, GapReason),
}

pub(super) fn drain(rig: &Rig, stream: &Arc<StreamState>, consumer: &Arc<ConsumerState>) -> Vec<Given> {
    let mut all = Vec::new();
    while let Some(delivery) = rig.next(stream, consumer, 1 << 20) {
        all.extend(delivery.items().map(|item| match item {
            Item::Record(record) => {
                assert_eq!(record.payload[0], record.seq.get() as u8, "the right payload");
                Given::Record(record.seq.get())
            }
            Item::Gap(gap) => Given::Gap(gap.from.get(), gap.to.get(), gap.reason),
        }));
    }
    all
}

/// Appends a record whose first byte tells its seq.
pub(super) fn append(rig: &Rig, stream: &StreamState, bytes: usize) -> Result<Seq, AppendError> {
    let mut payload = vec![0; bytes];
    payload[0] = stream.ends().appended.get() as u8;
    stream.log.append(payload.as_slice(), rig.now).map(|ticket| ticket.seq())
}

pub(super) fn ack_all(rig: &Rig, stream: &StreamState, consumer: &Arc<ConsumerState>) {
    rig.ack(consumer, stream.ends().readable.get());
}

fn is_full(refused: &Result<Seq, AppendError>) -> bool {
    matches!(refused, Err(AppendError::Full { .. }))
}

// S50: at the limit less one, at the limit, and beyond; then one segment goes and the next record is taken.
#[test]
fn a_stream_is_full_exactly_at_its_limit_and_takes_again_once_something_went() {
    for (spare, taken) in [(-1_i64, false), (0, true), (1, true)] {
        let rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &settings(None, OnFull::Block));
        let consumer = rig.consumer(&stream, "c");
        append(&rig, &stream, 500).unwrap();
        stream.log.rotate(rig.now).unwrap();
        append(&rig, &stream, 500).unwrap();
        stream.log.rotate(rig.now).unwrap();
        let used = stream.log.bytes_used();
        assert_eq!(used, 2 * (OVERHEAD + 16 + 500), "header and frames of both files");
        let needed = OVERHEAD + 16 + 500;
        let limit = (used + needed).checked_add_signed(spare).unwrap();
        rig.core.set_limits(&stream, Limits { bytes_max: Some(limit), ..Limits::default() }).unwrap();
        let answer = append(&rig, &stream, 500);
        assert_eq!(answer.is_ok(), taken, "spare {spare}: {answer:?}");
        if !taken {
            assert_eq!(answer, Err(AppendError::Full { needed, used, limit, of: FullOf::Stream }));
            assert!(answer.unwrap_err().is_retryable());
        }
        // One acknowledged: its segment goes, the next record fits.
        assert_eq!(drain(&rig, &stream, &consumer), [Given::Record(1), Given::Record(2)]);
        rig.ack(&consumer, 2);
        assert_eq!(rig.core.tick(rig.now).unwrap().retired_count, 1);
        append(&rig, &stream, 500).unwrap();
        assert!(stream.log.bytes_used() <= limit);
    }
}

// S50: a full queue with unacknowledged records reopens without deadlock, after a stop, a kill, a power cut.
#[test]
fn a_full_stream_reopens_and_drains() {
    let ends: [fn(Rig) -> Rig; 3] = [Rig::restart, Rig::kill, |rig| rig.power_cut(&Survival::Nothing)];
    for end in ends {
        let rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &settings(Some(3 * SEGMENT), OnFull::Block));
        let consumer = rig.consumer(&stream, "c");
        while append(&rig, &stream, 300).is_ok() {
            rig.commit(&stream);
        }
        let count = stream.ends().durable.get() - 1;
        drop((stream, consumer));
        let rig = end(rig);
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        assert!(is_full(&append(&rig, &stream, 600)), "it is full still");
        assert_eq!(drain(&rig, &stream, &consumer).len() as u64, count);
        ack_all(&rig, &stream, &consumer);
        rig.core.tick(rig.now).unwrap();
        assert_eq!(stream.log.bytes_used(), 0);
        append(&rig, &stream, 600).unwrap();
    }
}

// S42: the limit is one segment: it fills, drains and goes on, and never stalls for good.
#[test]
fn a_limit_equal_to_the_segment_size_fills_drains_and_goes_on() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(Some(SEGMENT), OnFull::Block));
    let consumer = rig.consumer(&stream, "c");
    let mut given = Vec::new();
    for _ in 0..30 {
        let before = stream.ends().appended;
        while append(&rig, &stream, 100).is_ok() {
            rig.commit(&stream);
            assert!(stream.log.bytes_used() <= SEGMENT);
        }
        assert!(stream.ends().appended > before, "each round takes something");
        given.extend(drain(&rig, &stream, &consumer));
        ack_all(&rig, &stream, &consumer);
        // What is in the way is still open: the refusal has it rotated, and it goes with the same tick.
        rig.core.tick(rig.now).unwrap();
        assert_eq!(stream.log.bytes_used(), 0);
    }
    let all: Vec<Given> = (1..stream.ends().appended.get()).map(Given::Record).collect();
    assert_eq!(given, all);
}

// S43: drop oldest under a slow reader: one gap with the exact range, counted once, nothing else missing.
#[test]
fn a_slow_reader_gets_one_counted_gap_and_the_rest_in_order() {
    let limit = 12 * SEGMENT;
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(Some(limit), OnFull::DropOldest));
    let consumer = rig.consumer(&stream, "slow");
    let first = append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    assert_eq!(drain(&rig, &stream, &consumer), [Given::Record(first.get())]);
    rig.ack(&consumer, 2);
    let mut refused = 0;
    while stream.ends().appended.get() <= 400 {
        if append(&rig, &stream, 500).is_err() {
            refused += 1;
        }
        rig.commit(&stream);
        assert!(stream.log.bytes_used() <= limit, "{} of {limit}", stream.log.bytes_used());
        rig.core.tick_if_due(rig.now).unwrap();
    }
    assert_eq!(refused, 0, "it drops ahead of need");
    let end = stream.ends().durable.get();
    let given = drain(&rig, &stream, &consumer);
    let Some(&Given::Gap(2, to, GapReason::Trimmed)) = given.first() else { panic!("{given:?}") };
    assert!(to > 300 && given.len() > 20, "whole segments went, the newest stayed: {to}");
    let rest: Vec<Given> = (to..end).map(Given::Record).collect();
    assert_eq!(given[1..], rest);
    rig.ack(&consumer, end);
    let stats = stream.stats();
    let counted = &stats.consumers[0];
    assert_eq!((counted.acked_count, counted.trimmed_count), (end - 1 - (to - 2), to - 2));
    assert_eq!((counted.lost_count, counted.expired_count), (0, 0));
    assert_eq!((stats.trimmed_records_count, stats.full_count), (to - 2, 0));
}

// I12: what was read and not acknowledged when its segment went may still be acknowledged; the gap begins behind it.
#[test]
fn an_acknowledgement_after_the_trim_counts_and_the_gap_begins_behind_it() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(Some(4 * SEGMENT), OnFull::DropOldest));
    let consumer = rig.consumer(&stream, "c");
    for _ in 0..4 {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
    }
    assert_eq!(drain(&rig, &stream, &consumer).len(), 4);
    while stream.floor() < Seq::new(20) {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
        rig.core.tick_if_due(rig.now).unwrap();
    }
    let floor = stream.floor().get();
    rig.ack(&consumer, 4);
    let end = stream.ends().durable.get();
    let given = drain(&rig, &stream, &consumer);
    // It had read up to 5 and goes on from there.
    assert_eq!(given[0], Given::Gap(5, floor, GapReason::Trimmed));
    rig.ack(&consumer, end);
    let counted = stream.consumer_stats(&consumer);
    assert_eq!(counted.acked_count + counted.trimmed_count, end - 1);
    assert_eq!(counted.trimmed_count, floor - 5, "4 was given, and is acknowledged with the rest");
}

// S13 for a trim: a power cut at any call leaves all of it, or exactly the gap.
#[test]
fn a_trim_may_stop_at_any_call() {
    for k in 1..60 {
        for moment in [Moment::Before, Moment::Middle, Moment::After] {
            let rig = Rig::new(Options::default());
            let stream = rig.stream_with("s", &settings(Some(3 * SEGMENT), OnFull::DropOldest));
            let consumer = rig.consumer(&stream, "c");
            rig.core.tick(rig.now).unwrap();
            while stream.log.space_pressure().excess == 0 {
                append(&rig, &stream, 500).unwrap();
                rig.commit(&stream);
            }
            let end = stream.ends().durable.get();
            rig.disk.plan(Fault::halt(On::Any, k, moment));
            let done = rig.core.tick(rig.now).is_ok();
            let halted = rig.disk.is_halted();
            drop((stream, consumer));
            let rig = rig.power_cut(&Survival::Seed(k));
            let stream = rig.stream("s");
            let consumer = rig.consumer(&stream, "c");
            let mut told = Vec::new();
            // The gap comes again until it is acknowledged.
            for _ in 0..2 {
                let given = drain(&rig, &stream, &consumer);
                let first = match given[0] {
                    Given::Record(1) => 1,
                    Given::Gap(1, to, GapReason::Trimmed) => to,
                    other => panic!("k {k} {moment:?} done {done}: {other:?}"),
                };
                let records: Vec<Given> = given.iter().copied().skip(usize::from(first > 1)).collect();
                assert_eq!(records, (first..end).map(Given::Record).collect::<Vec<_>>(), "k {k} {moment:?}");
                told.push(first);
                rig.core.give_back(&consumer);
                assert!(rig.core.take_consumer(&stream, "c", crate::Start::Oldest, rig.now).is_ok());
            }
            assert!(told[0] == told[1], "the same gap: {told:?}");
            rig.core.tick_if_due(rig.now).unwrap();
            append(&rig, &stream, 100).unwrap();
            rig.commit(&stream);
            if !halted {
                assert!(told[0] > 1, "k {k}: it was dropped");
                return;
            }
        }
    }
    panic!("more calls than expected");
}

// A gap is counted once over restarts: acknowledged before the stop, it does not come again.
#[test]
fn a_gap_that_was_acknowledged_does_not_come_again() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(Some(3 * SEGMENT), OnFull::DropOldest));
    let consumer = rig.consumer(&stream, "c");
    while stream.floor() < Seq::new(2) {
        append(&rig, &stream, 500).unwrap();
        rig.commit(&stream);
        rig.core.tick_if_due(rig.now).unwrap();
    }
    let floor = stream.floor().get();
    drop((stream, consumer));
    let rig = rig.restart();
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(consumer.cursor(), Seq::new(1), "it waits in front of the gap");
    assert_eq!(drain(&rig, &stream, &consumer)[0], Given::Gap(1, floor, GapReason::Trimmed));
    rig.ack(&consumer, floor);
    assert_eq!(stream.consumer_stats(&consumer).trimmed_count, floor - 1);
    drop((stream, consumer));
    let rig = rig.restart();
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(drain(&rig, &stream, &consumer)[0], Given::Record(floor));
    // A new consumer starts at the oldest kept: nobody tells it of what went before its time.
    let new = rig.consumer(&stream, "new");
    assert_eq!(drain(&rig, &stream, &new)[0], Given::Record(floor));
}

#[test]
fn dropping_the_newest_counts_them_and_leaves_seqs_and_order_alone() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(Some(SEGMENT), OnFull::DropNewest));
    let consumer = rig.consumer(&stream, "c");
    let mut dropped = 0;
    for _ in 0..40 {
        match append(&rig, &stream, 300) {
            Ok(_) => drop(rig.commit(&stream)),
            Err(error @ AppendError::Dropped { .. }) => {
                assert!(!error.is_retryable());
                dropped += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    let stats = stream.stats();
    assert_eq!((stats.dropped_records_count, stats.full_count), (dropped, 0));
    assert_eq!(stats.records_count + dropped, 40);
    let given = drain(&rig, &stream, &consumer);
    assert_eq!(given, (1..=stats.records_count).map(Given::Record).collect::<Vec<_>>());
}

// S56: a cap below what is stored opens, and its policy applies.
#[test]
fn a_lowered_limit_opens_and_applies() {
    for on_full in [OnFull::Block, OnFull::DropOldest] {
        let rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &settings(None, on_full));
        let consumer = rig.consumer(&stream, "c");
        for _ in 0..60 {
            append(&rig, &stream, 500).unwrap();
            rig.commit(&stream);
        }
        let (before, limit) = (stream.log.bytes_used(), 4 * SEGMENT);
        assert!(before > 2 * limit);
        let limits = Limits { bytes_max: Some(limit), on_full, age_max: None };
        rig.core.set_limits(&stream, limits).unwrap();
        drop((stream, consumer));
        let rig = rig.power_cut(&Survival::Nothing);
        let stream = rig.stream("s");
        assert_eq!(stream.log.limits(), limits, "it was kept");
        let consumer = rig.consumer(&stream, "c");
        rig.core.tick_if_due(rig.now).unwrap();
        if on_full == OnFull::Block {
            assert!(is_full(&append(&rig, &stream, 500)));
            assert_eq!(drain(&rig, &stream, &consumer).len(), 60, "nothing is dropped");
            ack_all(&rig, &stream, &consumer);
            rig.core.tick(rig.now).unwrap();
        }
        assert!(stream.log.bytes_used() <= limit);
        append(&rig, &stream, 500).unwrap();
    }
}

// A queue's limit counts every stream, the journals, the reserve and quarantine; what is in the way anywhere goes.
#[test]
fn a_queue_that_is_full_rotates_what_is_delivered_in_any_stream() {
    let options = Options {
        bytes_max: Some((2 << 20) + 8 * SEGMENT),
        stream: settings(None, OnFull::Block),
        ..Options::default()
    };
    let rig = Rig::new(options);
    let (a, b) = (rig.stream("a"), rig.stream("b"));
    let (of_a, of_b) = (rig.consumer(&a, "c"), rig.consumer(&b, "c"));
    rig.core.tick(rig.now).unwrap();
    append(&rig, &b, 500).unwrap();
    rig.commit(&b);
    let refusal = loop {
        match append(&rig, &a, 500) {
            Ok(_) => drop(rig.commit(&a)),
            Err(refusal) => break refusal,
        }
    };
    let AppendError::Full { used, limit, of, .. } = refusal else { panic!("{refusal}") };
    assert_eq!((of, Some(limit)), (FullOf::Queue, rig.core.options().bytes_max));
    assert!(used <= limit && used > (1 << 20), "the reserve counts: {used}");
    // Only b's segment, still open, was delivered: it goes although nobody appends to b.
    assert_eq!(drain(&rig, &b, &of_b), [Given::Record(1)]);
    rig.ack(&of_b, 2);
    rig.core.tick(rig.now).unwrap();
    assert_eq!(b.log.bytes_used(), 0);
    append(&rig, &a, 500).unwrap();
    drop(of_a);
}

// S22, S56: a stream that cannot run takes its space all the same, until it runs again or is deleted.
#[test]
fn the_files_of_a_stream_that_is_paused_count_against_the_queues_limit() {
    for deletes in [false, true] {
        let options = Options {
            bytes_max: Some((2 << 20) + 12 * SEGMENT),
            stream: settings(None, OnFull::Block),
            ..Options::default()
        };
        let rig = Rig::new(options.clone());
        let (a, b) = (rig.stream("a"), rig.stream("b"));
        for _ in 0..4 {
            append(&rig, &a, 500).unwrap();
            a.log.rotate(rig.now).unwrap();
        }
        append(&rig, &b, 500).unwrap();
        rig.commit(&b);
        rig.core.tick(rig.now).unwrap();
        drop((a, b));
        let disk = rig.disk.kill();
        drop(rig);
        disk.plan(Fault::forever(
            On::OpPath(disk::Op::Read, format!("{:016x}.seg", 4)),
            1,
            sim_disk::errno::EIO,
        ));
        let rig = Rig::on(disk.clone(), options, 2);
        assert_eq!(rig.core.paused().len(), 1);
        let space = rig.core.room().space();
        let on_disk = || disk.files().iter().map(|path| disk.read(path).len() as u64).sum::<u64>();
        assert_eq!(space.used(), on_disk());
        let b = rig.stream("b");
        while append(&rig, &b, 500).is_ok() {
            rig.commit(&b);
        }
        assert!(on_disk() <= rig.core.options().bytes_max.unwrap(), "{}", on_disk());
        let before = space.used();
        if deletes {
            rig.core.delete_stream("a", rig.now).unwrap();
            assert_eq!(space.used(), on_disk(), "gone with it");
        } else {
            disk.clear_faults();
            rig.stream("a");
            assert_eq!(space.used(), before, "counted once");
        }
    }
}

#[test]
fn quarantine_counts_against_the_limit_until_the_user_empties_it() {
    let options = Options {
        bytes_max: Some((2 << 20) + 8 * SEGMENT),
        stream: settings(None, OnFull::Block),
        ..Options::default()
    };
    let rig = Rig::new(options.clone());
    let before = rig.core.room().space().used();
    let path = std::path::Path::new("quarantine/x.seg");
    disk::Disk::create_dir(&rig.disk, path.parent().unwrap()).unwrap();
    let file = disk::Disk::create(&rig.disk, path).unwrap();
    file.set_len(2 << 20).unwrap();
    drop(file);
    let rig = rig.restart();
    assert!(rig.core.room().space().used() >= before + (2 << 20));
    let stream = rig.stream("s");
    let refused = append(&rig, &stream, 500);
    assert!(matches!(refused, Err(AppendError::Full { of: FullOf::Queue, .. })), "{refused:?}");
    disk::Disk::remove_file(&rig.disk, path).unwrap();
    rig.core.tick_if_due(rig.now).unwrap();
    append(&rig, &stream, 500).unwrap();
}

#[test]
fn a_deleted_stream_gives_its_space_back() {
    let options = Options {
        bytes_max: Some((2 << 20) + 8 * SEGMENT),
        stream: settings(None, OnFull::Block),
        ..Options::default()
    };
    let rig = Rig::new(options);
    let (a, b) = (rig.stream("a"), rig.stream("b"));
    while append(&rig, &a, 500).is_ok() {
        rig.commit(&a);
    }
    assert!(is_full(&append(&rig, &b, 500)));
    rig.core.delete_stream("a", rig.now).unwrap();
    append(&rig, &b, 500).unwrap();
    assert!(append(&rig, &a, 500).is_err(), "its handle takes nothing");
}

/// As many pages as are taken now, and so many more.
fn leave(disk: &SimDisk, pages: u64) {
    let used: u64 = disk.files().iter().map(|path| (disk.read(path).len() as u64).div_ceil(4096)).sum();
    disk.set_capacity(Some((used + pages) * 4096));
}

// S35: on a full disk acknowledgements are saved and what is delivered goes; then records are written again, without a restart.
#[test]
fn a_full_disk_drains_and_goes_on() {
    for restarts in [false, true] {
        let mut rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &settings(None, OnFull::Block));
        for _ in 0..6 {
            append(&rig, &stream, 500).unwrap();
            rig.commit(&stream);
        }
        stream.log.rotate(rig.now).unwrap();
        // Nothing is free, and no cursor was ever saved: a consumer is registered, acknowledges, and that is saved.
        leave(&rig.disk, 0);
        append(&rig, &stream, 500).unwrap();
        assert!(stream.log.commit(rig.now, wal_store::Want::Durable).is_err(), "the disk is full");
        let mut stream = stream;
        if restarts {
            drop(stream);
            rig = rig.kill();
            stream = rig.stream("s");
        }
        let consumer = rig.consumer(&stream, "c");
        assert_eq!(drain(&rig, &stream, &consumer).len(), 6);
        rig.ack(&consumer, 7);
        let report = rig.core.tick(rig.now).unwrap();
        assert_eq!(report.cursors_count, 1);
        assert!(report.retired_count > 0, "{report:?}");
        // The reserve is made again first, and only then records are written.
        leave(&rig.disk, 400);
        rig.pass(Duration::from_secs(2));
        rig.core.run_timers(rig.now.instant);
        rig.core.tick_if_due(rig.now).unwrap();
        assert!(rig.disk.files().iter().any(|path| path.ends_with("reserve")));
        let seq = if restarts { append(&rig, &stream, 500).unwrap().get() } else { 7 };
        rig.commit(&stream);
        assert_eq!(drain(&rig, &stream, &consumer), [Given::Record(seq)]);
    }
}

// S35: while the reserve is spent, records do not take what it gave back.
#[test]
fn records_wait_while_the_reserve_is_spent() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(None, OnFull::Block));
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    leave(&rig.disk, 0);
    let consumer = rig.consumer(&stream, "c");
    assert!(rig.core.room().space().holds_writes(), "registering it needed the reserve");
    append(&rig, &stream, 500).unwrap();
    let stalled = stream.log.commit(rig.now, wal_store::Want::Durable).unwrap_err();
    assert!(stalled.is_retryable(), "{stalled}");
    assert_eq!(rig.core.next_due(rig.now.instant), Some(rig.now.instant), "the reserve is to be made again");
    rig.core.tick_if_due(rig.now).unwrap();
    assert!(rig.core.room().space().holds_writes());
    rig.disk.set_capacity(None);
    rig.pass(Duration::from_secs(1));
    rig.core.tick_if_due(rig.now).unwrap();
    assert!(!rig.core.room().space().holds_writes());
    rig.commit(&stream);
    assert_eq!(drain(&rig, &stream, &consumer).len(), 2);
}

/// What a save says that found no space.
struct NoSpace(disk::DiskError);

impl OfDisk for NoSpace {
    fn of_disk(&self) -> Option<&disk::DiskError> {
        Some(&self.0)
    }
}

// S35: a commit that comes between the two tries of a save leaves the space to it.
#[test]
fn what_the_reserve_gave_back_is_for_the_save_and_for_no_commit() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(None, OnFull::Block));
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    rig.disk.plan(Fault::once(On::Op(disk::Op::Create), 1, sim_disk::errno::ENOSPC));
    let refused = disk::Disk::create(&rig.disk, Path::new("x")).err().unwrap();
    let has_reserve = || rig.disk.files().iter().any(|path| path.ends_with("reserve"));
    append(&rig, &stream, 500).unwrap();
    let mut tries = 0;
    let saved = rig.core.saving(rig.now.instant, || {
        tries += 1;
        if tries == 1 {
            return Err(NoSpace(refused.clone()));
        }
        let stalled = stream.log.commit(rig.now, wal_store::Want::Durable).unwrap_err();
        assert!(stalled.is_retryable() && !has_reserve(), "{stalled}");
        Ok(())
    });
    assert!(saved.is_ok() && tries == 2);
    rig.commit(&stream);
    assert!(has_reserve(), "made again once the save was through");
}

// S33: nobody drives the timers, the shortage is over: the next commit goes on.
#[test]
fn a_shortage_that_is_over_costs_a_commit_nothing() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(None, OnFull::Block));
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    rig.disk.plan(Fault::once(On::Op(disk::Op::Create), 1, sim_disk::errno::ENOSPC));
    let _consumer = rig.consumer(&stream, "c");
    assert!(rig.core.room().space().holds_writes());
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    assert!(rig.disk.files().iter().any(|path| path.ends_with("reserve")), "made again first");
}

#[test]
fn commits_on_a_full_disk_say_what_they_wait_for_and_ask_it_less_and_less_often() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(None, OnFull::Block));
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    leave(&rig.disk, 0);
    let _consumer = rig.consumer(&stream, "c");
    assert!(rig.core.room().space().holds_writes());
    append(&rig, &stream, 500).unwrap();
    let creates = rig.disk.count(disk::Op::Create);
    for _ in 0..1000 {
        let error = stream.log.commit(rig.now, wal_store::Want::Durable).unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("reserve"), "{error}");
        rig.pass(Duration::from_millis(1));
    }
    let asked = rig.disk.count(disk::Op::Create) - creates;
    assert!((2..15).contains(&asked), "{asked}");
    rig.disk.set_capacity(None);
    rig.pass(Duration::from_secs(1));
    rig.commit(&stream);
}

// A disk that refuses every save does not make the tick spin for the sake of the reserve.
#[test]
fn a_missing_reserve_on_a_failing_disk_is_no_reason_to_spin() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &settings(None, OnFull::Block));
    append(&rig, &stream, 500).unwrap();
    rig.commit(&stream);
    leave(&rig.disk, 0);
    let consumer = rig.consumer(&stream, "c");
    assert!(rig.core.room().space().holds_writes());
    assert_eq!(drain(&rig, &stream, &consumer).len(), 1);
    rig.ack(&consumer, 2);
    rig.disk.plan(Fault::forever(On::Any, 1, sim_disk::errno::ENOSPC));
    for _ in 0..100 {
        rig.core.run_timers(rig.now.instant);
        rig.core.commit_due(rig.now);
        let _ = rig.core.tick_if_due(rig.now);
        let due = rig.core.next_due(rig.now.instant).unwrap();
        assert!(due > rig.now.instant, "after a failure it waits");
        let wait = due.saturating_since(rig.now.instant);
        rig.pass(wait);
    }
    rig.disk.clear_faults();
    rig.disk.set_capacity(None);
    for _ in 0..5 {
        rig.pass(Duration::from_secs(5));
        rig.core.tick_if_due(rig.now).unwrap();
    }
    assert!(!rig.core.room().space().holds_writes());
    assert_eq!(consumer.saved(), Seq::new(2));
}

// S35, S36: on XFS not even a file can be created on a full disk: the first save of a run takes the reserve, at open already.
#[test]
fn the_first_save_of_a_run_may_take_the_reserve() {
    for clean in [true, false] {
        let rig = Rig::new(Options::default());
        let stream = rig.stream_with("s", &settings(None, OnFull::Block));
        append(&rig, &stream, 500).unwrap();
        stream.log.rotate(rig.now).unwrap();
        let consumer = rig.consumer(&stream, "c");
        drop((stream, consumer));
        let disk = if clean {
            let now = rig.now;
            rig.core.close(|| now).unwrap();
            rig.disk
        } else {
            rig.disk.kill()
        };
        disk.plan(Fault::once(On::Op(disk::Op::Create), 1, sim_disk::errno::ENOSPC));
        let rig = Rig::on(disk, Options::default(), 2);
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        assert_eq!(drain(&rig, &stream, &consumer), [Given::Record(1)]);
        rig.ack(&consumer, 2);
        assert_eq!(rig.core.tick(rig.now).unwrap().retired_count, 1, "clean {clean}");
        assert!(!rig.core.room().space().holds_writes());
        assert!(rig.disk.files().iter().any(|path| path.ends_with("reserve")), "made again");
    }
}
