//! Rotation by size, age and request: what is synced first, what the next segment names, who is told when.

use std::time::Duration;

use disk::{Disk, Op};
use sim_disk::{SimDisk, Survival};
use wal_format::{SegmentId, Seq, Tag};
use wal_store::{Level, Record, SegmentState, Settings, SyncSetting, Want};

use crate::support::{Told, World, at, seqs, settings};

#[test]
fn the_old_segment_is_durable_before_anything_of_the_new_one_is() {
    // S03
    let world = World::new();
    let log = world.log(Settings { sync: SyncSetting::Never, segment_bytes_max: 6000, ..settings() });
    for time in 1..=20 {
        log.append(&[time as u8; 700][..], at(time)).unwrap();
        log.commit(at(time), Want::Batch).unwrap();
        for seed in 0..20 {
            let copy = SimDisk::from_snapshot(&world.disk.snapshot());
            let left = World::on(copy.power_cut(&Survival::Seed(seed)), 1 << 20);
            let kept = seqs(&left.payloads());
            assert_eq!(kept, (1..=kept.len() as u64).collect::<Vec<_>>(), "a hole, seed {seed}");
            assert!(
                kept.len() as u64 + 1 >= log.ends().durable.get(),
                "durable_end passed a hole, seed {seed}"
            );
        }
    }
    assert!(log.counters().rotations >= 5);
}

#[test]
fn a_segment_is_closed_by_age_since_its_creation() {
    // F08
    let world = World::new();
    let log = world.log(Settings { segment_age_max: Some(Duration::from_millis(100)), ..settings() });
    log.append(b"a", at(10)).unwrap().wait(Level::Durable, at(10)).unwrap();
    log.append(b"b", at(109)).unwrap().wait(Level::Durable, at(109)).unwrap();
    assert_eq!(log.due(), Some(at(110).instant));
    assert_eq!(log.counters().rotations, 0);
    log.commit(at(110), Want::Batch).unwrap();
    assert_eq!(log.counters().rotations, 1, "closed when due, without a record");
    assert_eq!(log.due(), None, "an idle stream is not due");
    assert_eq!(world.files().len(), 1, "the next file comes with the next batch");
    log.append(b"c", at(500)).unwrap().wait(Level::Durable, at(500)).unwrap();
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3]);
}

#[test]
fn rotation_is_told_between_the_old_end_and_the_new_batch() {
    let world = World::new();
    let log = world.log(Settings { segment_bytes_max: 6000, ..settings() });
    log.append(&[1; 1500][..], at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    log.append(&[2; 1500][..], at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
    let told: Vec<_> =
        world.ears.take().into_iter().filter(|told| !matches!(told, Told::Due(_) | Told::Enlist)).collect();
    let expected = [
        Told::Readable(Seq::new(2)),
        Told::Rotated(Seq::new(2), SegmentId::new(2)),
        Told::Readable(Seq::new(3)),
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_new_segment_names_the_old_one_and_its_end() {
    let world = World::new();
    let log = world.log(settings());
    log.append(b"a", at(1)).unwrap();
    log.rotate(at(1)).unwrap();
    log.rotate(at(1)).unwrap();
    log.append(b"b", at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
    let files = world.files();
    let header = files[1].header.unwrap();
    assert_eq!((header.segment, header.first_seq), (SegmentId::new(2), Seq::new(2)));
    let predecessor = header.predecessor.unwrap();
    assert_eq!((predecessor.id, predecessor.end_offset), (SegmentId::new(1), files[0].len));
    let list: Vec<_> =
        log.segments().iter().map(|s| (s.id.get(), s.first_seq.get(), s.end_seq.get(), s.state)).collect();
    assert_eq!(list, [(1, 1, 2, SegmentState::Rotated), (2, 2, 3, SegmentState::Open)]);
    assert_eq!(log.counters().rotations, 1, "a log without an open segment has nothing to close");
}

#[test]
fn the_first_batch_of_every_segment_repeats_all_tags() {
    let world = World::new();
    let log = world.log(settings());
    for (time, (producer, value)) in [("p", "1"), ("q", "1"), ("p", "2")].into_iter().enumerate() {
        let tag = Tag::new(producer.as_bytes(), value.as_bytes()).unwrap();
        log.append_batch(&[Record::from("x")], Some(tag), at(time as u64)).unwrap();
    }
    log.rotate(at(5)).unwrap();
    log.append(b"y", at(6)).unwrap().wait(Level::Durable, at(6)).unwrap();
    let second = &world.files()[1];
    let tags: Vec<_> = second.metas.iter().map(|meta| Tag::decode(meta).unwrap()).collect();
    assert_eq!(tags, [Tag::new(b"p", b"2").unwrap(), Tag::new(b"q", b"1").unwrap()]);
    assert_eq!(log.last_tags().len(), 2);
}

#[test]
fn a_clean_file_is_left_to_the_cache_when_descriptors_are_short() {
    let world = World::new();
    let log = world.log(settings());
    log.append(b"a", at(1)).unwrap().wait(Level::Durable, at(1)).unwrap();
    assert_eq!(world.files.idle_count(), 0, "kept open while there are enough");
    let held: Vec<_> = (0..20).map(|_| world.files.budget().acquire(std::num::NonZeroUsize::MIN)).collect();
    log.append(b"b", at(2)).unwrap().wait(Level::Durable, at(2)).unwrap();
    assert_eq!(world.files.idle_count(), 1);
    world.files.clear();
    assert_eq!(world.disk.open_files(), 0);
    log.append(b"c", at(3)).unwrap().wait(Level::Durable, at(3)).unwrap();
    assert_eq!(world.disk.count(Op::Create), 1, "the same file, opened again");
    assert_eq!(seqs(&world.durable_payloads()), [1, 2, 3]);
    drop(held);
}

#[test]
fn many_logs_live_under_a_small_budget() {
    // S54
    let world = World::new();
    let logs: Vec<_> = (0..100)
        .map(|index| {
            let mut context = world.context();
            context.dir = format!("streams/{index}").into();
            world.disk.create_dir(&context.dir).unwrap();
            let sync = if index % 2 == 0 { SyncSetting::Never } else { SyncSetting::EachBatch };
            wal_store::Log::open(context, &wal_store::Recovery::fresh(), Settings { sync, ..settings() })
                .unwrap()
        })
        .collect();
    for time in 1..4 {
        for log in &logs {
            log.append(b"x", at(time)).unwrap();
            log.commit(at(time), Want::Batch).unwrap();
        }
    }
    assert!(world.disk.open_files_peak() <= 32, "{}", world.disk.open_files_peak());
    assert!(logs.iter().all(|log| log.ends().written == Seq::new(4)));
}
