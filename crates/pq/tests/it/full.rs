//! Limits as producers meet them: who blocks, who is woken by what, and that limits change under load. No test sleeps: a producer that
//! blocks is seen by its refusals, which are counted.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, OsDisk};
use pq::{AppendError, Consumer, Limits, OnFull, Options, Queue, Stream, StreamSettings};
use sim_disk::SimDisk;

use crate::{DEADLINE, until};

const SEGMENT: u64 = 6000;

fn settings(bytes_max: Option<u64>, on_full: OnFull) -> StreamSettings {
    StreamSettings {
        segment_bytes_max: SEGMENT,
        batch_bytes_max: 1200,
        record_bytes_max: 600,
        limits: Limits { bytes_max, on_full, age_max: None },
        ..StreamSettings::default()
    }
}

fn open() -> (Queue, Stream, Consumer) {
    let queue = Queue::open_on(Arc::new(SimDisk::new()), Options::default()).unwrap();
    let stream = queue.stream_with("s", settings(Some(2 * SEGMENT), OnFull::Block)).unwrap();
    let consumer = stream.consumer("c").unwrap();
    (queue, stream, consumer)
}

/// Fills a stream; what it holds is durable.
fn fill(stream: &Stream) -> u64 {
    while stream.append([0; 500]).is_ok() {
        stream.commit_blocking().unwrap();
    }
    stream.ends().durable.get() - 1
}

fn ack_all(consumer: &mut Consumer, count: u64) {
    let mut seen = 0;
    while seen < count {
        let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
        seen += delivery.records_count();
        consumer.ack(&delivery).unwrap();
    }
}

// S50: a blocked producer resumes once what it waits for was acknowledged; a batch, and a future, likewise.
#[test]
fn a_blocked_producer_resumes_when_records_are_acknowledged() {
    type Producer = fn(&Stream) -> Result<pq::Ticket, AppendError>;
    let producers: [Producer; 3] = [
        |stream| stream.append_blocking([1; 500]),
        |stream| stream.append_batch_blocking(&[pq::Record::new(&[1; 500])], None),
        |stream| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(stream.append_async([1; 500]))
        },
    ];
    for producer in producers {
        // A queue each: what was acknowledged before could make room at any time.
        let (_queue, stream, mut consumer) = open();
        let count = fill(&stream);
        let refused = stream.stats().full_count;
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| producer(&stream).unwrap().wait().unwrap());
            // Once when it came, once more when it stood in the line.
            until(|| stream.stats().full_count >= refused + 2);
            assert!(!blocked.is_finished());
            ack_all(&mut consumer, count);
            blocked.join().unwrap();
        });
        assert!(stream.stats().bytes_used <= 2 * SEGMENT);
    }
}

#[test]
fn a_blocked_producer_is_woken_by_a_higher_limit_and_by_the_end() {
    let (queue, stream, _consumer) = open();
    fill(&stream);
    let refused = stream.stats().full_count;
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| stream.append_blocking([1; 500]).unwrap());
        until(|| stream.stats().full_count >= refused + 2);
        stream.set_limits(Limits { bytes_max: Some(3 * SEGMENT), ..stream.limits() }).unwrap();
        drop(blocked.join().unwrap());
    });
    fill(&stream);
    let refused = stream.stats().full_count;
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| stream.append_blocking([1; 500]));
        until(|| stream.stats().full_count >= refused + 2);
        queue.close(DEADLINE).unwrap();
        assert!(matches!(blocked.join().unwrap(), Err(AppendError::Closed)));
    });
}

#[test]
fn where_the_policy_is_to_reject_nobody_blocks_and_what_never_fits_is_told_at_once() {
    let (_queue, stream, _consumer) = open();
    stream.set_limits(Limits { on_full: OnFull::Reject, ..stream.limits() }).unwrap();
    fill(&stream);
    let Err(AppendError::Full { used, limit, .. }) = stream.append_blocking([1; 500]) else { panic!() };
    assert!(used <= limit && limit == 2 * SEGMENT);
    let records = [pq::Record::new(&[1; 500]); 2];
    assert!(matches!(stream.append_batch_blocking(&records, None), Err(AppendError::Full { .. })));
    stream.set_limits(Limits { on_full: OnFull::Block, ..stream.limits() }).unwrap();
    let error = stream.set_limits(Limits { bytes_max: Some(SEGMENT - 1), ..stream.limits() }).unwrap_err();
    assert!(error.to_string().contains("limits.bytes_max"), "{error}");
}

// The oldest goes while a producer that does not wait runs on; nobody acknowledges anything.
#[test]
fn dropping_the_oldest_keeps_a_producer_going_without_any_consumer() {
    let queue = Queue::open_on(Arc::new(SimDisk::new()), Options::default()).unwrap();
    let stream = queue.stream_with("s", settings(Some(4 * SEGMENT), OnFull::DropOldest)).unwrap();
    for _ in 0..300 {
        stream.append_durable([1; 500]).unwrap();
        assert!(stream.stats().bytes_used <= 4 * SEGMENT);
    }
    let stats = stream.stats();
    assert_eq!(stats.records_count, 300);
    assert!(stats.trimmed_records_count > 200 && stream.first().get() > 200, "{stats:?}");
}

const CHILD: &str = "PQ_IT_FULL";

// S60: limits and settings change 100 times under load: each record once, and as many threads as before.
#[test]
fn settings_changed_under_load_cost_no_record_and_no_thread() {
    if std::env::var_os(CHILD).is_none() {
        // In a process of its own: other tests' threads come and go.
        let test = "full::settings_changed_under_load_cost_no_record_and_no_thread";
        let program = std::env::current_exe().unwrap();
        let status =
            std::process::Command::new(program).args(["--exact", test]).env(CHILD, "1").status().unwrap();
        assert!(status.success());
        return;
    }
    const RECORDS: u64 = 2000;
    let (queue, stream, mut consumer) = open();
    let threads = threads_count();
    std::thread::scope(|scope| {
        let producer = scope.spawn(|| {
            for n in 0..RECORDS {
                drop(stream.append_blocking(n.to_le_bytes()).unwrap());
            }
        });
        let reader = scope.spawn(|| {
            let mut next = 0;
            while next < RECORDS {
                let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
                assert_eq!(delivery.gaps().count(), 0);
                for record in delivery.records() {
                    assert_eq!(record.payload, next.to_le_bytes(), "each once, in order");
                    next += 1;
                }
                consumer.ack(&delivery).unwrap();
            }
        });
        for n in 0..100 {
            let bytes_max = [Some(2 * SEGMENT), None, Some(5 * SEGMENT)][n % 3];
            let changed = queue.stream_with("s", settings(bytes_max, OnFull::Block)).unwrap();
            assert_eq!(changed.limits().bytes_max, bytes_max, "at once");
        }
        producer.join().unwrap();
        reader.join().unwrap();
    });
    assert_eq!(threads_count(), threads);
    assert_eq!(stream.stats().records_count, RECORDS);
}

fn threads_count() -> usize {
    let mut count = 0;
    let tasks = OsDisk::open(Path::new("/proc/self/task")).unwrap();
    let counted = tasks.list(Path::new(""), &mut |_| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    });
    counted.unwrap();
    count
}
