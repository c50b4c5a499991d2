//! Sizes and durations as people write them.

use super::*;

#[test]
fn sizes_read_as_people_write_them() {
    for (text, bytes) in
        [("0", 0), ("4096", 4096), ("64MiB", 64 << 20), ("10 MB", 10_000_000), ("1_000", 1000)]
    {
        assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
    }
    for text in ["", "MiB", "-1", "1.5MiB", "3 parsecs", "99999999999TiB"] {
        assert!(text.parse::<Size>().is_err(), "{text}");
    }
}

#[test]
fn durations_read_as_people_write_them() {
    for (text, ms) in [("50ms", 50), ("1.5s", 1500), ("2m", 120_000), ("0s", 0), ("1 h", 3_600_000)] {
        assert_eq!(text.parse::<Span>(), Ok(Span(Duration::from_millis(ms))), "{text}");
    }
    for text in ["", "5", "ms", "-1s", "1fortnight", "1e400s"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
}
