//! What a save costs.

use disk::Op;
use offsets::{CursorMove, Offsets, OffsetsReport, Save, sites};
use sim_disk::SimDisk;
use std::sync::Arc;
use wal_format::{ConsumerId, Seq};

use crate::support::{QUEUE, new_consumer, view};

#[test]
fn a_thousand_changed_cursors_are_one_write_and_one_sync() {
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    for id in 0..1000 {
        offsets.create_consumer(new_consumer(id, "reader")).expect("created");
    }
    offsets.compact().expect("compacts");
    for to in 1..4 {
        let moves: Vec<_> =
            (1..=1000).map(|id| CursorMove::forward(ConsumerId::new(id), Seq::new(to * 1_000_000))).collect();
        let (writes, syncs, calls) = (disk.count(Op::Write), disk.count_at(sites::SAVE), disk.call_count());
        offsets.save(&Save { cursors: &moves, ..Save::default() }, sites::SAVE).expect("saved");
        assert_eq!(disk.count(Op::Write) - writes, 1);
        assert_eq!(disk.count_at(sites::SAVE) - syncs, 1);
        assert_eq!(disk.call_count() - calls, 2, "and no other call");
    }
    let (again, OffsetsReport { consumer_count, .. }) =
        Offsets::open(Arc::new(disk.kill()), QUEUE).expect("opens");
    assert_eq!((view(&again), consumer_count), (view(&offsets), 1000));
}

#[test]
fn the_journal_stays_in_proportion_to_what_it_says() {
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk), QUEUE).expect("opens");
    let id = offsets.create_consumer(new_consumer(1, "reader")).expect("created");
    let mut longest = 0;
    for to in 1..10_000 {
        let moves = [CursorMove::forward(id, Seq::new(to))];
        offsets.save(&Save { cursors: &moves, ..Save::default() }, sites::SAVE).expect("saved");
        longest = longest.max(offsets.journal_bytes());
    }
    assert!(longest > 60 << 10, "{longest}: the limit was never reached");
    assert!(longest < 66 << 10, "{longest}: compacted in time");
}

#[test]
fn nothing_to_save_is_no_call() {
    let disk = SimDisk::new();
    let (mut offsets, _) = Offsets::open(Arc::new(disk.clone()), QUEUE).expect("opens");
    let calls = disk.call_count();
    offsets.save(&Save::default(), sites::SAVE).expect("nothing to do");
    offsets.void_clean_stop().expect("nothing to do");
    offsets.forget_stream(wal_format::StreamId::new(4)).expect("nothing to do");
    assert_eq!(disk.call_count(), calls);
}
