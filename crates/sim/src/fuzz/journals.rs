//! Cursor and metadata files of any bytes: the queue opens or says why not, and a new stream works.

use std::path::{Path, PathBuf};

use disk::Disk;
use pq::QueueId;
use sim_disk::SimDisk;
use wal_format::JournalKind;

use crate::fuzz::bytes::Bytes;
use crate::fuzz::client::{go_on, now, open, read_all};
use crate::fuzz::forge;

const QUEUE: QueueId = QueueId::new(0x5151);
const FILES_MAX: usize = 8;

/// Builds the queue's own files as `data` says, and lives with them.
///
/// # Panics
/// If something does not hold that must hold for any bytes.
pub fn fuzz_journals(data: &[u8]) {
    let mut bytes = Bytes::of(data);
    let disk = SimDisk::new();
    for _ in 0..FILES_MAX {
        if bytes.is_empty() {
            break;
        }
        let (path, content) = file(&mut bytes);
        if disk.create(&path).is_ok() {
            disk.damage(&path, |file| *file = content);
        }
    }
    let Ok(core) = open(&disk, 1) else { return };
    for name in core.names() {
        if let Ok(stream) = core.open_stream(&name, None, now()) {
            read_all(&core, &stream, "reader", &mut |seq, _| panic!("nobody ever wrote seq {seq}"));
            go_on(&core, &stream, b"after");
        }
    }
    let Ok(stream) = core.open_stream("made by the fuzzer's client", None, now()) else { return };
    let seq = go_on(&core, &stream, b"new");
    let saved = core.tick(now());
    let closed = core.close(now);
    drop((stream, core));
    let core = open(&disk.kill(), 2).expect("what opened once opens again");
    let (Some(seq), Ok(_), Ok(_)) = (seq, saved, closed) else { return };
    let stream = core.open_stream("made by the fuzzer's client", None, now()).expect("it is durable");
    let mut found = false;
    read_all(&core, &stream, "again", &mut |at, payload| found |= at == seq && payload == b"new");
    assert!(found, "an acknowledged record is there after a restart");
}

fn file(bytes: &mut Bytes<'_>) -> (PathBuf, Vec<u8>) {
    let which = bytes.byte();
    let (kind, prefix) = match which % 5 {
        0 => (JournalKind::QUEUE, "queue.meta"),
        1 | 2 => (JournalKind::CATALOG, "catalog"),
        _ => (JournalKind::CURSORS, "cursors"),
    };
    let generation = bytes.number();
    let path = match kind {
        JournalKind::QUEUE => Path::new(prefix).to_owned(),
        _ => PathBuf::from(format!("{prefix}-{generation:016x}")),
    };
    let content = match which / 5 % 4 {
        0 => bytes.slice(255).to_vec(),
        1 => vec![0; usize::from(bytes.short())],
        _ => {
            let mut file = forge::journal(kind, QUEUE, generation, bytes);
            if which >= 200 {
                let at = bytes.below(file.len());
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= bytes.byte();
                }
            }
            file
        }
    };
    (path, content)
}
