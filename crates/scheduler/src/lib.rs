//! Who reads when: due times, leases and back-off of (stream, consumer) pairs. No I/O, no clock, no threads, no locks.

mod backoff;
mod cache;
mod due;
mod event;
mod policy;
mod stream;
mod turn;
mod types;

pub use backoff::Backoff;
pub use cache::Cache;
pub use policy::Policy;
pub use types::{
    Bound, Counters, Detached, Key, Lease, Mode, Outcome, Phase, SeekNumber, TurnEnd, View, WalState, Woken,
};
