//! The process's limit of file sizes (`ulimit -f`). The kernel answers a write behind it by SIGXFSZ, which ends a process that does not
//! expect it; a library must not. It does not touch the signal, which is the program's.
//!
//! ```text
//!   no limit when last asked ─> nobody asks before a write ─┐
//!            ^                                              ├─ a file opened for writing, a short write: ask
//!            └── no limit ── ask before each write <────────┘ a limit
//! ```
//!
//! Invariants: under a limit no write begins behind it, however it is changed meanwhile; without one a write costs no call for it. What
//! is left: a limit that a process without any is given (`prlimit`) is noticed with the next file opened or the first write that it cuts
//! short; a write that begins behind it before that meets the signal.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, Result};
use rustix::process::{Resource, getrlimit};

static OF_PROCESS: SizeLimit = SizeLimit::unknown();

/// Refuses what the limit forbids.
///
/// # Errors
/// `FBIG` if a file may not reach that length.
pub(super) fn allows(end: u64) -> Result<()> {
    OF_PROCESS.allows(end, ask)
}

/// As [`allows`], and asks whatever is known: a limit may have come meanwhile.
///
/// # Errors
/// As [`allows`].
pub(super) fn allows_anew(end: u64) -> Result<()> {
    OF_PROCESS.allows_anew(end, ask)
}

/// Asks whether there is a limit now.
pub(super) fn look_again() {
    OF_PROCESS.look_again(ask);
}

fn ask() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// What is known of the limit.
#[derive(Debug)]
struct SizeLimit {
    /// `false`: there was none when last asked.
    may_be: AtomicBool,
}

impl SizeLimit {
    const fn unknown() -> Self {
        Self { may_be: AtomicBool::new(true) }
    }

    fn look_again(&self, ask: impl Fn() -> Option<u64>) -> Option<u64> {
        let limit = ask();
        self.may_be.store(limit.is_some(), Ordering::Relaxed);
        limit
    }

    fn allows(&self, end: u64, ask: impl Fn() -> Option<u64>) -> Result<()> {
        if self.may_be.load(Ordering::Relaxed) { self.allows_anew(end, ask) } else { Ok(()) }
    }

    fn allows_anew(&self, end: u64, ask: impl Fn() -> Option<u64>) -> Result<()> {
        match self.look_again(ask) {
            Some(limit) if end > limit => Err(Errno::FBIG),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
