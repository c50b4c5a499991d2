//! The wake word of one batch: its outcome, and who waits for it.

/// The outcome of one batch.
#[derive(Debug)]
pub(crate) struct Word {}
