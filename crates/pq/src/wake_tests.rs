//! The cell's plain behaviour; its interleavings are in `wake_loom.rs`.

use super::Cell;

#[test]
fn nobody_asleep_costs_nothing() {
    let cell = Cell::new(1);
    assert!(!cell.publish(2));
    assert_eq!(cell.readable(), 2);
}

#[test]
fn a_sleeper_is_reported_once() {
    let cell = Cell::new(1);
    assert_eq!(cell.fall_asleep(), 1);
    assert!(cell.publish(2));
    assert!(!cell.publish(3));
}

#[test]
fn an_end_never_moves_back() {
    let cell = Cell::new(5);
    let _ = cell.publish(3);
    assert_eq!(cell.readable(), 5);
}
