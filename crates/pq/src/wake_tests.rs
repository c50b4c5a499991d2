//! The cell's plain behaviour; its interleavings are in `wake_loom.rs`.

use std::sync::Barrier;

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

// S47: append against wait, for real: whoever comes second sees the other, in each of a million races.
#[test]
fn a_million_races_lose_no_wake_up() {
    const RACES: u64 = 1_000_000;
    const CELLS: u64 = 1000;
    for _ in 0..RACES / CELLS {
        let cells: Vec<Cell> = (0..CELLS).map(|_| Cell::new(1)).collect();
        let begin = Barrier::new(2);
        let (woken, seen) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                begin.wait();
                cells.iter().map(|cell| cell.publish(2)).collect::<Vec<_>>()
            });
            begin.wait();
            let seen: Vec<_> = cells.iter().map(Cell::fall_asleep).collect();
            (writer.join().unwrap(), seen)
        });
        assert!(woken.iter().zip(&seen).all(|(woken, seen)| *woken || *seen == 2), "a sleeper nobody wakes");
    }
}
