//! The entry point for fuzzing.

/// Feeds arbitrary bytes to every decoder and asserts what must hold.
///
/// # Panics
/// If a property does not hold: a defect of this crate.
pub fn fuzz_record(_data: &[u8]) {
    todo!()
}
