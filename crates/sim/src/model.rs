//! The model test: operations from a strategy, done by a [`World`] and foreseen by a [`Reference`]; a failing run shrinks to few
//! operations.
//!
//! ```text
//!   proptest-state-machine ──> operation ──┬──> World (core, disk, oracle) ──> where the stream ends, whether it is there
//!                                          └──> Reference ────────────────────> where it may end: low <= end <= high
//! ```

mod reference;

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;

pub use reference::{Reference, StreamModel};

use crate::operation::Operation;
use crate::random::mix;
use crate::setup::Setup;
use crate::world::{Counts, World};

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Runs.
    pub cases: u32,
    /// Operations of each.
    pub steps: usize,
    /// What they follow from.
    pub seed: u64,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Operations done.
    pub steps: u64,
    /// What the worlds counted.
    pub counts: Counts,
}

/// Runs the test.
///
/// # Errors
/// The shortest run that was found to fail, and how it does.
pub fn run(size: Size) -> Result<Tried, String> {
    let config =
        Config { cases: size.cases, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes(size.seed)));
    let strategy = Reference::sequential_strategy(size.steps);
    let tried = RefCell::new(Tried::default());
    let ran = runner.run(&strategy, |(mut reference, operations, seen)| {
        let fail = |what: &dyn std::fmt::Display| TestCaseError::fail(what.to_string());
        let mut world = World::new(Setup::drawn(reference.setup_seed)).map_err(|found| fail(&found))?;
        for operation in &operations {
            if let Some(seen) = &seen {
                seen.fetch_add(1, Ordering::SeqCst);
            }
            reference = Reference::apply(reference, operation);
            tried.borrow_mut().steps += 1;
            world.step(operation).map_err(|found| fail(&found))?;
            compare(&world, &reference).map_err(|found| fail(&format!("after {operation:?}: {found}")))?;
        }
        world.settle().map_err(|found| fail(&found))?;
        tried.borrow_mut().counts.add(&world.counts());
        world.discard();
        Ok(())
    });
    match ran {
        Ok(()) => Ok(tried.into_inner()),
        Err(TestError::Abort(reason)) => Err(format!("gave up: {reason}")),
        Err(TestError::Fail(reason, (reference, operations, _))) => {
            Err(format!("{reason}\nsetup {}, operations:\n{}", reference.setup_seed, list(&operations)))
        }
    }
}

fn list(operations: &[Operation]) -> String {
    operations.iter().map(|operation| format!("  {operation:?}\n")).collect()
}

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (n, part) in bytes.chunks_mut(8).enumerate() {
        part.copy_from_slice(&mix(seed.wrapping_add(n as u64)).to_le_bytes());
    }
    bytes
}

/// Whether what is there is what the model foresees.
fn compare(world: &World, reference: &Reference) -> Result<(), String> {
    for (index, foreseen) in reference.streams.iter().enumerate() {
        let end = world.durable_end(index);
        if let Some(there) = foreseen.there
            && there != end.is_some()
        {
            return Err(format!("stream {index}: the model says there {there}, its end is {end:?}"));
        }
        let Some(end) = end else { continue };
        if end < foreseen.low || foreseen.high.is_some_and(|high| high < end) {
            return Err(format!("stream {index} ends at {end}, the model says {foreseen:?}"));
        }
    }
    Ok(())
}
