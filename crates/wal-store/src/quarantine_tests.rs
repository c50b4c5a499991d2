//! Names in quarantine never collide, say what they hold, and count.

use std::io::IoSlice;

use sim_disk::{SimDisk, Survival};

use super::*;

fn put(disk: &SimDisk, path: &str, bytes: &[u8]) {
    let file = disk.create(Path::new(path)).unwrap();
    file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    file.sync_data(QUARANTINE_SITE).unwrap();
    disk.sync_dir(Path::new(""), QUARANTINE_SITE).unwrap();
}

fn name(segment: u64, why: QuarantineReason) -> QuarantineName {
    QuarantineName::segment(StreamId::new(7), SegmentId::new(segment), why)
}

// S27
#[test]
fn two_files_of_one_name_both_stay() {
    let disk = SimDisk::new();
    let damaged = name(2, QuarantineReason::Damaged);
    for (round, bytes) in [b"one", b"two"].into_iter().enumerate() {
        put(&disk, "f", bytes);
        let linked = link(&disk, Path::new("f"), &damaged).unwrap();
        assert_eq!(link(&disk, Path::new("f"), &damaged).unwrap(), linked, "the same file is linked once");
        sync(&disk).unwrap();
        disk.remove_file(Path::new("f")).unwrap();
        assert_eq!(list(&disk).unwrap().len(), round + 1);
    }
    let disk = disk.power_cut(&Survival::Nothing);
    assert_eq!(disk.read("quarantine/0000000000000007-0000000000000002.damaged.seg"), b"one");
    assert_eq!(disk.read("quarantine/0000000000000007-0000000000000002.damaged.2.seg"), b"two");
    let ids: Vec<_> = list(&disk).unwrap().iter().map(|file| (file.segment, file.why)).collect();
    let expected = (Some((StreamId::new(7), SegmentId::new(2))), Some(QuarantineReason::Damaged));
    assert_eq!(ids, [expected, expected]);
}

#[test]
fn only_bytes_that_nothing_else_holds_are_counted() {
    let disk = SimDisk::new();
    assert_eq!((quarantine_bytes(&disk).unwrap(), list(&disk).unwrap()), (0, vec![]));
    put(&disk, "f", &[7; 100]);
    put(&disk, "cursors-0000000000000009", &[7; 30]);
    link(&disk, Path::new("f"), &name(1, QuarantineReason::Mended)).unwrap();
    let file = QuarantineName::file("cursors-0000000000000009", QuarantineReason::Mended);
    link(&disk, Path::new("cursors-0000000000000009"), &file).unwrap();
    assert_eq!(quarantine_bytes(&disk).unwrap(), 0, "both are where they were, too");
    disk.remove_file(Path::new("cursors-0000000000000009")).unwrap();
    assert_eq!(quarantine_bytes(&disk).unwrap(), 30);
    disk.remove_file(Path::new("f")).unwrap();
    assert_eq!(quarantine_bytes(&disk).unwrap(), 130);
    let names: Vec<_> =
        list(&disk).unwrap().iter().map(|file| (file.segment.is_some(), file.bytes, file.why)).collect();
    let mended = Some(QuarantineReason::Mended);
    assert_eq!(names, [(true, 100, mended), (false, 30, mended)]);
}

#[test]
fn what_the_user_put_there_is_listed_as_it_is() {
    let disk = SimDisk::new();
    disk.create_dir(Path::new(QUARANTINE_DIR)).unwrap();
    put(&disk, "quarantine/0000000000000007-0000000000000002.seg", b"old");
    put(&disk, "quarantine/notes.txt", b"mine");
    let seen: Vec<_> =
        list(&disk).unwrap().into_iter().map(|file| (file.segment.is_some(), file.why)).collect();
    assert_eq!(seen, [(true, None), (false, None)]);
}
