//! The bytes of version 1, kept in `testdata/v1`: written just so, and read for all time.
//!
//! `PQ_BLESS=1 cargo test -p offsets golden` writes them anew; only before the first release.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, OpenMode, OsDisk};
use offsets::Offsets;
use sim_disk::SimDisk;

use crate::support::{QUEUE, Step, run, script, view};

/// Steps, and the file in `testdata/v1` that holds the journal after them.
fn cases() -> Vec<(&'static str, Vec<Step>)> {
    let mut stopped = script();
    stopped.truncate(stopped.iter().position(|step| matches!(step, Step::CleanStop)).expect("one") + 1);
    vec![
        ("first", vec![Step::Create(1, "a")]),
        ("saves", script().into_iter().filter(|step| !matches!(step, Step::Compact)).collect()),
        ("compacted", stopped),
    ]
}

/// The kept bytes; `bytes` if they are to be kept from now on.
fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let dir = OsDisk::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1")).expect("golden files");
    if std::env::var_os("PQ_BLESS").is_some() {
        let _ = dir.remove_file(Path::new(name));
        let file = dir.create(Path::new(name)).expect("created");
        file.write_all_at(&[IoSlice::new(bytes)], 0).expect("written");
    }
    let file = dir.open(Path::new(name), OpenMode::Read).expect("a golden file");
    let mut kept = vec![0; usize::try_from(file.len().expect("a length")).expect("small")];
    assert_eq!(file.read_at(&mut kept, 0).expect("read"), kept.len());
    kept
}

/// Runs the steps; returns what they say, the generation, and its bytes in use.
fn write(steps: &[Step]) -> (Offsets, u64, Vec<u8>) {
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    for step in steps {
        run(&mut offsets, step).expect("saved");
    }
    let generation = offsets.generation().expect("one").0;
    let mut bytes = disk.read(format!("cursors-{generation:016x}"));
    bytes.truncate(usize::try_from(offsets.journal_bytes()).expect("small"));
    (offsets, generation, bytes)
}

// S16, promise 8: files of version 1 are read by every later version.
#[test]
fn golden_files_are_written_and_read_byte_for_byte() {
    for (name, steps) in cases() {
        let (written, generation, bytes) = write(&steps);
        let kept = golden(name, &bytes);
        assert!(kept == bytes, "{name}: the bytes written have changed");

        let disk = SimDisk::new();
        let file = disk.create(&PathBuf::from(format!("cursors-{generation:016x}"))).expect("created");
        file.write_all_at(&[IoSlice::new(&kept)], 0).expect("written");
        let (read, report) = Offsets::open(Arc::new(disk), QUEUE).expect("opens");
        assert_eq!(view(&read), view(&written), "{name}");
        assert_eq!((report.ignored_count, report.journal.torn_bytes), (0, 0), "{name}");
    }
}
