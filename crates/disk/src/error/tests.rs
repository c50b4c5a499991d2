//! Every errno is in its class.

use std::io;
use std::path::Path;

use super::*;

#[test]
fn every_class_of_the_system_has_its_answer() {
    let class = |errno: Errno| ErrorClass::of(&io::Error::from(errno));
    for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::AGAIN, Errno::BUSY] {
        assert_eq!(class(errno), ErrorClass::RetryLater, "{errno}");
    }
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
        assert_eq!(class(errno), ErrorClass::NoSpace, "{errno}");
    }
    for errno in [Errno::ROFS, Errno::ACCESS, Errno::PERM] {
        assert_eq!(class(errno), ErrorClass::ReadOnly, "{errno}");
    }
    for errno in [Errno::IO, Errno::NXIO, Errno::NODEV, Errno::STALE] {
        assert_eq!(class(errno), ErrorClass::Device, "{errno}");
    }
    assert_eq!(class(Errno::NOENT), ErrorClass::NotFound);
    assert_eq!(class(Errno::EXIST), ErrorClass::Exists);
    assert_eq!(class(Errno::LOOP), ErrorClass::WrongKind);
}

#[test]
fn an_error_names_operation_path_offset_and_site() {
    let error = DiskError::new(Op::Write, Path::new("a/b"), io::Error::from(Errno::NOSPC)).at_offset(512);
    assert!(error.to_string().starts_with("write a/b at byte 512: No space left"), "{error}");
    let error = DiskError::new(Op::SyncData, Path::new("a"), io::Error::from(Errno::IO))
        .at_site(SyncSite::new("commit.batch"));
    assert!(error.to_string().starts_with("sync a (commit.batch): "), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(error.clone().class(), ErrorClass::Device);
}
