//! The files of one stream, of any bytes: scanned, recovered, read, recovered again, appended to.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, FdBudget, FdLimit, FileCache};
use pq::{Incarnation, QueueId, SegmentId, Seq, StreamId};
use sim_disk::SimDisk;
use wal_format::StreamIdentity;
use wal_store::{
    Evidence, Log, NoEvents, ReadBuffers, ReadFrom, ReadLimits, Recovery, Room, ScanDepth, SegmentList,
    Settings, StoreContext, Want, recover, scan_read_only, segment_path,
};

use crate::fuzz::bytes::Bytes;
use crate::fuzz::client::now;
use crate::fuzz::forge;

const IDENTITY: StreamIdentity = StreamIdentity {
    queue: QueueId::new(0x0123_4567_89ab_cdef),
    stream: StreamId::new(7),
    incarnation: Incarnation::new(0xfeed_0000_0000_0000_0000_0000_0000_beef),
};
const DIR: &str = "stream";
const FILES_MAX: usize = 12;
/// Most bytes a file is extended to.
const FILE_BYTES_MAX: usize = 1 << 18;

/// Builds the files of a stream as `data` says, and lives with them.
///
/// # Panics
/// If something does not hold that must hold for any bytes.
pub fn fuzz_segment(data: &[u8]) {
    let mut bytes = Bytes::of(data);
    let disk = SimDisk::new();
    disk.create_dir(Path::new(DIR)).expect("an empty disk");
    let evidence = evidence(&mut bytes);
    files(&disk, &mut bytes);
    let ctx = context(&disk);
    let scanned = scan_read_only(&ctx, &evidence, ScanDepth::EveryByte);
    let Ok(first) = recover(&ctx, &evidence) else { return };
    if let Ok(scanned) = scanned {
        assert_eq!(scanned.end, first.next_seq, "who only looks sees what a recovery decides");
    }
    let seen = read(&ctx, &first.segments, first.next_seq);
    let second = recover(&ctx, &evidence).expect("what was recovered is recovered again");
    assert_eq!(second.next_seq, first.next_seq, "a second recovery decides the same");
    assert_eq!(read(&ctx, &second.segments, second.next_seq), seen, "and shows the same");
    go_on(&disk, &ctx, &second, &evidence);
}

fn evidence(bytes: &mut Bytes<'_>) -> Evidence {
    let maybe =
        |bytes: &mut Bytes<'_>| if bytes.byte().is_multiple_of(3) { None } else { Some(bytes.number()) };
    let floor = maybe(bytes).map(|seq| (Seq::new(seq), SegmentId::new(bytes.number())));
    Evidence {
        floor,
        durable_end: maybe(bytes).map(Seq::new),
        cursors_max: maybe(bytes).map(Seq::new),
        floor_tags: Vec::new(),
        clean: maybe(bytes).map(SegmentId::new),
    }
}

/// Each file: a name, then pieces of it until the next file begins.
fn files(disk: &SimDisk, bytes: &mut Bytes<'_>) {
    for _ in 0..FILES_MAX {
        if bytes.is_empty() {
            return;
        }
        let id = bytes.number().max(1);
        let mut content = Vec::new();
        for _ in 0..64 {
            match bytes.byte() % 10 {
                0 => break,
                1 | 2 if content.is_empty() => {
                    content = forge::segment_header(&IDENTITY, id, bytes);
                }
                1..=5 => content.extend_from_slice(&forge::batch(&IDENTITY, bytes)),
                6 => content.extend_from_slice(bytes.slice(255)),
                7 => content.resize(content.len() + usize::from(bytes.short()) / 4, 0),
                8 => {
                    let bit = bytes.below(content.len() * 8);
                    if let Some(byte) = content.get_mut(bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
                _ => content.truncate(bytes.below(content.len() + 1)),
            }
            if content.len() > FILE_BYTES_MAX {
                break;
            }
        }
        let path = segment_path(Path::new(DIR), SegmentId::new(id));
        if disk.create(&path).is_ok() {
            disk.damage(&path, |file| *file = content);
        }
    }
}

fn context(disk: &SimDisk) -> StoreContext {
    StoreContext {
        disk: Arc::new(disk.clone()),
        files: FileCache::new(FdBudget::new(FdLimit { total: 32, reserved: 8 })),
        room: Arc::new(Room::new(1 << 20)),
        identity: IDENTITY,
        dir: DIR.into(),
        events: Arc::new(NoEvents),
    }
}

/// Every item a reader sees, with a hash of each payload.
fn read(ctx: &StoreContext, list: &SegmentList, end: Seq) -> Vec<(u64, u64, u32)> {
    let mut buffers = ReadBuffers::default();
    let mut from = ReadFrom { seq: list.first().map_or(end, |segment| segment.first_seq), hint: None };
    let mut seen = Vec::new();
    while from.seq < end {
        let limits = ReadLimits { bytes_max: 4096 };
        let Ok(chunk) = list.read(ctx, from, end, limits, &mut buffers) else { break };
        assert!(chunk.next >= from.seq && chunk.next <= end, "a read stays inside its bounds");
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.next > from.seq, "a read moves on");
        seen.extend(chunk.gaps().map(|gap| (gap.from.get(), gap.to.get(), 0)));
        for record in chunk.records() {
            assert!(from.seq <= record.seq && record.seq < chunk.next, "a record of this read");
            seen.push((record.seq.get(), record.seq.get() + 1, crc32c::crc32c(record.payload)));
        }
        from = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
    }
    seen
}

/// A record appended behind it all is durable, and is found by the next recovery.
fn go_on(disk: &SimDisk, ctx: &StoreContext, recovery: &Recovery, evidence: &Evidence) {
    let Ok(log) = Log::open(ctx.clone(), recovery, Settings::default()) else { return };
    let Ok(ticket) = log.append(b"new", now()) else { return };
    let seq = ticket.seq();
    if log.commit(now(), Want::Durable).is_err() {
        return;
    }
    assert!(seq >= recovery.next_seq, "no seq is used twice");
    drop(log);
    let ctx = context(&disk.kill());
    let evidence = Evidence { clean: None, ..evidence.clone() };
    let recovery = recover(&ctx, &evidence).expect("what we wrote ourselves is recovered");
    let end = recovery.next_seq;
    let from = ReadFrom { seq, hint: None };
    let chunk = recovery.segments.read(&ctx, from, end, ReadLimits::default(), &mut ReadBuffers::default());
    let chunk = chunk.expect("a healthy disk");
    let found = chunk.records().next().map(|record| (record.seq, record.payload.to_vec()));
    assert_eq!(found, Some((seq, b"new".to_vec())), "an acknowledged record is there");
}
