//! The queue as its users see it, on real directories and on a simulated disk.

mod basics;
