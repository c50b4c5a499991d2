//! Who waits for the device, and who must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Op, SyncSite};
use pq::{Level, Options, Queue};
use sim_disk::{Fault, On};

use crate::{DEADLINE, simulated, take};

const BATCH: On = On::Op(Op::SyncData);

// S06: two callers commit, the first is blocked in the sync: the second does not return before its record is durable.
#[test]
fn the_second_caller_waits_for_the_same_barrier() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("the segment is there").unwrap();
    let gate = disk.hold(BATCH);
    let released = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stream.append_durable("first").unwrap());
        gate.wait_arrived(1);
        let second = scope.spawn(|| {
            let ticket = stream.append("second").unwrap();
            // In this order: the sync may be let go at any moment.
            let told = ticket.peek();
            assert!(told.is_none() || released.load(Ordering::SeqCst), "told while the sync was held");
            ticket.wait().unwrap();
            assert!(released.load(Ordering::SeqCst), "returned while the sync was held");
        });
        let third = scope.spawn(|| {
            stream.commit_blocking().unwrap();
            assert!(released.load(Ordering::SeqCst), "returned while the sync was held");
        });
        released.store(true, Ordering::SeqCst);
        gate.release();
        first.join().unwrap();
        second.join().unwrap();
        third.join().unwrap();
    });
    assert_eq!(stream.ends().durable, stream.ends().appended);
}

// S08: callers that want no more than `Buffered` complete while the device is stuck.
#[test]
fn buffered_appends_do_not_notice_a_stuck_device() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let gate = disk.hold(BATCH);
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| stream.append_durable("stuck").unwrap());
        gate.wait_arrived(1);
        let syncs = disk.count(Op::SyncData);
        for _ in 0..100 {
            stream.append("x").unwrap().level(Level::Buffered).wait().unwrap();
        }
        assert_eq!(disk.count(Op::SyncData), syncs);
        assert_eq!(stream.ends().appended.get(), 102);
        gate.release();
        stuck.join().unwrap();
    });
}

// S07: the last commit inside close fails: an error, and nothing was unlinked or forgotten.
#[test]
fn a_close_that_cannot_commit_says_so() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    drop(stream.append("two").unwrap());
    disk.plan(Fault::forever(On::Any, 1, sim_disk::errno::ENOSPC));
    let error = queue.close(DEADLINE).unwrap_err();
    assert!(error.to_string().contains("\"s\""), "{error}");
    drop((stream, queue));
    disk.clear_faults();
    let queue = Queue::open_on(Arc::new(disk), Options::default()).unwrap();
    assert!(!queue.recovery().clean);
    assert_eq!(take(&mut queue.stream("s").unwrap().consumer("c").unwrap(), 1), ["one"]);
}

// S07: the sync of the last commit fails for good: an error, no segment is gone, no cursor was moved.
#[test]
fn a_close_whose_sync_fails_unlinks_nothing_and_moves_no_cursor() {
    let disk = sim_disk::SimDisk::new();
    let hour = std::time::Duration::from_secs(3600);
    let options = Options { cursor_interval: hour, ..Options::default() };
    let queue = Queue::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    for n in 0..3 {
        stream.append_durable(n.to_string()).unwrap();
        stream.rotate().unwrap();
    }
    assert_eq!(take(&mut consumer, 3), ["0", "1", "2"]);
    consumer.ack_to(pq::Seq::new(2)).unwrap().wait().unwrap();
    let before = disk.files();
    let _in_memory_only = consumer.ack_to(pq::Seq::new(4)).unwrap();
    drop(stream.append("never durable").unwrap());
    disk.plan(Fault::forever(On::Op(Op::SyncData), 1, sim_disk::errno::EIO));
    queue.close(DEADLINE).unwrap_err();
    drop((consumer, stream, queue));
    let gone: Vec<_> = before.iter().filter(|path| !disk.files().contains(path)).collect();
    assert!(gone.iter().all(|path| path.extension().is_none_or(|extension| extension != "seg")), "{gone:?}");
    let disk = disk.power_cut(&sim_disk::Survival::Nothing);
    let queue = Queue::open_on(Arc::new(disk), options).unwrap();
    let mut consumer = queue.stream("s").unwrap().consumer("c").unwrap();
    assert_eq!(consumer.cursor(), pq::Seq::new(2));
    assert_eq!(take(&mut consumer, 2), ["1", "2"]);
}

// F31, S51: a device that hangs holds the caller of close no longer than its deadline.
#[test]
fn a_close_over_a_hanging_device_ends_at_its_deadline() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    drop(stream.append("one").unwrap());
    let gate = disk.hold(On::Any);
    assert!(matches!(
        queue.close(std::time::Duration::from_millis(50)),
        Err(pq::CloseError::Deadline { .. })
    ));
    gate.release();
}

#[test]
fn without_room_an_append_is_busy_a_blocking_one_waits() {
    let disk = sim_disk::SimDisk::new();
    let mut options = Options { buffer_bytes_max: 16 << 10, ..Options::default() };
    options.stream.record_bytes_max = 8 << 10;
    let queue = Queue::open_on(Arc::new(disk.clone()), options).unwrap();
    let stream = queue.stream("s").unwrap();
    let payload = [7_u8; 4 << 10];
    let gate = disk.hold(On::Site(SyncSite::new("none")));
    let mut taken = 0;
    while stream.append(payload).is_ok() {
        taken += 1;
        assert!(taken < 1_000, "room is never used up");
    }
    for _ in 0..20 {
        drop(stream.append_blocking(payload).unwrap());
    }
    let record = pq::Record::new(&payload);
    for _ in 0..20 {
        drop(stream.append_batch_blocking(&[record, record], None).unwrap());
    }
    let end = stream.commit_blocking().unwrap();
    assert!(end.get() > taken + 60);
    gate.release();
}

// The room is held by a stream the disk refuses: a stream that holds none of it must not commit nothing for ever.
#[test]
fn a_blocking_batch_append_gives_up_when_the_disk_refuses_those_who_hold_the_room() {
    let disk = sim_disk::SimDisk::new();
    let mut options = Options { buffer_bytes_max: 16 << 10, ..Options::default() };
    options.stream.record_bytes_max = 8 << 10;
    let queue = Queue::open_on(Arc::new(disk.clone()), options).unwrap();
    let (full, empty) = (queue.stream("full").unwrap(), queue.stream("empty").unwrap());
    disk.plan(Fault::forever(On::Op(Op::Create), 1, sim_disk::errno::ENOSPC));
    let payload = [7_u8; 4 << 10];
    while full.append(payload).is_ok() {}
    let record = pq::Record::new(&payload);
    let refused = empty.append_batch_blocking(&[record], None);
    assert!(matches!(refused, Err(pq::AppendError::Busy { .. })), "{refused:?}");
    disk.clear_faults();
    drop(empty.append_batch_blocking(&[record], None).unwrap());
    assert_eq!(empty.commit_blocking().unwrap().get(), 2);
}

// S10: many producers, far fewer syncs than records.
#[test]
fn producers_share_syncs() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("the segment is there").unwrap();
    let gate = disk.hold(BATCH);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stream.append_durable("first").unwrap());
        gate.wait_arrived(1);
        let tickets: Vec<_> = (0..64).map(|n: u32| stream.append(n.to_string()).unwrap()).collect();
        let waiters: Vec<_> =
            tickets.into_iter().map(|ticket| scope.spawn(move || ticket.wait().unwrap())).collect();
        gate.release();
        first.join().unwrap();
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().is_ok()));
    });
    let syncs = stream.stats().syncs_count;
    assert!(syncs <= 4, "{syncs} syncs for 66 records");
}
