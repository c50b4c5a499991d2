//! What a run did that no queue may do. A value, not a panic: whoever switches a rule off counts what was caught.

use std::fmt;

/// Which promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Something that was told durable, saved or acknowledged as such is not there.
    Lost,
    /// Something came that was never written, was given up, or was gone already.
    Resurrected,
    /// Records out of their order, twice beyond what was unsaved, or half of an all-or-nothing batch.
    OutOfOrder,
    /// A healthy disk, all the time it takes, and still something does not go on.
    Stuck,
    /// Damage, a gap or a stray was reported where only power was cut.
    FalseAlarm,
    /// A cursor, or a reader, is ahead of what is durable.
    Ahead,
    /// Recovering again, also after a crash inside recovery, gives something else.
    NotFixpoint,
    /// An error without a cause.
    Unexpected,
    /// The code panicked.
    Panicked,
}

impl Kind {
    /// In a word or two, as it stands in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Resurrected => "resurrected",
            Self::OutOfOrder => "out of order",
            Self::Stuck => "stuck",
            Self::FalseAlarm => "false alarm",
            Self::Ahead => "ahead of the disk",
            Self::NotFixpoint => "no fixpoint",
            Self::Unexpected => "unexpected error",
            Self::Panicked => "panicked",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken promise, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub kind: Kind,
    /// The seed of the run; whoever has none leaves 0.
    pub seed: u64,
    /// The operation, counted from 1, at which it showed.
    pub step: u64,
    /// In words.
    pub what: String,
}

impl Violation {
    /// One whose seed and step are filled in by whoever knows them.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, seed: 0, step: 0, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: seed {} step {}: {}", self.kind, self.seed, self.step, self.what)
    }
}

/// What every check returns.
pub type Checked<T = ()> = Result<T, Violation>;

/// Fails with this kind unless it holds.
pub(crate) fn ensure(holds: bool, kind: Kind, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Violation::new(kind, what())) }
}
