//! The whole queue under simulation: operations, faults and power cuts on a simulated disk, and an oracle that knows only what clients
//! saw. Dev-only: it proves, nobody ships it.
//!
//! **Is**: a [`World`] that does [`Operation`]s one after the other on the single-threaded core, an [`Oracle`] that says after each
//! whether a promise was broken, random runs by seed ([`run_seed`]), and the program `pq-sim` over them; beside them every flipped bit of a
//! stopped queue ([`flip`]) and the entry points for fuzzing. **Is not**: a test of the threads over the core, nor of real kernels.
//!
//! ```text
//!   seed, bytes or a strategy ──> Operation ──> World ──> Core ──> SimDisk
//!                                                 └─────> Oracle ──> Violation { kind, seed, step }
//! ```
//!
//! ```
//! use sim::{Shape, run_seed};
//!
//! let outcome = run_seed(1, &Shape::default());
//! assert_eq!(outcome.violation, None);
//! assert_eq!(outcome.trace_hash, run_seed(1, &Shape::default()).trace_hash);
//! ```
//!
//! Whoever switches a rule off, or plans faults of its own, builds a [`Setup`] and calls [`World::step`] itself: see there.

pub mod enumerate;
mod faults;
mod flip;
mod fuzz;
mod model;
mod operation;
mod oracle;
mod random;
mod run;
pub mod scenario;
mod setup;
mod swarm;
mod violation;
mod witness;
mod world;

pub use disk::SyncSite;
pub use faults::{
    Answer, Case, Failure, Lasting, Scenario, Tally, run_case, run_creation, run_parts, run_scenario,
    scenarios,
};
pub use flip::flip;
pub use fuzz::{fuzz_directory, fuzz_journals, fuzz_operations, fuzz_segment};
pub use model::{Reference, Size, StreamModel, Tried, run as run_model};
pub use operation::{
    Bound, Crash, Damage, How, Hurt, Interrupt, Limit, Load, Operation, ReaderIndex, Repair, StreamIndex,
    Then, TurnEnd, Whose,
};
pub use oracle::{
    Book, ConsumerView, Cost, Cursor, Fate, Oracle, Origin, Payload, Presence, Stopped, StreamView, Told,
    View,
};
pub use random::{Bytes, Draw, Random, mix};
pub use run::{Batches, Outcome, Shape, operations_of, run_operations, run_seed, run_watched, setup_of};
pub use setup::{Setup, Wrap, kinds_of_streams, options};
pub use violation::{Checked, Kind, Violation};
pub use witness::run as run_witnesses;
pub use world::{ClientError, Counts, Heard, Remains, Retry, World};
