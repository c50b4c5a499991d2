//! Sinks, driven by the pool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pq::{
    BoxSink, Delivery, OnRejected, Options, Queue, SendOutcome, Seq, Sink, SinkError, SinkSettings,
    StreamError,
};

use crate::{DEADLINE, simulated};

/// Seqs as they arrived.
pub(crate) type Arrived = Arc<Mutex<Vec<u64>>>;

/// Answers by a script, then takes everything.
pub(crate) struct Scripted {
    arrived: Arrived,
    answers: Vec<Answer>,
    started_with: Arc<Mutex<Vec<Vec<u8>>>>,
}

pub(crate) enum Answer {
    Panic,
    Retry,
    Reject,
    /// Takes this many.
    Part(u64),
    Throttle,
}

impl Scripted {
    pub(crate) fn new(answers: impl Into<Vec<Answer>>) -> (Self, Arrived) {
        let arrived = Arrived::default();
        (
            Self { arrived: Arc::clone(&arrived), answers: answers.into(), started_with: Arc::default() },
            arrived,
        )
    }

    fn take(&self, delivery: &Delivery, to: Seq) {
        let seqs = delivery.records().map(|record| record.seq).filter(|seq| *seq < to);
        self.arrived.lock().unwrap().extend(seqs.map(Seq::get));
    }
}

impl Sink for Scripted {
    async fn start(&mut self, note: &[u8]) -> Result<(), SinkError> {
        self.started_with.lock().unwrap().push(note.to_vec());
        Ok(())
    }

    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        if self.answers.is_empty() {
            self.take(delivery, delivery.next());
            return SendOutcome::Delivered { note: Some(delivery.next().to_string().into_bytes()) };
        }
        match self.answers.remove(0) {
            Answer::Panic => panic!("as planned"),
            Answer::Retry => SendOutcome::retry("not now"),
            Answer::Reject => SendOutcome::Rejected { reason: "never".to_owned() },
            Answer::Throttle => SendOutcome::Throttled { wait: Duration::from_millis(2) },
            Answer::Part(count) => {
                let next = delivery.first().checked_add(count).unwrap();
                self.take(delivery, next);
                SendOutcome::Partial { next, note: None }
            }
        }
    }
}

fn fast() -> Options {
    Options {
        backoff_first: Duration::from_millis(1),
        backoff_max: Duration::from_millis(2),
        ..Options::default()
    }
}

fn open(options: Options) -> (sim_disk::SimDisk, Queue) {
    let disk = sim_disk::SimDisk::new();
    let queue = Queue::open_on(Arc::new(disk.clone()), options).unwrap();
    (disk, queue)
}

fn append(queue: &Queue, name: &str, count: u64) -> pq::Stream {
    let stream = queue.stream(name).unwrap();
    (0..count).for_each(|n| drop(stream.append(n.to_string()).unwrap()));
    stream.commit_blocking().unwrap();
    stream
}

// S52, S65, S67's first half: a sink that panics, fails, takes part, is throttled: everything arrives once, in order.
#[test]
fn a_troubled_sink_gets_everything_in_order() {
    let (_, queue) = open(fast());
    let stream = append(&queue, "s", 10);
    let script =
        [Answer::Panic, Answer::Retry, Answer::Part(3), Answer::Throttle, Answer::Part(0), Answer::Panic];
    let (sink, arrived) = Scripted::new(script);
    let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
    assert!(matches!(stream.consumer("c"), Err(StreamError::InUse { .. })));
    assert!(attached.wait_drained(DEADLINE));
    assert_eq!(*arrived.lock().unwrap(), (1..=10).collect::<Vec<_>>());
    let stats = attached.stats();
    assert_eq!((stats.acked_count, stats.failures_count, stats.lag_records), (10, 6, 0));
    assert_eq!(stats.last_failure.as_deref(), Some("the sink panicked"));
}

// S66: two sinks on one stream, one of them dead; S52: a panic harms nobody.
#[test]
fn a_dead_sink_costs_the_others_nothing() {
    let (_, queue) = open(Options { readers_count: 2, ..fast() });
    struct Dead;
    impl Sink for Dead {
        async fn send(&mut self, _: &Delivery) -> SendOutcome {
            panic!("always")
        }
    }
    let stream = append(&queue, "s", 100);
    let dead: Vec<_> = (0..10)
        .map(|n| queue.attach(&stream, &format!("dead {n}"), Dead, SinkSettings::default()).unwrap())
        .collect();
    let (sink, arrived) = Scripted::new([]);
    let alive = queue.attach(&stream, "alive", BoxSink::new(sink), SinkSettings::default()).unwrap();
    assert!(alive.wait_drained(DEADLINE));
    assert_eq!(arrived.lock().unwrap().len(), 100);
    assert!(dead.iter().all(|dead| dead.lag() == 100));
    drop(dead);
    queue.close(DEADLINE).unwrap();
}

#[test]
fn rejected_records_are_kept_or_dropped_by_choice_and_counted() {
    let (_, queue) = open(fast());
    let stream = append(&queue, "s", 5);
    let (sink, arrived) = Scripted::new([Answer::Reject]);
    let settings = SinkSettings { on_rejected: OnRejected::Drop, ..SinkSettings::default() };
    let dropping = queue.attach(&stream, "dropping", sink, settings).unwrap();
    assert!(dropping.wait_drained(DEADLINE));
    let stats = dropping.stats();
    assert!(stats.dropped_count > 0);
    assert_eq!(stats.acked_count, arrived.lock().unwrap().len() as u64, "each record in one counter");
    assert_eq!(stats.dropped_count + stats.acked_count, 5);
    let (sink, arrived) = Scripted::new([Answer::Reject, Answer::Reject]);
    let keeping = queue.attach(&stream, "keeping", sink, SinkSettings::default()).unwrap();
    assert!(keeping.wait_drained(DEADLINE));
    assert_eq!(arrived.lock().unwrap().len(), 5);
}

// S61: a clean stop under load: no loss, no duplicate; the note comes back.
#[test]
fn a_stop_under_load_loses_and_repeats_nothing() {
    let (disk, mut queue) = open(fast());
    let all = Arrived::default();
    for round in 0..4_u64 {
        let stream = queue.stream("s").unwrap();
        let (mut sink, _) = Scripted::new([]);
        sink.arrived = Arc::clone(&all);
        let started = Arc::clone(&sink.started_with);
        let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
        let before = all.lock().unwrap().len();
        for n in 0..200_u64 {
            drop(stream.append(n.to_string()).unwrap());
            if n == 100 {
                let _ = stream.commit_blocking().unwrap();
                assert!(attached.wait_drained(DEADLINE));
            }
        }
        queue.close(DEADLINE).unwrap();
        assert!(all.lock().unwrap().len() > before);
        if round > 0 {
            let note = String::from_utf8(started.lock().unwrap()[0].clone()).unwrap();
            assert_eq!(note.parse::<usize>().unwrap(), before + 1, "what was saved with the cursor");
        }
        drop((stream, attached));
        queue = Queue::open_on(Arc::new(disk.clone()), fast()).unwrap();
        assert!(queue.recovery().clean);
    }
    let stream = queue.stream("s").unwrap();
    let (mut sink, _) = Scripted::new([]);
    sink.arrived = Arc::clone(&all);
    let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
    assert!(attached.wait_drained(DEADLINE));
    assert_eq!(*all.lock().unwrap(), (1..=800).collect::<Vec<_>>());
}

#[test]
fn a_detached_sink_stops_and_its_consumer_goes_on_elsewhere() {
    let (_, queue) = simulated();
    let stream = append(&queue, "s", 3);
    let (sink, _) = Scripted::new([]);
    let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
    assert!(attached.wait_drained(DEADLINE));
    attached.detach();
    stream.append_durable("3").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // It is given back once its turn is over.
    let mut consumer = loop {
        match stream.consumer("c") {
            Ok(consumer) => break consumer,
            Err(StreamError::InUse { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    let delivery = runtime.block_on(consumer.next()).unwrap().unwrap();
    assert_eq!(delivery.first(), Seq::new(4));
}

// S51: a sink that never answers holds nobody beyond the deadline of close, and what it had not taken comes again.
#[test]
fn a_stuck_sink_does_not_hold_close() {
    let (disk, queue) = open(fast());
    struct Stuck(std::sync::mpsc::Sender<()>);
    impl Sink for Stuck {
        async fn send(&mut self, _: &Delivery) -> SendOutcome {
            self.0.send(()).unwrap();
            std::future::pending().await
        }
    }
    let stream = append(&queue, "s", 3);
    let (entered, stuck) = std::sync::mpsc::channel();
    let attached = queue.attach(&stream, "c", Stuck(entered), SinkSettings::default()).unwrap();
    stuck.recv().unwrap();
    let error = queue.close(Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("sink"), "{error}");
    drop((attached, stream, queue));
    let queue = Queue::open_on(Arc::new(disk), fast()).unwrap();
    let stream = queue.stream("s").unwrap();
    assert_eq!(crate::take(&mut stream.consumer("c").unwrap(), 3).len(), 3);
}

// S51: a stop while every sink is in its back-off waits for none of them.
#[test]
fn a_stop_does_not_wait_for_a_back_off() {
    let day = Duration::from_secs(86_400);
    let (disk, queue) = open(Options { backoff_first: day, backoff_max: day, ..Options::default() });
    let stream = append(&queue, "s", 3);
    let (sink, arrived) = Scripted::new([Answer::Retry]);
    let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
    while attached.stats().failures_count == 0 {
        std::thread::yield_now();
    }
    assert!(queue.close(DEADLINE).unwrap().clean);
    assert!(arrived.lock().unwrap().is_empty());
    drop((attached, stream, queue));
    let queue = Queue::open_on(Arc::new(disk), fast()).unwrap();
    assert_eq!(crate::take(&mut queue.stream("s").unwrap().consumer("c").unwrap(), 3).len(), 3);
}

// S32: a record that is damaged under a live reader: it moves on, stays quiet afterwards, and can be stopped.
#[test]
fn a_live_reader_moves_on_over_damage_and_is_quiet_afterwards() {
    let (disk, queue) = open(Options { turn_bytes_max: 1, ..fast() });
    let stream = queue.stream("s").unwrap();
    for n in 0..10 {
        stream.append_durable(format!("record {n}").repeat(20)).unwrap();
    }
    let segment = disk.files().into_iter().find(|path| path.extension().is_some_and(|e| e == "seg")).unwrap();
    let bytes = disk.read(&segment);
    let at = bytes.windows(8).position(|window| window == b"record 4").unwrap();
    disk.corrupt(&segment, at as u64, 1);
    let (sink, arrived) = Scripted::new([]);
    let attached = queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap();
    assert!(attached.wait_drained(DEADLINE));
    let expected: Vec<u64> = (1..=10).filter(|seq| *seq != 5).collect();
    assert_eq!(*arrived.lock().unwrap(), expected);
    let turns = queue.stats().turns_count;
    let (other, quiet) = (queue.stream("other").unwrap(), queue.stats().turns_count);
    for n in 0..5 {
        other.append_durable(n.to_string()).unwrap();
    }
    assert!(queue.stats().turns_count <= quiet.max(turns) + 1, "a caught-up reader takes no turns");
    assert_eq!(attached.stats().failures_count, 0);
    assert!(queue.close(DEADLINE).unwrap().clean);
}
