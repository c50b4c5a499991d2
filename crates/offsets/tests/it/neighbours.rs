//! Looking on beside a live owner that saves and compacts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Disk, OsDisk};
use offsets::{Offsets, SaveError};
use sim_disk::SimDisk;
use wal_format::{ConsumerId, Seq};

use crate::support::{QUEUE, SMALL, Step, Wrapped, open, run, script, view};

#[test]
fn an_onlooker_sees_what_the_owner_saved_and_changes_nothing() {
    let disk = SimDisk::new();
    let mut owner = open(&disk);
    for step in script() {
        run(&mut owner, &step).expect("saved");
        let before = (disk.count(disk::Op::Write), disk.count(disk::Op::RemoveFile));
        let (mut onlooker, _) = Offsets::read_only(Arc::new(disk.clone()), QUEUE).expect("opens");
        assert_eq!(view(&onlooker), view(&owner));
        assert!(matches!(run(&mut onlooker, &Step::Create(7, "z")), Err(SaveError::ReadOnly)));
        assert_eq!((disk.count(disk::Op::Write), disk.count(disk::Op::RemoveFile)), before);
    }
}

#[test]
fn a_compaction_between_list_and_open_makes_the_onlooker_list_again() {
    let sim = SimDisk::new();
    let mut owner = open(&sim);
    run(&mut owner, &Step::Create(1, "a")).expect("saved");
    let disk = Wrapped::new(Arc::new(sim));
    let expected = view(&owner);
    disk.after_next_list(Box::new(move || {
        owner.compact().expect("compacts");
        owner.compact().expect("compacts");
    }));
    let (onlooker, report) = Offsets::read_only(Arc::new(disk), QUEUE).expect("opens");
    assert_eq!(view(&onlooker), expected);
    assert!(!report.journal.is_damaged());
}

#[test]
fn onlookers_of_a_busy_owner_never_see_a_cursor_move_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_owned();
    let (mut owner, _) = Offsets::open_with(Arc::new(os_disk(&root)), QUEUE, SMALL).expect("opens");
    run(&mut owner, &Step::Create(1, "a")).expect("saved");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let disk: Arc<dyn Disk> = Arc::new(os_disk(&root));
            let mut last = Seq::FIRST;
            let mut looks = 0;
            while !over.load(Ordering::SeqCst) || looks == 0 {
                let (seen, report) = Offsets::read_only(Arc::clone(&disk), QUEUE).expect("opens");
                assert!(!report.journal.is_damaged(), "{report:?}");
                let cursor = seen.consumer(ConsumerId::new(1)).expect("registered").cursor;
                assert!(cursor >= last, "{cursor} after {last}");
                last = cursor;
                looks += 1;
            }
        });
        for to in 2..400 {
            run(&mut owner, &Step::Move { consumer: 1, to, of: 1 }).expect("saved");
        }
        over.store(true, Ordering::SeqCst);
        looker.join().expect("the onlooker saw nothing odd");
    });
}

fn os_disk(root: &Path) -> OsDisk {
    OsDisk::open(root).expect("opens")
}
