//! How long to leave a failing consumer alone, and when to try it again.
//!
//! ```text
//! failures   1      2      3      4   …
//! delay    first  2·first 4·first 8·first … max     each less up to jitter_percent
//! ```

use std::time::Duration;

use wal_format::Instant;

/// The shortest delay of this crate. The library never spins, whatever it is told.
pub(crate) const DELAY_MIN: Duration = Duration::from_millis(1);

/// Instants in the span that the jitter spreads tries over: few enough that many dead destinations share a wake-up, and enough that
/// they do not all come at once.
const TRIES_APART: u64 = 4;

/// Doubling delays with a cap and jitter. Pure: the same arguments give the same delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Backoff {
    /// After the first failure. Shorter than 1 ms counts as 1 ms: the library never spins.
    pub first: Duration,
    /// The cap. Below `first`, `first` is the cap.
    pub max: Duration,
    /// How much of a delay chance may take away, in per cent; above 100 counts as 100. Jitter only ever shortens, so
    /// `max` holds, and never below 1 ms.
    pub jitter_percent: u8,
}

impl Default for Backoff {
    /// 100 ms, doubling to 30 s, less up to 20 %.
    fn default() -> Self {
        Self { first: Duration::from_millis(100), max: Duration::from_secs(30), jitter_percent: 20 }
    }
}

impl Backoff {
    /// The delay after `failures` failures in a row (0 counts as 1); `draw` is any number, evenly spread.
    #[must_use]
    pub fn delay(&self, failures: u32, draw: u64) -> Duration {
        let first = self.first.max(DELAY_MIN);
        let doublings = failures.saturating_sub(1).min(63);
        let doubled = first.as_nanos().saturating_mul(1 << doublings);
        let capped = doubled.min(self.max.max(first).as_nanos());
        // Below, nothing can overflow: a duration has at most 94 bits of nanoseconds, clipped here to 64.
        let nanos = u64::try_from(capped).unwrap_or(u64::MAX);
        let jitter = u128::from(nanos) * u128::from(self.jitter_percent.min(100)) / 100;
        let cut = u64::try_from((jitter * u128::from(draw)) >> 64).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos.saturating_sub(cut)).max(DELAY_MIN)
    }

    /// When to try again after failing at `now`: after [`delay`](Self::delay), moved to an instant within the jitter that others
    /// who fail alike share. Thus any number of dead destinations wakes the process now and then, not each by itself.
    pub(crate) fn retry_at(&self, now: Instant, failures: u32, draw: u64) -> Instant {
        let at = now.saturating_add(self.delay(failures, draw));
        let earliest = now.saturating_add(self.delay(failures, u64::MAX));
        let latest = now.saturating_add(self.delay(failures, 0));
        let step = (latest.nanos().saturating_sub(earliest.nanos()) / TRIES_APART).max(1);
        let shared = at.nanos() - at.nanos() % step;
        Instant::from_nanos(if shared < earliest.nanos() { shared.saturating_add(step) } else { shared })
    }
}

/// The draws for the jitter: splitmix64, which is small, well spread, and the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
