//! What a running pipeline tells people: notices, failures, progress. All of it goes to stderr.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::MultiProgress;

use crate::failure::Failure;
use crate::output::tell;

/// Takes notices and failures from all threads.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    bars: Option<MultiProgress>,
    failures: Mutex<u64>,
}

impl Reporter {
    /// With bars on the terminal, notices are printed above them.
    pub(crate) fn new(bars: Option<MultiProgress>) -> Self {
        Self { bars, failures: Mutex::new(0) }
    }

    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.bars.as_ref()
    }

    /// Something to know; the exit code does not change.
    pub(crate) fn notice(&self, text: impl AsRef<str>) {
        let text = format!("pq: {}", text.as_ref());
        match &self.bars {
            Some(bars) if !bars.is_hidden() => bars.suspend(|| tell(&text)),
            _ => tell(&text),
        }
    }

    /// Something that went wrong while the rest went on; the exit code will be 1.
    pub(crate) fn failed(&self, failure: &Failure) {
        *self.lock() += 1;
        self.notice(format!("error: {failure}"));
    }

    /// How much went wrong.
    pub(crate) fn failures_count(&self) -> u64 {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
