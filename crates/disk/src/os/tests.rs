//! What the real disk promises beyond the contract: modes, links, names, locks.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::{Advice, Cached, ErrorClass};

const SITE: SyncSite = SyncSite::new("test");

fn disk() -> (TempDir, OsDisk) {
    let dir = TempDir::new().unwrap();
    let disk = OsDisk::open(dir.path()).unwrap();
    (dir, disk)
}

#[test]
fn the_real_disk_keeps_the_contract() {
    let (_dir, disk) = disk();
    crate::contract::check(&disk);
}

#[test]
fn the_real_disk_keeps_the_contract_on_kernels_without_openat2() {
    let (dir, mut disk) = disk();
    let handle = StdFile::open(dir.path()).unwrap();
    disk.root = Root::without_openat2(handle.into());
    crate::contract::check(&disk);
}

#[test]
fn the_real_disk_keeps_the_contract_in_memory() {
    let Ok(dir) = TempDir::new_in("/dev/shm") else { return };
    let disk = OsDisk::open(dir.path()).unwrap();
    crate::contract::check(&disk);
    if disk.file_system().unwrap() == FileSystem::Tmpfs {
        assert!(!FileSystem::Tmpfs.is_supported());
    }
}

#[test]
fn no_symbolic_link_is_followed_on_either_way() {
    let (dir, mut disk) = disk();
    std::fs::create_dir(dir.path().join("real")).unwrap();
    std::fs::write(dir.path().join("real/f"), b"secret").unwrap();
    symlink("real", dir.path().join("dirlink")).unwrap();
    symlink("real/f", dir.path().join("filelink")).unwrap();
    symlink("/etc", dir.path().join("out")).unwrap();
    for _ in 0..2 {
        let class = |result: Result<(), DiskError>| result.unwrap_err().class();
        for path in ["dirlink/f", "filelink", "out/passwd"] {
            let path = Path::new(path);
            assert_eq!(class(disk.open(path, OpenMode::Read).map(drop)), ErrorClass::WrongKind, "{path:?}");
        }
        assert_eq!(class(disk.create(Path::new("dirlink/g")).map(drop)), ErrorClass::WrongKind);
        assert_eq!(class(disk.create(Path::new("filelink")).map(drop)), ErrorClass::Exists);
        assert_eq!(class(disk.remove_file(Path::new("dirlink/f"))), ErrorClass::WrongKind);
        assert_eq!(class(disk.link(Path::new("filelink"), Path::new("x"))), ErrorClass::WrongKind);
        assert_eq!(
            class(disk.list(Path::new("dirlink"), &mut |_| ControlFlow::Continue(()))),
            ErrorClass::WrongKind
        );
        assert_eq!(disk.stat(Path::new("filelink")).unwrap().kind, EntryKind::Other);
        assert_eq!(std::fs::read(dir.path().join("real/f")).unwrap(), b"secret");
        disk.root = Root::without_openat2(StdFile::open(dir.path()).unwrap().into());
    }
}

#[test]
fn a_pipe_is_refused_without_waiting_for_its_other_end() {
    let (dir, disk) = disk();
    fs::mknodat(fs::CWD, dir.path().join("pipe"), FileType::Fifo, FILE_MODE, 0).unwrap();
    for mode in [OpenMode::Read, OpenMode::ReadWrite] {
        let error = disk.open(Path::new("pipe"), mode).unwrap_err();
        assert_eq!(error.class(), ErrorClass::WrongKind);
    }
    disk.list(Path::new(""), &mut |entry| {
        assert_eq!(entry.kind, EntryKind::Other);
        ControlFlow::Continue(())
    })
    .unwrap();
}

#[test]
fn nothing_but_a_regular_file_is_a_lock() {
    let (dir, disk) = disk();
    std::fs::write(dir.path().join("victim"), b"precious").unwrap();
    symlink("victim", dir.path().join("symlink")).unwrap();
    std::fs::create_dir(dir.path().join("directory")).unwrap();
    fs::mknodat(fs::CWD, dir.path().join("pipe"), FileType::Fifo, FILE_MODE, 0).unwrap();
    for name in ["symlink", "directory", "pipe"] {
        let error = disk.lock(Path::new(name)).unwrap_err();
        assert_eq!(error.class(), ErrorClass::WrongKind, "{name}: {error}");
        // A refusal holds nothing back: the directory is free again.
        disk.lock(Path::new("LOCK")).unwrap().verify().unwrap();
    }
    assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"precious");
}

#[test]
fn a_file_linked_as_the_lock_is_locked_and_keeps_its_bytes() {
    let (dir, disk) = disk();
    std::fs::write(dir.path().join("victim"), b"precious").unwrap();
    std::fs::hard_link(dir.path().join("victim"), dir.path().join("LOCK")).unwrap();
    let lock = disk.lock(Path::new("LOCK")).unwrap();
    lock.verify().unwrap();
    let error = OsDisk::open(dir.path()).unwrap().lock(Path::new("LOCK")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::InUse);
    assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"precious");
}

#[test]
fn what_is_created_belongs_to_its_owner_alone() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("a/b/queue");
    assert_eq!(OsDisk::open(&root).unwrap_err().class(), ErrorClass::NotFound);
    let disk = OsDisk::create(&root).unwrap();
    OsDisk::create(&root).unwrap();
    disk.create(Path::new("f")).unwrap();
    disk.create_dir(Path::new("d")).unwrap();
    let _lock = disk.lock(Path::new("LOCK")).unwrap();
    let mode = |path: &str| std::fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("f"), mode("d"), mode("LOCK")), (0o700, 0o600, 0o700, 0o600));
    std::fs::write(dir.path().join("file"), b"").unwrap();
    assert_eq!(OsDisk::open(&dir.path().join("file")).unwrap_err().class(), ErrorClass::WrongKind);
}

// S31
#[test]
fn names_that_are_not_text_are_listed_as_they_are() {
    let (dir, disk) = disk();
    let name = OsStr::from_bytes(b"\xFF\xFE odd");
    std::fs::write(dir.path().join(name), b"").unwrap();
    let mut seen = Vec::new();
    disk.list(Path::new(""), &mut |entry| {
        seen.push(entry.name.to_owned());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, [name]);
    disk.remove_file(Path::new(name)).unwrap();
}

// S53
#[test]
fn a_refused_lock_names_the_owner_even_after_the_file_was_deleted() {
    let (dir, disk) = disk();
    let lock = disk.lock(Path::new("LOCK")).unwrap();
    let other = OsDisk::open(dir.path()).unwrap();
    let error = other.lock(Path::new("LOCK")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::InUse);
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    std::fs::remove_file(dir.path().join("LOCK")).unwrap();
    assert_eq!(other.lock(Path::new("LOCK")).unwrap_err().class(), ErrorClass::InUse);
    assert_eq!(lock.verify().unwrap_err().class(), ErrorClass::NotFound);
    drop(lock);
    // A leftover file with any content is no lock.
    std::fs::write(dir.path().join("LOCK"), b"1\n").unwrap();
    other.lock(Path::new("LOCK")).unwrap().verify().unwrap();
}

#[test]
fn a_moved_directory_stays_the_same_disk() {
    let dir = TempDir::new().unwrap();
    let disk = OsDisk::create(&dir.path().join("before")).unwrap();
    std::fs::rename(dir.path().join("before"), dir.path().join("after")).unwrap();
    disk.create(Path::new("f")).unwrap();
    assert!(dir.path().join("after/f").exists());
}

#[test]
fn dropped_pages_are_gone_where_the_kernel_tells() {
    let (_dir, disk) = disk();
    if disk.file_system().unwrap() != FileSystem::Ext {
        return;
    }
    for end in [1_000_000, 1_000_001, u64::MAX] {
        let file = disk.create(Path::new("f")).unwrap();
        file.write_all_at(&[std::io::IoSlice::new(&vec![1; 1_000_000])], 0).unwrap();
        file.sync_data(SITE).unwrap();
        file.advise(Advice::DropCache, 0..end).unwrap();
        assert!(matches!(file.cached(0..end).unwrap(), Cached::None | Cached::Unknown));
        // A page that somebody maps cannot be dropped.
        let map = file.map(1_000_000).unwrap().unwrap();
        assert_eq!(map[500_000], 1);
        file.advise(Advice::DropCache, 0..end).unwrap();
        assert_ne!(file.cached(0..end).unwrap(), Cached::None);
        disk.remove_file(Path::new("f")).unwrap();
    }
}

/// Where the child of the next test works; unset in an ordinary run.
const CHILD_VARIABLE: &str = "DISK_LOCK_TEST_ROOT";

#[test]
fn child_of_the_next_test() {
    let Some(root) = std::env::var_os(CHILD_VARIABLE) else { return };
    let _lock = OsDisk::open(Path::new(&root)).unwrap().lock(Path::new("LOCK")).unwrap();
    println!("locked");
    // Held until the parent ends this process, or its own end of the pipe.
    let _ = std::io::stdin().read_line(&mut String::new());
}

// S53
#[test]
fn a_lock_excludes_another_process_and_ends_with_its_death() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let (dir, disk) = disk();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "os::tests::child_of_the_next_test", "--nocapture"])
        .env(CHILD_VARIABLE, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("locked")));
    let error = disk.lock(Path::new("LOCK")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::InUse);
    assert!(error.to_string().contains(&format!("pid {}", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    disk.lock(Path::new("LOCK")).unwrap().verify().unwrap();
}
