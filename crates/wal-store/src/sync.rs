//! The crate's blocking primitives, in one place: std and futexes, or loom under `cfg(loom)`.
