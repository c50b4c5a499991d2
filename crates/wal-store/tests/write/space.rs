//! Bytes on the disk: what is counted, who is refused, who waits and is woken.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use disk::DiskError;
use sim_disk::{Fault, On, errno};
use wal_format::{Instant, SegmentId};
use wal_store::{AppendError, FullOf, Keeper, Limits, OnFull, Room, Settings, SyncSetting, Want};

use crate::support::{Told, World, at};

const OVERHEAD: u64 = 4096 + 64;

fn settings(bytes_max: Option<u64>, on_full: OnFull) -> Settings {
    Settings {
        segment_bytes_max: 5_000,
        segment_age_max: None,
        batch_bytes_max: 1_200,
        record_bytes_max: 1_000,
        limits: Limits { bytes_max, on_full, age_max: None },
        ..Settings::default()
    }
}

fn bytes_on_disk(world: &World) -> u64 {
    world.disk.files().iter().map(|path| world.disk.read(path).len() as u64).sum()
}

#[test]
fn what_is_counted_is_what_the_files_have_once_everything_is_written() {
    let world = World::new();
    let log = world.log(settings(None, OnFull::Block));
    for n in 0..20_u64 {
        log.append(vec![0; 10 + 40 * n as usize].as_slice(), at(n)).unwrap();
        assert!(log.bytes_used() >= bytes_on_disk(&world), "what is accepted counts before it is written");
        if n % 3 == 0 {
            log.commit(at(n), Want::Batch).unwrap();
            assert_eq!(log.bytes_used(), bytes_on_disk(&world));
            assert_eq!(world.room.space().used(), log.bytes_used());
        }
    }
    log.rotate(at(20)).unwrap();
    let ids: Vec<SegmentId> = log.segments().iter().map(|s| s.id).collect();
    for id in ids {
        log.retire(id.checked_next().unwrap()).unwrap();
        assert_eq!(log.bytes_used(), bytes_on_disk(&world));
    }
    assert_eq!((log.bytes_used(), world.room.space().used()), (0, 0));
    log.append(b"x".as_slice(), at(21)).unwrap();
    drop(log);
    assert_eq!(world.room.space().used(), 0, "a log that is gone holds nothing");
}

// S42, S50: a batch that fits exactly, a byte more, a byte less.
#[test]
fn the_last_byte_is_taken_and_one_more_is_refused_with_both_numbers() {
    let world = World::new();
    let limit = 2 * (OVERHEAD + 16 + 500) + OVERHEAD + 16 + 300;
    let log = world.log(settings(Some(limit), OnFull::Reject));
    for n in 0..2 {
        log.append([1; 500].as_slice(), at(n)).unwrap();
        log.rotate(at(n)).unwrap();
    }
    let (used, needed) = (log.bytes_used(), OVERHEAD + 16 + 301);
    let refused = log.append([1; 301].as_slice(), at(2)).unwrap_err();
    assert_eq!(refused, AppendError::Full { needed, used, limit, of: FullOf::Stream });
    log.append([1; 300].as_slice(), at(3)).unwrap();
    assert_eq!(log.bytes_used(), limit, "full to the last byte");
    assert!(log.append(b"".as_slice(), at(4)).is_err());
    log.commit(at(5), Want::Durable).unwrap();
    assert_eq!((bytes_on_disk(&world), log.counters().full), (limit, 2));
}

#[test]
fn a_future_without_space_is_pending_until_a_segment_is_retired() {
    let world = World::new();
    let log = world.log(settings(Some(OVERHEAD + 1_100), OnFull::Block));
    log.append([1; 1_000].as_slice(), at(0)).unwrap();
    log.rotate(at(1)).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(log.poll_append([2; 1_000].as_slice(), at(2), &mut cx), Poll::Pending));
    assert_eq!(log.retire(SegmentId::new(2)).unwrap(), 1);
    assert!(matches!(log.poll_append([2; 1_000].as_slice(), at(3), &mut cx), Poll::Ready(Ok(_))));
}

#[test]
fn a_thread_without_space_is_woken_by_a_retirement_and_by_the_end() {
    let world = World::new();
    let log = world.log(settings(Some(OVERHEAD + 1_100), OnFull::Block));
    log.append([1; 1_000].as_slice(), at(0)).unwrap();
    log.rotate(at(1)).unwrap();
    for ends in [false, true] {
        let before = log.counters().full;
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| log.append_blocking([2; 1_000].as_slice(), at(2)).map(|t| t.seq()));
            while log.counters().full < before + 2 {
                std::thread::yield_now();
            }
            if ends {
                log.close(at(3)).unwrap();
                assert_eq!(blocked.join().unwrap(), Err(AppendError::Closed));
            } else {
                log.retire(SegmentId::new(2)).unwrap();
                blocked.join().unwrap().unwrap();
                log.rotate(at(3)).unwrap();
            }
        });
    }
}

#[test]
fn dropping_the_newest_takes_no_seq_and_a_record_that_never_fits_is_told_so() {
    let world = World::new();
    let log = world.log(settings(Some(OVERHEAD + 1_100), OnFull::DropNewest));
    log.append([1; 1_000].as_slice(), at(0)).unwrap();
    let dropped = log.append([2; 1_000].as_slice(), at(1)).unwrap_err();
    assert!(matches!(dropped, AppendError::Dropped { .. }) && !dropped.is_retryable());
    assert_eq!((log.ends().appended.get(), log.counters().dropped_records), (2, 1));
    let two: Vec<wal_store::Record<'_>> = vec![(&[0_u8; 590][..]).into(), (&[0_u8; 590][..]).into()];
    let never = log.append_batch(&two, None, at(2)).unwrap_err();
    assert!(matches!(never, AppendError::BatchTooLarge { .. }), "{never}");
}

// What a failed write left in a file that was given up counts, until the file goes; what is given up gives its space back.
#[test]
fn failed_writes_are_counted_until_their_files_go() {
    let world = World::new();
    let log = world.log(settings(None, OnFull::Block));
    log.append([1; 500].as_slice(), at(0)).unwrap();
    log.commit(at(0), Want::Durable).unwrap();
    world.disk.plan(Fault::once(On::Op(disk::Op::SyncData), 1, errno::EIO));
    log.append([2; 500].as_slice(), at(1)).unwrap();
    log.commit(at(1), Want::Durable).unwrap();
    assert_eq!(log.segments().len(), 2, "it moved to a new segment");
    assert_eq!(log.bytes_used(), bytes_on_disk(&world));
    world.disk.plan(Fault::forever(On::Any, 1, errno::EIO));
    log.append([3; 500].as_slice(), at(2)).unwrap();
    let mut now = 2;
    while log.counters().records_failed == 0 {
        now += 1_000;
        assert!(log.commit(at(now), Want::Durable).is_err());
    }
    world.disk.clear_faults();
    assert!(log.bytes_used() >= bytes_on_disk(&world) || log.bytes_used() >= 2 * (OVERHEAD + 516));
    let left: u64 = log.bytes_used();
    assert!(left <= bytes_on_disk(&world) + OVERHEAD + 516, "a file it could not create may count");
}

// S56: lower than what is held: nothing is taken until enough is gone; whoever waits looks again when it is raised.
#[test]
fn limits_change_while_it_runs() {
    let world = World::new();
    let log = world.log(settings(None, OnFull::Block));
    for n in 0..4 {
        log.append([1; 1_000].as_slice(), at(n)).unwrap();
        log.rotate(at(n)).unwrap();
    }
    let limits = |bytes_max| Limits { bytes_max, ..Limits::default() };
    assert_eq!(log.set_limits(limits(Some(4_999))).unwrap_err().field, "limits.bytes_max");
    log.set_limits(limits(Some(2 * (OVERHEAD + 1_016)))).unwrap();
    assert!(log.append([1; 1_000].as_slice(), at(5)).is_err());
    log.retire(SegmentId::new(3)).unwrap();
    assert!(log.append([1; 1_000].as_slice(), at(6)).is_err(), "exactly full");
    log.retire(SegmentId::new(4)).unwrap();
    log.append([1; 1_000].as_slice(), at(7)).unwrap();
    assert!(log.append([1; 1_000].as_slice(), at(8)).is_err());
    log.set_limits(limits(None)).unwrap();
    log.append([1; 1_000].as_slice(), at(9)).unwrap();
}

#[test]
fn writes_are_held_back_and_go_on_without_harm_to_any_file() {
    let world = World::new();
    let log = world.log(settings(None, OnFull::Block));
    log.append([1; 100].as_slice(), at(0)).unwrap();
    log.commit(at(0), Want::Durable).unwrap();
    let full = std::io::Error::from_raw_os_error(errno::ENOSPC);
    world.room.space().hold_writes(DiskError::new(disk::Op::Allocate, Path::new("reserve"), full));
    log.append([2; 100].as_slice(), at(1)).unwrap();
    let writes = log.counters().writes;
    for n in 0..5 {
        let error = log.commit(at(2 + n), Want::Durable).unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("allocate reserve"), "{error}");
    }
    assert_eq!(log.due(), None, "it need not try until it is told");
    world.ears.take();
    world.room.resume_writes();
    assert_eq!(world.ears.take(), [Told::Enlist]);
    log.commit(at(1_000), Want::Durable).unwrap();
    let counted = log.counters();
    assert_eq!((counted.writes, counted.poisoned_files, counted.segments_created), (writes + 1, 0, 1));
}

// S33: what is due of what was written is done all the same: else it would be due for ever, and somebody would spin.
#[test]
fn what_was_written_is_synced_and_ended_in_time_while_writes_are_held_back() {
    let world = World::new();
    let second = std::time::Duration::from_secs(1);
    let sync = SyncSetting::Every(second);
    let log =
        world.log(Settings { sync, segment_age_max: Some(10 * second), ..settings(None, OnFull::Block) });
    log.append([1; 100].as_slice(), at(0)).unwrap();
    log.commit(at(0), Want::Durable).unwrap();
    log.append([2; 100].as_slice(), at(1)).unwrap();
    log.commit(at(1), Want::Batch).unwrap();
    let full = std::io::Error::from_raw_os_error(errno::ENOSPC);
    world.room.space().hold_writes(DiskError::new(disk::Op::Allocate, Path::new("reserve"), full));
    log.append([3; 100].as_slice(), at(2)).unwrap();
    for (millis, segments) in [(2_000, 1), (11_000, 1), (12_000, 1)] {
        log.commit(at(millis), Want::Batch).unwrap_err();
        assert!(log.due().is_none_or(|due| due > at(millis).instant), "{:?} at {millis} ms", log.due());
        assert_eq!((log.ends().durable.get(), log.segments().len()), (3, segments));
    }
    world.room.resume_writes();
    log.commit(at(13_000), Want::Durable).unwrap();
    assert_eq!((log.ends().durable.get(), log.segments().len()), (4, 2), "the old one ended");
}

/// Resumes when it is asked for the second time.
struct Second(Arc<Room>, AtomicU32);

impl Keeper for Second {
    fn look_again(&self, _now: Instant) {
        if self.1.fetch_add(1, Ordering::Relaxed) == 1 {
            self.0.resume_writes();
        }
    }
}

#[test]
fn a_commit_that_finds_writes_held_back_asks_whether_they_need_be() {
    let world = World::new();
    let log = world.log(settings(None, OnFull::Block));
    let keeper: Arc<dyn Keeper> = Arc::new(Second(Arc::clone(&world.room), AtomicU32::new(0)));
    world.room.space().set_keeper(Arc::downgrade(&keeper));
    let full = std::io::Error::from_raw_os_error(errno::ENOSPC);
    world.room.space().hold_writes(DiskError::new(disk::Op::Allocate, Path::new("reserve"), full));
    log.append([2; 100].as_slice(), at(1)).unwrap();
    assert!(log.commit(at(2), Want::Durable).unwrap_err().is_retryable());
    log.commit(at(3), Want::Durable).unwrap();
    assert_eq!(log.ends().durable.get(), 2);
}
