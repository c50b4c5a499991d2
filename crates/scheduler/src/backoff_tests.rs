//! Back-off doubles, is capped, is never zero, and chance only shortens it.

use proptest::prelude::*;

use super::*;

fn backoff(first_ms: u64, max_ms: u64, jitter_percent: u8) -> Backoff {
    Backoff { first: Duration::from_millis(first_ms), max: Duration::from_millis(max_ms), jitter_percent }
}

#[test]
fn doubles_up_to_the_cap() {
    let b = backoff(100, 1_000, 0);
    let ms: Vec<_> = (0..8).map(|n| b.delay(n, 77).as_millis()).collect();
    assert_eq!(ms, [100, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
}

#[test]
fn jitter_takes_away_at_most_its_share() {
    let b = backoff(1_000, 60_000, 25);
    assert_eq!(b.delay(1, 0), Duration::from_millis(1_000));
    assert_eq!(b.delay(1, 1 << 63), Duration::from_millis(875));
    assert!(b.delay(1, u64::MAX) >= Duration::from_millis(750));
}

#[test]
fn those_who_fail_alike_are_tried_again_at_few_instants() {
    let b = Backoff::default();
    let mut draws = Draws::new(1);
    let at: Vec<_> = (0..1_000_u64)
        .map(|n| b.retry_at(Instant::from_nanos(n * 7_000_000), 20, draws.draw()).nanos())
        .collect();
    let instants: std::collections::BTreeSet<_> = at.iter().collect();
    // A thousand tries over the 13 s between the first one's earliest and the last one's latest.
    assert!((6..=20).contains(&instants.len()), "{} instants", instants.len());
}

#[test]
fn zero_settings_do_not_spin() {
    assert_eq!(backoff(0, 0, 0).delay(1, 0), DELAY_MIN);
    assert_eq!(backoff(0, 0, 255).delay(9, u64::MAX), DELAY_MIN);
}

#[test]
fn a_cap_below_the_first_delay_gives_way() {
    assert_eq!(backoff(500, 10, 0).delay(7, 0), Duration::from_millis(500));
}

#[test]
fn the_largest_values_stay_in_range() {
    let b = Backoff { first: Duration::MAX, max: Duration::MAX, jitter_percent: 100 };
    assert_eq!(b.delay(u32::MAX, 0), Duration::from_nanos(u64::MAX));
    assert_eq!(b.delay(u32::MAX, u64::MAX), DELAY_MIN);
}

#[test]
fn draws_repeat_for_the_same_seed_and_differ_for_another() {
    let of = |seed| (0..4).scan(Draws::new(seed), |d, _| Some(d.draw())).collect::<Vec<_>>();
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

proptest! {
    #[test]
    fn a_delay_stays_between_the_floor_and_the_cap(
        first in 0..10_000u64, max in 0..100_000u64, jitter in any::<u8>(), n in any::<u32>(), draw in any::<u64>(),
    ) {
        let b = backoff(first, max, jitter);
        let delay = b.delay(n, draw);
        prop_assert!(delay >= DELAY_MIN);
        prop_assert!(delay <= b.max.max(b.first).max(DELAY_MIN));
        prop_assert!(b.delay(n, 0) <= b.delay(n.saturating_add(1), 0));
    }

    #[test]
    fn the_next_try_lies_within_the_jitter(
        first in 0..10_000u64, max in 0..100_000u64, jitter in any::<u8>(), n in any::<u32>(), draw in any::<u64>(),
        now in 0..u64::MAX / 2,
    ) {
        let b = backoff(first, max, jitter);
        let wait = b.retry_at(Instant::from_nanos(now), n, draw).nanos() - now;
        let wait = Duration::from_nanos(wait);
        prop_assert!(b.delay(n, u64::MAX) <= wait && wait <= b.delay(n, 0));
    }
}
