//! The commit state machine, without I/O.
