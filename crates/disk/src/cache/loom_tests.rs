//! Budget and cache in all interleavings of two or three threads: run with `RUSTFLAGS="--cfg loom"`.

use std::io::IoSlice;
use std::ops::Range;

use bytes::Bytes;
use loom::thread;

use super::*;
use crate::{Advice, Cached, FdLimit, SyncSite};

/// A file that nobody calls.
#[derive(Debug)]
struct NoFile;

impl File for NoFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, DiskError> {
        Ok(0)
    }
    fn write_all_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<(), DiskError> {
        Ok(())
    }
    fn sync_data(&self, _: SyncSite) -> Result<(), DiskError> {
        Ok(())
    }
    fn len(&self) -> Result<u64, DiskError> {
        Ok(0)
    }
    fn set_len(&self, _: u64) -> Result<(), DiskError> {
        Ok(())
    }
    fn allocate(&self, _: Range<u64>) -> Result<(), DiskError> {
        Ok(())
    }
    fn advise(&self, _: Advice, _: Range<u64>) -> Result<(), DiskError> {
        Ok(())
    }
    fn cached(&self, _: Range<u64>) -> Result<Cached, DiskError> {
        Ok(Cached::Unknown)
    }
    fn map(&self, _: u64) -> Result<Option<Bytes>, DiskError> {
        Ok(None)
    }
}

fn budget(total: usize, reserved: usize) -> Arc<FdBudget> {
    FdBudget::new(FdLimit { total, reserved })
}

fn held(budget: &Arc<FdBudget>) -> Held {
    Held::new(Arc::new(NoFile), budget.acquire(NonZeroUsize::MIN), OpenMode::Read)
}

// S47
#[test]
fn a_released_permit_wakes_its_waiter() {
    loom::model(|| {
        let budget = budget(1, 0);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let budget = Arc::clone(&budget);
                thread::spawn(move || {
                    let permit = budget.acquire(NonZeroUsize::MIN);
                    assert_eq!(budget.used(), 1);
                    drop(permit);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((budget.used(), budget.waiting(), budget.peak()), (0, 0, 1));
    });
}

// S47
#[test]
fn a_file_checked_in_never_leaves_a_waiter_asleep() {
    loom::model(|| {
        let budget = budget(1, 0);
        let cache = FileCache::new(Arc::clone(&budget));
        let file = held(&budget);
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.check_in(Path::new("f"), file))
        };
        let permit = budget.acquire(NonZeroUsize::MIN);
        reader.join().unwrap();
        assert_eq!((permit.count(), cache.idle_count()), (1, 0));
    });
}

// S47
#[test]
fn a_wish_for_two_and_a_wish_for_one_both_come_true() {
    // Three threads: all interleavings of up to two preemptions.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let budget = budget(2, 0);
        let cache = FileCache::new(Arc::clone(&budget));
        let file = held(&budget);
        let two = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || drop(budget.acquire(NonZeroUsize::new(2).unwrap())))
        };
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.check_in(Path::new("f"), file))
        };
        drop(budget.acquire_reserved(NonZeroUsize::MIN));
        two.join().unwrap();
        reader.join().unwrap();
        assert_eq!(budget.waiting(), 0);
    });
}
