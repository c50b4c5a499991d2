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
