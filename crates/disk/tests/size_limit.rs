//! A limit of file sizes that this very process is given while a file is open: alone in its binary, for the limit is everybody's.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::IoSlice;
use std::path::Path;

use disk::{Disk, ErrorClass, OpenMode, OsDisk};
use rustix::process::{Resource, getrlimit, setrlimit};

fn set_limit(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, rustix::process::Rlimit { current: bytes, maximum }).unwrap();
}

// S34: the signal would end this test.
#[test]
fn a_limit_given_while_a_file_is_open_refuses_writes_and_ends_nobody() {
    let dir = tempfile::TempDir::new().unwrap();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create(Path::new("f")).unwrap();
    let write = |offset| file.write_all_at(&[IoSlice::new(&[7; 8192])], offset);
    write(0).unwrap();
    set_limit(Some(100_000));
    let cut = write(96_000).unwrap_err();
    assert_eq!((cut.class(), cut.offset()), (ErrorClass::NoSpace, Some(100_000)));
    assert_eq!(write(200_000).unwrap_err().class(), ErrorClass::NoSpace);
    set_limit(Some(50_000));
    assert_eq!(write(60_000).unwrap_err().class(), ErrorClass::NoSpace, "lowered further");
    assert_eq!(file.set_len(50_001).unwrap_err().class(), ErrorClass::NoSpace);
    assert_eq!(file.allocate(0..50_001).unwrap_err().class(), ErrorClass::NoSpace);
    set_limit(None);
    write(200_000).unwrap();
    // Between two writes, below where the file ends: whoever opens another one learns of it.
    set_limit(Some(50_000));
    drop(disk.open(Path::new("f"), OpenMode::ReadWrite).unwrap());
    assert_eq!(write(200_000).unwrap_err().class(), ErrorClass::NoSpace);
    set_limit(None);
}
