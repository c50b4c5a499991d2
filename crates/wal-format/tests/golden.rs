//! Files of format version 1, byte for byte: what is written today equals `testdata/v1`, and `testdata/v1` is read.
//!
//! A version that changes a byte here is another version: it gets a `testdata/v2`, and this test stays (docs/format.md F-8).
//! `WAL_FORMAT_BLESS=1` writes the files anew.
#![expect(clippy::unwrap_used, reason = "a test's helper panics like the test")]
#![expect(clippy::disallowed_methods, reason = "golden files live in the source tree")]

use std::{fs, path::PathBuf};
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, DecodeError, EntryTag, Frame, FrameKind, Incarnation,
    JOURNAL_HEADER_BYTES, JournalHeader, JournalItem, JournalKind, Marks, Predecessor, QueueId,
    SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, Seq, StreamId, StreamIdentity, Tag, WallTime,
    batch_checksum, encode_frame, find_batch, read_batch,
};

const IDENTITY: StreamIdentity = StreamIdentity {
    queue: QueueId::new(0x000102030405060708090a0b0c0d0e0f),
    stream: StreamId::new(0x21),
    incarnation: Incarnation::new(0xf0f1f2f3f4f5f6f7f8f9fafbfcfdfeff),
};
const HEADER: SegmentHeader = SegmentHeader {
    identity: IDENTITY,
    segment: SegmentId::new(3),
    first_seq: Seq::new(1001),
    created_at: WallTime::from_nanos(1_800_000_000_000_000_000),
    unsynced_bytes_max: 8 << 20,
    predecessor: Some(Predecessor { id: SegmentId::new(2), end_offset: 0x0001_2340 }),
};
const JOURNAL: JournalHeader =
    JournalHeader { kind: JournalKind::CURSORS, queue: IDENTITY.queue, generation: 12 };

/// One frame to write: a record with marks, or a tag.
enum Write {
    Record(&'static [u8], u8),
    Meta(&'static [u8], &'static [u8]),
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/v1").join(name)
}

fn check(name: &str, written: &[u8]) -> Vec<u8> {
    if std::env::var_os("WAL_FORMAT_BLESS").is_some() {
        fs::write(golden(name), written).unwrap();
    }
    let kept = fs::read(golden(name)).unwrap();
    let differs = kept.iter().zip(written).position(|(kept, written)| kept != written);
    assert_eq!(differs, None, "{name} differs first at this offset");
    assert_eq!(kept.len(), written.len(), "{name} has another length");
    kept
}

fn batch(file: &mut Vec<u8>, header: BatchHeader, writes: &[Write]) {
    let (mut frames, mut next) = (Vec::new(), header.first_seq);
    for write in writes {
        match write {
            Write::Record(payload, marks) => {
                let marks = Marks::new(*marks).unwrap();
                encode_frame(&mut frames, &IDENTITY, next, FrameKind::Record, marks, &[payload]);
                next = next.checked_next().unwrap();
            }
            Write::Meta(producer, value) => {
                Tag::new(producer, value).unwrap().encode(&mut frames, &IDENTITY, next)
            }
        }
    }
    let mut sum = batch_checksum(&IDENTITY, header.first_seq);
    sum.update(&frames);
    let header = BatchHeader {
        count: u32::try_from(header.first_seq.distance_to(next)).unwrap(),
        frames_bytes: u32::try_from(frames.len()).unwrap(),
        batch_crc: sum.get(),
        ..header
    };
    let end = header.end_offset(file.len() as u64);
    file.extend_from_slice(&header.encode(&IDENTITY));
    file.extend_from_slice(&frames);
    file.resize(usize::try_from(end).unwrap(), 0);
}

fn header_at(first_seq: u64, prev_seq: u64, flags: BatchFlags) -> BatchHeader {
    BatchHeader {
        flags,
        codec: 0,
        stream: IDENTITY.stream,
        first_seq: Seq::new(first_seq),
        prev_seq,
        durable_seq: prev_seq + 1,
        append_time: WallTime::from_nanos(1_800_000_000_000_000_000 + first_seq),
        count: 0,
        frames_bytes: 0,
        batch_crc: 0,
    }
}

/// A segment: a batch of three records, one empty; a tagged batch after a skip, padded; a batch of one behind the padding.
fn segment() -> Vec<u8> {
    let mut file = HEADER.encode().to_vec();
    batch(
        &mut file,
        header_at(1001, 1000, BatchFlags::NONE),
        &[
            Write::Record(b"the first payload", 0),
            Write::Record(b"", 0),
            Write::Record("zwölf Boxkämpfer".as_bytes(), 0b1001),
        ],
    );
    let flags = BatchFlags::SKIPPED | BatchFlags::PADDED;
    batch(
        &mut file,
        header_at(1010, 1003, flags),
        &[
            Write::Meta(b"file:/var/log/app.log", b"4096"),
            Write::Record(b"tagged", 0),
            Write::Record(&[0; 32], 0),
        ],
    );
    batch(&mut file, header_at(1012, 1011, BatchFlags::NONE), &[Write::Record(b"x", 15)]);
    file
}

fn journal() -> Vec<u8> {
    let mut file = JOURNAL.encode().to_vec();
    for (body, number) in [&b"consumer 1 at 1001"[..], b"", b"floor 1001 segment 3"].into_iter().zip(1..) {
        let tag = EntryTag { version: 1, kind: u8::try_from(number).unwrap() };
        JOURNAL.encode_entry(&mut file, number, tag, body);
    }
    file
}

#[test]
fn the_golden_segment_is_written_and_read() {
    let kept = check("segment.seg", &segment());
    assert_eq!(SegmentHeader::decode(&kept), Ok(HEADER));
    let (mut at, mut seen) = (SEGMENT_HEADER_BYTES, Vec::new());
    while at < kept.len() {
        let batch = read_batch(&IDENTITY, &kept[at..]).unwrap();
        assert!(batch.is_well_formed());
        assert_eq!(batch.header().append_time.nanos() % 1_000_000_000, batch.header().first_seq.get());
        seen.extend(
            batch.frames().map(|Frame { seq, marks, payload, .. }| (seq.map(Seq::get), marks.get(), payload)),
        );
        at = usize::try_from(batch.header().end_offset(at as u64)).unwrap();
    }
    let records: [(Option<u64>, u8, &[u8]); 7] = [
        (Some(1001), 0, b"the first payload"),
        (Some(1002), 0, b""),
        (Some(1003), 9, "zwölf Boxkämpfer".as_bytes()),
        (None, 0, b"\x15file:/var/log/app.log4096"),
        (Some(1010), 0, b"tagged"),
        (Some(1011), 0, &[0; 32]),
        (Some(1012), 15, b"x"),
    ];
    assert_eq!(seen, records);
    assert_eq!(at, kept.len(), "the file ends where its last batch does");
}

#[test]
fn the_golden_segment_is_searched() {
    let kept = fs::read(golden("segment.seg")).unwrap();
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some((at, header)) = find_batch(&IDENTITY, &kept, from) {
        found.push((at, header.first_seq.get(), header.flags.contains(BatchFlags::SKIPPED)));
        from = at + 1;
    }
    assert_eq!(found, [(4096, 1001, false), (4243, 1010, true), (8192, 1012, false)]);
}

#[test]
fn the_golden_journal_is_written_and_read() {
    let kept = check("journal", &journal());
    assert_eq!(JournalHeader::decode(&kept), Ok(JOURNAL));
    let bodies: Vec<&[u8]> = JOURNAL
        .scan(&kept[JOURNAL_HEADER_BYTES..])
        .map(|item| match item {
            JournalItem::Entry(entry) => {
                assert_eq!(u64::from(entry.tag.kind), entry.number);
                entry.body
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies, [&b"consumer 1 at 1001"[..], b"", b"floor 1001 segment 3"]);
}

/// The next version of each structure, as files: refused by name, never read as damage.
#[test]
fn the_next_versions_golden_headers_are_refused_by_name() {
    let kept = fs::read(golden("segment.seg")).unwrap();
    let next = fs::read(golden("next-version.headers")).unwrap_or_default();
    let (segment, rest) = next.split_at(SEGMENT_HEADER_BYTES);
    let (batch, journal) = rest.split_at(BATCH_HEADER_BYTES);
    let newer = Err(DecodeError::Version { found: 2, known: 1 });
    assert_eq!(SegmentHeader::decode(segment), newer.map(|()| HEADER));
    assert_eq!(
        BatchHeader::decode(batch, &IDENTITY).unwrap_err(),
        DecodeError::Version { found: 2, known: 1 }
    );
    assert_eq!(JournalHeader::decode(journal).unwrap_err(), DecodeError::Version { found: 2, known: 1 });
    let changed = segment.iter().zip(&kept).filter(|(next, this)| next != this).count();
    assert!((1..=5).contains(&changed), "only the version and the checksum differ");
}
