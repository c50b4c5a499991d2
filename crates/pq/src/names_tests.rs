//! Which names are possible.

use super::*;

// S58: empty, long and NUL are refused; everything else is a name like any other, since names never become paths.
#[test]
fn names_are_checked() {
    assert_eq!(check(""), Err(NameError::Empty));
    assert_eq!(check(&"x".repeat(300)), Err(NameError::TooLong { bytes: 300 }));
    assert_eq!(check("a\0b"), Err(NameError::Control { found: '\0', at: 1 }));
    assert_eq!(check("line\nfeed"), Err(NameError::Control { found: '\n', at: 4 }));
    for name in ["..", "/", ".", "a/../b", "A", "a", "dots...", "💡", " ", &"é".repeat(127)] {
        assert_eq!(check(name), Ok(()), "{name:?}");
    }
}
