//! A full disk: space is kept for saves and compaction.

use std::sync::Arc;

use offsets::Offsets;
use sim_disk::SimDisk;

use crate::support::{QUEUE, SMALL, Step, Wrapped, run, view};

fn open(disk: &Wrapped) -> Offsets {
    Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL).expect("opens").0
}

// S35
#[test]
fn cursors_are_saved_and_compacted_on_a_full_disk_for_as_long_as_it_takes() {
    let disk = Wrapped::new(Arc::new(SimDisk::new()));
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    run(&mut offsets, &Step::Create(2, "b")).expect("saved");
    disk.fill();
    let (used, first) = (disk.used(), offsets.generation());
    for to in 1..500 {
        run(&mut offsets, &Step::Move { consumer: 1, to, of: 1 }).expect("space is kept for this");
    }
    assert_ne!(offsets.generation(), first, "compacted meanwhile");
    assert!(disk.used() <= used);
    let saved = view(&offsets);
    drop(offsets);
    // S36: the next run starts on a full disk, too.
    let mut offsets = open(&disk);
    assert_eq!(view(&offsets), saved);
    for to in 500..600 {
        run(&mut offsets, &Step::Move { consumer: 1, to, of: 1 }).expect("the old spare's space");
    }
}

#[test]
fn without_a_spare_the_present_file_goes_on_as_far_as_its_space_reaches() {
    let disk = Wrapped::new(Arc::new(SimDisk::new()));
    disk.fill();
    let mut offsets = open(&disk);
    let error = run(&mut offsets, &Step::Create(1, "a")).expect_err("no space at all");
    assert!(error.is_retryable(), "{error}");
    assert_eq!(disk.used(), 0, "nothing half-made is left");
}
