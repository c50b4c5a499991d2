//! Writing again: whatever the damage, what could be read is read as before, after every single step, and nothing is left to do.

use std::path::Path;

use disk::Disk;
use proptest::prelude::*;
use sim_disk::SimDisk;

use super::*;
use crate::build::{Seen, Segment, context, dir, new_disk, read_all};
use crate::{FindingKind, ScanDepth, recover, scan_read_only};

fn put(segments: &[Segment]) -> SimDisk {
    let disk = new_disk();
    segments.iter().for_each(|segment| segment.put(&disk));
    disk
}

/// Small and larger batches, padding, tags, skipped seqs, dead bytes behind an end.
fn line() -> Vec<Segment> {
    let one = Segment::new(1, 1, None).batch(3).padded(2).tag("p", "1").batch(4);
    let mut two = Segment::new(2, one.next, Some(&one)).batch(5).skip_to(20).batch(2).batch(1);
    let three = Segment::new(3, two.next, Some(&two)).tag("p", "3").batch(3).padded(1).batch(2);
    // Voided batches that look valid: they must stay dead wherever the end moves to.
    two = two.batch(1).batch(2);
    let four = Segment::new(5, three.next, Some(&three)).tag("p", "3").batch(3).batch(6);
    vec![one, two, three, four]
}

fn at_end(segments: &[Segment]) -> Evidence {
    Evidence { durable_end: segments.last().map(|last| Seq::new(last.next)), ..Evidence::default() }
}

/// What a reader sees after a recovery, on a copy of the disk.
fn see(disk: &SimDisk, evidence: &Evidence) -> Seen {
    let disk = SimDisk::from_snapshot(&disk.snapshot());
    let recovery = recover(&context(&disk), evidence).unwrap();
    read_all(&context(&disk), &recovery.segments, 1, recovery.next_seq.get(), 1 << 20)
}

fn plan(disk: &SimDisk, evidence: &Evidence) -> RewritePlan {
    plan_rewrites(&context(disk), evidence, RewriteAccess::Owner, 1 << 16).unwrap()
}

/// Does one step of a plan, as a repair does.
fn step(disk: &SimDisk, rewrite: &Rewrite) {
    let copy = Path::new("copy");
    let file = disk.create(copy).unwrap();
    rewrite.write(&context(disk), &*file).unwrap();
    assert_eq!(file.len().unwrap(), rewrite.bytes_after);
    disk.replace(copy, &segment_path(&dir(), rewrite.segment)).unwrap();
}

fn same(before: &Seen, after: &Seen, what: &str) {
    assert_eq!(before.seqs(), after.seqs(), "{what}");
    assert_eq!(before.records, after.records, "{what}");
    assert_eq!(before.missing(), after.missing(), "{what}");
    // Not the other way round: what is lost is remembered elsewhere before anything is mended.
    let told = lost(before);
    assert!(
        lost(after).iter().all(|seq| told.contains(seq)),
        "{what}: {:?}, not {:?}",
        after.gaps,
        before.gaps
    );
}

/// What a reader is told lost.
fn lost(seen: &Seen) -> Vec<u64> {
    let lost = seen.gaps.iter().filter(|gap| gap.reason == GapReason::Lost);
    lost.flat_map(|gap| gap.from.get()..gap.to.get()).collect()
}

/// Mends, looking after each step; the evidence as it is saved by then.
fn mend(disk: &SimDisk, evidence: &Evidence, what: &str) -> (Seen, Evidence, usize) {
    // A repair recovers first: void files are gone before anything is planned.
    recover(&context(disk), evidence).unwrap();
    let before = see(disk, evidence);
    let first = plan(disk, evidence);
    let planned: Vec<u64> = first.gaps.iter().flat_map(|gap| gap.from.get()..gap.to.get()).collect();
    assert_eq!(planned, lost(&before), "{what}");
    assert_eq!(first.record_count, before.records.len() as u64, "{what}");
    let saved = first.durable_end.map(|end| end.end).max(evidence.durable_end);
    let evidence = Evidence { durable_end: saved, ..evidence.clone() };
    same(&before, &see(disk, &evidence), what);
    for (index, rewrite) in first.rewrites.iter().enumerate() {
        step(disk, rewrite);
        let what = format!("{what}, after step {index}: {:?} of {}", rewrite.kind, rewrite.segment);
        same(&before, &see(disk, &evidence), &what);
    }
    let again = plan(disk, &evidence);
    let scan = scan_read_only(&context(disk), &evidence, ScanDepth::EveryByte).unwrap();
    let is_left = |finding: &Finding| again.left.iter().any(|(segment, _)| *segment == finding.segment);
    let findings: Vec<_> = scan.findings.iter().filter(|finding| !is_left(finding)).collect();
    assert!(findings.is_empty(), "{what}: {findings:?}");
    assert!(again.rewrites.is_empty(), "{what}: {:?}", again.rewrites);
    (before, evidence, first.rewrites.len())
}

/// A repair that is killed behind each step and begun anew ends with the same bytes.
fn resumes(disk: &SimDisk, evidence: &Evidence, what: &str) {
    let whole = SimDisk::from_snapshot(&disk.snapshot());
    let (_, saved, count) = mend(&whole, evidence, what);
    for done in 0..count {
        let disk = SimDisk::from_snapshot(&disk.snapshot());
        recover(&context(&disk), evidence).unwrap();
        plan(&disk, evidence).rewrites.iter().take(done).for_each(|rewrite| step(&disk, rewrite));
        mend(&disk, &saved, &format!("{what}, killed behind {done} steps"));
        for path in disk.files() {
            assert!(
                disk.read(&path) == whole.read(&path),
                "{what}, killed behind {done}: {}",
                path.display()
            );
        }
    }
}

#[test]
fn a_sound_stream_has_no_plan() {
    let segments = line();
    let disk = put(&segments);
    for evidence in [Evidence::default(), at_end(&segments)] {
        let plan = plan(&disk, &evidence);
        assert!(plan.rewrites.is_empty() && plan.gaps.is_empty(), "{plan:?}");
        assert_eq!(plan.durable_end.unwrap().end, Seq::new(segments[3].next));
    }
}

// S24: a bit that costs nothing is put right, one in a payload costs its record and leaves a sound file.
#[test]
fn every_flipped_bit_is_mended_and_what_is_read_stays() {
    let segments = line();
    let evidence = at_end(&segments);
    let mut grown = 0;
    for segment in &segments {
        let whole = see(&put(&segments), &evidence).records.len();
        for bit in (0..segment.bytes.len() * 8).filter(|bit| *bit < 200 || bit % 113 == 0) {
            let disk = put(&segments);
            let path = segment_path(&dir(), segment.id);
            disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
            let what = format!("segment {} bit {bit}", segment.id);
            let (seen, ..) = mend(&disk, &evidence, &what);
            assert!(seen.records.len() + 1 >= whole, "{what}");
            grown += usize::from(disk.read(&path).len() > segment.bytes.len());
        }
    }
    assert!(grown > 0, "some batch was split and grew");
}

// S24
#[test]
fn every_truncation_and_every_zeroed_block_is_mended_and_what_is_read_stays() {
    let segments = line();
    for (index, segment) in segments.iter().enumerate() {
        for (start, evidence) in
            (0..segment.bytes.len()).step_by(61).zip([Evidence::default(), at_end(&segments)].iter().cycle())
        {
            let path = segment_path(&dir(), segment.id);
            let disk = put(&segments);
            disk.damage(&path, |bytes| bytes.truncate(start));
            mend(&disk, evidence, &format!("segment {} cut at {start}, evidence {index}", segment.id));
            for block in [64, 512, 4096] {
                let disk = put(&segments);
                let end = (start + block).min(segment.bytes.len());
                disk.damage(&path, |bytes| bytes[start..end].fill(0));
                mend(&disk, evidence, &format!("segment {} zeros {start}..{end}", segment.id));
            }
        }
    }
}

#[test]
fn a_header_of_which_nothing_is_left_is_made_of_what_is_proven() {
    let segments = line();
    for (index, segment) in segments.iter().enumerate() {
        let disk = put(&segments);
        let path = segment_path(&dir(), segment.id);
        disk.damage(&path, |bytes| bytes[..4096].fill(0xAA));
        let (seen, ..) = mend(&disk, &at_end(&segments), "no header");
        assert_eq!(seen.records.len(), see(&put(&segments), &at_end(&segments)).records.len());
        let bytes = disk.read(&path);
        let (made, was) =
            (SegmentHeader::decode(&bytes).unwrap(), SegmentHeader::decode(&segment.bytes).unwrap());
        assert_eq!((made.identity, made.segment, made.first_seq), (was.identity, was.segment, was.first_seq));
        let skips = index > 0 && made.predecessor != was.predecessor;
        assert!(!skips, "{:?} was {:?}", made.predecessor, was.predecessor);
        assert_eq!(made.unsynced_bytes_max, was.unsynced_bytes_max);
    }
}

// S26: bytes behind a segment's end stay dead when its end moves into them.
#[test]
fn dead_batches_do_not_come_back_when_an_end_moves() {
    // One batch of many small records: losing some of them makes many batches, each with a header of its own.
    let small =
        |range: std::ops::Range<u64>| range.map(|n| vec![u8::try_from(n).unwrap(); 3]).collect::<Vec<_>>();
    let one = Segment::new(1, 1, None).batch_of(&small(1..30), wal_format::BatchFlags::NONE);
    let two = Segment::new(2, one.next, Some(&one)).batch(3);
    let ghost = one.clone().batch_of(&small(30..33), wal_format::BatchFlags::NONE);
    let mut ghost = ghost.clone();
    let start = one.batches[0].start + 64;
    for record in [3, 9, 15, 21] {
        ghost.bytes[start + record * 19 + 17] ^= 0x55;
        ghost.bytes[start + record * 19 + 18] ^= 0x55;
    }
    let segments = [ghost, two];
    let disk = put(&segments);
    let evidence = at_end(&segments);
    let kinds: Vec<_> = plan(&disk, &evidence).rewrites.iter().map(|r| (r.kind, r.segment.get())).collect();
    assert_eq!(kinds, [(RewriteKind::Cut, 1), (RewriteKind::Follow, 2), (RewriteKind::Mend, 1)]);
    resumes(&disk, &evidence, "ghost");
    let (seen, ..) = mend(&disk, &evidence, "ghost");
    assert_eq!(seen.missing(), [4, 10, 16, 22]);
    assert_eq!(seen.seqs().last(), Some(&32));
    assert!(disk.read(segment_path(&dir(), SegmentId::new(1))).len() as u64 > one.end_offset());
}

#[test]
fn tags_stay_with_their_batches() {
    let segments = line();
    let disk = put(&segments);
    // The record behind the tag, in the batch that alone has it.
    let frames = segments[3].frames(0);
    disk.corrupt(segment_path(&dir(), segments[3].id), frames.end as u64 - 1, 0);
    disk.corrupt(segment_path(&dir(), segments[3].id), frames.end as u64 - 1, 1);
    let tags = |disk: &SimDisk| recover(&context(disk), &at_end(&segments)).unwrap().tags;
    let before = tags(&put(&segments));
    assert_eq!(before.len(), 1);
    mend(&disk, &at_end(&segments), "tags");
    assert_eq!(tags(&disk), before);
}

/// The first batch of a file repeats all tags; a copy without it must not pass for a file that does.
#[test]
fn tags_outlive_the_batch_that_repeats_them() {
    let tags = |disk: &SimDisk, evidence: &Evidence| -> Vec<_> {
        let tags = recover(&context(disk), evidence).unwrap().tags;
        tags.into_iter().map(|tag| (tag.producer, tag.value)).collect()
    };
    let is_kept = |segments: &[Segment], what: &str| {
        let (disk, evidence) = (put(segments), at_end(segments));
        let before = tags(&disk, &evidence);
        assert_eq!(before.len(), 1, "{what}");
        mend(&disk, &evidence, what);
        assert_eq!(tags(&disk, &evidence), before, "{what}");
    };
    let mut lost = line();
    lost[3] = lost[3].clone().zero(lost[3].batches[0].clone());
    is_kept(&lost, "lost with its batch");
    let one = Segment::new(1, 1, None).batch(3);
    let moved = Segment::new(2, 3, Some(&one)).tag("p", "1").batch(1).batch(1).zero(0..4096);
    is_kept(&[one, moved], "in a batch that is kept elsewhere");
}

#[test]
fn what_is_said_is_what_is_found() {
    let segments = line();
    let disk = put(&segments);
    let path = segment_path(&dir(), segments[0].id);
    disk.corrupt(&path, segments[0].frames(0).start as u64 + 20, 3);
    let plan = plan(&disk, &at_end(&segments));
    let [mended] = &plan.rewrites[..] else {
        let kinds: Vec<_> = plan.rewrites.iter().map(|r| (r.kind, r.segment.get())).collect();
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        return;
    };
    assert_eq!(mended.findings[0].kind, FindingKind::Frames);
}

// Behind a batch that is lost, one whose header has to be mended is found by walking to it.
#[test]
fn two_damaged_headers_with_a_sound_batch_between_are_mended() {
    let segments = line();
    let disk = put(&segments);
    disk.damage(segment_path(&dir(), segments[1].id), |bytes| {
        apply(bytes, &Damage::Zeros(1, 3624, 473));
        apply(bytes, &Damage::Bit(1, 37552));
    });
    let (seen, ..) = mend(&disk, &Evidence::default(), "two headers");
    assert!(seen.records.contains_key(&22), "{:?}", seen.seqs());
    resumes(&disk, &Evidence::default(), "two headers");
}

// A batch of which no record is left is alone in saying that the seqs in front of it were never to be stored.
#[test]
fn what_was_never_stored_is_not_told_lost_once_the_batch_that_says_so_is_lost() {
    for (index, (batches, follows)) in [(1, true), (2, true), (1, false)].into_iter().enumerate() {
        let one = Segment::new(1, 1, None).batch(4);
        let mut two = Segment::new(2, 20, Some(&one));
        two.prev = one.prev;
        two = (0..batches).fold(two, |two, _| two.batch(2));
        let three = Segment::new(3, two.next, Some(&two)).batch(3);
        let segments = if follows { vec![one, two, three] } else { vec![one, two] };
        let evidence = at_end(&segments);
        let disk = put(&segments);
        for batch in 0..batches {
            let frames = segments[1].frames(batch);
            disk.damage(segment_path(&dir(), segments[1].id), |bytes| bytes[frames].fill(0xFF));
        }
        let what = format!("case {index}");
        let (before, saved, _) = mend(&disk, &evidence, &what);
        assert_eq!(lost(&before).first(), Some(&20), "{what}");
        let plan = plan(&disk, &saved);
        assert_eq!(plan.left.iter().map(|(id, _)| id.get()).collect::<Vec<_>>(), [2], "{what}");
        assert!(!plan.left[0].1.is_empty(), "what is damaged in it is told, {what}");
        resumes(&disk, &evidence, &what);
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Bit(usize, usize),
    Zeros(usize, usize, usize),
    Junk(usize, usize, u8),
    Cut(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (0..4_usize, 0..80_000_usize).prop_map(|(file, bit)| Damage::Bit(file, bit)),
        2 => (0..4_usize, 0..9_000_usize, 1..600_usize).prop_map(|(file, at, len)| Damage::Zeros(file, at, len)),
        2 => (0..4_usize, 4096..9_000_usize, any::<u8>()).prop_map(|(file, at, byte)| Damage::Junk(file, at, byte)),
        1 => (0..4_usize, 0..9_000_usize).prop_map(|(file, at)| Damage::Cut(file, at)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let len = bytes.len();
    match *damage {
        Damage::Bit(_, bit) if bit / 8 < len => bytes[bit / 8] ^= 1 << (bit % 8),
        Damage::Zeros(_, at, count) if at < len => bytes[at..(at + count).min(len)].fill(0),
        Damage::Junk(_, at, byte) if at < len => bytes[at..(at + 40).min(len)].fill(byte),
        Damage::Cut(_, at) => bytes.truncate(at),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_mended_wherever_the_repair_is_killed(
        damages in proptest::collection::vec(damage(), 1..6),
        knows_end in any::<bool>(),
    ) {
        let segments = line();
        let disk = put(&segments);
        for damage in &damages {
            let (Damage::Bit(file, _) | Damage::Zeros(file, ..) | Damage::Junk(file, ..) | Damage::Cut(file, _)) = damage;
            disk.damage(segment_path(&dir(), segments[*file].id), |bytes| apply(bytes, damage));
        }
        let evidence = if knows_end { at_end(&segments) } else { Evidence::default() };
        resumes(&disk, &evidence, &format!("{damages:?}"));
    }
}
