//! One random run: a function of its seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::operation::Operation;
use crate::random::{Random, mix};
use crate::setup::Setup;
use crate::swarm::{Swarm, resize};
use crate::violation::{Kind, Violation};
use crate::world::{Counts, World};

/// How long runs are, and what they are told to leave out.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Operations of each run; `None`: drawn by the seed.
    pub operations: Option<u64>,
    /// Syncs at these sites do nothing.
    pub ignored_sites: Vec<disk::SyncSite>,
    /// How much goes into one batch.
    pub batches: Batches,
    /// Each seed draws which kinds of operations it leaves out, and its streams' sizes.
    pub swarm: bool,
}

/// How many batches a commit writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batches {
    /// Few, each as full as its stream's kind allows.
    #[default]
    Full,
    /// A batch for each record, and many before a sync, so that a call is refused in the middle of a round, also in a new file.
    OfOneRecord,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What was counted.
    pub counts: Counts,
    /// Equal for equal runs.
    pub trace_hash: u64,
    /// The promise that was broken, if one was; the run ends with it.
    pub violation: Option<Violation>,
}

/// The operations of a seed.
#[must_use]
pub fn operations_of(seed: u64, shape: &Shape) -> Vec<Operation> {
    let mut random = Random::new(mix(seed ^ 0x0b5));
    let count = shape.operations.unwrap_or_else(|| 40 + random.next_number() % 80);
    if shape.swarm {
        let swarm = Swarm::draw(&mut random);
        return (0..count).map(|_| swarm.operation(&mut random)).collect();
    }
    (0..count).map(|_| Operation::draw(&mut random)).collect()
}

/// The setup of a seed.
#[must_use]
pub fn setup_of(seed: u64, shape: &Shape) -> Setup {
    let mut setup = Setup { ignored_sites: shape.ignored_sites.clone(), ..Setup::drawn(seed) };
    if shape.swarm {
        let mut random = Random::new(mix(seed ^ 0x5a12));
        setup.streams.iter_mut().for_each(|stream| resize(stream, &mut random));
    }
    if shape.batches == Batches::OfOneRecord {
        for stream in &mut setup.streams {
            stream.batch_records_max = 1;
            stream.unsynced_bytes_max = 64 << 10;
        }
    }
    setup
}

/// Runs one seed.
#[must_use]
pub fn run_seed(seed: u64, shape: &Shape) -> Outcome {
    run_operations(setup_of(seed, shape), &operations_of(seed, shape))
}

/// Runs these operations on a new queue, then expects everything to come to its end.
#[must_use]
pub fn run_operations(setup: Setup, operations: &[Operation]) -> Outcome {
    run_watched(setup, operations, &mut |_, _, _| {})
}

/// As [`run_operations`]; `watch` is shown the world before each operation, with its number.
#[must_use]
pub fn run_watched(
    setup: Setup,
    operations: &[Operation],
    watch: &mut dyn FnMut(u64, &Operation, &World),
) -> Outcome {
    let seed = setup.seed;
    let mut counts = Counts::default();
    let mut trace_hash = 0;
    let mut step = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(setup)?;
        let mut run = || {
            for operation in operations {
                step += 1;
                watch(step, operation, &world);
                world.step(operation)?;
            }
            world.settle()
        };
        let result = run();
        counts = world.counts();
        trace_hash = world.trace_hash();
        // A world whose run was broken off is not committed on the way out.
        world.discard();
        result
    }));
    let violation = match ran {
        Ok(result) => result.err(),
        Err(panic) => {
            let what = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            Some(Violation { seed, step, ..Violation::new(Kind::Panicked, what) })
        }
    };
    Outcome { seed, counts, trace_hash, violation }
}
