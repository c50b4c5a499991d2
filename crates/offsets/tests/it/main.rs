//! The cursor journal over a disk with a power switch: crashes, faults, damage, a full disk, a live neighbour.

mod crash;
mod damage;
mod faults;
mod golden;
mod journal;
mod model;
mod neighbours;
mod space;
mod steady;
mod support;
