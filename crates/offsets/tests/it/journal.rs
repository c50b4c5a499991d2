//! The journal by itself, as another owner than the cursors uses it.

use std::path::Path;
use std::sync::Arc;

use disk::{Disk, SyncSite};
use offsets::journal::{Bodies, Journal, JournalError, JournalKind, JournalOptions, JournalReport};
use sim_disk::{Fault, On, SimDisk, Survival};
use wal_format::ENTRY_BODY_BYTES_MAX;

use crate::support::QUEUE;

const SITE: SyncSite = SyncSite::new("catalog.save");

fn open(disk: &SimDisk) -> (Journal, Vec<String>, JournalReport) {
    let (journal, bodies, report) =
        Journal::open(Arc::new(disk.clone()), "catalog", JournalKind::CATALOG, QUEUE).expect("opens");
    (journal, texts(&bodies), report)
}

fn texts(bodies: &Bodies) -> Vec<String> {
    bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
}

fn bodies(texts: &[&str]) -> Bodies {
    texts.iter().collect()
}

#[test]
fn an_owner_appends_compacts_and_finds_it_all_again() {
    let disk = SimDisk::new();
    let (mut journal, found, report) = open(&disk);
    assert_eq!((found.len(), report.files.len(), journal.can_append()), (0, 0, false));
    let error = journal.append(&bodies(&["x"]), SITE).expect_err("no generation yet");
    assert!(matches!(error, JournalError::NeedsSnapshot { .. }), "{error}");
    journal.compact(&bodies(&["snapshot 1", "snapshot 2"])).expect("compacts");
    journal.append(&bodies(&["one", "two"]), SITE).expect("appends");
    journal.append(&Bodies::new(), SITE).expect("nothing to do");
    let (_, found, report) = open(&disk.kill());
    assert_eq!(found, ["snapshot 1", "snapshot 2", "one", "two"]);
    assert_eq!(report.entry_count, 4);
    assert!(!report.is_damaged());
}

#[test]
fn a_save_makes_a_generation_when_it_must_and_appends_when_it_can() {
    let disk = SimDisk::new();
    let (mut journal, ..) = open(&disk);
    journal.save(&bodies(&["a"]), |all| all.push(b"start"), SITE).expect("saved");
    let first = journal.generation();
    journal.save(&bodies(&["b"]), |_| panic!("no snapshot is needed"), SITE).expect("saved");
    assert_eq!(journal.generation(), first);
    disk.plan(Fault::once(On::Site(SITE), 1, 5));
    journal.save(&bodies(&["lost"]), |_| panic!("no snapshot is needed"), SITE).expect_err("fails");
    journal.save(&bodies(&["c"]), |all| all.push(b"start a b"), SITE).expect("saved");
    assert!(journal.generation() > first);
    let (_, found, _) = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!(found, ["start a b", "c"]);
}

// All or nothing: no part of an append is ever found.
#[test]
fn an_append_of_many_bodies_is_found_whole_or_not_at_all() {
    let many: Vec<String> = (0..40).map(|index| format!("{index:0100}")).collect();
    for seed in 0..60 {
        let disk = SimDisk::new();
        let (mut journal, ..) = open(&disk);
        journal.compact(&bodies(&["snapshot"])).expect("compacts");
        disk.plan(Fault::forever(On::Site(SITE), 1, 5));
        journal.append(&many.iter().collect(), SITE).expect_err("the sync fails");
        let (_, found, report) = open(&disk.power_cut(&Survival::Seed(seed)));
        assert!(found.len() == 1 || found.len() == 41, "seed {seed}: {} bodies", found.len());
        assert_eq!(report.lost_count, 0, "torn, not damaged");
    }
}

#[test]
fn what_is_too_large_is_refused_before_anything_is_written() {
    let disk = SimDisk::new();
    let options = JournalOptions { file_bytes_max: 20_000, ..JournalOptions::default() };
    let (mut journal, ..) = Journal::open_with(
        Arc::new(disk.clone()),
        Path::new(""),
        "catalog",
        JournalKind::CATALOG,
        QUEUE,
        options,
    )
    .expect("opens");
    journal.compact(&bodies(&["small"])).expect("compacts");
    let calls = disk.call_count();
    let large = bodies(&[&"x".repeat(30_000)]);
    let error = journal.append(&large, SITE).expect_err("too large");
    assert!(matches!(error, JournalError::TooLarge { bytes_max: 20_000, .. }), "{error}");
    let error = journal.compact(&large).expect_err("too large");
    assert!(matches!(error, JournalError::TooLarge { bytes_max: 20_000, .. }), "{error}");
    assert_eq!(disk.call_count(), calls);
    for round in 0..100 {
        let text = format!("{round:01000}");
        journal.save(&bodies(&[&text]), |all| all.push(b"small"), SITE).expect("compacts in time");
        assert!(journal.used_bytes() <= 20_000);
    }
}

#[test]
fn two_journals_in_one_directory_do_not_see_each_other() {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("sub")).expect("created");
    let sub = Path::new("sub");
    let place = |prefix, kind| {
        Journal::open_with(Arc::new(disk.clone()), sub, prefix, kind, QUEUE, JournalOptions::default())
            .expect("opens")
    };
    let (mut one, ..) = place("catalog", JournalKind::CATALOG);
    let (mut other, ..) = place("cursors", JournalKind::CURSORS);
    one.compact(&bodies(&["one"])).expect("compacts");
    other.compact(&bodies(&["other"])).expect("compacts");
    assert_eq!(texts(&place("catalog", JournalKind::CATALOG).1), ["one"]);
    assert_eq!(texts(&place("cursors", JournalKind::CURSORS).1), ["other"]);
}

#[test]
fn a_body_longer_than_an_entry_may_be_is_refused_and_the_journal_goes_on() {
    let disk = SimDisk::new();
    let (mut journal, ..) = open(&disk);
    journal.compact(&bodies(&["snapshot"])).expect("compacts");
    journal.append(&bodies(&["one"]), SITE).expect("appends");
    let (calls, generation) = (disk.call_count(), journal.generation());
    let huge = bodies(&["small", &"x".repeat(ENTRY_BODY_BYTES_MAX - 3)]);
    let error = journal.append(&huge, SITE).expect_err("an entry has no room for it");
    let JournalError::TooLarge { bytes, bytes_max, .. } = error else { panic!("{error}") };
    assert_eq!((bytes, bytes_max), (ENTRY_BODY_BYTES_MAX as u64 - 3, ENTRY_BODY_BYTES_MAX as u64 - 4));
    let error = journal.compact(&huge).expect_err("an entry has no room for it");
    assert!(matches!(error, JournalError::TooLarge { .. }), "{error}");
    assert_eq!((disk.call_count(), journal.generation()), (calls, generation), "nothing was begun");
    journal.append(&bodies(&["two"]), SITE).expect("the file is sound");
    let (_, found, report) = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!((found, report.is_damaged()), (texts(&bodies(&["snapshot", "one", "two"])), false));
}
