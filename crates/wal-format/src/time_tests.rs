//! Arithmetic on times saturates or is checked; a clock that jumps never panics.

use super::*;

#[test]
fn instants_stop_at_their_ends() {
    let second = Duration::from_secs(1);
    assert_eq!(Instant::ZERO.checked_add(second), Some(Instant::from_nanos(1_000_000_000)));
    assert_eq!(Instant::MAX.checked_add(Duration::from_nanos(1)), None);
    assert_eq!(Instant::ZERO.checked_add(Duration::MAX), None);
    assert_eq!(Instant::ZERO.saturating_add(Duration::MAX), Instant::MAX);
    assert_eq!(Instant::MAX.saturating_since(Instant::ZERO), Duration::from_nanos(u64::MAX));
    assert_eq!(Instant::ZERO.saturating_since(Instant::MAX), Duration::ZERO);
}

#[test]
fn wall_times_survive_jumps() {
    // S59
    let (early, late) = (WallTime::from_nanos(5), WallTime::from_unix(Duration::from_secs(1_800_000_000)));
    assert_eq!(early.saturating_since(late), Duration::ZERO);
    assert_eq!(late.since_unix(), Duration::from_secs(1_800_000_000));
    assert_eq!(WallTime::from_unix(Duration::MAX).nanos(), u64::MAX);
}

#[test]
fn times_print_with_their_units() {
    assert_eq!(Instant::from_nanos(1_500_000).to_string(), "+1.5ms");
    assert_eq!(WallTime::from_nanos(1_000_000_002).to_string(), "1.000000002");
}
