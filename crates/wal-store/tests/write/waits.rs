//! Tickets as futures, waiting for room, dropping.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use sim_disk::{Fault, On, errno};
use wal_format::Seq;
use wal_store::{AppendError, CommitError, Level, Settings, SyncSetting, Want};

use crate::support::{Told, World, at, seqs, settings};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a waker's bug");
    }
}

#[test]
fn a_future_enlists_once_is_woken_by_its_batch_and_calls_nothing() {
    let world = World::new();
    let log = world.log(settings());
    let mut ticket = log.append(b"a", at(1)).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    world.ears.take();
    let calls = world.disk.call_count();
    for _ in 0..3 {
        assert!(ticket.poll(Level::Durable, &mut cx).is_pending());
    }
    assert_eq!(world.disk.call_count(), calls);
    assert_eq!(world.ears.take(), [Told::Enlist]);
    log.commit(at(1), Want::Batch).unwrap();
    assert_eq!(woken.take(), 1, "polled thrice, registered once");
    assert!(matches!(ticket.poll(Level::Durable, &mut cx), Poll::Ready(Ok(Seq::FIRST))));
}

#[test]
fn a_future_that_asks_for_more_enlists_again_and_forces_the_sync() {
    let world = World::new();
    let log = world.log(Settings { sync: SyncSetting::Never, ..settings() });
    log.append(b"a", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    let mut ticket = log.append(b"b", at(1)).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(ticket.poll(Level::Written, &mut cx).is_pending());
    log.commit(at(1), Want::Batch).unwrap();
    assert_eq!(woken.take(), 1);
    assert!(ticket.poll(Level::Written, &mut cx).is_ready());
    world.ears.take();
    assert!(ticket.poll(Level::Durable, &mut cx).is_pending());
    assert_eq!(world.ears.take(), [Told::Enlist]);
    log.commit(at(2), Want::Batch).unwrap();
    assert_eq!(woken.take(), 1);
    assert!(ticket.poll(Level::Durable, &mut cx).is_ready());
    assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
}

#[test]
fn a_future_is_told_of_a_stall_and_may_be_polled_again() {
    let world = World::new();
    let log = world.log(settings());
    let mut ticket = log.append(b"a", at(1)).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(ticket.poll(Level::Durable, &mut cx).is_pending());
    world.disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
    log.commit(at(1), Want::Batch).unwrap_err();
    assert_eq!(woken.take(), 1);
    assert!(matches!(ticket.poll(Level::Durable, &mut cx), Poll::Ready(Err(CommitError::Stalled { .. }))));
    assert!(ticket.poll(Level::Durable, &mut cx).is_pending());
    world.disk.clear_faults();
    log.commit(at(2), Want::Batch).unwrap();
    assert_eq!(woken.take(), 1);
    assert!(matches!(ticket.poll(Level::Durable, &mut cx), Poll::Ready(Ok(_))));
}

#[test]
fn a_panicking_waker_harms_nobody() {
    // S52
    let world = World::new();
    let log = world.log(settings());
    let mut first = log.append(b"a", at(1)).unwrap();
    let mut second = log.append(b"b", at(1)).unwrap();
    let bomb = Waker::from(Arc::new(Bomb));
    assert!(first.poll(Level::Durable, &mut Context::from_waker(&bomb)).is_pending());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(second.poll(Level::Durable, &mut Context::from_waker(&waker)).is_pending());
    log.commit(at(1), Want::Batch).unwrap();
    assert_eq!(woken.take(), 1);
}

#[test]
fn dropped_tickets_change_nothing_and_words_are_not_mixed_up() {
    let world = World::new();
    let log = world.log(settings());
    let kept: Vec<_> = (0..50_u64)
        .filter_map(|n| {
            let ticket = log.append(b"a", at(n)).unwrap();
            log.commit(at(n), Want::Batch).unwrap();
            (n % 7 == 0).then_some(ticket)
        })
        .collect();
    let open = log.append(b"open", at(60)).unwrap();
    assert!(open.peek(Level::Written).is_none());
    assert!(kept.iter().all(|ticket| ticket.peek(Level::Durable).is_some_and(|outcome| outcome.is_ok())));
    drop(open);
    log.commit(at(61), Want::Batch).unwrap();
    assert_eq!(seqs(&world.durable_payloads()), (1..=51).collect::<Vec<_>>());
}

#[test]
fn waiting_for_room_ends_when_another_stream_gives_it_back() {
    // S50
    let world = World::with_room(2000);
    let settings = Settings { record_bytes_max: 984, ..settings() };
    let holder = world.log(settings.clone());
    let mut context = world.context();
    context.dir = "streams".into();
    let waiter = wal_store::Log::open(context, &wal_store::Recovery::fresh(), settings).unwrap();
    holder.append(&[1; 984][..], at(1)).unwrap();
    holder.append(&[1; 984][..], at(1)).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    world.ears.take();
    assert!(waiter.poll_append(b"x", at(1), &mut Context::from_waker(&waker)).is_pending());
    assert!(world.ears.take().contains(&Told::Enlist));
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| waiter.append_blocking(b"y", at(1)).unwrap());
        holder.commit(at(1), Want::Batch).unwrap();
        assert_eq!(blocked.join().unwrap().seq(), Seq::FIRST);
    });
    assert_eq!(woken.take(), 1);
    let again = waiter.poll_append(b"x", at(1), &mut Context::from_waker(&waker));
    assert!(matches!(again, Poll::Ready(Ok(_))));
}

#[test]
fn without_room_a_lone_blocking_append_commits_for_itself() {
    let world = World::with_room(2000);
    let log = world.log(Settings { record_bytes_max: 984, ..settings() });
    for time in 0..10 {
        log.append_blocking(&[1; 984][..], at(time)).unwrap();
    }
    assert_eq!(seqs(&world.durable_payloads()).len(), 8);
    assert!(matches!(log.append(&[1; 984][..], at(11)), Err(AppendError::Busy { .. })));
}

#[test]
fn what_is_dropped_or_discarded_unwritten_gives_its_room_back() {
    // S50
    for discards in [false, true] {
        let world = World::with_room(2000);
        let log = world.log(Settings { record_bytes_max: 984, ..settings() });
        world.disk.plan(Fault::forever(On::Any, 1, errno::ENOSPC));
        let in_flight = log.append(&[1; 500][..], at(1)).unwrap();
        assert!(log.commit(at(1), Want::Durable).unwrap_err().is_retryable());
        let open = log.append(&[1; 500][..], at(1)).unwrap();
        assert!(world.room.used() > 1000);
        if discards {
            log.discard();
            assert_eq!(world.room.used(), 0);
            let outcomes = [in_flight.peek(Level::Durable), open.peek(Level::Durable)];
            assert!(outcomes.iter().all(|told| matches!(told, Some(Err(CommitError::NotWritten { .. })))));
            assert!(matches!(log.append(b"x", at(2)), Err(AppendError::Closed)));
            world.disk.clear_faults();
            log.commit(at(2), Want::Durable).unwrap();
        }
        drop((log, in_flight, open));
        assert_eq!(world.room.used(), 0);
    }
}

#[test]
fn dropping_the_log_answers_every_future() {
    for errno in [None, Some(errno::ENOSPC)] {
        let world = World::new();
        let log = world.log(Settings { sync: SyncSetting::Never, ..settings() });
        let mut written = log.append(b"a", at(1)).unwrap();
        log.commit(at(1), Want::Batch).unwrap();
        let mut second = log.append(b"b", at(1)).unwrap();
        log.commit(at(1), Want::Batch).unwrap();
        let mut open = log.append(b"c", at(1)).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut tickets = [&mut written, &mut second, &mut open];
        let pending: usize = tickets
            .iter_mut()
            .map(|ticket| usize::from(ticket.poll(Level::Durable, &mut cx).is_pending()))
            .sum();
        assert_eq!(pending, 2, "the first batch of a file is durable");
        errno.iter().for_each(|errno| world.disk.plan(Fault::forever(On::Any, 1, *errno)));
        drop(log);
        // Told at least once each: of the refusal, and of the end.
        assert!(woken.take() >= 2);
        for ticket in tickets {
            let Poll::Ready(outcome) = ticket.poll(Level::Durable, &mut cx) else { panic!("left pending") };
            assert_eq!(outcome.is_ok(), errno.is_none() || ticket.seq() == Seq::FIRST);
        }
    }
}
