//! Figures and tables for people.

use super::*;

#[test]
fn figures_read_well() {
    assert_eq!(count(0), "0");
    assert_eq!(count(999), "999");
    assert_eq!(count(1_234_567), "1,234,567");
    assert_eq!(bytes(999), "999 B");
    assert_eq!(bytes(1_000), "1.0 kB");
    assert_eq!(bytes(999_950), "1.0 MB");
    assert_eq!(bytes(u64::MAX), "18.4 EB");
    assert_eq!(rate(5_000_000, Duration::from_secs(2)), "2.5 MB/s");
    assert_eq!(table(&["a", "n"], &[vec!["xyz".into(), "1".into()]]), "a    n\nxyz  1\n");
}

#[test]
fn seqs_and_times_are_said_as_people_say_them() {
    assert_eq!(records(7, 7), "record 7");
    assert_eq!(records(7, 9), "records 7 to 9");
    assert_eq!(time(WallTime::EPOCH), "1970-01-01T00:00:00Z");
    assert_eq!(time(WallTime::from_nanos(1_772_366_400_999_999_999)), "2026-03-01T12:00:00Z");
    assert!(time(WallTime::from_nanos(u64::MAX)).starts_with("2554-"));
}
