//! Limits, tested at equality, one below and one above.

use wal_format::{BATCH_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentId, Seq, frame_bytes};
use wal_store::{AppendError, Level, Log, LogError, Record, Recovery, Settings, Want};

use crate::support::{Told, World, at, seqs, settings};

#[test]
fn a_record_at_the_limit_is_taken_and_one_byte_more_is_refused_with_both_numbers() {
    // S57
    let world = World::new();
    let log = world.log(Settings { record_bytes_max: 100, ..settings() });
    log.append(&[1; 100][..], at(1)).unwrap();
    let refused = log.append(&[1; 101][..], at(1)).unwrap_err();
    assert_eq!(refused, AppendError::RecordTooLarge { bytes: 101, limit: 100 });
    assert!(!refused.is_retryable());
    let ok = Record::new(&[2; 100]);
    let long = Record::new(&[2; 101]);
    log.append_batch(&[ok, long, ok], None, at(1)).unwrap_err();
    log.append(&[3; 100][..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    assert_eq!(
        seqs(&world.durable_payloads()),
        [1, 2],
        "its neighbours are there, the refused call took no seq"
    );
}

#[test]
fn a_batch_at_the_limit_is_one_batch_and_one_record_more_begins_another() {
    for (bytes_max, records_max) in [(10 * frame_bytes(50), 1000), (1 << 20, 10)] {
        let world = World::new();
        let record_bytes_max = bytes_max - frame_bytes(0);
        let settings = Settings {
            batch_bytes_max: bytes_max,
            batch_records_max: records_max,
            record_bytes_max,
            ..settings()
        };
        let log = world.log(settings);
        for _ in 0..10 {
            log.append(&[1; 50][..], at(1)).unwrap();
        }
        assert_eq!(world.ears.take().last(), Some(&Told::Enlist), "the limit puts the stream on its lane");
        log.append(&[1; 50][..], at(1)).unwrap();
        log.commit(at(1), Want::Batch).unwrap();
        let counts: Vec<_> = world.files()[0].batches.iter().map(|(_, header)| header.count).collect();
        assert_eq!(counts, [10, 1]);
    }
}

#[test]
fn a_call_too_large_for_any_batch_is_refused_with_the_numbers() {
    let world = World::new();
    let log = world.log(Settings {
        batch_bytes_max: 1000,
        record_bytes_max: 500,
        batch_records_max: 4,
        ..settings()
    });
    let fits = Record::new(&[0; 234]);
    log.append_batch(&[fits; 4], None, at(1)).unwrap();
    let refused = log.append_batch(&[fits; 5], None, at(1)).unwrap_err();
    let expected = AppendError::BatchTooLarge { bytes: 1250, count: 5, bytes_max: 1000, records_max: 4 };
    assert_eq!(refused, expected);
    let large = Record::new(&[0; 235]);
    let refused = log.append_batch(&[fits, fits, fits, large], None, at(1)).unwrap_err();
    assert!(matches!(refused, AppendError::BatchTooLarge { bytes: 1001, .. }), "{refused}");
    assert_eq!(log.append_batch(&[], None, at(1)).unwrap_err(), AppendError::Empty);
}

#[test]
fn a_batch_that_fits_exactly_stays_and_one_byte_more_rotates() {
    // S42
    let one = BATCH_HEADER_BYTES + frame_bytes(1000);
    let limit = (SEGMENT_HEADER_BYTES + 2 * one) as u64;
    for (payload_bytes, segments) in [(999, 1), (1000, 1), (1001, 2)] {
        let world = World::new();
        let log = world.log(Settings { segment_bytes_max: limit, ..settings() });
        log.append(&[1; 1000][..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
        log.append(&vec![2; payload_bytes][..], at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
        assert_eq!(world.files().len(), segments, "{payload_bytes}");
        assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
    }
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    // S42
    let world = World::new();
    let log = world.log(Settings { segment_bytes_max: 4176, ..settings() });
    for time in 1..5 {
        log.append(&[1; 9000][..], at(time)).unwrap().wait(Level::Durable, at(time)).unwrap();
    }
    assert_eq!(world.files().len(), 4);
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3, 4]);
}

#[test]
fn batches_are_padded_to_the_block_from_256_kib_on() {
    let frames = |bytes: usize| bytes - BATCH_HEADER_BYTES - frame_bytes(0);
    for (payload_bytes, padded) in [(frames(256 << 10) - 1, false), (frames(256 << 10), true)] {
        let world = World::new();
        let log = world.log(settings());
        log.append(&vec![1; payload_bytes][..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
        log.append(b"next", at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
        let second = world.files()[0].batches[1].0;
        assert_eq!(second.is_multiple_of(4096), padded);
        assert_eq!(seqs(&world.durable_payloads()), [1, 2]);
    }
}

#[test]
fn seqs_near_the_top_end_in_a_clear_error() {
    // S45
    let world = World::new();
    let recovery = Recovery { next_seq: Seq::new(u64::MAX - 2), prev_seq: u64::MAX - 3, ..Recovery::fresh() };
    let log = Log::open(world.context(), &recovery, settings()).unwrap();
    let records = [Record::new(b"x"); 3];
    assert_eq!(log.append_batch(&records, None, at(1)).unwrap_err(), AppendError::SeqsUsedUp);
    log.append(b"a", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    log.append(b"b", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    assert_eq!(log.append(b"c", at(1)).unwrap_err(), AppendError::SeqsUsedUp);
    assert_eq!(log.ends().durable, Seq::MAX);
    assert_eq!(world.room.used(), 0);
}

#[test]
fn the_last_segment_id_is_used_on_and_on() {
    // S45
    let world = World::new();
    let recovery = Recovery { next_segment: SegmentId::new(u64::MAX), ..Recovery::fresh() };
    let log =
        Log::open(world.context(), &recovery, Settings { segment_bytes_max: 5000, ..settings() }).unwrap();
    for time in 1..5 {
        log.append(&[1; 1000][..], at(time)).unwrap().wait(Level::Durable, at(time)).unwrap();
    }
    log.rotate(at(6)).unwrap();
    assert_eq!(world.files().len(), 1);
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3, 4]);
}

#[test]
fn room_is_given_to_the_last_byte_and_busy_says_the_numbers() {
    let world = World::with_room(10 * frame_bytes(84));
    let log = world.log(Settings { record_bytes_max: 84, ..settings() });
    for _ in 0..10 {
        log.append(&[0; 84][..], at(1)).unwrap();
    }
    world.ears.take();
    let busy = log.append(&[][..], at(1)).unwrap_err();
    assert_eq!(busy, AppendError::Busy { needed: 16, used: 1000, limit: 1000 });
    assert!(busy.is_retryable());
    assert_eq!(world.ears.take(), [Told::Enlist], "who holds the room is put on its lane");
    log.commit(at(1), Want::Batch).unwrap();
    assert_eq!(world.room.used(), 0);
    log.append(&[0; 84][..], at(1)).unwrap();
    assert_eq!(log.counters().busy, 1);
}

#[test]
fn a_room_too_small_for_one_record_is_refused_at_open() {
    // S55
    let world = World::with_room(100);
    let refused =
        Log::open(world.context(), &Recovery::fresh(), Settings { record_bytes_max: 85, ..settings() });
    assert!(matches!(refused, Err(LogError::RoomTooSmall { needed: 101, limit: 100 })));
}
