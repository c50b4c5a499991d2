//! Polls are on a grid, in the future, and never later than push-back.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn consumers_that_caught_up_in_one_period_share_one_poll() {
    let every = Duration::from_secs(1);
    for now in [7 * SECOND, 7 * SECOND + 1, 8 * SECOND - 1] {
        assert_eq!(next_poll(Instant::from_nanos(now), every).nanos(), 8 * SECOND);
    }
    assert_eq!(next_poll(Instant::from_nanos(8 * SECOND), every).nanos(), 9 * SECOND);
}

#[test]
fn a_zero_push_back_does_not_spin() {
    assert_eq!(next_poll(Instant::from_nanos(5), Duration::ZERO).nanos(), 1_000_000);
}

#[test]
fn the_end_of_the_clock_is_no_wrap() {
    assert_eq!(next_poll(Instant::from_nanos(u64::MAX - 1), Duration::MAX).nanos(), u64::MAX);
}

proptest! {
    #[test]
    fn a_poll_is_later_than_now_and_within_push_back(now in any::<u64>(), every in 1_000_000..u64::MAX) {
        let due = next_poll(Instant::from_nanos(now), Duration::from_nanos(every)).nanos();
        prop_assert!(due > now || now == u64::MAX);
        prop_assert!(due - now <= every);
    }
}
