//! A whole queue that somebody edited: its files changed, cut, copied, renamed, removed, and strangers put between them.
//!
//! Two kinds of edits: damage, after which every record that is delivered must be the one that was written, and forgery, with
//! checksums made right, after which the queue must only survive.
//!
//! ```text
//!   edited ─┬─ inspect, open, read ─ append ─ close ─ open, read
//!           └─ plan a repair, apply it, apply it again ─ open, read: whatever the first reading found is there, under its seq
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use disk::Disk;
use pq::Incarnation;
use pq::core::Core;
use pq::inspect::Inspection;
use pq::repair::{self, RepairOptions};
use sim_disk::{SimDisk, Snapshot};
use wal_store::Want;

use crate::fuzz::bytes::Bytes;
use crate::fuzz::client::{go_on, now, open, read_all};
use crate::fuzz::forge::reseal;

const STREAMS: [&str; 2] = ["one", "two"];
const EDITS_MAX: usize = 48;

/// Edits a sound queue as `data` says, and lives with it.
///
/// # Panics
/// If something does not hold that must hold for any directory.
pub fn fuzz_directory(data: &[u8]) {
    let mut bytes = Bytes::of(data);
    let sample = sample();
    let disk = SimDisk::from_snapshot(&sample.snapshot);
    let mut editor = Editor { disk: &disk, incarnations: &sample.incarnations, forged: false };
    for _ in 0..EDITS_MAX {
        if bytes.is_empty() {
            break;
        }
        editor.edit(&mut bytes);
    }
    let forged = editor.forged;
    let edited = disk.snapshot();
    if let Ok(inspection) = Inspection::open_on(Arc::new(disk.clone())) {
        let _ = inspection.streams();
        let _ = inspection.verify();
    }
    let Ok(core) = open(&disk, 2) else {
        // What does not open may yet be mended.
        mend(&SimDisk::from_snapshot(&edited), &Found::new(), forged);
        return;
    };
    let found = live(&core, forged);
    mend(&SimDisk::from_snapshot(&edited), &found, forged);
    let _ = core.tick(now());
    let closed = core.close(now);
    drop(core);
    let again = open(&disk.kill(), 3).expect("what opened once opens again");
    assert!(closed.is_err() || again.report().clean, "a clean stop is believed");
    live(&again, forged);
}

/// Records that were read, by stream and seq.
type Found = BTreeMap<(String, u64), Vec<u8>>;

/// Reads all streams, then appends to each; returns what was read before.
fn live(core: &Core, forged: bool) -> Found {
    let mut found = Found::new();
    for name in core.names() {
        let Ok(stream) = core.open_stream(&name, None, now()) else { continue };
        read_all(core, &stream, "reader", &mut |seq, payload| {
            let honest = payload == payload_of(&name, seq) || payload == b"new";
            assert!(forged || honest, "stream {name} seq {seq} was never written so");
            found.insert((name.clone(), seq), payload.to_vec());
        });
        go_on(core, &stream, b"new");
    }
    found
}

/// Repairs the directory: what could be read without that can be read after it.
fn mend(disk: &SimDisk, before: &Found, forged: bool) {
    let options = RepairOptions::at(now().wall);
    let content = || disk.files().into_iter().map(|path| (disk.read(&path), path)).collect::<Vec<_>>();
    let untouched = content();
    let planned = repair::plan_on(Arc::new(disk.clone()), &options);
    assert!(content() == untouched, "a plan changes nothing");
    let applied = repair::apply_on(Arc::new(disk.clone()), &options);
    if applied.is_ok() {
        assert!(forged || planned.is_ok(), "what can be done can be planned: {planned:?}");
        let again = repair::apply_on(Arc::new(disk.kill()), &options).expect("what was repaired is whole");
        assert!(forged || again.steps.is_empty(), "nothing is left to mend: {again:?}");
    }
    let Ok(core) = open(&disk.kill(), 2) else {
        assert!(forged || before.is_empty(), "a repair takes nothing away: it opened before");
        return;
    };
    let after = live(&core, forged);
    for (place, payload) in before {
        assert!(forged || after.get(place) == Some(payload), "{place:?} could be read before the repair");
    }
}

fn payload_of(stream: &str, seq: u64) -> Vec<u8> {
    let length = [0, 5, 40, 300, 1][usize::try_from(seq % 5).unwrap_or(0)];
    let mut payload = format!("{stream} {seq} ").into_bytes();
    payload.resize(payload.len() + length, b'.');
    payload
}

/// A small sound queue: two streams of two segments each, with saved cursors.
struct Sample {
    snapshot: Snapshot,
    incarnations: Vec<Incarnation>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let disk = SimDisk::new();
        let core = open(&disk, 1).expect("an empty disk");
        let mut incarnations = Vec::new();
        for name in STREAMS {
            let stream = core.open_stream(name, None, now()).expect("a new stream");
            incarnations.push(stream.log().context().identity.incarnation);
            for seq in 1..=12 {
                stream.log().append(payload_of(name, seq).as_slice(), now()).expect("room");
                if seq % 3 == 0 {
                    stream.log().commit(now(), Want::Durable).expect("a healthy disk");
                }
                if seq == 6 {
                    stream.log().rotate(now()).expect("a healthy disk");
                }
            }
            read_all(&core, &stream, "early", &mut |_, _| {});
        }
        core.tick(now()).expect("a healthy disk");
        Sample { snapshot: disk.kill().snapshot(), incarnations }
    })
}

struct Editor<'a> {
    disk: &'a SimDisk,
    incarnations: &'a [Incarnation],
    forged: bool,
}

impl Editor<'_> {
    fn edit(&mut self, bytes: &mut Bytes<'_>) {
        let files = self.disk.files();
        let Some(path) = files.get(bytes.below(files.len())).cloned() else { return };
        match bytes.byte() % 12 {
            0 | 1 => self.flip(&path, bytes),
            2 => self.write(&path, bytes),
            3 => self.disk.damage(&path, |file| file.truncate(bytes.below(file.len() + 1))),
            4 => self.disk.damage(&path, |file| {
                let from = bytes.below(file.len()) / 512 * 512;
                let to = (from + if bytes.byte().is_multiple_of(2) { 512 } else { 4096 }).min(file.len());
                file[from..to].fill(0);
            }),
            5 => self.disk.damage(&path, |file| file.extend_from_slice(bytes.slice(255))),
            6 => self.copy(&path, bytes),
            7 => drop(self.disk.remove_file(&path)),
            8 => drop(self.disk.rename(&path, &self.name(bytes))),
            9 => drop(self.disk.create_dir(&self.name(bytes))),
            10 => self.forge(&path, bytes),
            _ => drop(self.disk.link(&path, &self.name(bytes))),
        }
    }

    fn flip(&self, path: &Path, bytes: &mut Bytes<'_>) {
        self.disk.damage(path, |file| {
            let bit = bytes.below(file.len() * 8);
            if let Some(byte) = file.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        });
    }

    fn write(&self, path: &Path, bytes: &mut Bytes<'_>) {
        self.disk.damage(path, |file| {
            let at = bytes.below(file.len() + 1);
            for (place, byte) in file[at..].iter_mut().zip(bytes.slice(64)) {
                *place = *byte;
            }
        });
    }

    /// A copy of a file under another name, as `cp` makes it.
    fn copy(&self, path: &Path, bytes: &mut Bytes<'_>) {
        let to = self.name(bytes);
        if self.disk.create(&to).is_ok() {
            let content = self.disk.read(path);
            self.disk.damage(&to, |file| *file = content);
        }
    }

    /// A field changed, and the checksum made right.
    fn forge(&mut self, path: &Path, bytes: &mut Bytes<'_>) {
        self.forged = true;
        let incarnation = self.incarnations[bytes.below(self.incarnations.len())];
        self.disk.damage(path, |file| {
            let heads: Vec<usize> =
                file.windows(4).enumerate().filter(|(_, w)| w.starts_with(b"PQ")).map(|(at, _)| at).collect();
            let Some(at) = heads.get(bytes.below(heads.len())) else { return };
            let field = at + bytes.below(104);
            for (place, byte) in file.iter_mut().skip(field).zip(bytes.slice(8)) {
                *place = *byte;
            }
            reseal(file, *at, incarnation);
        });
    }

    /// A name of the queue's, or a stranger's.
    fn name(&self, bytes: &mut Bytes<'_>) -> PathBuf {
        let (stream, number) = (1 + u64::from(bytes.byte() % 4), bytes.number());
        match bytes.byte() % 8 {
            0 => format!("catalog-{number:016x}").into(),
            1 => format!("cursors-{number:016x}").into(),
            2 => "queue.meta".into(),
            3 => format!("streams/{stream:016x}").into(),
            4 => "quarantine".into(),
            5 => format!("streams/{stream:016x}/{number}.bak").into(),
            _ => format!("streams/{stream:016x}/{number:016x}.seg").into(),
        }
    }
}
