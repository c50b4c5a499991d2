//! Crash points fire at the call they name, and nowhere else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use super::*;
use crate::OsDisk;

const SITE: SyncSite = SyncSite::new("commit.batch");

fn dying(text: &str) -> (TempDir, KillAt) {
    let dir = TempDir::new().unwrap();
    let inner: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    // Death is a panic here; that a signal ends a process is the kernel's to test.
    let points = parse_crash_points(text).unwrap();
    let plan = Plan { points, census: None, die: || panic!("killed") };
    (dir, KillAt { inner, plan: Arc::new(plan) })
}

fn dies(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn a_disk_without_points_keeps_the_contract() {
    let (_dir, disk) = dying("never.reached:before:1");
    crate::contract::check(&disk);
}

#[test]
fn it_dies_before_in_the_middle_and_after_the_nth_call_of_that_name() {
    let (dir, disk) = dying(
        "commit.batch:before:2,write.seg:middle:3,remove.seg:after:1,create.cursors:before:1,create_dir.dir:after:1",
    );
    let file = disk.create(Path::new("0001.seg")).unwrap();
    let write = |offset| file.write_all_at(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")], offset).unwrap();
    file.sync_data(SyncSite::new("other")).unwrap();
    file.sync_data(SITE).unwrap();
    assert!(dies(|| file.sync_data(SITE).unwrap()));
    file.sync_data(SITE).unwrap();
    write(0);
    write(4);
    assert!(dies(|| write(8)));
    assert_eq!(std::fs::read(dir.path().join("0001.seg")).unwrap(), b"abcdabcdab");
    assert!(dies(|| disk.remove_file(Path::new("0001.seg")).unwrap()));
    assert!(!dir.path().join("0001.seg").exists());
    assert!(dies(|| drop(disk.create(Path::new("cursors-17")).unwrap())));
    assert!(!dir.path().join("cursors-17").exists());
    assert!(dies(|| disk.create_dir(Path::new("00000000000000a1")).unwrap()));
    assert!(dir.path().join("00000000000000a1").exists());
}

#[test]
fn points_that_make_no_sense_are_refused() {
    for text in [
        "",
        "a",
        "a:before",
        "a:before:0",
        "a:before:x",
        ":before:1",
        "a:middle:1",
        "a:before:1:2",
        "a:never:1",
    ] {
        let error = parse_crash_points(text).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
    assert_eq!(parse_crash_points("a:before:1, b:after:2").unwrap().len(), 2);
}

/// Where the child of the next test works; unset in an ordinary run.
const CHILD_VARIABLE: &str = "DISK_CRASH_TEST_ROOT";

#[test]
fn child_of_the_next_test() {
    let Some(root) = std::env::var_os(CHILD_VARIABLE) else { return };
    let disk = KillAt::from_env(Arc::new(OsDisk::open(Path::new(&root)).unwrap())).unwrap();
    let file = disk.create(Path::new("1.seg")).unwrap();
    for i in 0..10 {
        file.write_all_at(&[IoSlice::new(b"0123456789")], i * 10).unwrap();
        file.sync_data(SITE).unwrap();
    }
    disk.create(Path::new("done")).unwrap();
}

#[test]
fn the_signal_ends_the_process_at_the_point() {
    use std::os::unix::process::ExitStatusExt;
    for (point, len) in
        [("write.seg:middle:4", 35), ("commit.batch:after:2", 20), ("write.seg:before:1", 0), ("", 100)]
    {
        let dir = TempDir::new().unwrap();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::tests::child_of_the_next_test"])
            .env(CHILD_VARIABLE, dir.path())
            .env(CRASH_VARIABLE, point)
            .output()
            .unwrap();
        let signal = (!point.is_empty()).then_some(Signal::KILL.as_raw());
        assert_eq!(output.status.signal(), signal, "{point}: {output:?}");
        assert_eq!(std::fs::read(dir.path().join("1.seg")).unwrap().len(), len, "{point}");
        assert_eq!(dir.path().join("done").exists(), point.is_empty());
    }
}

#[test]
fn the_census_names_every_call_that_changes_the_disk() {
    let dir = TempDir::new().unwrap();
    let census = dir.path().join("census");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::tests::child_of_the_next_test"])
        .env(CHILD_VARIABLE, dir.path())
        .env(CRASH_VARIABLE, "commit.batch:before:2")
        .env(CENSUS_VARIABLE, &census)
        .output()
        .unwrap()
        .status;
    assert!(!status.success(), "{status}");
    let met = std::fs::read_to_string(census).unwrap();
    assert_eq!(met, "create.seg\nwrite.seg\ncommit.batch\nwrite.seg\ncommit.batch\n");
}
