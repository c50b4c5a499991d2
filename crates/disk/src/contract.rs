//! What every [`Disk`] must do, as one test over `&dyn Disk`.
//!
//! It runs on the real disk here and on the simulated one in its crate. It says nothing about power loss: a real disk
//! cannot show that from inside, the simulated one has tests of its own.

mod replace;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::Path;

use crate::{Advice, Disk, DiskError, EntryKind, ErrorClass, File, Op, OpenMode, SyncSite};

const SITE: SyncSite = SyncSite::new("contract");

/// Runs the whole contract in the disk's root, which must be empty, and leaves it empty.
///
/// # Panics
/// At the first thing that is not as documented.
pub fn check(disk: &dyn Disk) {
    let parts: [fn(&dyn Disk); 17] = [
        a_new_file_is_empty_and_its_name_is_taken,
        paths_never_leave_the_root,
        bytes_are_where_they_were_written,
        slices_beyond_one_call_arrive_in_order,
        a_read_only_handle_writes_nothing,
        lengths_cut_and_grow_with_zeros,
        hopeless_offsets_are_errors,
        a_link_is_a_second_name,
        replace::a_rename_never_replaces,
        replace::a_file_is_replaced_in_one_step,
        an_unlinked_file_lives_with_its_handle,
        kinds_are_not_mixed_up,
        a_listing_shows_each_name_once,
        a_lock_excludes_until_dropped,
        a_map_shows_the_file,
        the_cache_can_be_dropped_once_clean,
        the_device_can_be_asked,
    ];
    for part in parts {
        part(disk);
        assert_eq!(names(disk, ""), BTreeSet::new(), "a part left something behind");
    }
}

fn a_new_file_is_empty_and_its_name_is_taken(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("new")));
    assert_eq!(ok(file.len()), 0);
    ok(file.sync_data(SITE));
    ok(disk.sync_dir(Path::new(""), SITE));
    let error = err(disk.create(Path::new("new")), ErrorClass::Exists);
    assert_eq!((error.op(), error.path()), (Op::Create, Path::new("new")));
    err(disk.create_dir(Path::new("new")), ErrorClass::Exists);
    let error = err(disk.open(Path::new("old"), OpenMode::Read), ErrorClass::NotFound);
    assert_eq!((error.op(), error.path()), (Op::Open, Path::new("old")));
    err(disk.create(Path::new("no/new")), ErrorClass::NotFound);
    err(disk.create_dir(Path::new("no/new")), ErrorClass::NotFound);
    err(disk.stat(Path::new("old")), ErrorClass::NotFound);
    err(disk.remove_file(Path::new("old")), ErrorClass::NotFound);
    err(disk.remove_dir(Path::new("old")), ErrorClass::NotFound);
    err(disk.sync_dir(Path::new("old"), SITE), ErrorClass::NotFound);
    ok(disk.remove_file(Path::new("new")));
    err(disk.stat(Path::new("new")), ErrorClass::NotFound);
}

fn paths_never_leave_the_root(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    for path in ["/etc", "..", "../x", "d/../x", "d/..", "/"] {
        let path = Path::new(path);
        err(disk.create(path), ErrorClass::Invalid);
        err(disk.open(path, OpenMode::Read), ErrorClass::Invalid);
        err(disk.create_dir(path), ErrorClass::Invalid);
        err(disk.stat(path), ErrorClass::Invalid);
        err(disk.remove_file(path), ErrorClass::Invalid);
        err(disk.remove_dir(path), ErrorClass::Invalid);
        err(disk.sync_dir(path, SITE), ErrorClass::Invalid);
        err(disk.list(path, &mut |_| ControlFlow::Continue(())), ErrorClass::Invalid);
        err(disk.lock(path).map(drop), ErrorClass::Invalid);
        err(disk.rename(Path::new("d"), path), ErrorClass::Invalid);
        err(disk.link(path, Path::new("x")), ErrorClass::Invalid);
    }
    err(disk.create(Path::new("")), ErrorClass::Invalid);
    err(disk.open(Path::new(""), OpenMode::Read), ErrorClass::Invalid);
    err(disk.remove_dir(Path::new("")), ErrorClass::Invalid);
    ok(disk.remove_dir(Path::new("d")));
}

fn bytes_are_where_they_were_written(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    write(&*file, 3, b"abc");
    write(&*file, 10_000, b"xyz");
    write(&*file, 4, b"B");
    let other = ok(disk.open(Path::new("f"), OpenMode::ReadWrite));
    write(&*other, 10_003, b"!");
    assert_eq!(ok(file.len()), 10_004);
    let mut buf = [7; 8];
    assert_eq!(ok(other.read_at(&mut buf, 0)), 8);
    assert_eq!(&buf, b"\0\0\0aBc\0\0");
    assert_eq!(ok(file.read_at(&mut buf, 10_000)), 4, "short at the end only");
    assert_eq!(&buf[..4], b"xyz!");
    assert_eq!(ok(file.read_at(&mut buf, 10_004)), 0);
    assert_eq!(ok(file.read_at(&mut buf, 1 << 40)), 0);
    assert_eq!(ok(file.read_at(&mut [], 0)), 0);
    ok(file.sync_data(SITE));
    assert_eq!(ok(disk.stat(Path::new("f"))).len, 10_004);
    ok(disk.remove_file(Path::new("f")));
}

fn slices_beyond_one_call_arrive_in_order(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    let bytes: Vec<u8> = (0..9000_u32).map(|i| (i % 251) as u8).collect();
    let mut slices: Vec<IoSlice<'_>> = bytes.chunks(3).map(IoSlice::new).collect();
    slices.insert(7, IoSlice::new(&[]));
    slices.push(IoSlice::new(&[]));
    ok(file.write_all_at(&slices, 5));
    ok(file.write_all_at(&[], 5));
    assert_eq!(ok(file.len()), 9005);
    assert_eq!(content(&*file)[5..], bytes);
    ok(disk.remove_file(Path::new("f")));
}

fn a_read_only_handle_writes_nothing(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    write(&*file, 0, b"kept");
    let reader = ok(disk.open(Path::new("f"), OpenMode::Read));
    err(reader.write_all_at(&[IoSlice::new(b"lost")], 0), ErrorClass::Invalid);
    err(reader.set_len(0), ErrorClass::Invalid);
    assert_eq!(content(&*reader), b"kept");
    ok(disk.remove_file(Path::new("f")));
}

fn lengths_cut_and_grow_with_zeros(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    write(&*file, 0, b"abcdef");
    ok(file.set_len(3));
    assert_eq!(content(&*file), b"abc");
    ok(file.set_len(6));
    assert_eq!(content(&*file), b"abc\0\0\0", "cut bytes do not come back");
    match file.allocate(4..600) {
        Ok(()) => assert_eq!(ok(file.len()), 600),
        Err(error) => assert_eq!(error.class(), ErrorClass::Unsupported),
    }
    let len = ok(file.len());
    assert!(content(&*file)[3..].iter().all(|&byte| byte == 0));
    let _ = file.allocate(0..10);
    assert_eq!(ok(file.len()), len, "reserving inside does not change the length");
    ok(disk.remove_file(Path::new("f")));
}

fn hopeless_offsets_are_errors(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    for offset in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let error = file.write_all_at(&[IoSlice::new(b"ab")], offset).expect_err("cannot be written");
        assert!(matches!(error.class(), ErrorClass::Invalid | ErrorClass::NoSpace), "{error}");
        assert!(file.set_len(offset).is_err());
    }
    assert_eq!(ok(file.len()), 0);
    ok(disk.remove_file(Path::new("f")));
}

fn a_link_is_a_second_name(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    write(&*ok(disk.create(Path::new("a"))), 0, b"one");
    write(&*ok(disk.create(Path::new("b"))), 0, b"two");
    ok(disk.link(Path::new("a"), Path::new("d/a")));
    let (here, there) = (ok(disk.stat(Path::new("a"))), ok(disk.stat(Path::new("d/a"))));
    assert_eq!((here.id, here.link_count, there.link_count), (there.id, 2, 2));
    assert_ne!(here.id, ok(disk.stat(Path::new("b"))).id);
    let error = err(disk.link(Path::new("b"), Path::new("d/a")), ErrorClass::Exists);
    assert_eq!(error.path(), Path::new("d/a"));
    err(disk.link(Path::new("x"), Path::new("y")), ErrorClass::NotFound);
    for name in ["a", "d/a"] {
        err(disk.open(Path::new(name), OpenMode::ReadWrite), ErrorClass::WrongKind);
        ok(disk.open(Path::new(name), OpenMode::Read));
    }
    ok(disk.remove_file(Path::new("a")));
    ok(disk.open(Path::new("d/a"), OpenMode::ReadWrite));
    assert_eq!(content(&*ok(disk.open(Path::new("d/a"), OpenMode::Read))), b"one");
    assert_eq!(ok(disk.stat(Path::new("d/a"))).link_count, 1);
    ok(disk.remove_file(Path::new("b")));
    ok(disk.remove_file(Path::new("d/a")));
    ok(disk.remove_dir(Path::new("d")));
}

fn an_unlinked_file_lives_with_its_handle(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    write(&*file, 0, b"still");
    ok(disk.remove_file(Path::new("f")));
    write(&*file, 5, b" here");
    assert_eq!(content(&*file), b"still here");
    let again = ok(disk.create(Path::new("f")));
    assert_eq!(ok(again.len()), 0);
    ok(disk.remove_file(Path::new("f")));
}

fn kinds_are_not_mixed_up(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    ok(disk.create(Path::new("d/f")));
    err(disk.open(Path::new("d"), OpenMode::Read), ErrorClass::WrongKind);
    err(disk.remove_file(Path::new("d")), ErrorClass::WrongKind);
    err(disk.remove_dir(Path::new("d/f")), ErrorClass::WrongKind);
    err(disk.remove_dir(Path::new("d")), ErrorClass::NotEmpty);
    err(disk.link(Path::new("d"), Path::new("e")), ErrorClass::WrongKind);
    err(disk.list(Path::new("d/f"), &mut |_| ControlFlow::Continue(())), ErrorClass::WrongKind);
    err(disk.open(Path::new("d/f/g"), OpenMode::Read), ErrorClass::WrongKind);
    err(disk.sync_dir(Path::new("d/f"), SITE), ErrorClass::WrongKind);
    assert_eq!(ok(disk.stat(Path::new("d"))).kind, EntryKind::Dir);
    assert_eq!(ok(disk.stat(Path::new("d/f"))).kind, EntryKind::File);
    ok(disk.remove_file(Path::new("d/f")));
    ok(disk.remove_dir(Path::new("d")));
}

fn a_listing_shows_each_name_once(disk: &dyn Disk) {
    ok(disk.create_dir(Path::new("d")));
    ok(disk.create_dir(Path::new("d/sub")));
    let mut expected = BTreeSet::from([OsString::from("sub")]);
    for i in 0..300 {
        let name = format!("{i:04} a rather long name, so that one buffer does not hold them all");
        ok(disk.create(&Path::new("d").join(&name)));
        expected.insert(name.into());
    }
    assert_eq!(names(disk, "d"), expected);
    let mut shown_count = 0;
    ok(disk.list(Path::new("d"), &mut |entry| {
        assert_eq!(entry.kind == EntryKind::Dir, entry.name == "sub");
        shown_count += 1;
        if shown_count == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }));
    assert_eq!(shown_count, 5);
    for name in &expected {
        let path = Path::new("d").join(name);
        if name == "sub" { ok(disk.remove_dir(&path)) } else { ok(disk.remove_file(&path)) }
    }
    ok(disk.remove_dir(Path::new("d")));
}

fn a_lock_excludes_until_dropped(disk: &dyn Disk) {
    let lock = ok(disk.lock(Path::new("LOCK")));
    ok(lock.verify());
    err(disk.lock(Path::new("LOCK")).map(drop), ErrorClass::InUse);
    ok(disk.remove_file(Path::new("LOCK")));
    err(lock.verify(), ErrorClass::NotFound);
    err(disk.lock(Path::new("LOCK")).map(drop), ErrorClass::InUse);
    drop(lock);
    let lock = ok(disk.lock(Path::new("LOCK")));
    ok(lock.verify());
    drop(lock);
    ok(disk.remove_file(Path::new("LOCK")));
}

fn a_map_shows_the_file(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    assert_eq!(ok(file.map(0)), None);
    write(&*file, 0, b"mapped");
    let reader = ok(disk.open(Path::new("f"), OpenMode::Read));
    if let Some(bytes) = ok(reader.map(6)) {
        assert_eq!(&bytes[..], b"mapped");
        assert_eq!(&ok(reader.map(3)).expect("as before")[..], b"map");
        let clone = bytes.slice(2..);
        drop((bytes, reader));
        ok(disk.remove_file(Path::new("f")));
        assert_eq!(&clone[..], b"pped", "a map outlives handle and name");
        ok(file.map(6));
        err(file.set_len(0), ErrorClass::Unsupported);
        err(file.write_all_at(&[IoSlice::new(b"x")], 0), ErrorClass::Unsupported);
        err(file.map(7), ErrorClass::Invalid);
    } else {
        ok(disk.remove_file(Path::new("f")));
    }
}

fn the_cache_can_be_dropped_once_clean(disk: &dyn Disk) {
    let file = ok(disk.create(Path::new("f")));
    write(&*file, 0, &[5; 10_000]);
    ok(file.sync_data(SITE));
    ok(file.advise(Advice::Sequential, 0..10_000));
    ok(file.advise(Advice::DropCache, 0..10_000));
    ok(file.advise(Advice::DropCache, 0..0));
    ok(file.cached(0..10_000));
    assert_eq!(content(&*file), [5; 10_000]);
    ok(file.cached(0..u64::MAX));
    ok(disk.remove_file(Path::new("f")));
}

fn the_device_can_be_asked(disk: &dyn Disk) {
    let space = ok(disk.space());
    assert!(space.available_bytes <= space.total_bytes);
    assert_eq!(ok(disk.stat(Path::new(""))).kind, EntryKind::Dir);
    ok(disk.file_system());
    ok(disk.sync_dir(Path::new(""), SITE));
}

#[track_caller]
fn ok<T>(result: Result<T, DiskError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn err<T>(result: Result<T, DiskError>, class: ErrorClass) -> DiskError {
    match result {
        Ok(_) => panic!("expected an error of class {class:?}"),
        Err(error) => {
            assert_eq!(error.class(), class, "{error}");
            error
        }
    }
}

#[track_caller]
fn write(file: &dyn File, offset: u64, bytes: &[u8]) {
    ok(file.write_all_at(&[IoSlice::new(bytes)], offset));
}

#[track_caller]
fn content(file: &dyn File) -> Vec<u8> {
    let len = usize::try_from(ok(file.len())).expect("a small file");
    let mut bytes = vec![0xEE; len];
    assert_eq!(ok(file.read_at(&mut bytes, 0)), len);
    bytes
}

#[track_caller]
fn names(disk: &dyn Disk, dir: &str) -> BTreeSet<OsString> {
    let mut names = BTreeSet::new();
    ok(disk.list(Path::new(dir), &mut |entry| {
        assert!(names.insert(entry.name.to_owned()), "shown twice: {:?}", entry.name);
        ControlFlow::Continue(())
    }));
    names
}
