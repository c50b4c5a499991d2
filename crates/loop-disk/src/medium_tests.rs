//! The disk as a model: what reads see, what a flush makes durable, what a cut leaves, what fails when told to.

use super::*;
use crate::faults::{Lasts, Plan};

const DISK_BYTES: u64 = 1 << 20;

fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |end| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end.max(1)
    }
}

fn after_cut(disk: &mut Medium, survival: Survival, seed: u64) -> Cut {
    let cut = disk.cut(survival, &mut numbers(seed));
    assert_eq!(disk.read(0, 1), Err(Refusal::Broken), "the power is off");
    assert_eq!(disk.write(0, &[1]), Err(Refusal::Broken));
    assert_eq!(disk.flush(), Err(Refusal::Broken));
    disk.power_on();
    cut
}

#[test]
fn a_read_sees_what_was_written_across_blocks() {
    let mut disk = Medium::new(DISK_BYTES);
    let bytes: Vec<u8> = (0..10_000).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect();
    assert_eq!(disk.write(4000, &bytes), Ok(()));
    assert_eq!(disk.read(4000, bytes.len()), Ok(bytes));
    assert_eq!(disk.read(0, 4000), Ok(vec![0; 4000]));
    assert_eq!(disk.read(DISK_BYTES - 2, 10).map(|read| read.len()), Ok(2), "it ends there");
    assert_eq!(disk.write(DISK_BYTES - 2, &[1; 4]), Err(Refusal::Broken), "beyond its end");
}

#[test]
fn a_cut_keeps_what_was_flushed_and_a_subset_of_the_rest() {
    for (survival, seed) in [
        (Survival::Nothing, 1),
        (Survival::Everything, 2),
        (Survival::Prefix, 3),
        (Survival::Writes, 4),
        (Survival::Sectors, 5),
    ] {
        let mut disk = Medium::new(DISK_BYTES);
        assert_eq!(disk.write(0, &[1; 8192]), Ok(()));
        assert_eq!(disk.flush(), Ok(()));
        for block in 0..16 {
            assert_eq!(disk.write(block * 4096, &[2; 4096]), Ok(()));
        }
        let cut = after_cut(&mut disk, survival, seed);
        assert_eq!(cut.pending_sectors, 16 * 8);
        let read = disk.read(0, 16 * 4096).unwrap_or_default();
        let twos = read.chunks(SECTOR_BYTES).filter(|sector| sector.iter().all(|byte| *byte == 2)).count();
        assert_eq!(twos, cut.survived_sectors, "{survival:?}");
        assert!(read[..8192].iter().all(|byte| *byte == 1 || *byte == 2), "{survival:?}: what was flushed");
        let bounds = match survival {
            Survival::Nothing => 0..=0,
            Survival::Everything => 128..=128,
            _ => 0..=128,
        };
        assert!(bounds.contains(&twos), "{survival:?}: {twos}");
    }
}

#[test]
fn of_two_writes_to_one_place_the_older_may_be_the_one_that_survives() {
    let survivors: std::collections::BTreeSet<u8> = (0..64)
        .map(|seed| {
            let mut disk = Medium::new(DISK_BYTES);
            assert_eq!(disk.write(0, &[1; 512]), Ok(()));
            assert_eq!(disk.write(0, &[2; 512]), Ok(()));
            after_cut(&mut disk, Survival::Writes, seed);
            disk.read(0, 1).map_or(9, |read| read[0])
        })
        .collect();
    assert_eq!(survivors.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_nth_write_fails_as_long_as_planned_and_changes_nothing() {
    for (lasts, there, elsewhere) in [
        (Lasts::Once, Ok(()), Ok(())),
        (Lasts::AtThatPlace, Err(Refusal::Broken), Ok(())),
        (Lasts::ForEver, Err(Refusal::Broken), Err(Refusal::Broken)),
    ] {
        let mut disk = Medium::new(DISK_BYTES);
        disk.faults().plan(Plan { on: On::Write, after: 1, lasts });
        assert_eq!(disk.write(0, &[1; 512]), Ok(()));
        assert_eq!(disk.flush(), Ok(()), "only writes fail");
        assert_eq!(disk.write(512, &[1; 512]), Err(Refusal::Broken));
        assert_eq!(disk.read(512, 1), Ok(vec![0]));
        assert_eq!(disk.write(1000, &[1; 12]), there, "{lasts:?}, the same place");
        assert_eq!(disk.write(4096, &[1; 512]), elsewhere, "{lasts:?}, another place");
        let failed = 1 + u64::from(there.is_err()) + u64::from(elsewhere.is_err());
        assert_eq!(disk.counts(), Counts { writes: 4, flushes: 1, failed });
    }
}

#[test]
fn a_failed_flush_makes_nothing_durable() {
    let mut disk = Medium::new(DISK_BYTES);
    disk.faults().plan(Plan { on: On::Flush, after: 0, lasts: Lasts::Once });
    assert_eq!(disk.write(0, &[1; 512]), Ok(()));
    assert_eq!(disk.flush(), Err(Refusal::Broken));
    after_cut(&mut disk, Survival::Nothing, 1);
    assert_eq!(disk.read(0, 1), Ok(vec![0]));
}

#[test]
fn a_thin_disk_refuses_new_blocks_and_takes_old_ones() {
    let mut disk = Medium::new(DISK_BYTES);
    assert_eq!(disk.write(0, &[1; 4096]), Ok(()));
    disk.faults().set_room(Some(1));
    assert_eq!(disk.write(8192, &[1; 8192]), Err(Refusal::Full), "two blocks");
    assert_eq!(disk.write(8192, &[1; 4096]), Ok(()));
    assert_eq!(disk.write(12288, &[1; 512]), Err(Refusal::Full));
    assert_eq!(disk.write(0, &[2; 4096]), Ok(()), "written before");
    disk.faults().set_room(None);
    assert_eq!(disk.write(12288, &[1; 512]), Ok(()));
}
