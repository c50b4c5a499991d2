//! Async callers: their runtime never waits for the device.

use std::time::Duration;

use disk::Op;
use sim_disk::On;
use tokio::runtime::Builder;
use tokio::time::interval;

use crate::simulated;

// Promise 6: a timer keeps its rate on a current_thread runtime while a sync is held and a read is held.
#[test]
fn a_current_thread_runtime_goes_on_while_the_device_hangs() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("there").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let sync = disk.hold(On::Op(Op::SyncData));
        let read = disk.hold(On::Op(Op::Read));
        let ticket = stream.append("held").unwrap();
        let ticks = async {
            let mut timer = interval(Duration::from_millis(1));
            for _ in 0..50 {
                timer.tick().await;
            }
        };
        // All of it on one thread: were it blocked by the ticket or by the consumer, the ticks would never be over.
        let mut next = std::pin::pin!(consumer.next());
        let mut ticket = std::pin::pin!(ticket);
        tokio::select! {
            biased;
            _ = &mut ticket => panic!("durable while the sync is held"),
            _ = &mut next => panic!("read while the read is held"),
            () = ticks => {}
        }
        sync.release();
        read.release();
        assert_eq!(ticket.await.unwrap().get(), 2);
        let delivery = next.await.unwrap().unwrap();
        assert_eq!(delivery.records().next().unwrap().payload, b"there");
    });
}

// A future that is dropped half-way loses nothing.
#[test]
fn next_is_cancel_safe() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let read = disk.hold(On::Op(Op::Read));
        tokio::select! {
            biased;
            _ = consumer.next() => panic!("read while the read is held"),
            () = tokio::task::yield_now() => {}
        }
        read.release();
        let delivery = consumer.next().await.unwrap().unwrap();
        assert_eq!(delivery.records().next().unwrap().payload, b"one");
        let acked = consumer.ack(&delivery).unwrap();
        acked.saved().await.unwrap();
        assert!(acked.is_saved());
    });
}

#[test]
fn a_waiting_next_is_woken_by_a_commit_and_by_the_end() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (read, appended) =
            tokio::join!(consumer.next(), async { stream.append_async("one").await.unwrap().await.unwrap() });
        assert_eq!(read.unwrap().unwrap().first(), appended);
        let (end, ()) = tokio::join!(consumer.next(), async { queue.delete_stream("s").unwrap() });
        assert!(end.unwrap().is_none());
    });
}
