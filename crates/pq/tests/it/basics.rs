//! Open, append, consume, acknowledge, seek, close.

use std::sync::Arc;

use disk::{Disk, OsDisk};
use pq::{
    AckError, ConsumerSettings, Level, Marks, Options, Queue, ReadMethod, Record, Seq, Start, StreamError,
    StreamSettings, Tag,
};

use crate::{DEADLINE, simulated, take};

#[test]
fn what_is_appended_is_delivered_in_order_and_acked_once() {
    let dir = tempfile::tempdir().unwrap();
    {
        let queue = Queue::open(dir.path(), Options::default()).unwrap();
        assert!(queue.recovery().created);
        let stream = queue.stream("orders").unwrap();
        for n in 0..100_u32 {
            drop(stream.append(n.to_string()).unwrap());
        }
        assert_eq!(stream.commit_blocking().unwrap(), Seq::new(101));
        let mut consumer = stream.consumer("mailer").unwrap();
        let mut seen = 0;
        while seen < 60 {
            let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
            for record in delivery.records() {
                assert_eq!(record.payload, seen.to_string().as_bytes());
                seen += 1;
                assert_eq!(record.seq, Seq::new(seen));
            }
        }
        consumer.ack_to(Seq::new(51)).unwrap().wait().unwrap();
        drop(consumer);
        queue.close(DEADLINE).unwrap();
    }
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    assert!(queue.recovery().clean);
    let stream = queue.stream("orders").unwrap();
    let mut consumer = stream.consumer("mailer").unwrap();
    let delivery = consumer.next_blocking().unwrap().unwrap();
    assert_eq!(delivery.first(), Seq::new(51));
    assert_eq!(delivery.records().next().unwrap().payload, b"50");
}

// The map outlives the file: what was delivered can be read after its segment was retired.
#[test]
fn rotated_segments_can_be_mapped_and_unlinked_under_their_readers() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { read_method: ReadMethod::Map, ..Options::default() };
    let queue = Queue::open(dir.path(), options).unwrap();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    for word in ["one", "two", "three"] {
        stream.append_durable(word).unwrap();
        stream.rotate().unwrap();
    }
    let mut kept = Vec::new();
    while kept.len() < 3 {
        let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
        consumer.ack(&delivery).unwrap().wait().unwrap();
        queue.save_cursors().unwrap();
        kept.push(delivery);
    }
    assert_eq!(stream.stats().segments_count, 0, "all are delivered and gone");
    let payloads: Vec<_> = kept.iter().flat_map(|delivery| delivery.records()).map(|r| r.payload).collect();
    assert_eq!(payloads, [&b"one"[..], b"two", b"three"]);
    queue.close(DEADLINE).unwrap();
}

// F05: nobody waits, nobody commits, and the record is there all the same; a waiting reader is woken by the commit.
#[test]
fn a_record_nobody_waits_for_is_committed_and_wakes_its_reader() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let writer = stream.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| take(&mut consumer, 3));
        for word in ["one", "two", "three"] {
            drop(writer.append(word).unwrap());
        }
        assert_eq!(reader.join().unwrap(), ["one", "two", "three"]);
    });
}

#[test]
fn consumers_go_at_their_own_pace_and_each_is_exclusive() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    drop(stream.append("one").unwrap());
    stream.append_durable("two").unwrap();
    let mut a = stream.consumer("a").unwrap();
    let now = ConsumerSettings { start: Start::Now };
    let mut b = stream.consumer_with("b", now).unwrap();
    assert!(matches!(stream.consumer("a"), Err(StreamError::InUse { .. })));
    assert_eq!(take(&mut a, 2), ["one", "two"]);
    assert!(b.try_next().unwrap().is_none());
    stream.append_durable("three").unwrap();
    assert_eq!(take(&mut b, 1), ["three"]);
    assert_eq!(take(&mut a, 1), ["three"]);
    assert_eq!((a.lag(), b.lag()), (3, 1));
    assert_eq!(stream.consumers().len(), 2);
    assert!(matches!(stream.remove_consumer("a"), Err(StreamError::InUse { .. })));
    drop(a);
    stream.remove_consumer("a").unwrap();
    assert!(matches!(stream.remove_consumer("a"), Err(StreamError::NoConsumer { .. })));
    assert_eq!(stream.consumers().len(), 1);
}

// S52: a consumer dropped without an acknowledgement: whoever opens it next gets the same again.
#[test]
fn a_dropped_consumer_returns_what_it_did_not_acknowledge() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    ["one", "two"].iter().for_each(|word| assert!(stream.append_durable(word).is_ok()));
    let mut consumer = stream.consumer("c").unwrap();
    assert_eq!(take(&mut consumer, 2), ["one", "two"]);
    drop(consumer);
    let mut consumer = stream.consumer("c").unwrap();
    assert_eq!(take(&mut consumer, 2), ["one", "two"]);
}

// S62: twice, late, out of range, of another consumer.
#[test]
fn acknowledgements_are_forgiving_but_exact() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    let (mut a, b) = (stream.consumer("a").unwrap(), stream.consumer("b").unwrap());
    let first = a.next_blocking().unwrap().unwrap();
    stream.append_durable("two").unwrap();
    let second = a.next_blocking().unwrap().unwrap();
    a.ack(&second).unwrap().wait().unwrap();
    a.ack(&second).unwrap().wait().unwrap();
    a.ack(&first).unwrap().wait().unwrap();
    assert_eq!(a.cursor(), Seq::new(3), "never back");
    assert_eq!(b.ack(&first).unwrap_err(), AckError::Foreign);
    assert!(matches!(a.ack_to(Seq::new(9)), Err(AckError::NotDelivered { .. })));
    assert!(matches!(a.ack_with_note(Seq::new(3), &[0; 300]), Err(AckError::NoteTooLong { .. })));
    assert!(a.wait_drained(DEADLINE));
}

#[test]
fn a_seek_moves_either_way_and_is_saved() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    ["one", "two", "three"].iter().for_each(|word| assert!(stream.append_durable(word).is_ok()));
    let mut consumer = stream.consumer("c").unwrap();
    assert_eq!(take(&mut consumer, 3), ["one", "two", "three"]);
    consumer.ack_to(Seq::new(4)).unwrap();
    assert_eq!(consumer.seek(Start::Seq(Seq::new(2))).unwrap(), Seq::new(2));
    assert_eq!(take(&mut consumer, 2), ["two", "three"]);
    assert!(matches!(consumer.seek(Start::Seq(Seq::new(9))), Err(StreamError::BeyondEnd { .. })));
    assert_eq!(consumer.seek(Start::Oldest).unwrap(), Seq::new(1));
    assert_eq!(consumer.seek(Start::Now).unwrap(), Seq::new(4));
    assert!(consumer.try_next().unwrap().is_none());
}

#[test]
fn a_note_is_saved_with_its_cursor() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    take(&mut consumer, 1);
    assert_eq!(consumer.note(), b"");
    consumer.ack_with_note(Seq::new(2), b"offset 17").unwrap().wait().unwrap();
    let again = Queue::open_on(std::sync::Arc::new(disk.kill()), Options::default()).unwrap();
    let consumer = again.stream("s").unwrap().consumer("c").unwrap();
    assert_eq!((consumer.cursor(), consumer.note()), (Seq::new(2), b"offset 17".to_vec()));
}

#[test]
fn a_batch_has_marks_slices_and_a_tag() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let marks = Marks::new(5).unwrap();
    let slices: [&[u8]; 2] = [b"he", b"llo"];
    let records = [Record::from_slices(&slices).with_marks(marks), Record::new(b"")];
    let tag = Tag::new(b"file", b"42").unwrap();
    let ticket = stream.append_batch(&records, Some(tag)).unwrap();
    assert_eq!(ticket.seqs(), Seq::new(1)..Seq::new(3));
    ticket.wait().unwrap();
    assert_eq!(stream.last_tags()[0].value, b"42");
    let queue = Queue::open_on(std::sync::Arc::new(disk.kill()), Options::default()).unwrap();
    let stream = queue.stream("s").unwrap();
    assert_eq!(stream.last_tags()[0].value, b"42");
    let delivery = stream.consumer("c").unwrap().next_blocking().unwrap().unwrap();
    let records: Vec<_> = delivery.records().collect();
    assert_eq!((records[0].payload, records[0].marks), (b"hello".as_slice(), marks));
    assert_eq!((records[1].payload, records[1].marks), (b"".as_slice(), Marks::NONE));
    assert_eq!(delivery.share(&records[0]).unwrap(), "hello");
}

#[test]
fn every_sync_setting_delivers() {
    use pq::{ReadLevel, SyncSetting};
    let (_, queue) = simulated();
    let settings = [
        (SyncSetting::Never, ReadLevel::Written),
        (SyncSetting::OnRotate, ReadLevel::Written),
        (SyncSetting::Every(std::time::Duration::from_millis(5)), ReadLevel::Durable),
        (SyncSetting::EachBatch, ReadLevel::Durable),
        (SyncSetting::EachAppend, ReadLevel::Durable),
    ];
    for (index, (sync, read_level)) in settings.into_iter().enumerate() {
        let settings = StreamSettings { sync, read_level, ..StreamSettings::default() };
        let stream = queue.stream_with(&index.to_string(), settings).unwrap();
        let mut consumer = stream.consumer("c").unwrap();
        drop(stream.append("x").unwrap());
        assert_eq!(take(&mut consumer, 1), ["x"], "{sync:?}");
        let ticket = stream.append("y").unwrap();
        assert_eq!(ticket.level(Level::Durable).wait().unwrap(), Seq::new(2), "{sync:?}");
        assert_eq!(take(&mut consumer, 1), ["y"], "{sync:?}");
    }
}

#[test]
fn settings_given_again_are_kept() {
    let (disk, queue) = simulated();
    let small = StreamSettings { segment_bytes_max: 1 << 20, ..StreamSettings::default() };
    assert_eq!(queue.stream("s").unwrap().settings().segment_bytes_max, 64 << 20);
    assert_eq!(queue.stream_with("s", small.clone()).unwrap().settings(), &small, "nobody used it yet");
    let zero = StreamSettings { segment_bytes_max: 0, ..StreamSettings::default() };
    assert!(matches!(queue.stream_with("t", zero), Err(StreamError::Settings(_))));
    queue.close(DEADLINE).unwrap();
    let queue = Queue::open_on(std::sync::Arc::new(disk), Options::default()).unwrap();
    assert_eq!(queue.stream("s").unwrap().settings(), &small);
    assert_eq!(queue.streams(), ["s"]);
}

#[test]
fn stats_are_data() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let delivery = consumer.next_blocking().unwrap().unwrap();
    consumer.ack(&delivery).unwrap().wait().unwrap();
    let stats = queue.stats();
    let of = &stats.streams[0];
    assert_eq!((of.records_count, of.payload_bytes, of.durable_end, of.syncs_count), (1, 3, 2, 1));
    let consumer = &of.consumers[0];
    assert_eq!((consumer.cursor, consumer.saved, consumer.lag_records, consumer.acked_count), (2, 2, 0, 1));
    assert!(stats.fds.used > 0 && stats.fds.peak <= stats.fds.limit);
}

#[test]
fn everything_is_refused_after_close() {
    let (_, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let report = queue.close(DEADLINE).unwrap();
    assert!(report.clean);
    assert!(stream.append("x").is_err());
    assert!(consumer.next_blocking().unwrap().is_none());
    assert!(matches!(queue.stream("t"), Err(StreamError::Closed)));
    assert!(matches!(stream.consumer("d"), Err(StreamError::Closed)));
    assert!(matches!(queue.delete_stream("s"), Err(StreamError::Closed)));
    queue.close(DEADLINE).unwrap();
}

// Dropping anything never loses an accepted record.
#[test]
fn the_last_handle_dropped_closes_in_order() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    drop(queue);
    drop(stream.append("one").unwrap());
    drop(stream);
    let queue = Queue::open_on(std::sync::Arc::new(disk), Options::default()).unwrap();
    assert!(queue.recovery().clean);
    assert_eq!(take(&mut queue.stream("s").unwrap().consumer("c").unwrap(), 1), ["one"]);
}

// A handle that outlives its queue must not write where another owner may be.
#[test]
fn nothing_is_saved_or_unlinked_once_the_queue_is_closed() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("one").unwrap();
    stream.rotate().unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
    stream.append_durable("two").unwrap();
    let in_time = consumer.ack_to(Seq::FIRST).unwrap();
    assert!(queue.close(DEADLINE).unwrap().clean);
    let next = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    assert!(next.recovery().clean);
    assert_eq!(consumer.ack(&delivery).unwrap_err(), pq::AckError::Closed);
    in_time.wait().unwrap();
    assert!(matches!(queue.save_cursors(), Err(pq::SaveError::Closed)));
    drop((consumer, stream, queue));
    assert_eq!(take(&mut next.stream("s").unwrap().consumer("c").unwrap(), 2), ["one", "two"]);
}

#[test]
fn an_open_says_where_less_is_promised() {
    let dir = tempfile::tempdir().unwrap();
    let notice = OsDisk::open(dir.path()).unwrap().file_system().unwrap().notice();
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    let notes = &queue.recovery().notes;
    assert_eq!(notes.len(), usize::from(notice.is_some()), "{notes:?}");
    assert!(notice.is_none_or(|notice| notes[0].ends_with(&notice.to_string())), "{notes:?}");
    let (_, queue) = simulated();
    assert!(queue.recovery().notes.is_empty());
}

#[test]
fn an_acknowledgement_behind_close_is_refused_by_name_and_a_second_close_answers_as_the_first() {
    let (disk, queue) = simulated();
    let stream = queue.stream("s").unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    stream.append_durable("one").unwrap();
    let delivery = consumer.next_blocking().unwrap().unwrap();
    let other = queue.clone();
    let first = queue.close(crate::DEADLINE).unwrap();
    assert!(first.clean);
    assert_eq!(consumer.ack(&delivery).unwrap_err(), pq::AckError::Closed);
    assert_eq!(consumer.ack_to(delivery.next()).unwrap_err(), pq::AckError::Closed);
    let calls = disk.call_count();
    let second = other.close(crate::DEADLINE).unwrap();
    assert_eq!((second.clean, second.committed_count), (first.clean, first.committed_count));
    assert_eq!(disk.call_count(), calls);
}
