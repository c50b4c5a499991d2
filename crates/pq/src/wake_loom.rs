//! The cell in all interleavings: a reader that went to sleep is marked, or saw the new end.
//! `RUSTFLAGS="--cfg loom" cargo test -p pq-queue --lib wake --no-default-features`

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::Cell;

/// What the cache knows of one consumer.
#[derive(Default)]
struct Consumer {
    read: u64,
    caught_up: bool,
}

fn reader_turn(cell: &Cell, cache: &Mutex<Vec<Consumer>>, index: usize) {
    let to = cell.readable();
    let mut cache = cache.lock().unwrap();
    let consumer = &mut cache[index];
    consumer.read = to;
    let end = cell.fall_asleep();
    consumer.caught_up = end <= to;
}

fn commit(cell: &Cell, cache: &Mutex<Vec<Consumer>>, end: u64) {
    if cell.publish(end) {
        for consumer in cache.lock().unwrap().iter_mut() {
            consumer.caught_up = false;
        }
    }
}

// S47: append against wait, in all interleavings.
#[test]
fn a_sleeper_is_marked_or_saw_the_new_end() {
    loom::model(|| {
        let cell = Arc::new(Cell::new(1));
        let cache = Arc::new(Mutex::new(vec![Consumer::default(), Consumer::default()]));
        let readers: Vec<_> = (0..2)
            .map(|index| {
                let (cell, cache) = (Arc::clone(&cell), Arc::clone(&cache));
                thread::spawn(move || reader_turn(&cell, &cache, index))
            })
            .collect();
        commit(&cell, &cache, 2);
        for reader in readers {
            reader.join().unwrap();
        }
        for consumer in cache.lock().unwrap().iter() {
            assert!(!consumer.caught_up || consumer.read == 2, "asleep below the end, and nobody marked it");
        }
    });
}

#[test]
fn two_commits_and_a_reader() {
    loom::model(|| {
        let cell = Arc::new(Cell::new(1));
        let cache = Arc::new(Mutex::new(vec![Consumer::default()]));
        let reader = {
            let (cell, cache) = (Arc::clone(&cell), Arc::clone(&cache));
            thread::spawn(move || {
                reader_turn(&cell, &cache, 0);
                reader_turn(&cell, &cache, 0);
            })
        };
        commit(&cell, &cache, 2);
        commit(&cell, &cache, 3);
        reader.join().unwrap();
        let cache = cache.lock().unwrap();
        assert!(!cache[0].caught_up || cache[0].read == 3);
    });
}
