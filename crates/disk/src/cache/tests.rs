//! Idle files are found again, the oldest goes first, permits come back.

use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::{FdLimit, OsDisk};

struct Room {
    _dir: TempDir,
    disk: OsDisk,
    budget: Arc<FdBudget>,
    cache: Arc<FileCache>,
}

fn room(total: usize, reserved: usize) -> Room {
    let dir = TempDir::new().unwrap();
    let disk = OsDisk::open(dir.path()).unwrap();
    for i in 0..20 {
        disk.create(&path(i)).unwrap();
    }
    let budget = FdBudget::new(FdLimit { total, reserved });
    let cache = FileCache::new(Arc::clone(&budget));
    Room { _dir: dir, disk, budget, cache }
}

fn path(i: usize) -> PathBuf {
    PathBuf::from(format!("f{i}"))
}

impl Room {
    fn open(&self, i: usize) -> Held {
        self.cache.open(&self.disk, &path(i), OpenMode::Read).unwrap()
    }
}

#[test]
fn an_idle_file_is_used_again() {
    let room = room(3, 0);
    let held = room.open(1);
    assert!(room.cache.check_out(&path(1), OpenMode::Read).is_none());
    room.cache.check_in(&path(1), held);
    assert_eq!((room.cache.idle_count(), room.budget.used()), (1, 1));
    assert!(room.cache.check_out(&path(1), OpenMode::ReadWrite).is_none(), "it was opened for reading");
    let held = room.open(1);
    assert_eq!((room.cache.idle_count(), room.budget.used()), (0, 1));
    drop(held);
    assert_eq!(room.budget.used(), 0);
}

#[test]
fn shortage_closes_the_oldest_idle_file_first() {
    let room = room(3, 0);
    let held: Vec<_> = (0..3).map(|i| room.open(i)).collect();
    for (i, held) in held.into_iter().enumerate() {
        room.cache.check_in(&path(i), held);
    }
    let fourth = room.open(4);
    assert_eq!((room.cache.evicted_count(), room.budget.used()), (1, 3));
    assert!(room.cache.check_out(&path(0), OpenMode::Read).is_none(), "the oldest is closed");
    let second = room.cache.check_out(&path(1), OpenMode::Read).unwrap();
    drop((fourth, second));
    let two = room.budget.try_acquire(NonZeroUsize::new(3).unwrap()).unwrap();
    assert_eq!(room.cache.idle_count(), 0, "a wish for several closes as many as it needs");
    drop(two);
}

#[test]
fn the_reserved_class_closes_idle_files_too() {
    let room = room(3, 1);
    let (a, b) = (room.open(0), room.open(1));
    room.cache.check_in(&path(0), a);
    room.cache.check_in(&path(1), b);
    let reserved = room.budget.acquire_reserved(NonZeroUsize::new(3).unwrap());
    assert_eq!((room.cache.idle_count(), reserved.count()), (0, 3));
}

#[test]
fn a_removed_path_has_no_idle_file_left() {
    let room = room(4, 0);
    let (a, b) = (room.open(7), room.open(7));
    room.cache.check_in(&path(7), a);
    room.cache.check_in(&path(7), b);
    assert_eq!(room.cache.idle_count(), 2);
    room.cache.remove(&path(7));
    assert_eq!((room.cache.idle_count(), room.budget.used()), (0, 0));
    room.cache.check_in(&path(8), room.open(8));
    room.cache.clear();
    assert_eq!(room.budget.used(), 0);
}

#[test]
fn whoever_waits_gets_the_file_that_is_checked_in() {
    let room = room(1, 0);
    let held = room.open(0);
    let waiter = {
        let budget = Arc::clone(&room.budget);
        thread::spawn(move || budget.acquire(NonZeroUsize::MIN).count())
    };
    while room.budget.waiting() == 0 {
        thread::yield_now();
    }
    room.cache.check_in(&path(0), held);
    assert_eq!(waiter.join().unwrap(), 1);
    assert_eq!(room.cache.idle_count(), 0);
}

// S37, S54
#[test]
fn many_readers_of_many_files_stay_under_the_budget() {
    let room = Arc::new(room(4, 1));
    let threads: Vec<_> = (0..6)
        .map(|t| {
            let room = Arc::clone(&room);
            thread::spawn(move || {
                for round in 0..200 {
                    let i = (t * 7 + round * 3) % 20;
                    let held = room.open(i);
                    assert_eq!(held.len().unwrap(), 0);
                    room.cache.check_in(&path(i), held);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(room.budget.peak() <= 3, "only the common share: {}", room.budget.peak());
    assert_eq!(room.budget.used(), room.cache.idle_count());
}
