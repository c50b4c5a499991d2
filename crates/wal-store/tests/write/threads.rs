//! Real threads on one log.

use std::sync::atomic::{AtomicU64, Ordering};

use sim_disk::{Fault, On, errno};
use wal_store::{CommitError, Level, ReadLevel, Settings, SyncSetting, Want};

use crate::support::{Told, World, at, seqs, settings};

const SYNC: disk::SyncSite = disk::SyncSite::new("commit.batch");

#[test]
fn sixty_four_producers_share_syncs_and_every_record_is_there_once() {
    // S10, F03
    const THREADS: u64 = 64;
    const RECORDS: u64 = 50;
    let world = World::new();
    let log = world.log(Settings { segment_bytes_max: 64 << 10, ..settings() });
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = log.clone();
            scope.spawn(move || {
                let mut last = 0;
                for n in 0..RECORDS {
                    let payload = [thread.to_le_bytes(), n.to_le_bytes()].concat();
                    let seq =
                        log.append(&payload[..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap().get();
                    assert!(seq > last && log.ends().durable.get() > seq);
                    last = seq;
                }
            });
        }
    });
    let records = world.durable_payloads();
    assert_eq!(seqs(&records), (1..=THREADS * RECORDS).collect::<Vec<_>>());
    for thread in 0..THREADS {
        let own: Vec<_> =
            records.iter().filter(|(_, p)| p[..8] == thread.to_le_bytes()).map(|(_, p)| p[8]).collect();
        assert_eq!(own, (0..RECORDS as u8).collect::<Vec<_>>(), "each producer's order is kept");
    }
    let counters = log.counters();
    assert_eq!(counters.records, THREADS * RECORDS);
    assert!(counters.syncs <= counters.records / 2, "{counters:?}");
    assert_eq!(world.room.used(), 0);
}

#[test]
fn followers_of_a_held_sync_become_one_batch() {
    // S06, S10
    let world = World::new();
    let log = world.log(settings());
    log.append(b"x", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let gate = world.disk.hold(On::Site(SYNC));
    std::thread::scope(|scope| {
        let leader = log.append(b"leader", at(1)).unwrap();
        scope.spawn(move || leader.wait(Level::Durable, at(1)).unwrap());
        gate.wait_arrived(1);
        let tickets: Vec<_> = (0..63).map(|_| log.append(b"follower", at(1)).unwrap()).collect();
        let waiting: Vec<_> = tickets
            .into_iter()
            .map(|ticket| scope.spawn(move || ticket.wait(Level::Durable, at(1))))
            .collect();
        let second = scope.spawn(|| log.commit(at(1), Want::Durable).unwrap());
        assert!(log.try_commit(at(1), Want::Batch).is_none(), "busy");
        assert_eq!(log.ends().durable.get(), 2, "nobody returns before the barrier");
        gate.release();
        waiting.into_iter().for_each(|thread| {
            thread.join().unwrap().unwrap();
        });
        assert_eq!(second.join().unwrap().ends.durable.get(), 66);
    });
    assert_eq!(log.counters().syncs, 3, "the first, the leader's, and one for all 63");
}

#[test]
fn eight_followers_of_a_failing_leader_are_all_answered() {
    // S05
    let world = World::new();
    let log = world.log(settings());
    log.append(b"x", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let gate = world.disk.hold(On::Site(SYNC));
    world.disk.plan(Fault::times(On::Op(disk::Op::SyncData), 1, 4, errno::EIO));
    let tickets: Vec<_> = (0..9).map(|_| log.append(b"y", at(1)).unwrap()).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            tickets.iter().map(|ticket| scope.spawn(|| ticket.wait(Level::Durable, at(1)))).collect();
        gate.wait_arrived(1);
        gate.release();
        for thread in threads {
            let outcome = thread.join().unwrap();
            assert!(matches!(outcome, Err(CommitError::Indeterminate { .. })), "{outcome:?}");
        }
    });
}

#[test]
fn sixty_four_threads_at_the_limit_make_exactly_one_new_segment() {
    // F08
    let world = World::new();
    let log = world.log(Settings { segment_bytes_max: 4096 + 64 + 1016 + 100, ..settings() });
    log.append(&[0; 1000][..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let gate = world.disk.hold(On::OpPath(disk::Op::Create, ".seg".into()));
    std::thread::scope(|scope| {
        for _ in 0..64 {
            let log = log.clone();
            scope.spawn(move || {
                log.append(&[1; 1][..], at(2)).unwrap().wait(Level::Written, at(2)).unwrap();
            });
        }
        gate.wait_arrived(1);
        gate.release();
    });
    let files = world.files();
    assert!(files.len() >= 2);
    // Each segment but the last is full: the next batch did not fit.
    for (file, next) in files.iter().zip(&files[1..]) {
        let next_batch = 64 + u64::from(next.batches[0].1.frames_bytes);
        assert!(file.len + next_batch > log.settings().segment_bytes_max);
    }
    assert_eq!(seqs(&world.durable_payloads()), (1..=65).collect::<Vec<_>>());
}

#[test]
fn mixed_waiters_committers_and_rotations_leave_nobody_asleep() {
    // S47
    for (sync, read_level) in
        [(SyncSetting::EachBatch, ReadLevel::Durable), (SyncSetting::Never, ReadLevel::Written)]
    {
        let world = World::with_room(4000);
        let log = world.log(Settings {
            sync,
            read_level,
            segment_bytes_max: 9000,
            record_bytes_max: 900,
            ..settings()
        });
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..12_u64 {
                let (log, done) = (&log, &done);
                scope.spawn(move || {
                    for n in 0..150_u64 {
                        let now = at(n);
                        let level = if (thread + n) % 3 == 0 { Level::Written } else { Level::Durable };
                        match thread % 6 {
                            0 => drop(log.commit(now, Want::Batch).unwrap()),
                            1 => drop(log.rotate(now).unwrap()),
                            2 => drop(log.append_blocking(&[1; 500][..], now).unwrap()),
                            _ => drop(log.append_blocking(b"x", now).unwrap().wait(level, now).unwrap()),
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(done.into_inner(), 12);
        log.close(at(1000)).unwrap();
        assert_eq!(seqs(&world.durable_payloads()), (1..=8 * 150).collect::<Vec<_>>());
        assert_eq!(world.room.used(), 0);
    }
}

#[test]
fn a_thread_asleep_while_another_one_commits_is_told_of_the_refusal_and_waits_again() {
    // S34
    let world = World::new();
    let log = world.log(settings());
    log.append(b"x", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let gate = world.disk.hold(On::Op(disk::Op::Write));
    let (first, second) = (log.append(b"y", at(1)).unwrap(), log.append(b"z", at(1)).unwrap());
    world.ears.take();
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| first.wait(Level::Durable, at(1)));
        gate.wait_arrived(1);
        let sleeper = scope.spawn(|| second.wait(Level::Durable, at(1)));
        // It enlists once it is registered.
        while !world.ears.take().contains(&Told::Enlist) {
            std::thread::yield_now();
        }
        world.disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
        gate.release();
        for thread in [leader, sleeper] {
            let outcome = thread.join().unwrap();
            assert!(matches!(outcome, Err(CommitError::Stalled { .. })), "{outcome:?}");
        }
    });
    assert_eq!(seqs(&world.durable_payloads()), [1]);
    world.disk.clear_faults();
    assert_eq!(second.wait(Level::Durable, at(2)).unwrap().get(), 3);
    assert_eq!(first.wait(Level::Durable, at(2)).unwrap().get(), 2);
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3]);
}
