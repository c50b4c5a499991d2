//! Failed writes, syncs and opens: what moves, what waits, what is given up, and who is told what.

use disk::{Op, SyncSite};
use sim_disk::{Fault, On, SimDisk, Survival, errno};
use wal_format::{Now, Seq};
use wal_store::{
    AppendError, CommitError, Level, Limits, Log, ReadLevel, Record, SegmentState, Settings, SyncSetting,
    Want,
};

use crate::support::{Told, World, at, seqs, settings};

const BATCH: SyncSite = SyncSite::new("commit.batch");
const DIR: SyncSite = SyncSite::new("segment.dir");

fn append(log: &Log, payload: &[u8], time: u64) -> Result<Seq, CommitError> {
    log.append(payload, at(time)).unwrap().wait(Level::Durable, at(time))
}

/// A world with one durable record.
fn begun(settings: Settings) -> (World, Log) {
    let world = World::new();
    let log = world.log(settings);
    append(&log, b"one", 1).unwrap();
    world.ears.take();
    (world, log)
}

// A batch that is open while files fail is not taken: it must not be due in the past, or whoever keeps the timer spins.
#[test]
fn while_the_disk_refuses_the_next_attempt_is_never_due_in_the_past() {
    for errno in [errno::EIO, errno::ENOSPC] {
        let world = World::new();
        let log = world.log(settings());
        log.append(b"stored", at(0)).unwrap();
        log.commit(at(0), Want::Durable).unwrap();
        world.disk.plan(Fault::forever(On::Any, 1, errno));
        log.append(b"fails", at(1)).unwrap();
        let mut now = at(1);
        for _ in 0..20 {
            let _ = log.commit(now, Want::Batch);
            let _ = log.append(b"open meanwhile", now);
            let Some(due) = log.due() else { break };
            assert!(due > now.instant, "{errno}: {due:?} at {now:?}");
            now = Now { instant: due, ..now };
        }
    }
}

#[test]
fn a_batch_whose_sync_failed_moves_to_a_new_segment_and_nobody_hears_of_it() {
    // S04, G05
    let (world, log) = begun(settings());
    world.disk.plan(Fault::once(On::Site(BATCH), 1, errno::EIO));
    append(&log, b"two", 2).unwrap();
    assert_eq!(world.durable_payloads(), [(1, b"one".to_vec()), (2, b"two".to_vec())]);
    let files = world.files();
    assert_eq!(files.len(), 2);
    let predecessor = files[1].header.unwrap().predecessor.unwrap();
    assert_eq!(predecessor.end_offset, files[0].batches[1].0, "the old copy lies behind the named end");
    let counters = log.counters();
    assert_eq!((counters.poisoned_files, counters.rotations), (1, 0));
    let told: Vec<_> =
        world.ears.take().into_iter().filter(|told| matches!(told, Told::Rotated(..))).collect();
    assert_eq!(told, [Told::Rotated(Seq::new(2), wal_format::SegmentId::new(2))]);
    // The failed file is never written or synced again.
    let before = world.disk.read(&files[0].path);
    append(&log, b"three", 3).unwrap();
    assert_eq!(world.disk.read(&files[0].path), before);
}

#[test]
fn a_failed_first_write_or_sync_leaves_a_void_file_that_is_removed() {
    for on in [On::Op(Op::Write), On::Site(BATCH), On::Site(DIR)] {
        let world = World::new();
        let log = world.log(settings());
        world.disk.plan(Fault::once(on.clone(), 1, errno::EIO));
        append(&log, b"one", 1).unwrap();
        let files = world.files();
        assert_eq!(files.len(), 1, "{on:?}");
        let header = files[0].header.unwrap();
        assert_eq!((header.segment.get(), header.predecessor), (2, None), "{on:?}");
        assert_eq!(seqs(&world.durable_payloads()), [1], "{on:?}");
    }
}

#[test]
fn after_three_new_segments_waiters_are_told_indeterminate_and_the_log_pauses_and_resumes() {
    // S04, S05, I6
    let (world, log) = begun(settings());
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 4, errno::EIO));
    let ticket = log.append(b"two", at(2)).unwrap();
    let error = ticket.wait(Level::Durable, at(2)).unwrap_err();
    assert!(
        matches!(&error, CommitError::Indeterminate { first, end, segment: Some(s), source: Some(_) }
            if first.get() == 2 && end.get() == 3 && s.get() == 4),
        "{error:?}"
    );
    assert!(!error.is_retryable());
    assert_eq!(log.counters().poisoned_files, 4);
    assert_eq!(log.append(b"x", at(3)).unwrap_err(), AppendError::Paused);
    let probe = log.due().unwrap();
    assert!(probe >= at(12).instant && probe < at(13).instant, "probed after 10 ms: {probe}");
    assert!(matches!(log.commit(at(3), Want::Batch), Err(CommitError::Stalled { .. })));
    log.commit(at(13), Want::Batch).unwrap();
    append(&log, b"three", 14).unwrap();
    assert_eq!(world.payloads(), [(1, b"one".to_vec()), (3, b"three".to_vec())]);
    let newest = world.files().pop().unwrap();
    let batch = newest.batches[0].1;
    assert!(batch.flags.contains(wal_format::BatchFlags::SKIPPED));
    assert_eq!((batch.first_seq.get(), batch.prev_seq), (3, 1));
    assert_eq!(world.room.used(), 0);
    assert_eq!(log.counters().records_failed, 1);
}

// S39: found on ext4, by a device that failed for ever under an append whose caller waited, and was mended then.
#[test]
fn what_a_round_leaves_due_is_told_whoever_ran_it() {
    let (world, log) = begun(settings());
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 4, errno::EIO));
    let ticket = log.append(b"two", at(2)).unwrap();
    // The timer of the batch may ring while its caller commits: from here on only a round's end can tell.
    world.ears.take();
    ticket.wait(Level::Durable, at(2)).unwrap_err();
    let probe = log.due().unwrap();
    assert!(world.ears.take().contains(&Told::Due(probe)), "nobody would ever probe");
}

#[test]
fn a_probe_that_fails_is_repeated_later_and_later() {
    let (world, log) = begun(settings());
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 6, errno::EIO));
    append(&log, b"two", 2).unwrap_err();
    let first = log.due().unwrap();
    let now = |instant| wal_format::Now { instant, ..at(0) };
    log.commit(now(first), Want::Batch).unwrap_err();
    let second = log.due().unwrap();
    assert!(second >= first.saturating_add(std::time::Duration::from_millis(10)));
    log.commit(now(second), Want::Batch).unwrap_err();
    let third = log.due().unwrap();
    assert!(third >= second.saturating_add(std::time::Duration::from_millis(20)));
    log.commit(now(third), Want::Batch).unwrap();
    append(&log, b"three", 1000).unwrap();
    assert_eq!(world.files().len(), 2, "probes leave no file");
}

#[test]
fn what_was_never_given_to_a_file_is_told_not_written() {
    let world = World::new();
    let log = world.log(settings());
    world.disk.plan(Fault::times(On::Op(Op::Create), 1, 4, errno::EIO));
    let error = append(&log, b"one", 1).unwrap_err();
    assert!(matches!(error, CommitError::NotWritten { first: Seq::FIRST, .. }), "{error:?}");
}

#[test]
fn what_was_appended_behind_records_that_are_given_up_goes_with_them() {
    // A tag says how far its producer is stored: it must not outlive what was appended before it.
    let (world, log) = begun(settings());
    let gate = world.disk.hold(On::Site(BATCH));
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 4, errno::EIO));
    let ticket = log.append(b"two", at(2)).unwrap();
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| ticket.wait(Level::Durable, at(2)));
        gate.wait_arrived(1);
        let later = log.append(b"three", at(2)).unwrap();
        gate.release();
        assert!(matches!(leader.join().unwrap(), Err(CommitError::Indeterminate { .. })));
        let told = later.wait(Level::Durable, at(2)).unwrap_err();
        assert!(matches!(&told, CommitError::NotWritten { first, .. } if first.get() == 3), "{told:?}");
    });
    assert_eq!(log.append(b"x", at(3)).unwrap_err(), AppendError::Paused);
    log.commit(at(100), Want::Batch).unwrap();
    append(&log, b"four", 101).unwrap();
    assert_eq!(seqs(&world.durable_payloads()), [1, 4]);
    assert_eq!(world.room.used(), 0);
}

// The next run learns from the newest segment how far seqs were shown that are given up.
#[test]
fn neither_delivery_nor_a_limit_takes_the_segment_in_front_of_given_up_records() {
    let small =
        Settings { segment_bytes_max: 10_000, batch_bytes_max: 1_000, record_bytes_max: 500, ..settings() };
    let (world, log) = begun(Settings { read_level: ReadLevel::Written, ..small });
    log.rotate(at(1)).unwrap();
    append(&log, b"two", 2).unwrap();
    world.disk.plan(Fault::times(On::Op(Op::SyncData), 1, 4, errno::EIO));
    append(&log, b"three", 3).unwrap_err();
    assert!(log.has_given_up() && log.segments().iter().all(|s| s.state == SegmentState::Rotated));
    let plans = || {
        let all = Seq::new(u64::MAX);
        let plans = [log.plan_retire(all), log.plan_drop_below(all), log.plan_drop_bytes(u64::MAX)];
        plans.map(|point| point.unwrap().segment.get())
    };
    assert_eq!(plans(), [2, 2, 2], "the newest stays");
    log.commit(at(100), Want::Batch).unwrap();
    // But for what can only be taken in its place.
    log.set_limits(Limits { bytes_max: Some(10_000), ..Limits::default() }).unwrap();
    let refused = log
        .append_batch(&[Record::new(&[4; 490]); 1], None, at(100))
        .and_then(|_| log.append_batch(&[Record::new(&[4; 490]); 2], None, at(100)));
    assert!(matches!(refused, Err(AppendError::Full { .. })), "{refused:?}");
    assert_eq!(plans(), [3, 3, 3], "or it would be waited for, for ever");
    log.set_limits(Limits::default()).unwrap();
    assert_eq!(plans(), [2, 2, 2]);
    append(&log, b"four", 101).unwrap();
    log.rotate(at(102)).unwrap();
    let next = log.segments().last().unwrap().id.get() + 1;
    assert_eq!(plans(), [next, next, next], "what was stored behind them tells it too");
}

#[test]
fn a_full_disk_keeps_the_records_and_a_later_commit_writes_them() {
    // S33
    for k in 0..=120 {
        let (world, log) = begun(settings());
        world.disk.plan(Fault::forever(On::Op(Op::Create), 1, errno::ENOSPC));
        world.disk.plan(Fault::once(On::Op(Op::Write), 1, errno::ENOSPC).after_bytes(k));
        let ticket = log.append(&[2; 30][..], at(2)).unwrap();
        let error = ticket.wait(Level::Durable, at(2)).unwrap_err();
        assert!(matches!(&error, CommitError::Stalled { .. }) && error.is_retryable(), "{error:?}");
        assert!(log.due().is_some(), "tried again by itself");
        log.append(b"three", at(3)).unwrap();
        world.disk.clear_faults();
        ticket.wait(Level::Durable, at(4)).unwrap();
        log.commit(at(4), Want::Batch).unwrap();
        assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3], "{k} bytes were written before");
        assert_eq!(log.due(), None);
        assert_eq!(world.room.used(), 0);
    }
}

/// Twelve batches of two pages each, one round; the room for each file and for all of them, as a limit says it.
fn with_room_for_part(limit: impl Fn(&SimDisk, u64), parts: u64) {
    let world = World::new();
    let settings = Settings { batch_records_max: 1, ..settings() };
    let log = world.log(settings);
    let tickets: Vec<_> = (0..12_u8).map(|n| log.append(&[n; 8000][..], at(1)).unwrap()).collect();
    limit(&world.disk, world.disk.used_bytes() + 4096 + parts * 8192);
    let error = log.commit(at(2), Want::Durable).unwrap_err();
    assert!(matches!(&error, CommitError::Stalled { .. }) && error.is_retryable(), "{error:?}");
    let stored = log.ends().durable.get() - 1;
    assert_eq!(stored, parts, "what there is room for is stored");
    for (n, ticket) in (0..).zip(&tickets) {
        assert_eq!(ticket.peek(Level::Durable).is_some(), n < stored, "{n}");
    }
    let expected: Vec<u64> = (1..=stored).collect();
    assert_eq!(seqs(&world.durable_payloads()), expected);
    // Never room for more than three more of them.
    for n in 3..100 {
        limit(&world.disk, world.disk.used_bytes() + 4096 + 3 * 8192);
        if log.commit(at(n * 100), Want::Durable).is_ok() {
            break;
        }
    }
    assert_eq!(seqs(&world.durable_payloads()), (1..=12).collect::<Vec<u64>>());
    assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()));
    assert_eq!(world.room.used(), 0);
}

// S33, S34
#[test]
fn a_set_that_never_fits_as_a_whole_is_stored_in_parts() {
    for parts in 1..12 {
        with_room_for_part(|disk, bytes| disk.set_capacity(Some(bytes)), parts);
        with_room_for_part(|disk, bytes| disk.set_quota(Some(bytes)), parts);
    }
}

// S33, S42: one round fills the segment that is open, goes on in a new one, and is refused in the middle of that.
#[test]
fn what_a_freshly_rotated_file_has_room_for_is_stored_and_the_rest_goes_on() {
    for parts in 1..=3 {
        let world = World::new();
        // Three batches a segment, two pages each.
        let segment_bytes_max = 4096 + 3 * 8192;
        let log = world.log(Settings {
            batch_records_max: 1,
            segment_bytes_max,
            batch_bytes_max: 8100,
            record_bytes_max: 8000,
            ..settings()
        });
        append(&log, &[1; 8000], 1).unwrap();
        let tickets: Vec<_> = (0..10_u8).map(|n| log.append(&[n; 8000][..], at(2)).unwrap()).collect();
        world.disk.set_capacity(Some(world.disk.used_bytes() + 2 * 8192 + 4096 + parts * 8192));
        let error = log.commit(at(3), Want::Durable).unwrap_err();
        assert!(matches!(&error, CommitError::Stalled { .. }) && error.is_retryable(), "{error:?}");
        let stored = 3 + parts;
        assert_eq!(log.ends().durable.get() - 1, stored, "what there is room for");
        assert_eq!(seqs(&world.durable_payloads()), (1..=stored).collect::<Vec<_>>());
        assert_eq!(log.segments().len(), 2);
        world.disk.set_capacity(None);
        log.commit(at(1_000), Want::Durable).unwrap();
        assert_eq!(seqs(&world.durable_payloads()), (1..=11).collect::<Vec<_>>());
        assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()));
        assert_eq!(world.room.used(), 0);
    }
}

// S34: `ulimit -f`.
#[test]
fn a_file_size_limit_below_the_segment_size_makes_smaller_segments() {
    for file_bytes_max in [13_000, 21_000, 40_000, 90_000] {
        let world = World::new();
        let log = world.log(Settings { batch_records_max: 1, ..settings() });
        let tickets: Vec<_> = (0..12_u8).map(|n| log.append(&[n; 8000][..], at(1)).unwrap()).collect();
        world.disk.set_file_bytes_max(Some(file_bytes_max));
        log.commit(at(2), Want::Durable).unwrap();
        assert_eq!(seqs(&world.durable_payloads()), (1..=12).collect::<Vec<u64>>());
        assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()));
    }
}

#[test]
fn missing_descriptors_and_a_read_only_disk_are_waited_out() {
    // S37, S39
    let world = World::new();
    let log = world.log(settings());
    for errno in [errno::EMFILE, errno::ENFILE, errno::EROFS, errno::EDQUOT] {
        world.disk.plan(Fault::forever(On::Op(Op::Create), 1, errno));
        let ticket = log.append(b"x", at(1)).unwrap();
        assert!(ticket.wait(Level::Durable, at(1)).unwrap_err().is_retryable());
        world.disk.clear_faults();
        ticket.wait(Level::Durable, at(2)).unwrap();
        log.rotate(at(2)).unwrap();
    }
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3, 4]);
    let ids: Vec<_> = world.files().iter().map(|file| file.header.unwrap().segment.get()).collect();
    assert_eq!(ids, [1, 2, 3, 4], "no id was used up by a refusal");
}

#[test]
fn written_and_unsynced_batches_are_read_back_and_move_too() {
    // G05 at lazy settings
    let (world, log) =
        begun(Settings { sync: SyncSetting::Never, read_level: ReadLevel::Written, ..settings() });
    let tickets: Vec<_> = (2..10_u8)
        .map(|n| {
            let ticket = log.append(&[n; 300][..], at(2)).unwrap();
            log.commit(at(2), Want::Batch).unwrap();
            ticket
        })
        .collect();
    assert_eq!(log.ends().readable, Seq::new(10));
    world.disk.plan(Fault::once(On::Site(BATCH), 1, errno::EIO));
    tickets[3].wait(Level::Durable, at(3)).unwrap();
    assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()));
    let expected: Vec<_> =
        std::iter::once((1, b"one".to_vec())).chain((2..10).map(|n| (n, vec![n as u8; 300]))).collect();
    assert_eq!(world.durable_payloads(), expected);
    let list: Vec<_> = log.segments().iter().map(|s| (s.first_seq.get(), s.end_seq.get(), s.state)).collect();
    assert_eq!(list, [(1, 2, SegmentState::Rotated), (2, 10, SegmentState::Open)]);
}

#[test]
fn what_cannot_be_read_back_is_told_indeterminate_and_skipped() {
    let (world, log) = begun(Settings { sync: SyncSetting::Never, ..settings() });
    let tickets: Vec<_> = (2..6_u8)
        .map(|n| {
            let ticket = log.append(&[n; 300][..], at(2)).unwrap();
            log.commit(at(2), Want::Batch).unwrap();
            ticket
        })
        .collect();
    let damaged = world.files()[0].batches[3].0 + 100;
    world.disk.corrupt(&world.files()[0].path, damaged, 3);
    world.disk.plan(Fault::once(On::Site(BATCH), 1, errno::EIO));
    let last = log.append(b"last", at(3)).unwrap();
    last.wait(Level::Durable, at(3)).unwrap();
    let outcomes: Vec<_> =
        tickets.iter().map(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()).collect();
    assert_eq!(outcomes, [true, true, false, false]);
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3, 6]);
}

// S37, S39: what was written is not given up because the disk will not read just now; nothing of it is in memory.
#[test]
fn a_read_back_that_is_refused_is_tried_again() {
    let (world, log) = begun(Settings { sync: SyncSetting::Never, ..settings() });
    let tickets: Vec<_> = (2..6_u8)
        .map(|n| {
            let ticket = log.append(&[n; 300][..], at(2)).unwrap();
            log.commit(at(2), Want::Batch).unwrap();
            ticket
        })
        .collect();
    world.disk.plan(Fault::once(On::Site(BATCH), 1, errno::EIO));
    world.disk.plan(Fault::times(On::Op(Op::Read), 1, 2, errno::ENOMEM));
    for n in 0..2 {
        let told = tickets[3].wait(Level::Durable, at(3 + n)).unwrap_err();
        assert!(told.is_retryable() && told.to_string().contains("os error 12"), "{told}");
        assert!(log.due().is_some(), "tried again by itself");
    }
    log.commit(at(100), Want::Batch).unwrap();
    assert!(tickets.iter().all(|ticket| ticket.peek(Level::Durable).unwrap().is_ok()));
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3, 4, 5]);
}

#[test]
fn a_read_back_that_fails_says_why() {
    let (world, log) = begun(Settings { sync: SyncSetting::Never, ..settings() });
    let ticket = log.append(b"two", at(2)).unwrap();
    log.commit(at(2), Want::Batch).unwrap();
    world.disk.plan(Fault::once(On::Site(BATCH), 1, errno::EIO));
    world.disk.plan(Fault::once(On::Op(Op::Read), 1, errno::EIO));
    let told = ticket.wait(Level::Durable, at(3)).unwrap_err();
    assert!(
        matches!(&told, CommitError::Indeterminate { source: Some(source), .. } if source.op() == Op::Read),
        "{told:?}"
    );
}

#[test]
fn a_failed_sync_at_rotation_moves_what_was_not_synced() {
    let (world, log) = begun(Settings { sync: SyncSetting::Never, ..settings() });
    log.append(b"two", at(2)).unwrap();
    log.commit(at(2), Want::Batch).unwrap();
    world.disk.plan(Fault::once(On::Site(SyncSite::new("rotate.file")), 1, errno::EIO));
    log.rotate(at(3)).unwrap();
    assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
    assert_eq!(log.ends().durable, Seq::new(3));
}

#[test]
fn a_failing_close_returns_the_error_and_may_be_repeated() {
    // S07
    let (world, log) = begun(settings());
    log.append(b"two", at(2)).unwrap();
    world.disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
    assert!(log.close(at(2)).unwrap_err().is_retryable());
    assert_eq!(log.ends().durable, Seq::new(2));
    world.disk.clear_faults();
    assert_eq!(log.close(at(3)).unwrap().end, Seq::new(3));
    assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
}

#[test]
fn a_panicking_committer_fails_its_batch_and_gives_the_log_back() {
    struct Bomb(std::sync::atomic::AtomicBool);
    impl wal_store::Events for Bomb {
        fn enlist(&self, _: wal_format::StreamId) {}
        fn readable(&self, _: wal_format::StreamId, _: Seq) {}
        fn rotated(&self, _: wal_format::StreamId, _: Seq, _: wal_format::SegmentId) {
            assert!(!self.0.swap(false, std::sync::atomic::Ordering::SeqCst), "a listener's bug");
        }
    }
    let world = World::new();
    let bomb = std::sync::Arc::new(Bomb(true.into()));
    let mut context = world.context();
    context.events = bomb;
    let settings = Settings { segment_bytes_max: 4300, ..settings() };
    let log = Log::open(context, &wal_store::Recovery::fresh(), settings).unwrap();
    append(&log, &[1; 100], 1).unwrap();
    let ticket = log.append(&[2; 100][..], at(2)).unwrap();
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ticket.wait(Level::Durable, at(2))));
    assert!(panicked.is_err());
    let known = ticket.wait(Level::Durable, at(3)).unwrap_err();
    assert!(matches!(known, CommitError::Indeterminate { .. }), "{known:?}");
    append(&log, &[3; 100], 4).unwrap();
    assert_eq!(seqs(&world.payloads()), [1, 3]);
}

/// Every call of a run fails once, with every kind of error: nothing told durable is ever missing, whatever a power cut
/// leaves, and the log goes on.
#[test]
fn any_single_failure_costs_nothing_that_was_acknowledged() {
    // S33, S34, S37, S40
    for sync in [SyncSetting::EachBatch, SyncSetting::Never] {
        for errno in [errno::EIO, errno::ENOSPC, errno::EMFILE] {
            for k in 1.. {
                let world = World::new();
                let settings = Settings { sync, segment_bytes_max: 6000, ..settings() };
                let log = world.log(settings);
                let calls = world.disk.call_count();
                world.disk.plan(Fault::once(On::Any, k, errno));
                run(&world, &log);
                if world.disk.call_count() - calls < k {
                    break;
                }
            }
        }
    }
}

/// Appends, commits, rotates; waiters repeat what is retryable.
fn run(world: &World, log: &Log) {
    let mut acknowledged = Vec::new();
    for n in 1..=8_u64 {
        let ticket = log.append(&[n as u8; 900][..], at(n)).unwrap();
        let level = if n % 3 == 0 { Level::Durable } else { Level::Written };
        let mut outcome = ticket.wait(level, at(n));
        for _ in 0..3 {
            if outcome.as_ref().is_err_and(CommitError::is_retryable) {
                outcome = ticket.wait(level, at(n));
            }
        }
        outcome.unwrap();
        if ticket.peek(Level::Durable).is_some() {
            acknowledged = (1..=n).collect();
        }
        let copy = SimDisk::from_snapshot(&world.disk.snapshot());
        let left = World::on(copy.power_cut(&Survival::Nothing), 1 << 20);
        let kept = seqs(&left.payloads());
        assert_eq!(kept[..acknowledged.len()], acknowledged[..]);
    }
    let mut closed = log.close(at(100));
    for _ in 0..3 {
        if closed.is_err() {
            closed = log.close(at(100));
        }
    }
    closed.unwrap();
    assert_eq!(seqs(&world.durable_payloads()), (1..=8).collect::<Vec<_>>());
}
