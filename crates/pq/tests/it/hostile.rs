//! A directory that somebody prepared: links, pipes, strangers' names. Nothing outside it is read or written, nothing waits, and what
//! is sound is delivered.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an attacker does not go through the disk crate"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use pq::inspect::Inspection;
use pq::{Options, Queue, StreamSettings};
use tempfile::TempDir;

use crate::DEADLINE;

const RECORDS: u64 = 6;
const STREAM_DIR: &str = "streams/0000000000000001";

fn options() -> Options {
    // A segment a record.
    let stream =
        StreamSettings { segment_bytes_max: 4200, segment_age_max: None, ..StreamSettings::default() };
    Options { stream, ..Options::default() }
}

fn payload(seq: u64) -> String {
    format!("{seq} {}", "x".repeat(100))
}

/// A queue of one stream with a record a segment, and a consumer that acknowledged nothing; closed.
fn prepared() -> TempDir {
    let dir = TempDir::new().unwrap();
    let queue = Queue::open(dir.path(), options()).unwrap();
    let stream = queue.stream("s").unwrap();
    for seq in 1..=RECORDS {
        stream.append_durable(payload(seq).as_str()).unwrap();
    }
    drop(stream.consumer("c").unwrap());
    drop(stream);
    queue.close(DEADLINE).unwrap();
    dir
}

/// Every file below a directory, with its content and its mode, following nothing.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let mode = meta.permissions().mode();
        if meta.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            all.insert(path, (Vec::new(), mode));
        } else if meta.is_file() {
            all.insert(path.clone(), (fs::read(&path).unwrap(), mode));
        }
    }
    all
}

/// What of a prepared queue is delivered, as (seqs of records, seqs of gaps); `None` if the queue or the stream does not open.
fn delivered(dir: &Path) -> Option<(Vec<u64>, Vec<u64>)> {
    let queue = Queue::open(dir, options()).ok()?;
    let stream = queue.stream("s").ok()?;
    let mut consumer = stream.consumer("reader").ok()?;
    let (mut records, mut gaps) = (Vec::new(), Vec::new());
    while let Ok(Some(delivery)) = consumer.try_next() {
        for record in delivery.records() {
            assert_eq!(record.payload, payload(record.seq.get()).as_bytes());
            records.push(record.seq.get());
        }
        gaps.extend(delivery.gaps().flat_map(|gap| gap.from.get()..gap.to.get()));
    }
    drop((consumer, stream));
    queue.close(DEADLINE).unwrap();
    Some((records, gaps))
}

/// Every part of a prepared queue by its path, directories too.
fn parts(dir: &Path) -> Vec<PathBuf> {
    let all = tree(dir).into_keys().filter(|path| path != dir);
    all.map(|path| path.strip_prefix(dir).unwrap().to_owned()).collect()
}

#[test]
fn a_symbolic_link_in_place_of_any_part_is_never_followed() {
    let sample = prepared();
    for part in parts(sample.path()) {
        let (dir, outside) = (prepared(), TempDir::new().unwrap());
        // The other queue's part of the same name would serve just as well, if it were followed.
        let target = outside.path().join("part");
        let original = dir.path().join(&part);
        if !original.exists() {
            // Its name follows from how often the journal was compacted.
            continue;
        }
        fs::rename(&original, &target).unwrap();
        symlink(&target, &original).unwrap();
        let before = tree(outside.path());
        let seen = delivered(dir.path());
        assert_eq!(tree(outside.path()), before, "{}: what the link names was touched", part.display());
        if let Some((records, gaps)) = seen {
            assert!(records.len() + gaps.len() <= RECORDS as usize, "{}", part.display());
            if part.extension() == Some(OsStr::new("seg")) {
                assert_eq!((records.len(), gaps.len()), (RECORDS as usize - 1, 1), "{}", part.display());
            }
        }
    }
}

#[test]
fn a_link_swapped_in_under_a_running_queue_is_not_followed() {
    let (dir, outside) = (prepared(), TempDir::new().unwrap());
    let queue = Queue::open(dir.path(), options()).unwrap();
    let stream = queue.stream("s").unwrap();
    let segments = dir.path().join(STREAM_DIR);
    let mut names: Vec<_> = fs::read_dir(&segments).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let target = outside.path().join("segment");
    fs::rename(&names[2], &target).unwrap();
    symlink(&target, &names[2]).unwrap();
    let mut consumer = stream.consumer("reader").unwrap();
    let mut seqs = Vec::new();
    while let Ok(Some(delivery)) = consumer.try_next() {
        assert_eq!(delivery.gaps().count(), 0, "nothing is lost: it is there, under another name");
        seqs.extend(delivery.records().map(|record| record.seq.get()));
    }
    // A file that was open already is read to its end; a name is not opened any more.
    assert!(seqs == [1, 2] || seqs == [1, 2, 3, 4, 5, 6], "{seqs:?}");
    // Writing goes on beside it.
    stream.append_durable("more").unwrap();
    // And once the file is back, reading does.
    fs::remove_file(&names[2]).unwrap();
    fs::rename(&target, &names[2]).unwrap();
    while seqs.len() < RECORDS as usize + 1 {
        if let Some(delivery) = consumer.next_timeout(DEADLINE).unwrap_or_default() {
            assert_eq!(delivery.gaps().count(), 0);
            seqs.extend(delivery.records().map(|record| record.seq.get()));
        }
    }
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_pipe_in_place_of_any_part_makes_nobody_wait() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let sample = prepared();
    for part in parts(sample.path()) {
        let dir = prepared();
        let path = dir.path().join(&part);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).unwrap(),
            Ok(_) => fs::remove_file(&path).unwrap(),
            Err(_) => continue,
        }
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        if let Ok(inspection) = Inspection::open(dir.path()) {
            let _ = inspection.verify();
        }
        let seen = delivered(dir.path());
        if part.extension() == Some(OsStr::new("seg")) {
            let (records, gaps) = seen.unwrap();
            assert_eq!((records.len(), gaps.len()), (RECORDS as usize - 1, 1), "{}", part.display());
        }
    }
}

#[test]
fn a_file_linked_into_the_queue_is_read_and_never_written() {
    let (dir, outside) = (prepared(), TempDir::new().unwrap());
    for (path, _) in tree(dir.path()).iter().filter(|(path, _)| path.is_file()) {
        let name = path.strip_prefix(dir.path()).unwrap().to_string_lossy().replace('/', "+");
        fs::hard_link(path, outside.path().join(name)).unwrap();
    }
    let before = tree(outside.path());
    assert_eq!(delivered(dir.path()).unwrap().0, [1, 2, 3, 4, 5, 6]);
    let queue = Queue::open(dir.path(), options()).unwrap();
    let stream = queue.stream("s").unwrap();
    stream.append_durable(payload(7).as_str()).unwrap();
    let mut consumer = stream.consumer("c").unwrap();
    let mut reader = stream.consumer("reader").unwrap();
    for consumer in [&mut consumer, &mut reader] {
        while let Some(delivery) = consumer.try_next().unwrap() {
            consumer.ack(&delivery).unwrap().wait().unwrap();
        }
    }
    drop((consumer, reader, stream));
    queue.close(DEADLINE).unwrap();
    assert_eq!(tree(outside.path()), before, "a backup by hard links stays as it was");
}

// S31
#[test]
fn any_number_of_strangers_is_counted_and_left_alone() {
    const STRANGERS: usize = 50_000;
    let dir = prepared();
    let segments = dir.path().join(STREAM_DIR);
    for place in [dir.path(), &dir.path().join("streams"), &segments] {
        fs::write(place.join(OsStr::from_bytes(b"\xFF\xFEodd")), b"1").unwrap();
        fs::create_dir(place.join("directory")).unwrap();
    }
    fs::remove_file(segments.join("0000000000000002.seg")).unwrap();
    fs::create_dir(segments.join("0000000000000002.seg")).unwrap();
    for place in [dir.path(), &segments] {
        for number in 0..STRANGERS {
            fs::write(place.join(format!("x{number}")), b"").unwrap();
        }
    }
    let queue = Queue::open(dir.path(), options()).unwrap();
    let report = queue.recovery();
    assert_eq!(report.strays.len(), 100);
    let says_more = |note: &String| note.contains("more names are not the queue's");
    assert!(report.notes.iter().any(says_more), "{:?}", report.notes);
    queue.close(DEADLINE).unwrap();
    let (records, gaps) = delivered(dir.path()).unwrap();
    assert_eq!((records, gaps), (vec![1, 3, 4, 5, 6], vec![2]), "a directory took the place of segment 2");
    assert!(dir.path().join("x0").exists() && segments.join("x49999").exists());
}

#[test]
fn whatever_a_queue_creates_is_its_owners_alone() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("queue");
    let queue = Queue::open(&root, options()).unwrap();
    let stream = queue.stream("s").unwrap();
    stream.append_durable("x").unwrap();
    drop(stream.consumer("c").unwrap());
    drop(stream);
    queue.close(DEADLINE).unwrap();
    for (path, (_, mode)) in tree(&root) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode & 0o777, expected, "{}", path.display());
    }
}

// S21: a file that says it is enormous costs neither time nor memory.
#[test]
fn a_file_stretched_to_a_terabyte_is_read_no_further_than_its_batches_may_reach() {
    let dir = prepared();
    for (path, _) in tree(dir.path()).iter().filter(|(path, _)| path.is_file()) {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        // A file system that cannot hold it has nothing to show here.
        let _ = file.set_len(1 << 40);
    }
    assert_eq!(delivered(dir.path()).unwrap(), (vec![1, 2, 3, 4, 5, 6], Vec::new()));
}
