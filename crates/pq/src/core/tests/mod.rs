//! The core over a simulated disk, under virtual time: no thread, no clock, no sleep.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only functions marked as tests")]

mod aging;
mod crash;
mod damage;
mod faults;
mod given_up;
mod limited_model;
mod limits;
mod model;
mod rig;
mod skipped;
mod timing;
