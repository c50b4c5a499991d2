//! When it is asked, and when not.

use std::cell::Cell;

use super::*;

#[test]
fn without_a_limit_it_is_asked_once_and_under_one_before_each_write() {
    let (limit, asked) = (Cell::new(None), Cell::new(0));
    let ask = || {
        asked.set(asked.get() + 1);
        limit.get()
    };
    let known = SizeLimit::unknown();
    for _ in 0..10 {
        known.allows(u64::MAX, ask).unwrap();
    }
    assert_eq!(asked.get(), 1);
    // Given from outside: a file is opened.
    limit.set(Some(100));
    known.look_again(ask);
    known.allows(100, ask).unwrap();
    assert_eq!(known.allows(101, ask), Err(Errno::FBIG));
    // Lowered, raised, taken away: each write is told.
    limit.set(Some(50));
    assert_eq!(known.allows(51, ask), Err(Errno::FBIG));
    limit.set(Some(200));
    known.allows(200, ask).unwrap();
    limit.set(None);
    known.allows(1000, ask).unwrap();
    let before = asked.get();
    known.allows(1000, ask).unwrap();
    assert_eq!(asked.get(), before);
    // A write was cut short: there may be one again, and one question tells.
    limit.set(Some(50));
    assert_eq!(known.allows_anew(51, ask), Err(Errno::FBIG));
    assert_eq!(asked.get(), before + 1);
}
