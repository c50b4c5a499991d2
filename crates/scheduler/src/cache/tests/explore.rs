//! Every interleaving of small worlds: a writer that commits and rotates, readers that deliver and fail, an operator who
//! seeks, removes and attaches, and retirement, each step of each at any time. One lock section is one step; the wake-up
//! cell's steps are single ones, also inside `end_turn`. Memory is sequentially consistent: fences are loom's business,
//! steps in the wrong order are ours, and the worlds with a `Fault` show that the search finds them.
//!
//! Checked in every state: one lease per key (I3), `open_segment` and `reading` only grow (I4), a lease covers exactly
//! records of its segment from the reader's cursor on, no unlinked file is opened, who becomes due is woken. In every
//! state without a next step: everybody has everything and sleeps (no stuck). The graph has no cycle (no spin).

mod search;
mod truth;
mod world;

use search::explore;
use truth::Op::{Commit as C, Poisoned as P, Rotate as R};
use truth::{Fault, Op};
use world::Admin::{Attach, Detach, Kick, Seek};
use world::{Admin, World};

fn holds(ops: &'static [Op], readers: usize, admin: &'static [Admin], fails: u32) {
    match explore(World::new(ops, readers, admin, fails, Fault::None)) {
        Ok(states) => println!("{readers} readers, {ops:?}, {admin:?}, {fails} failures: {states} states"),
        Err(story) => panic!("{readers} readers, {ops:?}, {admin:?}, {fails} failures:\n  {story}"),
    }
}

#[test]
fn two_readers_over_a_rotation_with_a_failure() {
    holds(&[C, R, C], 2, &[], 1);
    holds(&[C, C, R, C, R], 2, &[], 1);
}

#[test]
fn one_reader_over_two_rotations_and_larger_batches_of_work() {
    holds(&[C, C, R, C, R], 1, &[], 2);
    holds(&[C, C, R, R, C, C], 1, &[], 1);
}

#[test]
fn rotations_away_from_poisoned_files() {
    holds(&[C, P, C, P, C], 1, &[], 2);
    holds(&[C, P, C], 2, &[], 1);
}

#[test]
fn seeks_back_and_forth() {
    holds(&[C, R, C], 1, &[Seek(0, 1), Seek(0, 2)], 1);
    holds(&[C, R, C, P, C], 1, &[Seek(0, 1)], 1);
    holds(&[C, R, C], 2, &[Seek(1, 1)], 0);
}

#[test]
fn resuming_during_and_between_turns() {
    holds(&[C, R, C], 1, &[Kick(0), Kick(0)], 2);
}

#[test]
fn removing_one_of_two() {
    holds(&[C, R, C], 2, &[Detach(1)], 1);
    holds(&[C, R], 1, &[Detach(0)], 1);
}

#[test]
fn leaving_and_coming_back_while_the_old_lease_is_out() {
    holds(&[C, R, C], 1, &[Detach(0), Attach(0)], 1);
    holds(&[C, C], 1, &[Detach(0), Attach(0), Detach(0), Attach(0)], 1);
    holds(&[C, R], 1, &[Attach(0), Seek(0, 1), Detach(0)], 1);
}

/// The search must find what is broken on purpose, and by the reason it was broken.
fn breaks(fault: Fault, ops: &'static [Op], admin: &'static [Admin], reason: &str) {
    let story = explore(World::new(ops, 1, admin, 0, fault)).expect_err("a broken protocol");
    assert!(story.contains(reason), "{fault:?} for another reason:\n  {story}");
}

#[test]
fn broken_protocols_are_found() {
    breaks(Fault::ReaderLoadsBeforeItSetsAsleep, &[C], &[], "STUCK");
    breaks(Fault::WriterSwapsBeforeItPublishes, &[C], &[], "STUCK");
    breaks(Fault::FirstBatchIsPublishedBeforeTheRotation, &[C, R], &[], "beyond its segment's end");
    breaks(Fault::SeekDoesNotReachTheCache, &[C], &[Seek(0, 1)], "STUCK");
}
