//! The whole queue before files that are gone, short or old, and before a disk that refuses to be opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use sim_disk::{Fault, On, SimDisk, Snapshot, errno};
use wal_format::{Now, Seq};

use super::rig::{Rig, second};
use crate::core::quiet::Quiet;
use crate::core::{ConsumerState, Core, Seed, StreamState};
use crate::{Options, StreamSettings};

const RECORDS: u8 = 9;

/// Nine records in three segments, a consumer that acknowledged the first two, stopped in order.
fn stopped() -> Snapshot {
    let rig = Rig::new(Options::default());
    let stream = rig.stream_with("s", &StreamSettings { segment_age_max: None, ..StreamSettings::default() });
    let consumer = rig.consumer(&stream, "c");
    for n in 0..RECORDS {
        rig.append(&stream, &[n; 100]);
        if n % 3 == 2 {
            stream.log.rotate(rig.now).unwrap();
        }
    }
    rig.commit(&stream);
    assert_eq!(rig.drain(&stream, &consumer).len(), usize::from(RECORDS));
    rig.ack(&consumer, 3);
    drop((stream, consumer));
    let rig = rig.restart();
    assert!(rig.core.report().clean);
    let now = rig.now;
    rig.core.close(|| now).unwrap();
    drop(rig.core);
    rig.disk.snapshot()
}

/// Seqs of records and of gaps, in order.
fn read(rig: &Rig, stream: &Arc<StreamState>, consumer: &Arc<ConsumerState>) -> (Vec<u64>, Vec<u64>) {
    let (mut records, mut missing) = (Vec::new(), Vec::new());
    while let Some(delivery) = rig.next(stream, consumer, 1 << 20) {
        records.extend(delivery.records().map(|record| {
            assert!(
                record.payload == [record.seq.get() as u8 - 1; 100] || record.payload == b"new",
                "wrong bytes at seq {}",
                record.seq
            );
            record.seq.get()
        }));
        missing.extend(delivery.gaps().flat_map(|gap| gap.from.get()..gap.to.get()));
    }
    (records, missing)
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}

fn starts_with(path: &Path, what: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(what))
}

/// What becomes of a file.
type Change = fn(&SimDisk, &Path);

const CHANGES: [(&str, Change); 4] = [
    ("deleted", |disk, path| disk.remove_file(path).unwrap()),
    ("renamed", |disk, path| disk.rename(path, &path.with_extension("bak")).unwrap()),
    ("emptied", |disk, path| disk.damage(path, Vec::clear)),
    ("halved", |disk, path| disk.damage(path, |bytes| bytes.truncate(bytes.len() / 2))),
];

// S28, S16, S15: any one file deleted, renamed or cut: it opens, says exactly what is missing, goes on, and opens again. Cursors that
// are gone or older cost duplicates, and no seq is given out twice.
#[test]
fn any_one_file_may_go_and_the_queue_goes_on() {
    let stopped = stopped();
    let files: Vec<PathBuf> = SimDisk::from_snapshot(&stopped).files();
    assert!(files.iter().filter(|path| is_segment(path)).count() >= 3, "{files:?}");
    for path in &files {
        for (what, change) in CHANGES {
            let disk = SimDisk::from_snapshot(&stopped);
            change(&disk, path);
            let mut rig = Rig::on(disk, Options::default(), 2);
            let shown = format!("{} {what}: {:?}", path.display(), rig.core.report());
            if starts_with(path, "catalog-") {
                // Nothing says which streams there are: what is there is listed, and stays.
                assert!(!rig.core.report().strays.is_empty() || rig.core.names() == ["s"], "{shown}");
                let kept = rig.disk.files().into_iter().filter(|path| is_segment(path)).count();
                assert!(kept >= 3, "{shown}: {kept} segments are left");
            }
            for life in 0..2_u64 {
                let stream = rig.stream("s");
                let seq = rig.append(&stream, b"new");
                assert!(
                    starts_with(path, "catalog-") || seq.get() == u64::from(RECORDS) + 1 + life,
                    "{shown}: {seq}"
                );
                rig.commit(&stream);
                let consumer = rig.consumer(&stream, "c");
                let cursor = consumer.cursor().get();
                let (records, missing) = read(&rig, &stream, &consumer);
                let all: BTreeSet<u64> = records.iter().chain(&missing).copied().collect();
                assert_eq!(all, (cursor..stream.ends().durable.get()).collect(), "{shown}: life {life}");
                assert!(records.windows(2).all(|pair| pair[0] < pair[1]), "{shown}");
                assert_eq!(
                    records.last(),
                    Some(&(stream.ends().durable.get() - 1)),
                    "new data flows: {shown}"
                );
                if !is_segment(path) {
                    assert_eq!(missing, [] as [u64; 0], "{shown}: no record was touched");
                }
                drop((stream, consumer));
                rig = rig.restart();
            }
        }
    }
}

// S14: an old newest segment beside a newer cursor, and a log that was cut behind it.
#[test]
fn a_cursor_ahead_of_the_data_is_a_gap_and_the_next_record_comes_at_once() {
    for kept in [0_usize, 4096, 4096 + 300] {
        let rig = Rig::new(Options::default());
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        for n in 0..RECORDS {
            rig.append(&stream, &[n; 100]);
            rig.commit(&stream);
        }
        assert_eq!(rig.drain(&stream, &consumer).len(), usize::from(RECORDS));
        rig.ack(&consumer, 8);
        drop((stream, consumer));
        let rig = rig.restart();
        let newest = rig.disk.files().into_iter().rfind(|path| is_segment(path)).unwrap();
        rig.disk.damage(&newest, |bytes| bytes.truncate(kept));
        let rig = rig.restart();
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        assert_eq!(consumer.cursor(), Seq::new(8), "a cursor never moves back");
        let seq = rig.append(&stream, b"new");
        assert_eq!(seq, Seq::new(u64::from(RECORDS) + 1), "no seq is used again");
        rig.commit(&stream);
        let (records, missing) = read(&rig, &stream, &consumer);
        assert_eq!((records, missing), (vec![10], vec![8, 9]), "cut to {kept} bytes");
    }
}

fn open(disk: &SimDisk) -> Result<Core, crate::OpenError> {
    Core::open(Arc::new(disk.clone()), Options::default(), Seed::Fixed(3), Now::default())
}

// S36, S37, S38: each call of an open fails, once or from then on: it opens, or says why; nothing is lost or put away by it.
#[test]
fn an_open_that_the_disk_refuses_changes_nothing() {
    let stopped = stopped();
    for errno in [errno::EMFILE, errno::ENFILE, errno::EIO, errno::ENOSPC, errno::EROFS] {
        for forever in [false, true] {
            for k in 1.. {
                let disk = SimDisk::from_snapshot(&stopped);
                let segments = |disk: &SimDisk| -> Vec<Vec<u8>> {
                    disk.files().iter().filter(|path| is_segment(path)).map(|path| disk.read(path)).collect()
                };
                let before = segments(&disk);
                let calls = disk.call_count();
                let fault = if forever { Fault::forever } else { Fault::once };
                disk.plan(fault(On::Any, k, errno));
                let opened = open(&disk);
                let reached = disk.call_count() - calls >= k;
                if let Err(error) = &opened {
                    // A device that fails is not said to come back by itself; the rest is.
                    assert!(error.is_retryable() || errno == errno::EIO, "call {k}: {error}");
                }
                drop(opened);
                disk.clear_faults();
                assert_eq!(segments(&disk), before, "call {k}, errno {errno}");
                assert!(!disk.files().iter().any(|path| path.starts_with("quarantine")), "call {k}");
                let rig = Rig::on(disk.kill(), Options::default(), 4);
                let stream = rig.stream("s");
                let consumer = rig.consumer(&stream, "c");
                let (records, missing) = read(&rig, &stream, &consumer);
                assert_eq!((records, missing), ((3..=9).collect(), vec![]), "call {k}, errno {errno}");
                if !reached {
                    break;
                }
            }
        }
    }
}

// S39: read-only for a while: appends say so, reads go on, it is said once a minute, and all goes on by itself.
#[test]
fn a_read_only_disk_stops_appends_and_not_readers_and_is_left_behind() {
    let mut rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    rig.append_numbers(&stream, 5);
    rig.commit(&stream);
    rig.disk.remount_read_only();
    let refused = stream.log.append(b"while read-only".as_slice(), rig.now);
    let failed = refused.map(|ticket| ticket.wait(wal_store::Level::Durable, rig.now));
    assert!(failed.as_ref().is_ok_and(|told| told.as_ref().is_err_and(wal_store::CommitError::is_retryable)));
    assert_eq!(rig.drain(&stream, &consumer).len(), 5, "reads go on");
    rig.ack(&consumer, 6);
    assert!(rig.core.tick(rig.now).is_err_and(|error| error.is_retryable()));
    rig.disk.remount_read_write();
    for _ in 0..20 {
        rig.pass(second(1));
        let _ = stream.log.commit(rig.now, wal_store::Want::Batch);
    }
    assert_eq!(stream.ends().durable, Seq::new(7), "what waited is durable without anybody's help");
    assert_eq!(rig.drain(&stream, &consumer).len(), 1);
    rig.core.tick(rig.now).unwrap();
}

// S39: at most a line a minute.
#[test]
fn a_fault_that_goes_on_is_said_once_a_minute() {
    let quiet = Quiet::default();
    let at = |seconds: u64| wal_format::Instant::ZERO.saturating_add(second(seconds));
    let said: Vec<u64> = (0..=125).filter(|seconds| quiet.may_speak(at(*seconds))).collect();
    assert_eq!(said, [0, 60, 120]);
}

/// Whether a queue is closed or just dropped, nothing of it stays in memory: no part holds the whole of it in a ring.
#[test]
fn a_core_that_is_dropped_is_freed() {
    for closes in [false, true] {
        let rig = Rig::new(Options::default());
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        stream.log.append(b"x".as_slice(), rig.now).unwrap();
        rig.commit(&stream);
        if closes {
            rig.core.close(|| rig.now).unwrap();
        }
        let hub = Arc::downgrade(&rig.core.hub);
        drop((rig, stream, consumer));
        assert!(hub.upgrade().is_none(), "closed: {closes}");
    }
}
