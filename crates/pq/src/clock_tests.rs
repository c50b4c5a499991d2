//! Both clocks.

use super::*;

#[test]
fn the_system_clock_tells_both_times_and_the_monotonic_one_never_goes_back() {
    let clock = SystemClock::new();
    let mut last = clock.both();
    for _ in 0..1_000 {
        let now = clock.both();
        assert!(now.instant >= last.instant);
        let wall = clock.wall();
        assert!(wall.saturating_since(now.wall) < Duration::from_secs(60) && now.wall.nanos() > 1 << 60);
        last = now;
    }
}

#[test]
fn a_manual_clock_wakes_who_is_due_and_keeps_a_wake() {
    let clock = Arc::new(ManualClock::default());
    let (early, late) = (ClockWake::new(), ClockWake::new());
    let second = Instant::ZERO.saturating_add(Duration::from_secs(1));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| clock.sleep_until(Some(second), &early));
        while clock.sleepers_count() == 0 {
            std::thread::yield_now();
        }
        clock.advance(Duration::from_secs(1));
        sleeper.join().unwrap();
    });
    ClockWake::wake(&late);
    clock.sleep_until(None, &late);
    clock.sleep_until(Some(Instant::ZERO), &late);
    assert_eq!(clock.both().instant, Instant::ZERO.saturating_add(Duration::from_secs(1)));
    assert_eq!(clock.wall().since_unix(), Duration::from_secs(1));
}
