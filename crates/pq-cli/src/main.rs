//! The pq program.
fn main() {}
