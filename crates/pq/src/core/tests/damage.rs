//! Damage to a queue that was stopped in order: what is lost is told, where it stood and when it is read, and nothing else is. Each of
//! these was found by the simulation.

use std::sync::Arc;

use sim_disk::{SimDisk, Survival};
use wal_format::Seq;

use super::rig::Rig;
use crate::core::{ConsumerState, StreamState};
use crate::repair::{RepairOptions, apply_on, plan_on};
use crate::{Gap, GapReason, Item, Options, ReadLevel, StreamSettings, SyncSetting};

/// What a consumer is given, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    Record(u64),
    Gap(u64, u64, GapReason),
}

fn drain(rig: &Rig, stream: &Arc<StreamState>, consumer: &Arc<ConsumerState>) -> Vec<Given> {
    let mut all = Vec::new();
    while let Some(delivery) = rig.next(stream, consumer, 1 << 20) {
        all.extend(delivery.items().map(|item| match item {
            Item::Record(record) => Given::Record(record.seq.get()),
            Item::Gap(gap) => Given::Gap(gap.from.get(), gap.to.get(), gap.reason),
        }));
    }
    all
}

/// Stops in order, harms the disk, and starts again.
fn harmed(rig: Rig, harm: impl FnOnce(&SimDisk)) -> Rig {
    let now = rig.now;
    rig.core.close(|| now).unwrap();
    let disk = rig.disk.clone();
    drop(rig);
    harm(&disk);
    Rig::on(disk, Options::default(), 9)
}

fn segment(id: u64) -> String {
    format!("streams/{:016x}/{id:016x}.seg", 1)
}

/// Zeroes the middle of the record that holds this text.
fn spoil(disk: &SimDisk, path: &str, text: &[u8]) {
    disk.damage(path, |bytes| {
        let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
        bytes[at + 1..at + text.len() - 1].fill(0);
    });
}

fn gaps(rig: &Rig) -> Vec<Gap> {
    rig.core.report().streams[0].gaps.clone()
}

fn lost(from: u64, to: u64) -> Gap {
    Gap { from: Seq::new(from), to: Seq::new(to), reason: GapReason::Lost }
}

/// A stream that shows what is written and has three durable records; seqs behind them were shown, and are never given again.
fn left_seqs_out() -> Rig {
    let rig = Rig::new(Options::default());
    let settings = StreamSettings {
        sync: SyncSetting::Never,
        read_level: ReadLevel::Written,
        ..StreamSettings::default()
    };
    let stream = rig.stream_with("s", &settings);
    rig.consumer(&stream, "c");
    rig.append_numbers(&stream, 3);
    rig.commit(&stream);
    drop(stream);
    rig.power_cut(&Survival::Nothing)
}

// Seed 3005: a reader in front of lost seqs with nothing behind them got an error, again and again, until somebody appended.
#[test]
fn lost_seqs_at_the_end_are_delivered_as_a_gap_at_once() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.consumer(&stream, "c");
    rig.append_numbers(&stream, 3);
    rig.commit(&stream);
    drop(stream);
    let rig = harmed(rig, |disk| disk.damage(segment(1), |bytes| bytes.truncate(10)));
    assert_eq!(gaps(&rig), [lost(1, 4)]);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(drain(&rig, &stream, &consumer), [Given::Gap(1, 4, GapReason::Lost)]);
    rig.ack(&consumer, 4);
    rig.append(&stream, b"new");
    rig.commit(&stream);
    assert_eq!(drain(&rig, &stream, &consumer), [Given::Record(4)]);
}

// Seed 4804: the end of a stream that left seqs out stood nowhere, so damage to it passed for a torn end.
#[test]
fn a_stop_in_order_proves_the_end_of_a_stream_that_left_seqs_out() {
    let rig = harmed(left_seqs_out(), |disk| disk.damage(segment(1), |bytes| bytes[4096..].fill(0)));
    assert_eq!(gaps(&rig), [lost(1, 4)]);
    assert_eq!(rig.stream("s").ends().durable, Seq::new(4));
}

// Seeds 489, 29: seqs between a loss and the next record, which no record ever had, were told lost with it, later again by the open.
#[test]
fn seqs_left_out_behind_a_loss_are_not_told_lost() {
    let rig = harmed(left_seqs_out(), |disk| disk.damage(segment(1), |bytes| bytes[4096..].fill(0)));
    let stream = rig.stream("s");
    let new = rig.append(&stream, b"new").get();
    assert!(new > 4, "{new}");
    rig.commit(&stream);
    let consumer = rig.consumer(&stream, "c");
    let expected =
        [Given::Gap(1, 4, GapReason::Lost), Given::Gap(4, new, GapReason::NotDurable), Given::Record(new)];
    assert_eq!(drain(&rig, &stream, &consumer), expected);
    drop((stream, consumer));
    let rig = rig.kill();
    assert_eq!(gaps(&rig), []);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    assert_eq!(drain(&rig, &stream, &consumer), expected);
}

// Seed 536: the record behind seqs that were left out is lost; mended, its segment said the others were lost too.
#[test]
fn a_repair_keeps_apart_what_was_left_out_and_what_is_lost() {
    for first_alone in [false, true] {
        let rig = left_seqs_out();
        let stream = rig.stream("s");
        let first = rig.append(&stream, b"the first of them").get();
        if first_alone {
            rig.commit(&stream);
        }
        rig.append(&stream, b"the second of them");
        rig.commit(&stream);
        drop(stream);
        let rig = harmed(rig, |disk| {
            spoil(disk, &segment(2), b"the first of them");
            let options = RepairOptions::at(Rig::new(Options::default()).now.wall);
            let done = apply_on(Arc::new(disk.clone()), &options).unwrap();
            let told: Vec<_> = done.losses.iter().map(|loss| (loss.from, loss.to)).collect();
            assert_eq!(told, [(first, first + 1)]);
            assert!(plan_on(Arc::new(disk.clone()), &options).unwrap().is_clean(), "nothing is left to do");
        });
        assert_eq!(gaps(&rig), []);
        let stream = rig.stream("s");
        let consumer = rig.consumer(&stream, "c");
        let given = drain(&rig, &stream, &consumer);
        let expected = [
            Given::Gap(4, first, GapReason::NotDurable),
            Given::Gap(first, first + 1, GapReason::Lost),
            Given::Record(first + 1),
        ];
        assert_eq!(given[3..], expected, "first alone in its batch: {first_alone}");
    }
}

// Seed 7638: behind a hole a damaged batch was given up whole, though one record of it is hit.
#[test]
fn what_is_left_of_a_damaged_batch_behind_a_hole_is_kept() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream("s");
    rig.consumer(&stream, "c");
    rig.append_numbers(&stream, 3);
    rig.commit(&stream);
    drop(stream);
    let rig = harmed(rig, |disk| disk.damage(segment(1), |bytes| bytes.truncate(10)));
    let stream = rig.stream("s");
    rig.append(&stream, b"the fourth of them");
    rig.append(&stream, b"the fifth of them");
    rig.commit(&stream);
    let id = stream.log.segments().last().unwrap().id.get();
    drop(stream);
    let rig = harmed(rig, |disk| spoil(disk, &segment(id), b"the fifth of them"));
    assert_eq!(gaps(&rig), [lost(5, 6)]);
    let stream = rig.stream("s");
    let consumer = rig.consumer(&stream, "c");
    let expected = [Given::Gap(1, 4, GapReason::Lost), Given::Record(4), Given::Gap(5, 6, GapReason::Lost)];
    assert_eq!(drain(&rig, &stream, &consumer), expected);
}
