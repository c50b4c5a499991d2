//! Every field is refused by its name.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn refused(change: impl FnOnce(&mut Options)) -> &'static str {
    let mut options = Options::default();
    change(&mut options);
    options.validate().expect_err("must be refused").field
}

#[test]
fn defaults_are_sound() {
    Options::default().validate().unwrap();
    SinkSettings::default().validate().unwrap();
}

// S55: contradictory or zero settings are refused, naming the field.
#[test]
fn zero_and_contradictory_settings_name_their_field() {
    assert_eq!(refused(|o| o.lanes_count = 0), "lanes_count");
    assert_eq!(refused(|o| o.lanes_count = 257), "lanes_count");
    assert_eq!(refused(|o| o.readers_count = 0), "readers_count");
    assert_eq!(refused(|o| o.turn_bytes_max = 0), "turn_bytes_max");
    assert_eq!(refused(|o| o.turn_time_max = Duration::ZERO), "turn_time_max");
    assert_eq!(refused(|o| o.cursor_interval = Duration::ZERO), "cursor_interval");
    assert_eq!(refused(|o| o.push_back = Some(Duration::ZERO)), "push_back");
    assert_eq!(refused(|o| o.backoff_first = Duration::ZERO), "backoff_first");
    assert_eq!(refused(|o| o.backoff_max = Duration::from_millis(1)), "backoff_max");
    assert_eq!(refused(|o| o.fds_max = Some(0)), "fds_max");
    assert_eq!(refused(|o| o.fds_max = Some(FDS_MIN - 1)), "fds_max");
    assert_eq!(refused(|o| o.buffer_bytes_max = 0), "buffer_bytes_max");
    assert_eq!(refused(|o| o.bytes_max = Some(0)), "bytes_max");
    let least = (64 << 20) + (2 << 20);
    assert_eq!(refused(|o| o.bytes_max = Some(least - 1)), "bytes_max", "no room for a segment");
    Options { bytes_max: Some(least), ..Options::default() }.validate().unwrap();
    assert_eq!(refused(|o| o.reserve_bytes = u64::MAX), "reserve_bytes");
    assert_eq!(refused(|o| o.stream.limits.bytes_max = Some((64 << 20) - 1)), "limits.bytes_max");
    assert_eq!(refused(|o| o.stream.limits.age_max = Some(Duration::ZERO)), "limits.age_max");
    assert_eq!(refused(|o| o.stream.commit_interval = Duration::ZERO), "commit_interval");
    assert_eq!(refused(|o| o.stream.segment_bytes_max = 0), "segment_bytes_max");
    assert_eq!(refused(|o| o.stream.batch_bytes_max = 0), "batch_bytes_max");
    let tries = SinkSettings { quick_tries_count: 0, ..SinkSettings::default() };
    assert_eq!(tries.validate().unwrap_err().field, "quick_tries_count");
}

#[test]
fn the_edges_are_allowed() {
    let options = Options {
        lanes_count: 256,
        readers_count: 1,
        turn_bytes_max: 1,
        fds_max: Some(FDS_MIN),
        cursor_interval: Duration::from_millis(1),
        ..Options::default()
    };
    options.validate().unwrap();
}

proptest! {
    // F34: whatever is accepted has no interval below a millisecond and nothing that is zero.
    #[test]
    fn what_is_accepted_cannot_spin(
        lanes in 0usize..4, readers in 0usize..4, bytes in 0usize..4, interval in 0u64..3, push_back in proptest::option::of(0u64..3),
        first in 0u64..3, max in 0u64..3,
    ) {
        let options = Options {
            lanes_count: lanes,
            readers_count: readers,
            turn_bytes_max: bytes,
            cursor_interval: Duration::from_millis(interval),
            push_back: push_back.map(Duration::from_millis),
            backoff_first: Duration::from_millis(first),
            backoff_max: Duration::from_millis(max),
            ..Options::default()
        };
        let sound = lanes > 0 && readers > 0 && bytes > 0 && interval > 0 && push_back != Some(0) && first > 0 && max >= first;
        prop_assert_eq!(options.validate().is_ok(), sound);
    }
}
