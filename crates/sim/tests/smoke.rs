//! A few hundred seeds of what `cargo xtask crash` runs by the ten thousand, and that what it tells is the same each time.

use sim::{Batches, Bytes, Operation, Random, Setup, Shape, World, run_operations, run_seed};

// S19, S20, S23: power cuts, kills and stopped recoveries at random.
#[test]
fn some_seeds_break_no_promise() {
    let mut power_cuts = 0;
    for seed in 1..=60 {
        let outcome = run_seed(seed, &Shape::default());
        assert_eq!(outcome.violation, None);
        power_cuts += outcome.counts.power_cuts;
    }
    assert!(power_cuts > 200, "{power_cuts} power cuts are few");
}

/// What long runs stumbled over. A seed means other operations once more kinds of them are drawn; it stays for what it may find then.
const ONCE_FAILED: [u64; 28] = [
    2414, 11029, 11624, 20680, 57895, 58289, 67775, 74692, 75074, 82705, 85452, 86405, 87247, 111_880,
    117_765, 150_815, 172_141, 179_438, 201_212, 212_618, 249_309, 268_554, 304_973, 311_773, 319_588,
    325_967, 326_263, 333_316,
];

#[test]
fn seeds_that_once_failed_break_no_promise() {
    for seed in ONCE_FAILED {
        assert_eq!(run_seed(seed, &Shape::default()).violation, None);
    }
}

#[test]
fn seeds_of_runs_with_many_batches_that_once_failed_break_no_promise() {
    let shape = Shape { batches: Batches::OfOneRecord, ..Shape::default() };
    for seed in [13455, 44479] {
        assert_eq!(run_seed(seed, &shape).violation, None);
    }
}

#[test]
fn seeds_of_swarm_runs_that_once_failed_break_no_promise() {
    let swarm = Shape { swarm: true, ..Shape::default() };
    let long = Shape { operations: Some(300), ..swarm.clone() };
    let many = Shape { operations: Some(200), batches: Batches::OfOneRecord, ..swarm.clone() };
    assert_eq!(run_seed(532_769, &many).violation, None);
    for seed in [678, 16835, 17974] {
        assert_eq!(run_seed(seed, &swarm).violation, None);
    }
    for seed in [102_827, 176_601, 181_780, 186_049, 186_615, 311_222, 321_040, 356_802] {
        assert_eq!(run_seed(seed, &long).violation, None);
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for seed in 1000..1006 {
        let (first, second) = (run_seed(seed, &Shape::default()), run_seed(seed, &Shape::default()));
        assert_eq!((first.trace_hash, first.counts), (second.trace_hash, second.counts), "seed {seed}");
    }
}

#[test]
fn any_bytes_are_operations() {
    let mut random = Random::new(7);
    for seed in 1..6 {
        let bytes: Vec<u8> = (0..200).map(|_| (random.next_number() >> 32) as u8).collect();
        let mut from = Bytes::new(&bytes);
        let mut operations = Vec::new();
        while !from.is_empty() {
            operations.push(Operation::draw(&mut from));
        }
        assert_eq!(run_operations(Setup::usual(seed), &operations).violation, None);
    }
}

#[test]
fn a_sync_that_is_forgotten_is_found() {
    let shape = Shape { ignored_sites: vec![disk::SyncSite::new("commit.batch")], ..Shape::default() };
    let caught = (1..=10).filter(|seed| run_seed(*seed, &shape).violation.is_some()).count();
    assert!(caught > 0);
}

#[test]
fn an_empty_run_ends_idle() {
    let mut world = World::new(Setup::usual(1)).expect("a new queue");
    assert_eq!(world.settle(), Ok(()));
    world.discard();
}
