//! Time as an argument: two newtypes over nanoseconds, and the pair that callers pass down.
//!
//! There is no clock here. Whoever owns one makes a [`Now`] and hands it in, so tests own time.
//! Invariant: all arithmetic saturates or is checked; a jump of the wall clock never panics.

use core::{fmt, time::Duration};

/// Monotonic time: nanoseconds since the queue was opened (584 years fit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The moment the queue was opened.
    pub const ZERO: Self = Self(0);
    /// The last moment; a deadline that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since the queue was opened.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the queue was opened.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This moment plus `wait`, or `None` if the type cannot hold it.
    #[must_use]
    pub fn checked_add(self, wait: Duration) -> Option<Self> {
        self.0.checked_add(u64::try_from(wait.as_nanos()).ok()?).map(Self)
    }

    /// This moment plus `wait`, or [`Instant::MAX`].
    #[must_use]
    pub fn saturating_add(self, wait: Duration) -> Self {
        self.checked_add(wait).unwrap_or(Self::MAX)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", Duration::from_nanos(self.0))
    }
}

/// Wall-clock time: nanoseconds since the Unix epoch (until the year 2554). It may jump; nothing is ordered by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// From nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// From the time since the Unix epoch; the last representable moment if it is later than that.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time since the Unix epoch.
    #[must_use]
    pub const fn since_unix(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time from `earlier` to this moment; zero if the clock jumped back.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{seconds}.{nanos:09}")
    }
}

/// Both clocks read at once, handed down as an argument everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// For due times, intervals and deadlines.
    pub instant: Instant,
    /// For what people read and what files keep.
    pub wall: WallTime,
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
