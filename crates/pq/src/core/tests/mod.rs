//! The core over a simulated disk, under virtual time: no thread, no clock, no sleep.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only functions marked as tests")]

mod crash;
mod model;
mod rig;
mod timing;
