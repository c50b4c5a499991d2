//! That the canonical scenarios of limits meet their limit on a sound disk, and what each of them costs.

use sim::scenario::scenarios;
use sim::{Operation, World};

/// Prepared, done, and everything brought to its end.
fn done(name: &str) -> World {
    let scenario = scenarios().into_iter().find(|scenario| scenario.name == name).expect("a name of one");
    scenario.play().unwrap_or_else(|violation| panic!("{name}: {violation}"))
}

fn settled(mut world: World) -> World {
    world.settle().expect("everything comes to its end");
    world.step(&Operation::Close).expect("a stop in order");
    world.settle().expect("the same again");
    world
}

/// Records dropped of the first stream, for bytes and for age, and seqs its consumers were told as gaps.
fn cost(name: &str) -> ((u64, u64), u64) {
    let world = settled(done(name));
    let found = (world.oracle().book(0).expect("it is there").dropped_counts(), world.counts().gap_seqs);
    world.discard();
    found
}

/// Appends that were refused and records that were dropped before they were taken, of the first stream in the last life.
fn refused(name: &str) -> (u64, u64) {
    let world = done(name);
    let found = world.refused_counts(0);
    world.discard();
    found
}

// F29: each policy is met as it is told, and costs nothing but what it says.
#[test]
fn a_full_stream_refuses_drops_or_lets_wait_as_its_policy_says() {
    assert_eq!(refused("full: an append waits"), (1, 0), "the one that does not wait");
    assert_eq!(refused("full: an append is refused"), (2, 0));
    assert_eq!(refused("full: the newest are dropped"), (0, 2));
    assert_eq!(refused("full: the oldest are dropped"), (0, 0), "it drops ahead of need");
    for name in ["full: an append waits", "full: an append is refused", "full: the newest are dropped"] {
        assert_eq!(cost(name), ((0, 0), 0), "{name}");
    }
    // A segment of two records, told to the consumer and to the sink.
    assert_eq!(cost("full: the oldest are dropped"), ((2, 0), 4));
}

// F29: exactly at the cap; the queue's cap over two streams; a cap below what is stored.
#[test]
fn a_cap_that_is_met_or_lowered_costs_what_its_policy_says() {
    assert_eq!(cost("full to the byte: acknowledged, and on again"), ((0, 0), 0));
    assert_eq!(cost("a full queue: one stream waits for another"), ((0, 0), 0));
    assert_eq!(cost("a lowered cap of a queue, and it is opened"), ((0, 0), 0));
    assert_eq!(cost("a lowered cap, and the queue is opened"), ((0, 0), 0));
    assert_eq!(cost("a lowered cap drops the oldest"), ((4, 0), 8));
}

// F30: what is too old goes, with its gap, and the young stays.
#[test]
fn records_that_are_too_old_go_and_the_young_stay() {
    assert_eq!(cost("records that are too old"), ((0, 2), 4));
}
