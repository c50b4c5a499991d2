//! Flipped bits, cut files, foreign and odd files.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, OpenMode, SyncSite};
use offsets::journal::{FileOutcome, FileReport, Journal, JournalError, Removal};
use offsets::{Offsets, OffsetsReport, OpenError, SaveError};
use sim_disk::{SimDisk, Survival};
use wal_format::{
    ConsumerId, EntryTag, JOURNAL_HEADER_BYTES, JournalHeader, JournalKind, QueueId, Seq, StreamId,
};

use crate::support::{QUEUE, Step, View, open, run, view, views};

const SITE: SyncSite = SyncSite::new("test");

fn path(generation: u64) -> PathBuf {
    PathBuf::from(format!("cursors-{generation:016x}"))
}

fn header(queue: QueueId, generation: u64) -> JournalHeader {
    JournalHeader { kind: JournalKind::CURSORS, queue, generation }
}

fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    if disk.stat(path).is_ok() {
        disk.remove_file(path).expect("removed");
    }
    let file = disk.create(path).expect("created");
    file.write_all_at(&[IoSlice::new(bytes)], 0).expect("written");
    file.sync_data(SITE).expect("synced");
    disk.sync_dir(Path::new(""), SITE).expect("synced");
}

fn look(disk: &SimDisk) -> (View, OffsetsReport) {
    let (offsets, report) = Offsets::read_only(Arc::new(disk.clone()), QUEUE).expect("opens");
    (view(&offsets), report)
}

const STEPS: [Step; 3] = [
    Step::Create(1, "a"),
    Step::Move { consumer: 1, to: 10, of: 1 },
    Step::Move { consumer: 1, to: 30, of: 1 },
];

/// A journal of one generation, its bytes in use, and what it says after each step.
fn journal() -> (SimDisk, PathBuf, Vec<u8>, Vec<View>) {
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    for step in &STEPS {
        run(&mut offsets, step).expect("saved");
    }
    let path = path(offsets.generation().expect("one").0);
    let used = usize::try_from(offsets.journal_bytes()).expect("small");
    let bytes = disk.read(&path).get(..used).expect("in use").to_vec();
    let disk = SimDisk::new();
    put(&disk, &path, &bytes);
    (disk, path, bytes, views(&STEPS))
}

// S24: header, entry heads, bodies.
#[test]
fn no_single_flipped_bit_costs_anything() {
    let (disk, path, bytes, views) = journal();
    for offset in 0..bytes.len() {
        for bit in 0..8 {
            disk.corrupt(&path, offset as u64, bit);
            let (found, report) = look(&disk);
            assert_eq!(Some(&found), views.last(), "byte {offset}, bit {bit}: {report:#?}");
            disk.corrupt(&path, offset as u64, bit);
        }
    }
    let (found, report) = look(&disk);
    assert_eq!((Some(&found), report.journal.is_damaged()), (views.last(), false));
}

#[test]
fn damage_in_the_middle_costs_that_move_and_nothing_behind_it() {
    let (disk, path, bytes, views) = journal();
    let last = views.last().expect("some");
    let (mut kept, mut tried) = (0, 0);
    for offset in (0..bytes.len()).step_by(3) {
        tried += 1;
        for bit in [0, 3, 5] {
            disk.corrupt(&path, offset as u64, bit);
        }
        let (found, report) = look(&disk);
        kept += usize::from(found.floors.last() == last.floors.last());
        assert!(
            found == *last || report.journal.is_damaged() || report.journal.torn_bytes > 0,
            "byte {offset}: lost without a word: {report:#?}"
        );
        for bit in [0, 3, 5] {
            disk.corrupt(&path, offset as u64, bit);
        }
    }
    assert!(kept * 2 > tried, "{kept} of {tried}");
}

// S17, for the cursor journal.
#[test]
fn a_file_cut_at_any_byte_says_what_the_whole_saves_in_it_say() {
    let (_, path, bytes, views) = journal();
    let mut before = 0;
    for len in 0..=bytes.len() {
        let disk = SimDisk::new();
        put(&disk, &path, bytes.get(..len).expect("in range"));
        let (found, _) = look(&disk);
        let index = views.iter().position(|view| *view == found).expect("a state that was saved");
        assert!(index >= before, "cut at {len}: {index} after {before}");
        before = index;
    }
    assert_eq!(before, STEPS.len());
}

// S29
#[test]
fn no_length_makes_it_panic_or_allocate() {
    let (_, path, bytes, views) = journal();
    for length in [0, 1, (1 << 26) - 1, 1 << 26, (1 << 26) + 1, u32::MAX] {
        for offset in (JOURNAL_HEADER_BYTES..bytes.len() - 4).step_by(13) {
            let disk = SimDisk::new();
            let mut changed = bytes.clone();
            changed.get_mut(offset..offset + 4).expect("in range").copy_from_slice(&length.to_le_bytes());
            put(&disk, &path, &changed);
            let (found, report) = look(&disk);
            assert!(views.contains(&found) || report.journal.is_damaged() || report.journal.torn_bytes > 0);
        }
    }
}

/// A file of a later version: its header is sound but for the number.
fn of_version(generation: u64, version: u16) -> Vec<u8> {
    forged(generation, 8, version)
}

/// A header with another number at this place, and its checksum made right.
fn forged(generation: u64, at: usize, number: u16) -> Vec<u8> {
    let mut bytes = header(QUEUE, generation).encode();
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes.to_vec()
}

fn foreign(generation: u64) -> Vec<u8> {
    let header = header(QueueId::new(9), generation);
    let mut bytes = header.encode().to_vec();
    header.encode_entry(&mut bytes, 1, EntryTag { version: 1, kind: 2 }, &[0, 0, 0, 0, 8, 7]);
    bytes
}

fn outcome(report: &OffsetsReport, path: &Path) -> (FileOutcome, Removal) {
    let of = |file: &&FileReport| file.path == path;
    let file = report.journal.files.iter().find(of).expect("a line in the report");
    assert!(file.to_string().starts_with("cursors-"), "{file}");
    (file.outcome, file.removal)
}

// S12, S16, S31
#[test]
fn of_several_copies_the_highest_valid_one_wins_and_each_has_a_line_in_the_report() {
    let (disk, current, bytes, views) = journal();
    put(&disk, &path(0x20), &[]);
    put(&disk, &path(0x21), &[0; 5000]);
    put(&disk, &path(0x22), &of_version(0x22, 2));
    put(&disk, &path(0x23), &foreign(0x23));
    put(&disk, &path(0x24), &bytes);
    put(&disk, &path(0x25), &[0xa5; 3000]);
    put(&disk, &path(0x26), &header(QUEUE, 0x26).encode());
    put(&disk, Path::new("cursors-26.tmp"), b"stray");
    put(&disk, Path::new("cursorsfoo"), b"not even stray");
    let (mut offsets, report) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    assert_eq!(Some(&view(&offsets)), views.last());
    let expected = [
        (current.clone(), FileOutcome::Current, Removal::Kept),
        (path(0x20), FileOutcome::Empty, Removal::Removed),
        (path(0x21), FileOutcome::Prepared, Removal::Removed),
        (path(0x22), FileOutcome::Version { found: 2 }, Removal::Kept),
        (path(0x23), FileOutcome::Foreign, Removal::Kept),
        (path(0x24), FileOutcome::Misnamed, Removal::Kept),
        (path(0x25), FileOutcome::Damaged, Removal::Kept),
        (path(0x26), FileOutcome::Incomplete, Removal::Removed),
        (PathBuf::from("cursors-26.tmp"), FileOutcome::Stray, Removal::Kept),
    ];
    assert_eq!(report.journal.files.len(), expected.len());
    for (path, as_outcome, removal) in expected {
        assert_eq!(outcome(&report, &path), (as_outcome, removal), "{}", path.display());
        assert_eq!(disk.stat(&path).is_ok(), removal == Removal::Kept, "{}", path.display());
    }
    // What comes next is above all of them.
    run(&mut offsets, &Step::Create(5, "new")).expect("saved");
    assert!(offsets.generation().expect("one").0 > 0x26);
    let (again, _) = Offsets::open(Arc::new(disk.kill()), QUEUE).expect("opens");
    assert_eq!(view(&again), view(&offsets));
}

// R7
#[test]
fn a_journal_only_a_later_version_can_read_is_refused_and_left_alone() {
    let disk = SimDisk::new();
    put(&disk, &path(3), &of_version(3, 2));
    let error = Offsets::open(Arc::new(disk.clone()), QUEUE).expect_err("refused");
    let OpenError::Journal(JournalError::Version { path: named, version: 2 }) = &error else {
        panic!("{error}")
    };
    assert_eq!(*named, path(3));
    assert!(!error.is_retryable());
    assert_eq!(disk.read(path(3)), of_version(3, 2));

    // An incompatible flag says the same as a version.
    let disk = SimDisk::new();
    put(&disk, &path(3), &forged(3, 10, 4));
    let error = Offsets::open(Arc::new(disk.clone()), QUEUE).expect_err("refused");
    let OpenError::Journal(JournalError::Version { version: 4, .. }) = &error else { panic!("{error}") };
    assert!(!error.is_retryable());
    assert_eq!(disk.read(path(3)), forged(3, 10, 4));

    let disk = SimDisk::new();
    let header = header(QUEUE, 4);
    let mut bytes = header.encode().to_vec();
    header.encode_entry(&mut bytes, 1, EntryTag { version: 1, kind: 2 }, &[0, 0, 0, 0, 200, 1]);
    put(&disk, &path(4), &bytes);
    let error = Offsets::open(Arc::new(disk.clone()), QUEUE).expect_err("refused");
    assert!(matches!(error, OpenError::UnknownKind { kind: 200, .. }), "{error}");
    assert_eq!(disk.read(path(4)), bytes);
}

/// A journal whose one write holds these bodies, each in a sound entry.
fn with_bodies(bodies: &[&[u8]]) -> SimDisk {
    let disk = SimDisk::new();
    let kind = JournalKind::CURSORS;
    let (mut journal, ..) =
        Journal::open(Arc::new(disk.clone()), "cursors", kind, QUEUE).expect("an empty disk");
    journal.compact(&bodies.iter().collect()).expect("a healthy disk");
    disk.kill()
}

// S29: a checksum says who wrote it, and not that it makes sense.
#[test]
fn a_sound_entry_that_makes_no_sense_is_counted_and_costs_nothing_else() {
    let disk = with_bodies(&[&[8, 7], &[11, 0], &[5, 1, 50, 1, 200]]);
    let (mut offsets, report) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    assert_eq!((report.ignored_count, report.journal.is_damaged()), (1, false));
    assert_eq!(offsets.next_consumer_id(), ConsumerId::new(7));
    assert_eq!(offsets.durable_end(StreamId::new(1)).expect("it was saved").end, Seq::new(50));
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    let (offsets, report) =
        Offsets::open(Arc::new(disk.power_cut(&Survival::Nothing)), QUEUE).expect("opens");
    assert_eq!((report.ignored_count, offsets.next_consumer_id()), (0, ConsumerId::new(8)));
}

#[test]
fn without_a_consumer_id_left_nobody_registers_and_the_rest_goes_on() {
    let last = [8, 253, 255, 255, 255, 255, 255, 255, 255, 255];
    let disk = with_bodies(&[&last]);
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    let calls = disk.call_count();
    for _ in 0..2 {
        let refused = run(&mut offsets, &Step::Create(1, "a")).expect_err("no id is left");
        assert!(matches!(refused, SaveError::IdsUsedUp) && !refused.is_retryable(), "{refused}");
    }
    assert_eq!(disk.call_count(), calls);
    run(&mut offsets, &Step::CleanStop).expect("saved");
    let saved = view(&offsets);
    assert_eq!(view(&open(&disk.power_cut(&Survival::Nothing))), saved);
}

// S15, S28: absent, empty, older.
#[test]
fn an_absent_or_older_journal_opens_and_says_less() {
    let (disk, current, bytes, views) = journal();
    disk.remove_file(&current).expect("removed");
    let (offsets, report) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    assert_eq!(Some(&view(&offsets)), views.first());
    assert_eq!(report.journal.generation, None);

    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("a new life");
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    for step in STEPS.iter().take(2) {
        run(&mut offsets, step).expect("saved");
    }
    let (older, _) = Offsets::open(Arc::new(disk.kill()), QUEUE).expect("an older copy");
    assert_eq!(Some(&view(&older)), views.get(2));
    assert!(!bytes.is_empty());
}

// S45
#[test]
fn a_name_at_the_top_of_the_type_ends_nothing() {
    let (disk, _, _, views) = journal();
    put(&disk, &path(u64::MAX), b"junk");
    put(&disk, &path(u64::MAX - 1), b"junk");
    put(&disk, &path(0), b"junk");
    let (mut offsets, report) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    assert_eq!(Some(&view(&offsets)), views.last());
    assert_eq!(outcome(&report, &path(u64::MAX)).0, FileOutcome::Stray);
    assert_eq!(outcome(&report, &path(0)).0, FileOutcome::Stray);
    for to in 31..40 {
        run(&mut offsets, &Step::Move { consumer: 1, to, of: 1 }).expect("saved");
        offsets.compact().expect("compacts");
    }
    let (again, _) = Offsets::open(Arc::new(disk.kill()), QUEUE).expect("opens");
    assert_eq!(view(&again), view(&offsets));
}

#[test]
fn what_is_not_ours_under_a_generations_name_is_listed_and_left() {
    let (disk, _, _, views) = journal();
    disk.create_dir(&path(0x50)).expect("created");
    disk.create_dir(&path(0x51)).expect("created");
    let (mut offsets, report) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    assert_eq!(Some(&view(&offsets)), views.last());
    run(&mut offsets, &Step::Create(5, "new")).expect("a number above them");
    put(&disk, &path(offsets.generation().expect("one").0 + 2), b"somebody put this here meanwhile");
    offsets.compact().expect("into the spare");
    assert_eq!(outcome(&report, &path(0x50)), (FileOutcome::Stray, Removal::Kept));
    assert!(disk.open(&path(0x50), OpenMode::Read).is_err());
    assert_eq!(
        disk.read(path(offsets.generation().expect("one").0 + 1)),
        b"somebody put this here meanwhile"
    );
    run(&mut offsets, &Step::Seek { consumer: 1, to: 4 }).expect("saved");
}
