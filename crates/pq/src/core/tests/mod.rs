//! The core over a simulated disk, under virtual time: no thread, no clock, no sleep.

mod crash;
mod model;
mod rig;
mod timing;
