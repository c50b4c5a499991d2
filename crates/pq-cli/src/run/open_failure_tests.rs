//! What is said to a person of each kind of failure: the path as it is on the disk, and the right that is wanted.

use std::io;

use super::*;

const DIR: &str = "roq";

fn help_of(op: DiskOp, path: &str, kind: io::ErrorKind) -> String {
    help_of_disk(Path::new(DIR), &DiskError::new(op, Path::new(path), kind.into()))
}

#[test]
fn what_cannot_be_read_wants_the_right_to_read_and_is_named_once() {
    let segment = "streams/0000000000000001/0000000000000001.seg";
    let denied = io::ErrorKind::PermissionDenied;
    for (op, path) in
        [(DiskOp::Open, segment), (DiskOp::List, "streams/0000000000000001"), (DiskOp::Read, segment)]
    {
        let help = help_of(op, path, denied);
        assert!(help.contains(&format!("right to read {DIR}/{path}")) && !help.contains("write"), "{help}");
    }
    let own = help_of(DiskOp::Open, DIR, denied);
    assert!(own.contains("right to read roq ") && !own.contains("roq/roq"), "{own}");
}

#[test]
fn what_cannot_be_written_wants_the_right_to_write() {
    for (op, path) in [(DiskOp::Create, "cursors-0000000000000001"), (DiskOp::Lock, "LOCK")] {
        let help = help_of(op, path, io::ErrorKind::PermissionDenied);
        assert!(help.contains(&format!("right to write to {DIR}/{path}")), "{help}");
    }
    let help = help_of(DiskOp::Create, "queue.meta.new", io::ErrorKind::ReadOnlyFilesystem);
    assert!(help.contains("mount the file system for writing"), "{help}");
}
