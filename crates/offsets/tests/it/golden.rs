//! The bytes of version 1, kept in `testdata/v1`: written just so, and read for all time.
//!
//! `PQ_BLESS=1 cargo test -p offsets golden` writes them anew; only before the first release.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, OpenMode, OsDisk};
use offsets::{AgeMark, CursorMove, Floor, FloorReason, Offsets, OpenTime, Save, Trim, sites};
use sim_disk::SimDisk;
use wal_format::{SegmentId, Seq, StreamId};

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

/// Ranges that policies dropped, marks of age, the time the queue was open: kinds 12 to 14, which came after the others.
fn save_policies(offsets: &mut Offsets) {
    run(offsets, &Step::Create(1, "slow")).expect("saved");
    let trim = |from, to, reason| Trim { from: Seq::new(from), to: Seq::new(to), reason };
    let mark = |end, at| AgeMark { end: Seq::new(end), at: OpenTime::from_nanos(at) };
    let stream = StreamId::new(1);
    let floor =
        |seq, reason| Floor { seq: Seq::new(seq), segment: SegmentId::new(seq), reason, tags: Vec::new() };
    let saves = [
        (floor(50, FloorReason::Trimmed), trim(1, 50, FloorReason::Trimmed), mark(60, 1_000)),
        (floor(80, FloorReason::Expired), trim(50, 80, FloorReason::Expired), mark(90, 2_000)),
    ];
    for (floor, trim, mark) in saves {
        let save = Save {
            floors: &[(stream, floor)],
            trims: &[(stream, trim)],
            marks: &[(stream, mark)],
            open_time: Some(mark.at),
            ..Save::default()
        };
        offsets.save(&save, sites::SAVE).expect("saved");
    }
}

fn check_policies(offsets: &Offsets) {
    let stream = StreamId::new(1);
    let trims = offsets.trims(stream).expect("some");
    let told: Vec<_> = trims.ranges.iter().map(|t| (t.from.get(), t.to.get(), t.reason)).collect();
    assert_eq!(told, [(1, 50, FloorReason::Trimmed), (50, 80, FloorReason::Expired)]);
    assert_eq!((trims.trimmed_count, trims.expired_count), (49, 30));
    let marks: Vec<_> = offsets.age_marks(stream).iter().map(|m| (m.end.get(), m.at.nanos())).collect();
    assert_eq!(marks, [(90, 2_000)], "one below the floor says nothing");
    assert_eq!(offsets.open_time(), OpenTime::from_nanos(2_000));
    assert_eq!(offsets.floor(stream).expect("one").reason, FloorReason::Expired);
}

#[test]
fn what_policies_dropped_is_written_and_read_byte_for_byte() {
    for (name, compacts) in [("policies", false), ("policies-compacted", true)] {
        let disk = SimDisk::new();
        let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
        save_policies(&mut offsets);
        if compacts {
            offsets.compact().expect("saved");
        }
        check_policies(&offsets);
        let generation = offsets.generation().expect("one").0;
        let mut bytes = disk.read(format!("cursors-{generation:016x}"));
        bytes.truncate(usize::try_from(offsets.journal_bytes()).expect("small"));
        let kept = golden(name, &bytes);
        assert!(kept == bytes, "{name}: the bytes written have changed");
        let disk = SimDisk::new();
        let file = disk.create(&PathBuf::from(format!("cursors-{generation:016x}"))).expect("created");
        file.write_all_at(&[IoSlice::new(&kept)], 0).expect("written");
        let (mut read, report) = Offsets::open(Arc::new(disk), QUEUE).expect("opens");
        check_policies(&read);
        assert_eq!(report.ignored_count, 0);
        // Ranges go once every consumer stands behind them; the totals stay.
        let id = read.consumers_of(StreamId::new(1)).next().expect("one").consumer;
        let cursors = [CursorMove::forward(id, Seq::new(60))];
        read.save(&Save { cursors: &cursors, ..Save::default() }, sites::SAVE).expect("saved");
        read.compact().expect("saved");
        read.forget_stream(StreamId::new(1)).expect("saved");
        assert!(read.trims(StreamId::new(1)).is_none() && read.age_marks(StreamId::new(1)).is_empty());
    }
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
