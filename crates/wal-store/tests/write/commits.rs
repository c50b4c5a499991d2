//! What a commit makes true, and how many calls it takes.

use disk::Op;
use proptest::prelude::*;
use sim_disk::{Fault, On, errno};
use std::time::Duration;
use wal_format::{Marks, Seq, Tag};
use wal_store::{Level, ReadLevel, Record, Settings, SyncSetting, Want};

use crate::support::{Told, World, at, seqs, settings};

#[test]
fn an_append_calls_nothing_and_buffered_waits_for_nothing() {
    // S08
    let world = World::new();
    let log = world.log(settings());
    let before = world.disk.call_count();
    let ticket = log.append(b"a", at(1)).unwrap();
    assert_eq!(ticket.wait(Level::Buffered, at(1)).unwrap(), Seq::FIRST);
    assert_eq!(world.disk.call_count(), before);
    assert!(ticket.peek(Level::Written).is_none());
}

#[test]
fn a_lone_waiter_commits_by_one_write_and_one_sync() {
    let world = World::new();
    let log = world.log(settings());
    log.append(b"first", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    assert_eq!(world.durable_payloads(), [(1, b"first".to_vec())]);
    let calls = world.disk.call_count();
    log.append(b"second", at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
    assert_eq!(world.disk.call_count() - calls, 2, "one write, one sync");
    assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
    let ends = log.ends();
    assert_eq!([ends.appended, ends.written, ends.durable, ends.readable], [Seq::new(3); 4]);
}

#[test]
fn the_file_and_its_name_are_durable_before_the_first_ack() {
    // S11, I18
    for sync in [SyncSetting::Never, SyncSetting::EachBatch] {
        let world = World::new();
        let log = world.log(Settings { sync, ..settings() });
        log.append(b"a", at(1)).unwrap().wait(Level::Written, at(1)).unwrap();
        assert_eq!(seqs(&world.durable_payloads()), [1], "{sync:?}");
    }
}

#[test]
fn durable_after_written_takes_exactly_one_sync() {
    // S01
    let world = World::new();
    let log = world.log(Settings { sync: SyncSetting::Never, read_level: ReadLevel::Written, ..settings() });
    log.append(b"a", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let tickets = ["b", "c"].map(|payload| {
        let ticket = log.append(payload, at(2)).unwrap();
        log.commit(at(2), Want::Batch).unwrap();
        ticket
    });
    assert_eq!(seqs(&world.durable_payloads()), [1]);
    assert!(tickets.iter().all(|ticket| ticket.peek(Level::Written).is_some_and(|result| result.is_ok())));
    assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).is_none()));
    let (syncs, writes) = (world.disk.count(Op::SyncData), world.disk.count(Op::Write));
    tickets[0].wait(Level::Durable, at(3)).unwrap();
    assert_eq!((world.disk.count(Op::SyncData) - syncs, world.disk.count(Op::Write) - writes), (1, 0));
    assert!(tickets[1].peek(Level::Durable).is_some(), "the same sync covered the second batch");
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3]);
    log.commit(at(4), Want::Durable).unwrap();
    assert_eq!(world.disk.count(Op::SyncData) - syncs, 1, "nothing new, no sync");
}

#[test]
fn each_setting_syncs_when_it_says() {
    let syncs = |sync, times: &[u64]| {
        let world = World::new();
        let log = world.log(Settings { sync, ..settings() });
        for time in times {
            log.append(b"x", at(*time)).unwrap();
            log.commit(at(*time), Want::Batch).unwrap();
        }
        log.counters().syncs
    };
    // The first commit syncs the new file at every setting.
    assert_eq!(syncs(SyncSetting::Never, &[1, 2, 3]), 1);
    assert_eq!(syncs(SyncSetting::OnRotate, &[1, 2, 3]), 1);
    assert_eq!(syncs(SyncSetting::EachBatch, &[1, 2, 3]), 3);
    let every = SyncSetting::Every(Duration::from_millis(10));
    assert_eq!(syncs(every, &[1, 5, 10]), 1);
    assert_eq!(syncs(every, &[1, 5, 11, 12]), 2, "the interval itself is long enough");
}

#[test]
fn no_more_than_allowed_is_left_unsynced() {
    let world = World::new();
    let settings = Settings { sync: SyncSetting::Never, unsynced_bytes_max: 10_000, ..settings() };
    let log = world.log(settings);
    for time in 1..40 {
        log.append(&[7; 1000][..], at(time)).unwrap();
        log.commit(at(time), Want::Batch).unwrap();
        let unsynced = world.files()[0].len as usize - world.disk.read_medium(&world.files()[0].path).len();
        assert!(unsynced <= 10_000, "{unsynced} bytes unsynced after a commit");
    }
    assert_eq!(log.counters().syncs, 1 + 39 / 10);
}

#[test]
fn readers_see_what_the_read_level_says_and_are_told() {
    for (level, readable) in [(ReadLevel::Durable, 2), (ReadLevel::Written, 3)] {
        let world = World::new();
        let log = world.log(Settings { sync: SyncSetting::Never, read_level: level, ..settings() });
        log.append(b"a", at(1)).unwrap();
        log.commit(at(1), Want::Batch).unwrap();
        log.append(b"b", at(2)).unwrap();
        log.commit(at(2), Want::Batch).unwrap();
        assert_eq!(log.ends().readable, Seq::new(readable));
        let told: Vec<_> =
            world.ears.take().into_iter().filter(|told| matches!(told, Told::Readable(_))).collect();
        assert_eq!(told.last(), Some(&Told::Readable(Seq::new(readable))));
    }
}

#[test]
fn a_begun_batch_is_due_after_the_interval() {
    // F05
    let world = World::new();
    let log = world.log(settings());
    assert_eq!(log.due(), None);
    log.append(b"a", at(5)).unwrap();
    log.append(b"b", at(6)).unwrap();
    assert_eq!(log.due(), Some(at(25).instant));
    assert_eq!(world.ears.take(), [Told::Due(at(25).instant)]);
    log.commit(at(25), Want::Batch).unwrap();
    assert_eq!(log.due(), None);
    let log = world_every();
    assert_eq!(log.due(), Some(at(1011).instant), "the sync is due");
}

fn world_every() -> wal_store::Log {
    let world = World::new();
    let log = world.log(Settings { sync: SyncSetting::Every(Duration::from_secs(1)), ..settings() });
    log.append(b"a", at(11)).unwrap();
    log.commit(at(11), Want::Batch).unwrap();
    log.append(b"b", at(12)).unwrap();
    log.commit(at(12), Want::Batch).unwrap();
    log
}

#[test]
fn all_slices_marks_and_empty_payloads_come_back() {
    // S30 (an empty payload)
    let world = World::new();
    let log = world.log(settings());
    let marks = Marks::new(5).unwrap();
    log.append(Record::from_slices(&[b"a", b"", b"bc"]).with_marks(marks), at(1)).unwrap();
    log.append(b"", at(1)).unwrap();
    log.append(&[3; 200_000][..], at(1)).unwrap();
    log.commit(at(1), Want::Durable).unwrap();
    assert_eq!(world.payloads(), [(1, b"abc".to_vec()), (2, vec![]), (3, vec![3; 200_000])]);
}

#[test]
fn the_batch_of_one_call_is_one_batch_and_its_tag_rides_along() {
    let world = World::new();
    let log = world.log(Settings { batch_records_max: 3, ..settings() });
    log.append(b"a", at(1)).unwrap();
    let records = [b"b", b"c", b"d"].map(Record::from);
    let tag = Tag::new(b"file", b"place 1").unwrap();
    let ticket = log.append_batch(&records, Some(tag), at(1)).unwrap();
    assert_eq!((ticket.seq(), ticket.count(), ticket.end()), (Seq::new(2), 3, Seq::new(5)));
    assert_eq!(log.last_tags(), [], "not durable yet");
    ticket.wait(Level::Durable, at(1)).unwrap();
    let file = &world.files()[0];
    let bounds: Vec<_> =
        file.batches.iter().map(|(_, header)| (header.first_seq.get(), header.count)).collect();
    assert_eq!(bounds, [(1, 1), (2, 3)]);
    assert_eq!(log.last_tags()[0].value, b"place 1");
    assert_eq!(log.counters().syncs, 1, "both batches, one sync");
}

#[test]
fn short_writes_are_invisible() {
    // S40
    let world = World::new();
    let log = world.log(settings());
    for k in 1..20 {
        world.disk.plan(Fault::short(On::Op(Op::Write), k, k * 3));
    }
    for time in 1..20 {
        log.append(&[time as u8; 500][..], at(time)).unwrap().wait(Level::Durable, at(time)).unwrap();
    }
    let expected: Vec<_> = (1..20).map(|seq| (seq, vec![seq as u8; 500])).collect();
    assert_eq!(world.durable_payloads(), expected);
}

#[test]
fn close_makes_everything_durable_and_refuses_appends() {
    let world = World::new();
    let log = world.log(Settings { sync: SyncSetting::Never, ..settings() });
    let ticket = log.append(b"a", at(1)).unwrap();
    let end = log.close(at(1)).unwrap();
    assert_eq!(end.end, Seq::new(2));
    assert_eq!(end.offset, world.files()[0].len);
    assert!(ticket.peek(Level::Durable).unwrap().is_ok());
    assert_eq!(log.append(b"b", at(2)).unwrap_err(), wal_store::AppendError::Closed);
    assert_eq!(log.close(at(3)).unwrap(), end);
}

#[test]
fn dropping_the_last_handle_commits() {
    let world = World::new();
    let log = world.log(settings());
    let ticket = log.append(b"a", at(1)).unwrap();
    drop(log);
    assert_eq!(seqs(&world.durable_payloads()), [1]);
    ticket.wait(Level::Durable, at(2)).unwrap();
}

/// The drop knows no time but that of the last append; the back-off began at a commit an hour later.
#[test]
fn dropping_the_last_handle_waits_no_longer_than_a_back_off() {
    let world = World::new();
    let log = world.log(settings());
    let ticket = log.append(b"a", at(1)).unwrap();
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 2, errno::EIO));
    let error = log.commit(at(3_600_000), Want::Batch).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    drop(log);
    ticket.wait(Level::Durable, at(2)).unwrap();
    assert_eq!(seqs(&world.durable_payloads()), [1]);
}

#[test]
fn steady_state_takes_its_chunks_from_the_pool() {
    let world = World::new();
    let log = world.log(settings());
    let mut allocated = Vec::new();
    for time in 1..30 {
        for _ in 0..100 {
            log.append(&[1; 3000][..], at(time)).unwrap();
        }
        log.commit(at(time), Want::Batch).unwrap();
        allocated.push(log.counters().chunks_allocated);
    }
    assert_eq!(allocated[0], allocated[28]);
}

/// What a random run does.
#[derive(Debug, Clone)]
enum Act {
    Append(usize),
    Batch(Vec<usize>),
    Commit,
    CommitDurable,
    WaitLast,
    Rotate,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0_usize..3000).prop_map(Act::Append),
        2 => proptest::collection::vec(0_usize..300, 1..5).prop_map(Act::Batch),
        2 => Just(Act::Commit),
        1 => Just(Act::CommitDurable),
        1 => Just(Act::WaitLast),
        1 => Just(Act::Rotate),
    ];
    proptest::collection::vec(act, 1..60)
}

fn sync_settings() -> impl Strategy<Value = SyncSetting> {
    prop_oneof![
        Just(SyncSetting::Never),
        Just(SyncSetting::EachBatch),
        Just(SyncSetting::Every(Duration::from_millis(7))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done, in whatever order: everything is there, dense and in order, and what was told durable is.
    #[test]
    fn any_sequence_keeps_every_record_in_order(
        acts in acts(),
        sync in sync_settings(),
        segment in 5_000_u64..40_000,
        records_max in 1_u32..20,
    ) {
        let world = World::new();
        let log = world.log(Settings {
            sync,
            segment_bytes_max: segment,
            batch_records_max: records_max.max(5),
            record_bytes_max: 4_000,
            batch_bytes_max: 6_000,
            ..settings()
        });
        let mut expected = Vec::new();
        let mut last = None;
        for (time, act) in acts.iter().enumerate() {
            let now = at(time as u64 + 1);
            match act {
                Act::Append(bytes) => {
                    let payload = vec![time as u8; *bytes];
                    last = Some(log.append(&payload[..], now).unwrap());
                    expected.push(payload);
                }
                Act::Batch(sizes) => {
                    let payloads: Vec<_> = sizes.iter().map(|bytes| vec![time as u8; *bytes]).collect();
                    let records: Vec<_> = payloads.iter().map(|payload| Record::new(payload)).collect();
                    last = Some(log.append_batch(&records, None, now).unwrap());
                    expected.extend(payloads);
                }
                Act::Commit => drop(log.commit(now, Want::Batch).unwrap()),
                Act::CommitDurable => drop(log.commit(now, Want::Durable).unwrap()),
                Act::WaitLast => drop(last.as_ref().map(|ticket| ticket.wait(Level::Durable, now).unwrap())),
                Act::Rotate => drop(log.rotate(now).unwrap()),
            }
            let durable = world.durable_payloads();
            prop_assert!(durable.len() as u64 + 1 >= log.ends().durable.get());
            let kept: Vec<_> = durable.iter().map(|(_, payload)| payload.clone()).collect();
            prop_assert_eq!(&kept[..], &expected[..kept.len()]);
        }
        log.close(at(1000)).unwrap();
        let all = world.durable_payloads();
        prop_assert_eq!(seqs(&all), (1..=expected.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(world.room.used(), 0);
    }
}
