//! Planned faults, limits, gates, damage, counters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use disk::{Advice, Disk, ErrorClass, File, Op, OpenMode, SyncSite};
use sim_disk::errno::{EDQUOT, EFBIG, EINTR, EIO, EMFILE, ENOSPC};
use sim_disk::{Fault, Moment, On, SimDisk, Survival};

const DATA: SyncSite = SyncSite::new("test.data");
const OTHER: SyncSite = SyncSite::new("test.other");
const NAMES: SyncSite = SyncSite::new("test.names");

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn write(file: &Arc<dyn File>, offset: u64, bytes: &[u8]) -> Result<(), disk::DiskError> {
    file.write_all_at(&[IoSlice::new(bytes)], offset)
}

fn new_file(disk: &SimDisk, name: &str) -> Arc<dyn File> {
    let file = disk.create(path(name)).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    file
}

fn class<T>(result: Result<T, disk::DiskError>) -> ErrorClass {
    result.err().expect("an error").class()
}

// S04
#[test]
fn a_sync_that_failed_once_then_answers_ok_leaves_a_hole_before_the_next_record() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    write(&file, 0, &[1; 512]).unwrap();
    disk.plan(Fault::once(On::Op(Op::SyncData), 1, EIO));
    let error = file.sync_data(DATA).unwrap_err();
    assert_eq!((error.class(), error.site()), (ErrorClass::Device, Some(DATA)));
    file.sync_data(DATA).unwrap();
    write(&file, 512, &[2; 512]).unwrap();
    file.sync_data(DATA).unwrap();
    assert_eq!(disk.read("f")[0], 1, "the cache shows the record");
    assert_eq!(disk.read_medium("f")[..512], [0; 512], "the medium lacks it");
    // The next process of the same boot is fooled, until it drops the cache.
    let disk = disk.kill();
    let file = disk.open(path("f"), OpenMode::ReadWrite).unwrap();
    assert_eq!(disk.read("f")[0], 1);
    // Writing the same bytes again does not help.
    write(&file, 0, &[1; 512]).unwrap();
    file.sync_data(DATA).unwrap();
    file.advise(Advice::DropCache, 0..1024).unwrap();
    assert_eq!(disk.read("f")[0], 0);
    let disk = disk.power_cut(&Survival::Everything);
    let bytes = disk.read("f");
    assert_eq!(
        (bytes.len(), bytes[0], bytes[512]),
        (1024, 0, 2),
        "a hole in front of an acknowledged record"
    );
}

#[test]
fn after_a_failed_sync_a_cut_file_or_a_new_one_works() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    write(&file, 0, &[1; 512]).unwrap();
    disk.plan(Fault::once(On::Site(DATA), 1, EIO));
    file.sync_data(DATA).unwrap_err();
    file.set_len(0).unwrap();
    write(&file, 0, &[3; 512]).unwrap();
    file.sync_data(DATA).unwrap();
    let other = new_file(&disk, "g");
    write(&other, 0, &[4; 512]).unwrap();
    other.sync_data(DATA).unwrap();
    let disk = disk.power_cut(&Survival::Nothing);
    assert_eq!((disk.read("f"), disk.read("g")), (vec![3; 512], vec![4; 512]));
}

#[test]
fn a_failed_sync_may_have_written_some_sectors_by_seed() {
    let lost = |seed| {
        let disk = SimDisk::new();
        disk.set_seed(seed);
        let file = new_file(&disk, "f");
        write(&file, 0, &[1; 64 * 512]).unwrap();
        disk.plan(Fault::once(On::Op(Op::SyncData), 1, EIO));
        file.sync_data(DATA).unwrap_err();
        file.sync_data(DATA).unwrap();
        disk.read_medium("f").chunks(512).filter(|sector| sector[0] == 0).count()
    };
    assert_eq!(lost(0), 64);
    assert!((1..64).contains(&lost(5)));
    assert_eq!(lost(5), lost(5));
}

#[test]
fn a_failed_directory_sync_stays_pending() {
    let disk = SimDisk::new();
    disk.create(path("f")).unwrap();
    disk.plan(Fault::once(On::Site(NAMES), 1, EIO));
    assert_eq!(class(disk.sync_dir(path(""), NAMES)), ErrorClass::Device);
    assert_eq!(disk.unsynced().len(), 1);
    disk.sync_dir(path(""), NAMES).unwrap();
    assert!(disk.power_cut(&Survival::Nothing).stat(path("f")).is_ok());
}

#[test]
fn faults_come_at_the_kth_call_once_for_a_while_or_for_ever() {
    let disk = SimDisk::new();
    disk.plan(Fault::once(On::OpPath(Op::Create, ".seg".into()), 2, EMFILE));
    disk.create(path("a")).unwrap();
    disk.create(path("1.seg")).unwrap();
    let error = disk.create(path("2.seg")).unwrap_err();
    assert_eq!(
        (error.class(), error.op(), error.path()),
        (ErrorClass::RetryLater, Op::Create, path("2.seg"))
    );
    disk.create(path("2.seg")).unwrap();

    disk.plan(Fault::times(On::Op(Op::RemoveFile), 1, 2, EIO));
    assert_eq!(class(disk.remove_file(path("a"))), ErrorClass::Device);
    assert_eq!(class(disk.remove_file(path("a"))), ErrorClass::Device);
    disk.remove_file(path("a")).unwrap();

    let before = disk.call_count();
    disk.plan(Fault::forever(On::Any, 3, ENOSPC));
    disk.stat(path("1.seg")).unwrap();
    disk.stat(path("1.seg")).unwrap();
    assert_eq!(class(disk.stat(path("1.seg"))), ErrorClass::NoSpace);
    assert_eq!(class(disk.space()), ErrorClass::NoSpace);
    assert_eq!(disk.call_count(), before + 4);
    disk.clear_faults();
    disk.space().unwrap();
}

// S33
#[test]
fn a_failing_write_leaves_any_number_of_its_bytes() {
    for k in 0..=5 {
        let disk = SimDisk::new();
        let file = new_file(&disk, "f");
        disk.plan(Fault::once(On::Op(Op::Write), 1, ENOSPC).after_bytes(k));
        let error = write(&file, 0, b"abcde").unwrap_err();
        assert_eq!((error.class(), error.offset()), (ErrorClass::NoSpace, Some(k)));
        assert_eq!(disk.read("f"), &b"abcde"[..usize::try_from(k).unwrap()]);
        write(&file, 0, b"abcde").unwrap();
        assert_eq!(disk.read("f"), b"abcde");
    }
}

// S40
#[test]
fn interruptions_and_short_writes_are_invisible() {
    let disk = SimDisk::new();
    disk.plan(Fault::forever(On::Any, 1, EINTR));
    let file = new_file(&disk, "f");
    disk.plan(Fault::short(On::Op(Op::Write), 1, 1));
    write(&file, 0, b"abc").unwrap();
    file.sync_data(DATA).unwrap();
    assert_eq!(disk.read("f"), b"abc");
    assert_eq!(disk.count(Op::Write), 2, "the short one and the rest");
}

// S33, S36
#[test]
fn a_full_disk_has_room_again_after_an_unlink() {
    let disk = SimDisk::new();
    let (a, b) = (new_file(&disk, "a"), new_file(&disk, "b"));
    disk.set_capacity(Some(3 * 4096));
    assert_eq!(disk.space().unwrap().available_bytes, 3 * 4096);
    write(&a, 0, &[1; 2 * 4096]).unwrap();
    let error = write(&b, 100, &[2; 8192]).unwrap_err();
    assert_eq!((error.class(), error.offset()), (ErrorClass::NoSpace, Some(4096)));
    assert_eq!(disk.read("b").len(), 4096, "what fitted was written");
    write(&a, 0, &[3; 4096]).expect("space already taken can be written again");
    assert_eq!(class(b.allocate(0..8192)), ErrorClass::NoSpace);
    disk.remove_file(path("a")).unwrap();
    assert!(write(&b, 4096, &[2; 4096]).is_err(), "an open handle keeps the space");
    drop(a);
    write(&b, 4096, &[2; 4096]).unwrap();
    disk.set_capacity(None);
    write(&b, 0, &[2; 9 * 4096]).unwrap();
}

// S37, S39
#[test]
fn descriptors_run_out_and_mounts_turn_read_only() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    disk.set_open_files_max(Some(1));
    assert_eq!(class(disk.open(path("f"), OpenMode::Read)), ErrorClass::RetryLater);
    assert_eq!((disk.open_files(), disk.open_files_peak()), (1, 1));
    disk.remount_read_only();
    assert_eq!(class(write(&file, 0, b"x")), ErrorClass::ReadOnly);
    assert_eq!(class(disk.remove_file(path("f"))), ErrorClass::ReadOnly);
    assert_eq!(file.len().unwrap(), 0);
    drop(file);
    disk.open(path("f"), OpenMode::Read).unwrap();
    assert_eq!(class(disk.open(path("f"), OpenMode::ReadWrite)), ErrorClass::ReadOnly);
    disk.remount_read_write();
    disk.open(path("f"), OpenMode::ReadWrite).unwrap();
}

#[test]
fn a_halt_stops_before_in_the_middle_and_after_a_call() {
    let after = |moment, survival: &Survival| {
        let disk = SimDisk::new();
        let file = new_file(&disk, "f");
        disk.plan(Fault::halt(On::Op(Op::Write), 1, moment));
        assert!(write(&file, 0, b"abcd").is_err(), "nobody learns of it");
        assert!(disk.is_halted() && file.sync_data(DATA).is_err() && disk.create(path("g")).is_err());
        let kill = disk.snapshot();
        let disk = disk.power_cut(survival);
        assert!(!disk.is_halted());
        (SimDisk::from_snapshot(&kill).read("f"), disk.read("f"))
    };
    assert_eq!(after(Moment::Before, &Survival::Everything), (vec![], vec![]));
    assert_eq!(after(Moment::Middle, &Survival::Everything), (b"ab".to_vec(), b"ab".to_vec()));
    assert_eq!(after(Moment::After, &Survival::Everything), (b"abcd".to_vec(), b"abcd".to_vec()));
    assert_eq!(after(Moment::After, &Survival::Nothing), (b"abcd".to_vec(), vec![]));

    for (moment, is_durable) in [(Moment::Before, false), (Moment::Middle, false), (Moment::After, true)] {
        let disk = SimDisk::new();
        let file = new_file(&disk, "f");
        write(&file, 0, b"x").unwrap();
        disk.plan(Fault::halt(On::Site(DATA), 1, moment));
        assert!(file.sync_data(DATA).is_err());
        assert_eq!(disk.power_cut(&Survival::Nothing).read("f").len() == 1, is_durable, "{moment:?}");
        let disk = SimDisk::new();
        disk.plan(Fault::halt(On::Op(Op::Create), 1, moment));
        assert!(disk.create(path("f")).is_err());
        assert_eq!(disk.kill().stat(path("f")).is_ok(), moment != Moment::Before, "{moment:?}");
    }
}

#[test]
fn an_ignored_site_answers_ok_and_does_nothing() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    disk.ignore_site(DATA);
    write(&file, 0, b"a").unwrap();
    file.sync_data(DATA).unwrap();
    assert_eq!(disk.read_medium("f"), b"");
    file.sync_data(OTHER).unwrap();
    assert_eq!(disk.read_medium("f"), b"a");
    disk.ignore_site(NAMES);
    disk.create(path("g")).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    assert_eq!(disk.count_at(NAMES), 2);
    assert!(disk.power_cut(&Survival::Nothing).stat(path("g")).is_err());
}

// S06, S08
#[test]
fn a_gate_holds_a_sync_until_it_is_released() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    write(&file, 0, b"before").unwrap();
    let gate = disk.hold(On::Site(DATA));
    let syncing = {
        let file = Arc::clone(&file);
        thread::spawn(move || file.sync_data(DATA))
    };
    gate.wait_arrived(1);
    write(&file, 6, b" after").unwrap();
    file.sync_data(OTHER).unwrap();
    write(&file, 12, b" all").unwrap();
    assert_eq!(disk.read("f"), b"before after all", "others go on");
    gate.release();
    syncing.join().unwrap().unwrap();
    assert_eq!(disk.read_medium("f")[..6], *b"before");
    assert!(!disk.unsynced().is_empty(), "what was written after the call began is not covered by it");
}

#[test]
fn a_gate_lets_a_few_through_and_a_killed_process_out() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    let gate = disk.hold(On::Op(Op::SyncData));
    gate.let_through(1);
    file.sync_data(DATA).unwrap();
    let stuck = {
        let file = Arc::clone(&file);
        thread::spawn(move || file.sync_data(DATA))
    };
    gate.wait_arrived(2);
    assert_eq!(gate.arrived_count(), 2);
    let _disk = disk.kill();
    assert_eq!(class(stuck.join().unwrap()), ErrorClass::Device);
}

#[test]
fn damage_is_done_to_cache_and_medium_alike() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    write(&file, 0, &[0; 100]).unwrap();
    file.sync_data(DATA).unwrap();
    disk.corrupt("f", 7, 3);
    assert_eq!((disk.read("f")[7], disk.read_medium("f")[7]), (8, 8));
    disk.damage("f", |bytes| bytes.truncate(8));
    assert_eq!((file.len().unwrap(), disk.read_medium("f").len()), (8, 8));
    assert!(disk.unsynced().is_empty());
    let disk = disk.power_cut(&Survival::Nothing);
    assert_eq!(disk.read("f"), [0, 0, 0, 0, 0, 0, 0, 8]);
    assert_eq!(disk.files(), [path("f")]);
}

#[test]
fn a_snapshot_is_not_changed_by_what_comes_after() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    write(&file, 0, b"one").unwrap();
    let snapshot = disk.snapshot();
    write(&file, 0, b"two").unwrap();
    file.sync_data(DATA).unwrap();
    disk.create_dir(path("d")).unwrap();
    let back = SimDisk::from_snapshot(&snapshot);
    assert_eq!(
        (back.read("f"), back.stat(path("d")).is_ok(), back.read_medium("f")),
        (b"one".to_vec(), false, vec![])
    );
    assert_eq!(disk.read("f"), b"two");
}

#[test]
fn equal_runs_have_equal_traces() {
    let run = |bytes: &[u8]| {
        let disk = SimDisk::new();
        let file = new_file(&disk, "f");
        write(&file, 0, bytes).unwrap();
        file.sync_data(DATA).unwrap();
        (disk.trace_hash(), disk.bytes_written(), disk.sites().len())
    };
    assert_eq!(run(b"abc"), run(b"abc"));
    assert_ne!(run(b"abc").0, run(b"abcd").0);
}

// S34
#[test]
fn a_quota_speaks_for_itself_and_the_lower_of_two_limits_first() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    disk.set_capacity(Some(8192));
    disk.set_quota(Some(4096));
    let errno = |error: disk::DiskError| error.io_error().raw_os_error();
    let error = write(&file, 0, &[1; 5000]).unwrap_err();
    assert_eq!((error.offset(), errno(error)), (Some(4096), Some(EDQUOT)));
    disk.set_quota(None);
    assert_eq!(errno(write(&file, 4096, &[1; 5000]).unwrap_err()), Some(ENOSPC));
    disk.set_capacity(None);
    write(&file, 4096, &[1; 5000]).unwrap();
}

// S34
#[test]
fn a_file_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    let disk = SimDisk::new();
    let file = new_file(&disk, "f");
    disk.set_file_bytes_max(Some(1000));
    write(&file, 0, &[1; 1000]).unwrap();
    let error = write(&file, 500, &[2; 501]).unwrap_err();
    assert_eq!((error.class(), error.io_error().raw_os_error()), (ErrorClass::NoSpace, Some(EFBIG)));
    assert_eq!(class(file.set_len(1001)), ErrorClass::NoSpace);
    assert_eq!(class(file.allocate(0..1001)), ErrorClass::NoSpace);
    assert_eq!(disk.read("f"), [1; 1000], "nothing of it was written");
}
