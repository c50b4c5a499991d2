//! A sequence of a client's calls, faults, kills and power cuts, held against the oracle.

use crate::operation::Operation;
use crate::random::Bytes;
use crate::run::run_operations;
use crate::setup::Setup;

/// Most operations of one input, so that a run is bounded.
const OPERATIONS_MAX: usize = 200;

/// Does what `data` says: its first two bytes are the seed of the setup, the rest are operations.
///
/// # Panics
/// If a promise is broken.
pub fn fuzz_operations(data: &[u8]) {
    let (seed, rest) = data.split_first_chunk().unwrap_or((&[0, 0], data));
    let mut bytes = Bytes::new(rest);
    let mut operations = Vec::new();
    while !bytes.is_empty() && operations.len() < OPERATIONS_MAX {
        operations.push(Operation::draw(&mut bytes));
    }
    let outcome = run_operations(Setup::drawn(u64::from(u16::from_le_bytes(*seed))), &operations);
    if let Some(violation) = outcome.violation {
        panic!("{violation}");
    }
}
