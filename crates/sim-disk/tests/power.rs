//! What a power cut and a kill leave.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use disk::{Advice, Cached, Disk, ErrorClass, File, OpenMode, SyncSite};
use proptest::prelude::*;
use sim_disk::{SimDisk, Survival};

const DATA: SyncSite = SyncSite::new("test.data");
const NAMES: SyncSite = SyncSite::new("test.names");

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn write(file: &Arc<dyn File>, offset: u64, bytes: &[u8]) {
    file.write_all_at(&[IoSlice::new(bytes)], offset).unwrap();
}

/// A file with a durable name and durable bytes.
fn durable(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.create(path(name)).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    write(&file, 0, bytes);
    file.sync_data(DATA).unwrap();
    file
}

fn exists(disk: &SimDisk, name: &str) -> bool {
    disk.stat(path(name)).is_ok()
}

// S11
#[test]
fn a_name_that_was_not_synced_may_be_gone_with_its_durable_bytes() {
    let disk = SimDisk::new();
    let file = disk.create(path("f")).unwrap();
    write(&file, 0, b"bytes");
    file.sync_data(DATA).unwrap();
    let snapshot = disk.snapshot();
    assert!(!exists(&disk.power_cut(&Survival::Nothing), "f"));
    let disk = SimDisk::from_snapshot(&snapshot);
    let [name] = &disk.unsynced()[..] else { panic!("only the name is pending") };
    assert!(name.is_name() && name.to_string() == "new name f", "{name}");
    let disk = disk.power_cut(&Survival::Everything);
    assert_eq!(disk.read("f"), b"bytes");
    assert!(disk.unsynced().is_empty());
}

// S12
#[test]
fn a_replaced_name_shows_the_old_file_or_the_new_one_whatever_the_power_takes() {
    let disk = SimDisk::new();
    disk.create_dir(path("d")).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    drop(durable(&disk, "d/f", b"old"));
    disk.sync_dir(path("d"), NAMES).unwrap();
    drop(durable(&disk, "new", b"new!"));
    disk.link(path("d/f"), path("kept")).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    disk.replace(path("new"), path("d/f")).unwrap();
    assert_eq!((disk.stat(path("kept")).unwrap().link_count, disk.stat(path("d/f")).unwrap().len), (1, 4));
    let snapshot = disk.snapshot();
    let cut = |survival: &Survival| SimDisk::from_snapshot(&snapshot).power_cut(survival);
    assert_eq!(cut(&Survival::Nothing).read("d/f"), b"old");
    let kept = cut(&Survival::Everything);
    assert_eq!(
        (kept.read("d/f"), kept.read("kept"), exists(&kept, "new")),
        (b"new!".to_vec(), b"old".to_vec(), false)
    );
    disk.sync_dir(path("d"), NAMES).unwrap();
    assert_eq!(disk.power_cut(&Survival::Nothing).read("d/f"), b"new!");
}

#[test]
fn a_directory_needs_its_parent_synced() {
    let disk = SimDisk::new();
    disk.create_dir(path("d")).unwrap();
    let file = disk.create(path("d/f")).unwrap();
    write(&file, 0, b"x");
    file.sync_data(DATA).unwrap();
    disk.sync_dir(path("d"), NAMES).unwrap();
    let snapshot = disk.snapshot();
    assert!(!exists(&disk.power_cut(&Survival::Nothing), "d"), "its parent was not synced");
    let disk = SimDisk::from_snapshot(&snapshot);
    disk.sync_dir(path(""), NAMES).unwrap();
    assert_eq!(disk.power_cut(&Survival::Nothing).read("d/f"), b"x");
}

// S13
#[test]
fn an_unlinked_file_is_back_until_its_directory_was_synced() {
    let disk = SimDisk::new();
    durable(&disk, "f", b"old");
    disk.remove_file(path("f")).unwrap();
    let snapshot = disk.snapshot();
    assert_eq!(disk.power_cut(&Survival::Nothing).read("f"), b"old");
    let disk = SimDisk::from_snapshot(&snapshot);
    disk.sync_dir(path(""), NAMES).unwrap();
    assert!(!exists(&disk.power_cut(&Survival::Nothing), "f"));
}

// S12
#[test]
fn a_rename_survives_whole_or_not_at_all() {
    for survival in [Survival::Nothing, Survival::Everything] {
        let disk = SimDisk::new();
        disk.create_dir(path("d")).unwrap();
        durable(&disk, "f", b"bytes");
        disk.rename(path("f"), path("d/g")).unwrap();
        let disk = disk.power_cut(&survival);
        let kept = survival == Survival::Everything;
        assert_eq!((exists(&disk, "f"), exists(&disk, "d/g")), (!kept, kept));
    }
}

#[test]
fn syncing_one_directory_of_a_rename_takes_what_it_rests_on() {
    let disk = SimDisk::new();
    disk.create_dir(path("d")).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    durable(&disk, "f", b"new");
    let old = disk.create(path("d/g")).unwrap();
    old.sync_data(DATA).unwrap();
    disk.remove_file(path("d/g")).unwrap();
    disk.rename(path("f"), path("d/g")).unwrap();
    disk.sync_dir(path(""), NAMES).unwrap();
    disk.sync_dir(path("d"), NAMES).unwrap();
    let disk = disk.power_cut(&Survival::Nothing);
    assert_eq!(disk.read("d/g"), b"new", "the older removal does not come after the rename");
    assert!(!exists(&disk, "f"));
}

// S19
#[test]
fn any_subset_of_unsynced_sectors_survives() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", &[1; 2048]);
    write(&file, 0, &[2; 2048]);
    let snapshot = disk.snapshot();
    assert_eq!(disk.unsynced().len(), 4);
    let mut seen = BTreeSet::new();
    for bits in 0..16_u32 {
        let mask = (0..4).map(|i| bits & (1 << i) != 0).collect();
        let disk = SimDisk::from_snapshot(&snapshot).power_cut(&Survival::Mask(mask));
        let bytes = disk.read("f");
        assert!(
            bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])),
            "a sector is whole"
        );
        seen.insert(bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 16);
}

#[test]
fn a_length_may_be_durable_before_its_bytes() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", b"abc");
    write(&file, 3, &[7; 600]);
    let unsynced = disk.unsynced();
    let mask = unsynced.iter().map(|item| !item.is_sector()).collect();
    let snapshot = disk.snapshot();
    let bytes = disk.power_cut(&Survival::Mask(mask)).read("f");
    assert_eq!((bytes.len(), &bytes[..3]), (603, &b"abc"[..]));
    assert!(bytes[3..].iter().all(|byte| *byte == 0), "zeros where no byte arrived");
    let mask = unsynced.iter().map(|item| item.is_sector()).collect();
    let disk = SimDisk::from_snapshot(&snapshot).power_cut(&Survival::Mask(mask));
    assert_eq!(disk.read("f"), b"abc", "bytes behind the durable end are not there");
    let file = disk.open(path("f"), OpenMode::ReadWrite).unwrap();
    file.set_len(603).unwrap();
    assert!(disk.read("f")[3..].iter().all(|byte| *byte == 0), "nor do they come back");
}

#[test]
fn cut_bytes_stay_cut_once_synced() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", &[9; 5000]);
    file.set_len(100).unwrap();
    file.set_len(5000).unwrap();
    file.sync_data(DATA).unwrap();
    let bytes = disk.power_cut(&Survival::Nothing).read("f");
    assert_eq!(bytes[..100], [9; 100]);
    assert!(bytes[100..].iter().all(|byte| *byte == 0));
}

// S09
#[test]
fn a_kill_loses_nothing_and_makes_nothing_durable() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", b"abc");
    write(&file, 3, b"def");
    disk.create(path("g")).unwrap();
    let lock = disk.lock(path("LOCK")).unwrap();
    assert_eq!(disk.open_files(), 1, "the handle of g was dropped");
    let next = disk.kill();
    assert_eq!((next.read("f"), exists(&next, "g"), next.open_files()), (b"abcdef".to_vec(), true, 0));
    assert_eq!(file.len().unwrap_err().class(), ErrorClass::Device);
    assert_eq!(disk.stat(path("f")).unwrap_err().class(), ErrorClass::Device);
    let _mine = next.lock(path("LOCK")).unwrap();
    drop(lock);
    assert_eq!(
        next.lock(path("LOCK")).unwrap_err().class(),
        ErrorClass::InUse,
        "a dead owner unlocks nothing"
    );
    let next = next.power_cut(&Survival::Nothing);
    assert_eq!((next.read("f"), exists(&next, "g")), (b"abc".to_vec(), false));
}

#[test]
fn the_cache_can_be_looked_at_and_dropped_but_for_dirty_pages() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", &[1; 8192]);
    assert_eq!(file.cached(0..8192).unwrap(), Cached::Some);
    write(&file, 5000, b"dirty");
    file.advise(Advice::DropCache, 0..8192).unwrap();
    assert_eq!(file.cached(0..4096).unwrap(), Cached::None);
    assert_eq!(file.cached(4096..8192).unwrap(), Cached::Some);
    let disk = disk.power_cut(&Survival::Everything);
    let file = disk.open(path("f"), OpenMode::Read).unwrap();
    assert_eq!(file.cached(0..8192).unwrap(), Cached::None);
}

#[test]
fn write_back_by_the_kernel_can_catch_any_state_on_its_way() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", &[1; 512]);
    write(&file, 0, &[2; 512]);
    disk.write_back(&Survival::Everything);
    write(&file, 0, &[3; 512]);
    assert_eq!(disk.read_medium("f"), [2; 512]);
    assert_eq!(disk.power_cut(&Survival::Nothing).read("f"), [2; 512], "neither the synced nor the last");
}

#[test]
fn every_kind_of_survival_keeps_what_it_says() {
    let disk = SimDisk::new();
    let file = durable(&disk, "f", &[0; 5 * 512]);
    for i in 0..5 {
        write(&file, i * 512, &[1]);
    }
    let snapshot = disk.snapshot();
    let kept = |survival: Survival| {
        let bytes = SimDisk::from_snapshot(&snapshot).power_cut(&survival).read("f");
        bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>()
    };
    assert_eq!(kept(Survival::Prefix(2)), [1, 1, 0, 0, 0]);
    assert_eq!(kept(Survival::Only(3)), [0, 0, 0, 1, 0]);
    assert_eq!(kept(Survival::AllBut(0)), [0, 1, 1, 1, 1]);
    let seeds: BTreeSet<_> = (0..200).map(|seed| kept(Survival::Seed(seed))).collect();
    assert!(seeds.len() > 20, "only {} subsets from 200 seeds", seeds.len());
    assert!(seeds.contains(&vec![0; 5]) && seeds.contains(&vec![1; 5]));
    assert_eq!(kept(Survival::Seed(17)), kept(Survival::Seed(17)));
}

/// One step of a random history of one file.
#[derive(Clone, Debug)]
enum Step {
    Write { sector: u64, count: u64 },
    Sync,
    SetLen(u64),
    WriteBack(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12_u64, 1..4_u64).prop_map(|(sector, count)| Step::Write { sector, count }),
        2 => Just(Step::Sync),
        1 => (0..12_u64).prop_map(Step::SetLen),
        1 => any::<u64>().prop_map(Step::WriteBack),
    ]
}

proptest! {
    /// After a power cut every sector holds what the last sync covered or something written since; with nothing
    /// unsynced, exactly what was there.
    #[test]
    fn a_power_cut_invents_nothing(steps in prop::collection::vec(step(), 1..30), seed in any::<u64>()) {
        let disk = SimDisk::new();
        let file = durable(&disk, "f", b"");
        // What each sector may hold after a cut, and the lengths, in sectors.
        let mut allowed: Vec<BTreeSet<u8>> = vec![BTreeSet::from([0]); 16];
        let mut lens: BTreeSet<u64> = BTreeSet::from([0]);
        for (i, step) in steps.iter().enumerate() {
            let stamp = u8::try_from(i + 1).unwrap();
            match step {
                Step::Write { sector, count } => {
                    write(&file, sector * 512, &vec![stamp; usize::try_from(count * 512).unwrap()]);
                    for at in *sector..sector + count {
                        allowed[usize::try_from(at).unwrap()].insert(stamp);
                    }
                }
                Step::Sync => {
                    file.sync_data(DATA).unwrap();
                    let now = disk.read("f");
                    for (at, values) in allowed.iter_mut().enumerate() {
                        *values = BTreeSet::from([now.get(at * 512).copied().unwrap_or(0)]);
                    }
                    lens.clear();
                }
                Step::SetLen(sectors) => {
                    file.set_len(sectors * 512).unwrap();
                    for values in allowed.iter_mut().skip(usize::try_from(*sectors).unwrap()) {
                        values.insert(0);
                    }
                }
                Step::WriteBack(seed) => disk.write_back(&Survival::Seed(*seed)),
            }
            lens.insert(file.len().unwrap() / 512);
        }
        let before = disk.read("f");
        let is_clean = disk.unsynced().is_empty();
        let disk = disk.power_cut(&Survival::Seed(seed));
        let after = disk.read("f");
        if is_clean {
            prop_assert_eq!(&before, &after);
        }
        prop_assert!(lens.contains(&(after.len() as u64 / 512)), "{} not in {:?}", after.len() / 512, lens);
        for (at, sector) in after.chunks(512).enumerate() {
            prop_assert!(sector.iter().all(|byte| byte == &sector[0]), "sector {} is torn", at);
            // Behind a durable end no byte is there, so zeros may show when a longer length was kept.
            prop_assert!(allowed[at].contains(&sector[0]) || sector[0] == 0, "sector {}: {}", at, sector[0]);
        }
    }
}
