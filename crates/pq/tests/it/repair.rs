//! Repair: what it plans is what it does, what could be read stays, and killed anywhere it is finished by the next one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, Op};
use pq::core::{Core, Seed};
use pq::inspect::{Inspection, StreamCheck};
use pq::repair::{RepairError, RepairOptions, RepairReport, apply_on, plan_on};
use pq::{GapReason, Now, OpenError, Options, Queue, Start, StreamId, WallTime};
use sim_disk::{Fault, Moment, On, SimDisk, Survival, errno};
use wal_store::{ReadBuffers, Want};

const NOW: Now = Now { instant: pq::Instant::ZERO, wall: WallTime::from_nanos(1 << 60) };

/// Records and lost seqs by stream.
type Seen = BTreeMap<String, (Vec<(u64, Vec<u8>)>, Vec<u64>)>;

fn options() -> RepairOptions {
    RepairOptions::at(NOW.wall)
}

fn core(disk: &SimDisk) -> Core {
    Core::open(Arc::new(disk.clone()), Options::default(), Seed::Fixed(9), NOW).unwrap()
}

fn plan(disk: &SimDisk) -> RepairReport {
    plan_on(Arc::new(disk.clone()), &options()).unwrap()
}

fn apply(disk: &SimDisk) -> RepairReport {
    apply_on(Arc::new(disk.clone()), &options()).unwrap()
}

fn copy(disk: &SimDisk) -> SimDisk {
    SimDisk::from_snapshot(&disk.snapshot())
}

/// Two streams of several segments, one with a consumer in the middle; stopped in order.
fn world() -> SimDisk {
    let disk = SimDisk::new();
    let core = core(&disk);
    for name in ["orders", "other"] {
        let stream = core.open_stream(name, None, NOW).unwrap();
        let consumer = core.open_consumer(&stream, "c", Start::Oldest, NOW).unwrap();
        for segment in 0..3_u8 {
            for batch in 0..3_u8 {
                for n in 0..4_u8 {
                    let payload = format!("{name} {segment}.{batch}.{n} {}", "x".repeat(usize::from(n) * 21));
                    stream.log().append(payload.as_bytes(), NOW).unwrap();
                }
                stream.log().commit(NOW, Want::Durable).unwrap();
            }
            stream.log().rotate(NOW).unwrap();
        }
        let delivery = core.next(&stream, &consumer, 100, &mut ReadBuffers::default(), NOW).unwrap().unwrap();
        core.acknowledge(&consumer, &delivery, delivery.next(), None).unwrap();
        core.tick(NOW).unwrap();
    }
    core.close(|| NOW).unwrap();
    disk
}

fn segment(stream: u64, segment: u64) -> String {
    format!("streams/{stream:016x}/{segment:016x}.seg")
}

/// Flips two bits of the payload that holds these characters: no checksum mends it.
fn spoil(disk: &SimDisk, path: &str, payload: &str) {
    let at = disk.read(path).windows(payload.len()).position(|window| window == payload.as_bytes()).unwrap()
        as u64;
    disk.corrupt(path, at, 3);
    disk.corrupt(path, at + 1, 5);
}

fn file_of(disk: &SimDisk, prefix: &str) -> String {
    let mut names: Vec<String> = disk.files().iter().map(|path| path.display().to_string()).collect();
    names.retain(|name| name.starts_with(prefix) && disk.read(name).iter().any(|byte| *byte != 0));
    names.pop().unwrap()
}

/// What a new owner delivers of everything, on a copy.
fn see(disk: &SimDisk) -> Seen {
    let core = core(&copy(disk));
    let mut seen = Seen::new();
    for name in core.names() {
        let stream = core.open_stream(&name, None, NOW).unwrap();
        let consumer = core.open_consumer(&stream, "probe", Start::Oldest, NOW).unwrap();
        let (records, lost) = seen.entry(name).or_default();
        while let Some(delivery) =
            core.next(&stream, &consumer, 1 << 20, &mut ReadBuffers::default(), NOW).unwrap()
        {
            records.extend(delivery.records().map(|record| (record.seq.get(), record.payload.to_vec())));
            let gaps = delivery.gaps().filter(|gap| gap.reason == GapReason::Lost);
            lost.extend(gaps.flat_map(|gap| gap.from.get()..gap.to.get()));
        }
    }
    seen
}

/// Cursors of consumers that are there, by stream and name.
fn cursors(disk: &SimDisk) -> Vec<(String, String, u64)> {
    let seen = Inspection::open_on(Arc::new(copy(disk))).unwrap();
    let of = |stream: pq::inspect::StreamInfo| {
        stream.consumers.into_iter().map(move |c| (stream.name.clone(), c.name, c.cursor))
    };
    seen.streams().unwrap().into_iter().flat_map(of).collect()
}

fn assert_clean(disk: &SimDisk, what: &str) {
    let report = Inspection::open_on(Arc::new(copy(disk))).unwrap().verify().unwrap();
    assert!(!report.is_damaged(), "{what}: {report:?}");
    let core = core(&copy(disk));
    let report = core.report();
    assert!(report.notes.is_empty(), "{what}: {:?}", report.notes);
    for stream in &report.streams {
        assert!(stream.gaps.is_empty() && stream.paused.is_none(), "{what}: {stream:?}");
    }
    let again = plan(disk);
    assert!(again.steps.is_empty() && again.losses.is_empty(), "{what}: {again:?}");
}

/// Damage of every kind that repair knows, at once.
fn damaged() -> SimDisk {
    let disk = world();
    // A bit in a segment header, one in a batch header.
    disk.corrupt(segment(1, 1), 50, 2);
    disk.corrupt(segment(1, 1), 4096 + 20, 1);
    // Two records, in one batch.
    spoil(&disk, &segment(1, 2), "orders 1.1.0");
    spoil(&disk, &segment(1, 2), "orders 1.1.2");
    // A whole header, of an older segment.
    disk.damage(segment(2, 2), |bytes| bytes[..4096].fill(0));
    // The end of one that has a successor.
    disk.damage(segment(2, 1), |bytes| bytes.truncate(bytes.len() - 300));
    // Somebody's copy under a name of ours, and somebody's notes.
    let foreign = disk.read(segment(2, 3));
    disk.create(Path::new(&segment(1, 7))).unwrap();
    disk.damage(segment(1, 7), |bytes| *bytes = foreign);
    disk.create(Path::new("notes.txt")).unwrap();
    disk.sync_dir(Path::new("streams/0000000000000001"), disk::SyncSite::new("test.dir")).unwrap();
    disk.sync_dir(Path::new(""), disk::SyncSite::new("test.dir")).unwrap();
    // A bit of the catalog and one of the cursors, and the queue's own file.
    disk.corrupt(file_of(&disk, "catalog-"), 120, 2);
    disk.corrupt(file_of(&disk, "cursors-"), 150, 2);
    disk.damage("queue.meta", |bytes| bytes.fill(0xEE));
    disk
}

// S24 S27
#[test]
fn a_plan_changes_nothing_and_says_what_is_done() {
    let disk = damaged();
    let before = see(&disk);
    let (files, written) = (disk.files(), disk.bytes_written());
    let plan = plan(&disk);
    assert_eq!((disk.files(), disk.bytes_written()), (files, written), "a plan only looks");
    assert!(!plan.applied && !plan.is_clean());
    let done = apply(&disk);
    assert!(done.applied && !done.is_clean());
    let told = |report: &RepairReport| {
        let step = |step: &pq::repair::RepairStep| {
            (step.path.clone(), step.found.clone(), step.lost.clone(), step.bytes)
        };
        report.steps.iter().map(step).collect::<Vec<_>>()
    };
    assert_eq!(told(&plan), told(&done));
    assert_eq!((&plan.losses, &plan.strays), (&done.losses, &done.strays));
    assert!(plan.strays.contains(&"notes.txt".to_owned()), "{:?}", plan.strays);
    assert_eq!(see(&disk), before, "what could be read stays, seq for seq");
    assert_clean(&disk, "repaired");
    assert!(apply(&disk).is_clean(), "nothing is left to do");
    assert_eq!(disk.read("notes.txt"), b"");
}

// S24: the exact ranges, once, and where the originals are.
#[test]
fn losses_are_told_exactly_and_originals_are_kept() {
    let disk = damaged();
    let originals: Vec<Vec<u8>> =
        [segment(1, 1), segment(1, 2), segment(2, 2), segment(1, 7)].iter().map(|p| disk.read(p)).collect();
    let report = apply(&disk);
    let ranges: Vec<_> =
        report.losses.iter().map(|loss| (loss.stream.as_str(), loss.from, loss.to)).collect();
    let lost = &see(&disk)["other"].1;
    assert_eq!(ranges[..2], [("orders", 17, 18), ("orders", 19, 20)]);
    assert_eq!((ranges[2].1, ranges[2].2), (lost[0], lost[lost.len() - 1] + 1), "{ranges:?} {lost:?}");
    assert_eq!(report.lost_count(), 2 + lost.len() as u64);
    let seen = Inspection::open_on(Arc::new(disk.clone())).unwrap();
    let losses: Vec<_> = seen
        .losses()
        .unwrap()
        .into_iter()
        .map(|l| (l.stream, l.from.get(), l.to.get(), l.found_at))
        .collect();
    assert_eq!(losses[0], ("orders".to_owned(), 17, 18, Some(NOW.wall)));
    let kept: Vec<Vec<u8>> = seen
        .quarantine()
        .unwrap()
        .files
        .iter()
        .map(|f| disk.read(format!("quarantine/{}", f.name)))
        .collect();
    for (index, original) in originals.iter().enumerate() {
        assert!(kept.contains(original), "original {index} is missing in quarantine: {report:#?}");
    }
    let report = seen.quarantine().unwrap();
    let orders = report.files.iter().filter(|file| file.stream.as_deref() == Some("orders")).count();
    assert!(orders >= 3 && report.own_bytes > 0, "{report:?}");
}

/// The calls that change the disk: what comes between two of them is one state.
const CHANGES: [Op; 9] = [
    Op::Create,
    Op::CreateDir,
    Op::Write,
    Op::SyncData,
    Op::SyncDir,
    Op::Link,
    Op::Replace,
    Op::RemoveFile,
    Op::Rename,
];

/// How many calls of each kind a repair makes.
fn changes(start: &SimDisk) -> Vec<(Op, u64)> {
    let disk = copy(start);
    let before = CHANGES.map(|op| disk.count(op));
    apply(&disk);
    CHANGES.into_iter().zip(before).map(|(op, before)| (op, disk.count(op) - before)).collect()
}

// S12 S28: killed before, in and behind every call that changes anything, the power gone or not, and begun again.
#[test]
fn a_repair_that_is_killed_anywhere_loses_nothing_and_is_finished_by_the_next() {
    let start = damaged();
    let before = see(&start);
    let whole = copy(&start);
    apply(&whole);
    let mut states = 0_u64;
    for (op, count) in changes(&start) {
        for call in 1..=count {
            for moment in [Moment::Before, Moment::Middle, Moment::After] {
                let disk = copy(&start);
                disk.plan(Fault::halt(On::Op(op), call, moment));
                if let Ok(report) = apply_on(Arc::new(disk.clone()), &options())
                    && report.blocked.is_empty()
                {
                    // A call that fails by itself never comes to its end.
                    assert!(!disk.is_halted(), "halted {moment:?} {op} {call} of {count}, and told nobody");
                    continue;
                }
                states += 1;
                let survival = match states % 4 {
                    0 => None,
                    1 => Some(Survival::Nothing),
                    2 => Some(Survival::Everything),
                    _ => Some(Survival::Seed(states)),
                };
                let halted =
                    survival.as_ref().map_or_else(|| copy(&disk), |survival| copy(&disk).power_cut(survival));
                let what = format!("halted {moment:?} {op} {call} of {count}, {survival:?}");
                assert_eq!(see(&halted), before, "{what}: an open in between");
                apply(&halted);
                for (stream, id) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)] {
                    let path = segment(stream, id);
                    assert!(halted.read(&path) == whole.read(&path), "{what}: {path}");
                }
                if states.is_multiple_of(16) {
                    assert_eq!(see(&halted), before, "{what}");
                    assert_clean(&halted, &what);
                }
                assert!(halted.stat(Path::new("repair.new")).is_err(), "{what}: a copy is left");
            }
        }
    }
    assert!(states > 100, "{states}");
}

/// Every change fails once: the error is told, nothing is worse, and the next repair is right.
#[test]
fn an_error_at_any_change_is_told_and_the_next_repair_is_right() {
    let start = damaged();
    let before = see(&start);
    for (op, count) in changes(&start) {
        for call in 1..=count {
            let disk = copy(&start);
            disk.plan(Fault::once(On::Op(op), call, if call % 2 == 0 { errno::EIO } else { errno::ENOSPC }));
            let _ = apply_on(Arc::new(disk.clone()), &options());
            disk.clear_faults();
            assert_eq!(see(&disk), before, "{op} {call}");
            apply(&disk);
            assert_eq!(see(&disk), before, "{op} {call}");
        }
    }
}

#[test]
fn beside_an_owner_it_plans_and_refuses_to_apply() {
    let disk = world();
    spoil(&disk, &segment(1, 1), "orders 0.1.2");
    let queue = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    assert_eq!(plan(&disk).losses.len(), 1);
    let refused = apply_on(Arc::new(disk.clone()), &options());
    assert!(matches!(refused, Err(RepairError::InUse { .. })));
    queue.close(crate::DEADLINE).unwrap();
    assert_eq!(apply(&disk).losses.len(), 1);
}

#[test]
fn where_there_is_no_queue_nothing_is_made() {
    let disk = SimDisk::new();
    for apply in [plan_on, apply_on] {
        assert!(matches!(apply(Arc::new(disk.clone()), &options()), Err(RepairError::NotAQueue)));
    }
    assert!(disk.files().is_empty());
}

// S28: without a catalog its streams are nobody's; no new stream takes their place, and asked for by name they are back.
#[test]
fn a_stream_that_nobody_knows_is_adopted_only_by_name() {
    let disk = world();
    let (before, whose) = (see(&disk), cursors(&disk));
    for path in disk
        .files()
        .iter()
        .filter(|path| path.starts_with("catalog-") || path.to_string_lossy().starts_with("catalog-"))
    {
        disk.remove_file(path).unwrap();
    }
    let core = core(&disk);
    assert_eq!(core.names(), Vec::<String>::new());
    let fresh = core.open_stream("fresh", None, NOW).unwrap();
    assert_eq!(
        fresh.log().context().identity.stream,
        StreamId::new(3),
        "the directories of others are not taken"
    );
    drop(fresh);
    core.close(|| NOW).unwrap();
    let report = apply(&disk);
    let dirs: Vec<_> = report
        .orphans
        .iter()
        .map(|orphan| (orphan.id, orphan.segments_count, orphan.refused.clone()))
        .collect();
    assert_eq!(dirs, [(1, 3, None), (2, 3, None)]);
    assert!(!report.is_clean() && !see(&disk).contains_key("orders"), "not asked for, not done");
    let asked = options().adopt(StreamId::new(1), "orders").adopt(StreamId::new(2), "other");
    let planned = plan_on(Arc::new(disk.clone()), &asked).unwrap();
    assert_eq!(
        planned.orphans.iter().filter_map(|o| o.adopted_as.as_deref()).collect::<Vec<_>>(),
        ["orders", "other"]
    );
    assert!(!see(&disk).contains_key("orders"), "a plan");
    let taken = options().adopt(StreamId::new(1), "fresh");
    assert!(matches!(apply_on(Arc::new(disk.clone()), &taken), Err(RepairError::Adopt { .. })));
    let missing = options().adopt(StreamId::new(9), "nine");
    assert!(matches!(apply_on(Arc::new(disk.clone()), &missing), Err(RepairError::Adopt { .. })));
    apply_on(Arc::new(disk.clone()), &asked).unwrap();
    let after = see(&disk);
    assert_eq!((&after["orders"], &after["other"]), (&before["orders"], &before["other"]));
    assert_eq!(cursors(&disk), whose, "consumers are where they were");
    apply_on(Arc::new(disk.clone()), &asked).unwrap();
    assert_clean(&disk, "adopted");
}

// S28: the queue's id stands in every segment's header, too.
#[test]
fn a_queue_of_which_only_segments_are_left_is_itself_again() {
    let disk = world();
    let before = see(&disk);
    for path in disk.files().iter().filter(|path| !path.starts_with("streams")) {
        disk.remove_file(path).unwrap();
    }
    let refused = Core::open(Arc::new(disk.clone()), Options::default(), Seed::Fixed(1), NOW);
    assert!(matches!(refused.map(drop), Err(OpenError::Lost)));
    let asked = options().adopt(StreamId::new(1), "orders").adopt(StreamId::new(2), "other");
    let report = apply_on(Arc::new(disk.clone()), &asked).unwrap();
    assert_eq!(report.steps[0].path, "queue.meta");
    assert_eq!(see(&disk), before);
    assert_clean(&disk, "rebuilt");
}

// S28: any one file gone, cut, emptied or zeroed.
#[test]
fn whatever_file_is_hit_a_repair_leaves_a_clean_queue_with_all_that_could_be_read() {
    let start = world();
    let files: Vec<_> = start.files().into_iter().filter(|path| !path.ends_with("LOCK")).collect();
    for path in &files {
        let len = start.read(path).len();
        for (what, cut) in
            [("gone", None), ("empty", Some(0)), ("cut", Some(len / 2)), ("zeroed", Some(usize::MAX))]
        {
            let disk = copy(&start);
            match cut {
                None => disk.remove_file(path).unwrap(),
                Some(usize::MAX) => disk.damage(path, |bytes| bytes[len / 4..len / 2].fill(0)),
                Some(cut) => disk.damage(path, |bytes| bytes.truncate(cut)),
            }
            let what = format!("{} {what}", path.display());
            let before = see(&disk);
            let report = apply(&disk);
            assert_eq!(see(&disk), before, "{what}");
            let verify = Inspection::open_on(Arc::new(disk.clone())).unwrap().verify().unwrap();
            assert!(!verify.streams.iter().any(StreamCheck::is_damaged), "{what}: {verify:?}");
            // Names stand in the catalog alone: where all of it is lost, somebody has to give them.
            assert_eq!(report.is_damage_left(), report.catalog_missing, "{what}: {report:?}");
            assert_eq!(verify.is_damaged(), report.is_damage_left(), "{what}: {verify:?}");
            let again = apply(&disk);
            assert!(again.steps.is_empty() && again.losses.is_empty(), "{what}: {again:?}");
        }
    }
}

// S16: copies of the cursors: each kind of wrong one has an outcome, and the sound one counts.
#[test]
fn of_several_copies_of_the_cursors_the_sound_one_counts() {
    let start = world();
    let whose = cursors(&start);
    let sound = file_of(&start, "cursors-");
    let bytes = start.read(&sound);
    type Change = fn(&mut Vec<u8>);
    let wrong: [(&str, Change); 4] = [
        ("zero-length", |bytes| bytes.clear()),
        ("all zeros", |bytes| bytes.fill(0)),
        ("foreign", |bytes| bytes[16] ^= 0xFF),
        ("damaged", |bytes| bytes[64..].fill(0xA5)),
    ];
    for (what, change) in wrong {
        let disk = copy(&start);
        let path = "cursors-00000000000000f0";
        disk.create(Path::new(path)).unwrap();
        let mut other = bytes.clone();
        change(&mut other);
        disk.damage(path, |bytes| *bytes = other);
        apply(&disk);
        assert_eq!(cursors(&disk), whose, "{what}");
        let verify = Inspection::open_on(Arc::new(disk.clone())).unwrap().verify().unwrap();
        assert!(!verify.is_damaged(), "{what}: {verify:?}");
    }
}

// S14: an old state of a segment beside newer cursors.
#[test]
fn a_log_that_was_cut_below_its_cursors_goes_on_behind_the_gap() {
    let disk = world();
    disk.damage(segment(1, 3), |bytes| bytes.truncate(4096 + 100));
    let report = apply(&disk);
    let loss = report.losses.iter().find(|loss| loss.stream == "orders").unwrap();
    assert_eq!(loss.to, 37, "the end that the clean stop names");
    assert_clean(&disk, "cut");
    let core = core(&disk);
    let stream = core.open_stream("orders", None, NOW).unwrap();
    assert_eq!(stream.log().append("next", NOW).unwrap().seq().get(), 37);
    stream.log().commit(NOW, Want::Durable).unwrap();
    let lost: u64 = core.losses().iter().map(pq::Loss::count).sum();
    assert_eq!(lost, 37 - loss.from);
}

#[test]
fn a_file_in_quarantine_is_read_by_itself() {
    let disk = world();
    spoil(&disk, &segment(1, 2), "orders 1.1.0");
    apply(&disk);
    let seen = Inspection::open_on(Arc::new(disk.clone())).unwrap();
    let name = seen.quarantine().unwrap().files[0].name.clone();
    let mut reader = seen.read_quarantined(&name).unwrap();
    assert_eq!((reader.stream(), reader.seqs().0.get(), reader.seqs().1.get()), (Some("orders"), 13, 25));
    let (mut seqs, mut lost) = (Vec::new(), Vec::new());
    while let Some(delivery) = reader.next().unwrap() {
        seqs.extend(delivery.records().map(|record| record.seq.get()));
        lost.extend(delivery.gaps().map(|gap| (gap.from.get(), gap.to.get())));
    }
    assert_eq!((seqs.len(), lost), (11, vec![(17, 18)]));
    // Without a header its name and the catalog say whose it is; without either nothing does.
    disk.damage(format!("quarantine/{name}"), |bytes| bytes[..4096].fill(0));
    assert_eq!(seen.read_quarantined(&name).unwrap().stream(), Some("orders"));
    disk.rename(Path::new(&format!("quarantine/{name}")), Path::new("quarantine/x.seg")).unwrap();
    let error = seen.read_quarantined("x.seg").unwrap_err().to_string();
    assert!(error.contains("quarantine/x.seg") && error.contains("no segment"), "{error}");
    for name in ["../queue.meta", "nobody.seg", ""] {
        assert!(seen.read_quarantined(name).is_err(), "{name}");
    }
}

#[test]
fn a_repair_syncs_before_it_replaces() {
    let disk = damaged();
    let (syncs, replaced) = (disk.count(Op::SyncData), disk.count(Op::Replace));
    apply(&disk);
    let replaced = disk.count(Op::Replace) - replaced;
    assert!(replaced > 2 && disk.count(Op::SyncData) - syncs >= replaced);
    // The reserve takes space; what it holds means nothing.
    let left = disk.unsynced().into_iter().filter(|left| !left.to_string().ends_with("reserve"));
    assert_eq!(left.map(|left| left.to_string()).collect::<Vec<_>>(), Vec::<String>::new());
}
