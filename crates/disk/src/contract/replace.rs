//! The part of the contract about names that move: a rename never replaces, and a name that is replaced shows the old file or
//! the new one, and nothing else.

use super::*;

pub(super) fn a_file_is_replaced_in_one_step(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    write(&*ok(disk.create(Path::new("new"))), 0, b"new");
    write(&*ok(disk.create(Path::new("d/f"))), 0, b"old");
    ok(disk.link(Path::new("d/f"), Path::new("kept")));
    let old = ok(disk.open(Path::new("d/f"), OpenMode::Read));
    err(disk.replace(Path::new("new"), Path::new("nobody")), ErrorClass::NotFound);
    err(disk.replace(Path::new("nobody"), Path::new("d/f")), ErrorClass::NotFound);
    let error = err(disk.replace(Path::new("new"), Path::new("d")), ErrorClass::WrongKind);
    assert_eq!(error.op(), Op::Replace);
    assert_eq!(
        content(&*ok(disk.open(Path::new("d/f"), OpenMode::Read))),
        b"old",
        "on error nothing changes"
    );
    ok(disk.replace(Path::new("new"), Path::new("d/f")));
    err(disk.stat(Path::new("new")), ErrorClass::NotFound);
    assert_eq!(content(&*ok(disk.open(Path::new("d/f"), OpenMode::Read))), b"new");
    assert_eq!(content(&*old), b"old", "who has it open keeps it");
    assert_eq!(content(&*ok(disk.open(Path::new("kept"), OpenMode::Read))), b"old");
    assert_eq!(ok(disk.stat(Path::new("kept"))).link_count, 1);
    ok(disk.remove_file(Path::new("kept")));
    ok(disk.remove_file(Path::new("d/f")));
    ok(disk.remove_dir(Path::new("d")));
}

pub(super) fn a_rename_never_replaces(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    write(&*ok(disk.create(Path::new("a"))), 0, b"one");
    write(&*ok(disk.create(Path::new("b"))), 0, b"two");
    let error = err(disk.rename(Path::new("a"), Path::new("b")), ErrorClass::Exists);
    assert_eq!((error.op(), error.path()), (Op::Rename, Path::new("b")));
    assert_eq!(content(&*ok(disk.open(Path::new("b"), OpenMode::Read))), b"two");
    ok(disk.rename(Path::new("a"), Path::new("d/c")));
    err(disk.stat(Path::new("a")), ErrorClass::NotFound);
    assert_eq!(content(&*ok(disk.open(Path::new("d/c"), OpenMode::Read))), b"one");
    err(disk.rename(Path::new("a"), Path::new("x")), ErrorClass::NotFound);
    ok(disk.rename(Path::new("d"), Path::new("e")));
    assert_eq!(names(disk, "e"), BTreeSet::from([OsString::from("c")]));
    ok(disk.remove_file(Path::new("e/c")));
    ok(disk.remove_dir(Path::new("e")));
    ok(disk.remove_file(Path::new("b")));
}
