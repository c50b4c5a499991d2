//! Each line does what the table says, and nothing else is understood.

use super::*;
use crate::medium::{Medium, Refusal};

#[test]
fn lines_do_what_they_say() {
    let shared = Shared::new(Medium::new(1 << 16));
    let obeyed = |line: &str| obey(&shared, line).unwrap_or_else(|error| error.to_string());
    assert_eq!(obeyed("fail write 0 once"), "ok");
    assert_eq!(shared.medium().write(0, &[1]), Err(Refusal::Broken));
    assert_eq!(shared.medium().write(0, &[1]), Ok(()));
    assert_eq!(obeyed("fail flush 0 forever"), "ok");
    assert_eq!(shared.medium().flush(), Err(Refusal::Broken));
    assert_eq!(obeyed("mend"), "ok");
    assert_eq!(shared.medium().flush(), Ok(()));
    assert_eq!(obeyed("thin 0"), "ok");
    assert_eq!(shared.medium().write(4096, &[1]), Err(Refusal::Full));
    assert_eq!(obeyed("mend"), "ok");
    assert_eq!(shared.medium().write(4096, &[1]), Ok(()));
    assert_eq!(obeyed("delay flush 7"), "ok");
    assert_eq!(shared.delays().flush, Duration::from_millis(7));
    assert_eq!(obeyed("count"), "ok writes 4 flushes 2 failed 3");
    assert_eq!(obeyed("cut none 1"), "ok pending 1 survived 0");
    assert_eq!(shared.medium().read(0, 1), Err(Refusal::Broken));
    assert_eq!(obeyed("power"), "ok");
    assert_eq!(shared.medium().read(0, 1), Ok(vec![1]));
    assert_eq!(shared.medium().read(4096, 1), Ok(vec![0]));
}

#[test]
fn what_is_not_understood_changes_nothing() {
    let shared = Shared::new(Medium::new(1 << 16));
    for line in
        ["", "cut", "cut some 1", "fail read 0 once", "fail write 0 twice", "thin many", "delay write -1"]
    {
        assert!(obey(&shared, line).is_err(), "{line}");
    }
    assert_eq!(shared.medium().write(0, &[1]), Ok(()));
}
