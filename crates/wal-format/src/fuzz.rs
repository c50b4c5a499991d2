//! The entry point for fuzzing: a plain function over any bytes, replayed by `cargo test` over the kept corpus.
//!
//! Random bytes never pass a checksum, so they are used in three ways:
//!
//! ```text
//! data ─► as a file, as it is                  every decoder is total
//!      ─► as fields, checksums made right      what decodes is well formed and encodes to the same bytes
//!      ─► as a script for a writer             what was written is read; one flipped bit costs one record at most
//! ```

use crate::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, DecodeError, EntryTag, FrameKind, Incarnation,
    JournalHeader, JournalItem, JournalKind, Marks, QueueId, Salvaged, SegmentHeader, Seq, StreamId,
    StreamIdentity, Tag, WallTime, batch_checksum,
    checksum::StreamSeed,
    checksum::crc,
    encode_frame, find_batch, flipped_bit,
    layout::{Fields, flip},
    read_batch, salvage,
};
use alloc::vec::Vec;

const IDENTITY: StreamIdentity = StreamIdentity {
    queue: QueueId::new(0x0123_4567_89ab_cdef),
    stream: StreamId::new(7),
    incarnation: Incarnation::new(0xfeed_0000_0000_0000_0000_0000_0000_beef),
};
const JOURNAL: JournalHeader =
    JournalHeader { kind: JournalKind::CURSORS, queue: IDENTITY.queue, generation: 3 };

/// Feeds arbitrary bytes to every decoder and asserts what must hold.
///
/// # Panics
/// If a property does not hold: a defect of this crate.
pub fn fuzz_record(data: &[u8]) {
    as_a_file(data);
    as_fields(data);
    as_a_script(data);
    as_a_journal(data);
}

fn as_a_file(data: &[u8]) {
    if let Ok(header) = SegmentHeader::decode(data) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }
    let _ = SegmentHeader::repair(data);
    let _ = BatchHeader::repair(data, &IDENTITY);
    let _ = JournalHeader::decode(data);
    let _ = JournalHeader::repair(data);
    let _ = Tag::decode(data);
    if let Ok(batch) = read_batch(&IDENTITY, data) {
        let _ = batch.is_well_formed();
    }
    if let Some((at, header)) = find_batch(&IDENTITY, data, 0) {
        assert_eq!(BatchHeader::decode(data.get(at..).unwrap_or_default(), &IDENTITY), Ok(header));
    }
    let items = JOURNAL.scan(data).filter(|item| matches!(item, JournalItem::Tail { .. })).count();
    assert!(items <= 1, "a journal has one tail");
}

/// The data as a batch whose checksums are made right: what a defective writer could write.
fn as_fields(data: &[u8]) {
    let Some((block, frames)) = data.split_first_chunk::<BATCH_HEADER_BYTES>() else { return };
    let mut block = *block;
    let first_seq = Seq::new(block.get(16..).map_or(0, |at| Fields::of(at).u64()));
    let mut frames_sum = batch_checksum(&IDENTITY, first_seq);
    frames_sum.update(frames);
    put(&mut block, 0, b"PQB\x91");
    put(&mut block, 8, &IDENTITY.stream.get().to_le_bytes());
    put(&mut block, 56, &frames_sum.get().to_le_bytes());
    let sum = crc(StreamSeed::of(IDENTITY.incarnation).at(first_seq), block.get(..60).unwrap_or_default());
    put(&mut block, 60, &sum.to_le_bytes());
    match BatchHeader::decode(&block, &IDENTITY) {
        Ok(header) => {
            assert_eq!(header.encode(&IDENTITY), block, "what decodes encodes to the same bytes");
            assert!(header.end_seq() > header.first_seq && header.prev_seq < header.first_seq.get());
            check_salvage(&header, frames);
            let whole: Vec<u8> = block.iter().chain(frames).copied().collect();
            if let Ok(batch) = read_batch(&IDENTITY, &whole) {
                let honest = batch.is_well_formed();
                let records = batch.frames().filter(|frame| frame.seq.is_some()).count();
                assert!(!honest || records == header.count as usize);
            }
        }
        Err(error) => {
            assert!(error.is_newer_format() || error == DecodeError::Malformed, "sound bytes gave {error}");
        }
    }
}

/// The data as a script for a writer: a first seq, a place to flip, and payloads by length.
fn as_a_script(data: &[u8]) {
    let Some((plan, mut rest)) = data.split_first_chunk::<8>() else { return };
    let mut plan = Fields::of(plan);
    let first_seq = Seq::new(1 + u64::from(plan.u32()));
    let flip_at = usize::from(plan.u16());
    let (cut_at, marks) = (usize::from(plan.u8()), Marks::new(plan.u8() & 15).unwrap_or_default());
    let (mut frames, mut payloads) = (Vec::new(), Vec::new());
    let mut next = first_seq;
    while let Some((length, more)) = rest.split_first() {
        let payload = more.get(..usize::from(*length)).unwrap_or(more);
        rest = more.get(payload.len()..).unwrap_or_default();
        if payloads.len() % 3 == 2 {
            let (producer, value) = payload.split_at(payload.len() / 2);
            if let Ok(tag) = Tag::new(producer, value) {
                tag.encode(&mut frames, &IDENTITY, next);
            }
        }
        encode_frame(&mut frames, &IDENTITY, next, FrameKind::Record, marks, &[payload]);
        payloads.push(payload);
        next = next.saturating_add(1);
    }
    if payloads.is_empty() {
        return;
    }
    let header = header_of(first_seq, payloads.len(), &frames);
    let mut bytes = header.encode(&IDENTITY).to_vec();
    bytes.extend_from_slice(&frames);
    check_written(&bytes, &header, &payloads, marks);
    let cut = bytes.get(..cut_at * bytes.len() / 256).unwrap_or_default();
    assert!(
        matches!(read_batch(&IDENTITY, cut), Err(DecodeError::NeedMore { .. })),
        "a cut batch is not all here"
    );
    let bits = bytes.len() * 8;
    let flip_at = flip_at % bits;
    flip(&mut bytes, flip_at);
    let header_here = read_flipped_header(&bytes);
    assert_eq!(header_here, header, "one flipped bit never costs a header");
    let frames = bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    let in_frames = flip_at.checked_sub(BATCH_HEADER_BYTES * 8);
    assert_eq!(flipped_bit(&IDENTITY, &header, frames), in_frames, "the flipped bit is found");
    let lost = check_salvage(&header, frames);
    assert!(lost <= 1, "one flipped bit costs one record at most, not {lost}");
}

fn as_a_journal(data: &[u8]) {
    // Nobody who gives a body knows the id of the queue, which is random, and under which its entry is sealed; a fuzzer that has
    // it soon puts a sound entry into a body. So the seed follows from all of the data here.
    let sum = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let journal = JournalHeader { generation: data.iter().fold(0xcbf2_9ce4_8422_2325, sum), ..JOURNAL };
    let mut bytes = Vec::new();
    let mut bodies = Vec::new();
    for (body, number) in data.chunks(37).zip(1..) {
        journal.encode_entry(&mut bytes, number, EntryTag { version: 1, kind: 1 }, body);
        bodies.push(body);
    }
    let read: Vec<&[u8]> = journal.scan(&bytes).filter_map(body_of).collect();
    assert_eq!(read, bodies, "a journal is read as it was written");
    let place = data.iter().fold(0_usize, |sum, byte| sum * 31 % 65_521 + usize::from(*byte));
    if !bytes.is_empty() {
        let bits = bytes.len() * 8;
        flip(&mut bytes, place % bits);
        let left = journal.scan(&bytes).filter_map(body_of).count();
        assert!(left + 1 >= bodies.len(), "one flipped bit costs one entry at most");
    }
}

fn body_of<'a>(item: JournalItem<'a>) -> Option<&'a [u8]> {
    match item {
        JournalItem::Entry(entry) => Some(entry.body),
        JournalItem::Damaged { .. } | JournalItem::Tail { .. } => None,
    }
}

fn header_of(first_seq: Seq, count: usize, frames: &[u8]) -> BatchHeader {
    let mut sum = batch_checksum(&IDENTITY, first_seq);
    sum.update(frames);
    BatchHeader {
        flags: BatchFlags::NONE,
        codec: 0,
        stream: IDENTITY.stream,
        first_seq,
        prev_seq: first_seq.get() - 1,
        durable_seq: first_seq.get(),
        append_time: WallTime::EPOCH,
        count: u32::try_from(count).unwrap_or(u32::MAX),
        frames_bytes: u32::try_from(frames.len()).unwrap_or(u32::MAX),
        batch_crc: sum.get(),
    }
}

fn check_written(bytes: &[u8], header: &BatchHeader, payloads: &[&[u8]], marks: Marks) {
    let Ok(batch) = read_batch(&IDENTITY, bytes) else { panic!("what was written is not read") };
    assert_eq!(batch.header(), header);
    assert!(batch.is_well_formed());
    let records = batch.frames().filter(|frame| frame.seq.is_some());
    let written = payloads.iter().zip(header.first_seq.get()..);
    assert!(
        records.eq(written.map(|(payload, seq)| crate::Frame {
            seq: Some(Seq::new(seq)),
            kind: FrameKind::Record,
            marks,
            payload,
        })),
        "records are read as they were written"
    );
    assert_eq!(find_batch(&IDENTITY, bytes, 0), Some((0, *header)));
    assert!(
        salvage(&IDENTITY, header, bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default())
            .all(|item| matches!(item, Salvaged::Frame(_)))
    );
}

fn read_flipped_header(bytes: &[u8]) -> BatchHeader {
    match BatchHeader::decode(bytes, &IDENTITY).ok().or_else(|| BatchHeader::repair(bytes, &IDENTITY)) {
        Some(header) => header,
        None => panic!("a header with one flipped bit is lost"),
    }
}

/// Salvage accounts for every seq of the batch once, in order. Returns how many are lost.
fn check_salvage(header: &BatchHeader, frames: &[u8]) -> u64 {
    let (mut next, mut lost) = (header.first_seq, 0);
    for item in salvage(&IDENTITY, header, frames) {
        match item {
            Salvaged::Frame(frame) => {
                if let Some(seq) = frame.seq {
                    assert_eq!(seq, next, "records come in order");
                    next = next.saturating_add(1);
                }
            }
            Salvaged::Lost { from, to } => {
                assert!(from == next && to > from, "a lost range starts where the last record ended");
                lost += from.distance_to(to);
                next = to;
            }
            Salvaged::LostMeta { before } => assert_eq!(before, next),
        }
    }
    assert_eq!(next, header.end_seq(), "every record is accounted for");
    lost
}

fn put(block: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = block.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
