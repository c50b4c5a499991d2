//! Entry points for fuzzing: plain functions over any bytes, called by the targets in `fuzz/` and, over the kept corpus, by `cargo test`.
//!
//! ```text
//!   bytes ─┬─ segment     the files of one stream      scan, recover, read, recover, append
//!          ├─ journals    queue.meta, catalog, cursors open, a new stream, close, open
//!          ├─ directory   a sound queue, edited        inspect, open, read, append, close, open
//!          └─ operations  a client's calls and crashes the simulation and its oracle
//! ```
//!
//! Random bytes never pass a checksum. So each target speaks a small language in which checksums come out right: what is fuzzed is
//! everything behind them.

mod bytes;
mod client;
mod directory;
mod forge;
mod journals;
mod operations;
mod segment;

pub use directory::fuzz_directory;
pub use journals::fuzz_journals;
pub use operations::fuzz_operations;
pub use segment::fuzz_segment;
