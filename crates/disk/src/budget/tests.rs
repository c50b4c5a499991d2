//! The budget is kept, shortage evicts, nobody is left waiting.

use std::sync::mpsc;
use std::thread;

use super::*;

fn n(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn budget(total: usize, reserved: usize) -> Arc<FdBudget> {
    FdBudget::new(FdLimit { total, reserved })
}

/// Runs the call on a thread of its own and comes back once it waits.
fn waiting<T: Send + 'static>(
    budget: &Arc<FdBudget>,
    call: impl FnOnce(Arc<FdBudget>) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let before = budget.waiting();
    let theirs = Arc::clone(budget);
    let handle = thread::spawn(move || call(theirs));
    while budget.waiting() == before {
        thread::yield_now();
    }
    handle
}

#[test]
fn the_limit_holds_and_the_peak_is_kept() {
    let budget = budget(4, 1);
    let a = budget.acquire(n(2));
    let b = budget.try_acquire(n(1)).unwrap();
    assert!(budget.try_acquire(n(1)).is_none(), "the last one is reserved");
    let c = budget.try_acquire_reserved(n(1)).unwrap();
    assert!(budget.try_acquire_reserved(n(1)).is_none());
    assert_eq!((budget.used(), budget.peak(), a.count()), (4, 4, 2));
    drop((a, b, c));
    assert_eq!((budget.used(), budget.peak()), (0, 4));
}

#[test]
fn the_reserved_class_spills_into_the_common_share() {
    let budget = budget(4, 2);
    let reserved = budget.acquire_reserved(n(3));
    assert!(budget.try_acquire(n(2)).is_none());
    let common = budget.acquire(n(1));
    assert_eq!(budget.used(), 4);
    drop(reserved);
    assert_eq!(budget.used(), 1);
    drop(common);
}

#[test]
fn a_permit_for_several_is_given_back_one_by_one() {
    let budget = budget(5, 1);
    let mut all = budget.acquire(n(3));
    let one = all.split_one().unwrap();
    assert_eq!((all.count(), one.count(), budget.used()), (2, 1, 3));
    drop(one);
    assert_eq!(budget.used(), 2);
    let other = all.split_one().unwrap();
    assert!(all.split_one().is_none());
    drop((all, other));
    assert_eq!(budget.used(), 0);
}

#[test]
fn several_are_taken_in_one_step_and_in_turn() {
    let budget = budget(3, 0);
    let first = budget.acquire(n(2));
    let three = waiting(&budget, |budget| drop(budget.acquire(n(3))));
    // One is free, but somebody stands before: no barging, so the wish for three is not starved by ones.
    assert!(budget.try_acquire(n(1)).is_none());
    let one = waiting(&budget, |budget| drop(budget.acquire(n(1))));
    drop(first);
    three.join().unwrap();
    one.join().unwrap();
    assert_eq!((budget.used(), budget.waiting(), budget.peak()), (0, 0, 3));
}

#[test]
fn the_reserved_class_is_served_before_common_waiters() {
    let budget = budget(2, 0);
    let held = budget.acquire(n(2));
    let (tell, order) = mpsc::channel();
    let tell_common = tell.clone();
    let common = waiting(&budget, move |budget| {
        let permit = budget.acquire(n(2));
        tell_common.send("common").unwrap();
        drop(permit);
    });
    let reserved = waiting(&budget, move |budget| {
        let permit = budget.acquire_reserved(n(2));
        tell.send("reserved").unwrap();
        drop(permit);
    });
    drop(held);
    common.join().unwrap();
    reserved.join().unwrap();
    assert_eq!(order.iter().collect::<Vec<_>>(), ["reserved", "common"]);
}

// S54
#[test]
fn many_threads_share_a_few_permits_and_all_get_through() {
    let budget = budget(5, 1);
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                for round in 0..500 {
                    let permit = if i == 0 {
                        budget.acquire_reserved(n(1 + round % 2))
                    } else {
                        budget.acquire(n(1 + (i + round) % 4))
                    };
                    assert!(budget.used() <= 5);
                    drop(permit);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((budget.used(), budget.waiting()), (0, 0));
    assert!(budget.peak() <= 5);
}

#[test]
#[should_panic(expected = "permits asked of")]
fn more_than_there_will_ever_be_is_a_programmers_error() {
    let _permit = budget(3, 1).acquire(n(3));
}
