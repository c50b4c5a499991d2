//! Making checksums right: what an attacker with an editor and the format's page can do, and a fuzzer alone never finds.

use wal_format::{
    BATCH_HEADER_BYTES, ENTRY_HEAD_BYTES, FRAME_HEAD_BYTES, FrameKind, Incarnation, JOURNAL_HEADER_BYTES,
    JournalHeader, JournalKind, Marks, QueueId, SEGMENT_HEADER_BYTES, Seq, StreamIdentity, Tag, encode_frame,
};

use crate::fuzz::bytes::Bytes;

/// A segment header whose fields are any numbers, under a right checksum.
pub(crate) fn segment_header(identity: &StreamIdentity, id: u64, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut block = vec![0; SEGMENT_HEADER_BYTES];
    put(&mut block, 0, b"PQSEG\r\n\x1a");
    let odd = bytes.byte();
    put(&mut block, 8, &[if odd == 255 { 2 } else { 1 }, 0, odd & u8::from(odd == 254), 0]);
    put(&mut block, 16, &identity.queue.get().to_le_bytes());
    put(&mut block, 32, &identity.incarnation.get().to_le_bytes());
    put(&mut block, 48, &identity.stream.get().wrapping_add(u64::from(odd == 253)).to_le_bytes());
    put(&mut block, 56, &if odd == 252 { bytes.number() } else { id }.to_le_bytes());
    // First seq, created at, unsynced bytes, predecessor and its end.
    for at in [64, 72, 80, 88, 96] {
        put(&mut block, at, &bytes.number().to_le_bytes());
    }
    seal(&mut block, 0);
    block
}

/// A batch whose header says any numbers, over frames that may say others; its checksums right, but for those that are not.
pub(crate) fn batch(identity: &StreamIdentity, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let first = bytes.number();
    let mut frames = Vec::new();
    let (mut next, count) = (first, bytes.byte() % 6);
    for _ in 0..count {
        let payload = bytes.slice(200);
        if payload.first() == Some(&b't') {
            let tag = Tag::new(payload.get(..3).unwrap_or(payload), payload);
            if let Ok(tag) = tag {
                tag.encode(&mut frames, identity, Seq::new(next));
                continue;
            }
        }
        encode_frame(&mut frames, identity, Seq::new(next), FrameKind::Record, Marks::NONE, &[payload]);
        next = next.wrapping_add(1);
    }
    let odd = bytes.byte();
    if odd & 1 != 0 {
        // A length that lies, under a right checksum of its head.
        let length = u32::try_from(bytes.number()).unwrap_or(u32::MAX);
        if let Some(head) = frames.get_mut(..FRAME_HEAD_BYTES) {
            put(head, 0, &length.to_le_bytes());
            seal(head, seed(identity.incarnation, first));
        }
    }
    let mut block = vec![0; BATCH_HEADER_BYTES];
    put(&mut block, 0, b"PQB\x91");
    put(&mut block, 4, &[1, 0, bytes.byte() & 3, 0]);
    put(&mut block, 8, &identity.stream.get().to_le_bytes());
    put(&mut block, 16, &first.to_le_bytes());
    let (prev, durable) = (first.wrapping_sub(1), first);
    put(&mut block, 24, &if odd & 2 != 0 { bytes.number() } else { prev }.to_le_bytes());
    put(&mut block, 32, &if odd & 4 != 0 { bytes.number() } else { durable }.to_le_bytes());
    let claimed = if odd & 8 != 0 { bytes.number() } else { next.wrapping_sub(first) };
    put(&mut block, 48, &u32::try_from(claimed).unwrap_or(u32::MAX).to_le_bytes());
    let length = if odd & 16 != 0 { bytes.number() } else { frames.len() as u64 };
    put(&mut block, 52, &u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    let covered = usize::try_from(length).unwrap_or(usize::MAX).min(frames.len());
    let sum = crc32c::crc32c_append(seed(identity.incarnation, first), &frames[..covered]);
    put(&mut block, 56, &(sum ^ u32::from(odd & 32 != 0)).to_le_bytes());
    seal(&mut block, seed(identity.incarnation, first));
    block.extend_from_slice(&frames);
    block
}

/// A journal file: a header, and entries with any bodies under right checksums.
pub(crate) fn journal(kind: JournalKind, queue: QueueId, generation: u64, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let header = JournalHeader { kind, queue, generation };
    let mut file = header.encode().to_vec();
    for number in 1..=u64::from(bytes.byte() % 24) {
        let odd = bytes.byte();
        let mut body = match odd % 4 {
            0 => Vec::new(),
            _ => u32::try_from(number - 1).unwrap_or(0).to_le_bytes().to_vec(),
        };
        body.extend_from_slice(bytes.slice(255));
        entry(&mut file, &header, number, [1, 1 + (odd >> 2) % 2], &body);
        if odd & 0x80 != 0 {
            // The length says something else, and its head's checksum agrees.
            let start = file.len() - body.len() - ENTRY_HEAD_BYTES;
            let length = u32::try_from(bytes.number()).unwrap_or(u32::MAX);
            let seed = entry_seed(&header, number);
            if let Some(head) = file.get_mut(start..start + ENTRY_HEAD_BYTES) {
                put(head, 0, &length.to_le_bytes());
                seal(head, seed);
            }
        }
    }
    debug_assert!(file.len() >= JOURNAL_HEADER_BYTES);
    file
}

/// Appends an entry with right checksums and any tag.
fn entry(out: &mut Vec<u8>, header: &JournalHeader, number: u64, tag: [u8; 2], body: &[u8]) {
    let seed = entry_seed(header, number);
    let mut head = vec![0; ENTRY_HEAD_BYTES];
    put(&mut head, 0, &u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    put(&mut head, 4, &tag);
    put(&mut head, 8, &number.to_le_bytes());
    put(&mut head, 16, &crc32c::crc32c_append(seed, body).to_le_bytes());
    seal(&mut head, seed);
    out.extend_from_slice(&head);
    out.extend_from_slice(body);
}

fn entry_seed(header: &JournalHeader, number: u64) -> u32 {
    let mut seed = header.queue.get().to_le_bytes().to_vec();
    seed.extend_from_slice(&header.generation.to_le_bytes());
    seed.extend_from_slice(&u64::from(header.kind.get()).to_le_bytes());
    seed.extend_from_slice(&number.to_le_bytes());
    crc32c::crc32c(&seed)
}

fn seed(incarnation: Incarnation, seq: u64) -> u32 {
    let mut seed = incarnation.get().to_le_bytes().to_vec();
    seed.extend_from_slice(&seq.to_le_bytes());
    crc32c::crc32c(&seed)
}

/// Makes the last four bytes the checksum of all before them.
fn seal(block: &mut [u8], seed: u32) {
    if let Some((covered, place)) = block.split_last_chunk_mut::<4>() {
        *place = crc32c::crc32c_append(seed, covered).to_le_bytes();
    }
}

fn put(block: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = block.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

/// Makes the checksum of whatever structure of ours starts at `at` right again, if its magic number is there.
pub(crate) fn reseal(file: &mut [u8], at: usize, incarnation: Incarnation) {
    let Some(rest) = file.get_mut(at..) else { return };
    if rest.starts_with(b"PQSEG\r\n\x1a") {
        if let Some(block) = rest.get_mut(..SEGMENT_HEADER_BYTES) {
            seal(block, 0);
        }
    } else if rest.starts_with(b"PQJNL\r\n\x1a") {
        if let Some(block) = rest.get_mut(..JOURNAL_HEADER_BYTES) {
            seal(block, 0);
        }
    } else if rest.starts_with(b"PQB\x91")
        && let Some((block, frames)) = rest.split_at_mut_checked(BATCH_HEADER_BYTES)
    {
        let seq = block.get(16..).and_then(|at| at.first_chunk()).map_or(0, |seq| u64::from_le_bytes(*seq));
        let length = block.get(52..).and_then(|at| at.first_chunk()).map_or(0, |n| u32::from_le_bytes(*n));
        let seed = seed(incarnation, seq);
        let frames = frames.get(..length as usize).unwrap_or(frames);
        put(block, 56, &crc32c::crc32c_append(seed, frames).to_le_bytes());
        seal(block, seed);
    }
}
