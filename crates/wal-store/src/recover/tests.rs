//! Recovery over files built from the format: fresh, whole and cleanly stopped streams. Beside it: what is torn (`tails`), each row of the
//! table (`rows`), and what is not this stream's (`strangers`).

mod rows;
mod strangers;
mod tails;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use disk::{Disk, Op};
use sim_disk::{Fault, On, SimDisk, Survival, errno};
use wal_format::{
    BatchFlags, Incarnation, Predecessor, SEGMENT_HEADER_BYTES, SegmentId, Seq, StreamIdentity,
};

use super::*;
use crate::build::{IDENTITY, Seen, Segment, context, dir, new_disk, payload, put_file, read_all};
use crate::{GapReason, QUARANTINE_DIR, segment_id, segment_path};

/// Recovers as a new process does, checks that doing it again says the same, and reads everything.
fn recovered(disk: &SimDisk, evidence: &Evidence) -> (Recovery, Seen) {
    let recovery = recover(&context(disk), evidence).unwrap();
    // What is recovered is saved as durable some time.
    let saved = Evidence { durable_end: Some(recovery.next_seq), ..evidence.clone() };
    for (survival, evidence) in
        [(Survival::Nothing, evidence), (Survival::Everything, evidence), (Survival::Everything, &saved)]
    {
        let disk = SimDisk::from_snapshot(&disk.snapshot()).power_cut(&survival);
        let again = recover(&context(&disk), evidence).unwrap();
        assert_eq!(again.segments, recovery.segments, "recovery is a fixpoint");
        assert_eq!(
            (again.next_seq, &again.gaps, &again.tags),
            (recovery.next_seq, &recovery.gaps, &recovery.tags)
        );
        assert_eq!(again.predecessor, recovery.predecessor);
    }
    let from = evidence.floor.map_or(1, |(seq, _)| seq.get());
    let seen = read_all(&context(disk), &recovery.segments, from, recovery.next_seq.get(), 1 << 20);
    assert!(seen.records.iter().all(|(seq, bytes)| (0..3).any(|life| *bytes == payload(*seq, life))));
    (recovery, seen)
}

fn put(segments: &[&Segment]) -> SimDisk {
    let disk = new_disk();
    segments.iter().for_each(|segment| segment.put(&disk));
    disk
}

fn evidence(floor: u64, segment: u64, end: u64) -> Evidence {
    let floor = Some((Seq::new(floor), SegmentId::new(segment)));
    Evidence { floor, durable_end: Some(Seq::new(end)), ..Evidence::default() }
}

fn none() -> Evidence {
    Evidence::default()
}

fn gaps(recovery: &Recovery) -> Vec<(u64, u64)> {
    recovery.gaps.iter().map(|gap| (gap.from.get(), gap.to.get())).collect()
}

fn rows(recovery: &Recovery) -> Vec<Row> {
    recovery.report.rows.iter().map(|(row, _)| *row).collect()
}

fn list(disk: &SimDisk, dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let listed = disk.list(dir, &mut |entry| {
        names.push(entry.name.to_string_lossy().into_owned());
        ControlFlow::Continue(())
    });
    names.sort();
    listed.map_or(Vec::new(), |()| names)
}

fn names(disk: &SimDisk) -> Vec<u64> {
    list(disk, &dir()).iter().filter_map(|name| segment_id(name.as_ref())).map(SegmentId::get).collect()
}

fn quarantined(disk: &SimDisk) -> Vec<String> {
    list(disk, Path::new(QUARANTINE_DIR))
}

#[test]
fn an_empty_directory_is_a_fresh_stream_and_a_floor_is_kept_without_any_file() {
    let (recovery, _) = recovered(&new_disk(), &none());
    assert_eq!(
        (recovery.next_seq, recovery.next_segment, recovery.prev_seq),
        (Seq::FIRST, SegmentId::FIRST, 0)
    );
    assert_eq!((recovery.predecessor, recovery.gaps.len()), (None, 0));
    let (recovery, _) = recovered(&new_disk(), &evidence(40, 6, 40));
    assert_eq!((recovery.next_seq.get(), recovery.next_segment.get(), recovery.prev_seq), (40, 6, 39));
}

// S22: a stream that shows what is only written leaves seqs out after a crash, and the next crash tears the batch that would say so.
#[test]
fn seqs_left_out_in_front_of_a_torn_first_batch_are_not_lost() {
    let one = Segment::new(1, 1, None).batch(3);
    let whole = Segment::new(2, one.next, Some(&one)).skip_to(100).batch(2);
    for len in [SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + 30, whole.bytes.len() - 1] {
        let mut two = Segment::new(2, 100, Some(&one)).batch(2).cut(len);
        two.bytes[SEGMENT_HEADER_BYTES..].fill(0);
        let disk = put(&[&one, &two]);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!((recovery.next_seq.get(), gaps(&recovery)), (4, vec![]), "{len} bytes");
        assert_eq!((seen.seqs(), seen.missing()), (vec![1, 2, 3], vec![]));
        // The next run names what is left of it, and leaves seqs out once more.
        let mut three = Segment::new(3, 200, Some(&two.cut(SEGMENT_HEADER_BYTES)));
        three.prev = 3;
        three.batch(2).put(&disk);
        let (recovery, seen) = recovered(&disk, &none());
        assert_eq!((recovery.next_seq.get(), gaps(&recovery)), (202, vec![]), "{len} bytes");
        assert_eq!(seen.seqs(), [1, 2, 3, 200, 201]);
        assert!(seen.gaps.iter().all(|gap| gap.reason == GapReason::NotDurable), "{:?}", seen.gaps);
    }
}

#[test]
fn an_undamaged_stream_is_kept_whole_and_only_its_newest_segment_is_read() {
    let one = Segment::new(1, 1, None).batch(3).padded(2);
    let two = Segment::new(2, one.next, Some(&one)).batch(4);
    let three = Segment::new(3, two.next, Some(&two)).tag("p", "x").batch(2).batch(1);
    let disk = put(&[&one, &two, &three]);
    let (recovery, seen) = recovered(&disk, &none());
    assert_eq!(seen.seqs(), (1..13).collect::<Vec<_>>());
    assert_eq!(rows(&recovery), [Row::R1]);
    assert_eq!((recovery.next_seq.get(), recovery.next_segment.get()), (13, 4));
    let named = Predecessor { id: three.id, end_offset: three.end_offset() };
    assert_eq!(recovery.predecessor, Some(named));
    assert_eq!((recovery.report.scanned_count, recovery.report.dead_bytes), (1, 0));
    let ends: Vec<_> =
        recovery.segments.iter().map(|s| (s.first_seq.get(), s.end_seq.get(), s.end_offset)).collect();
    assert_eq!(ends, [(1, 6, one.end_offset()), (6, 10, two.end_offset()), (10, 13, three.end_offset())]);
    assert_eq!(disk.count(Op::Write), 3, "recovery writes nothing");
}

#[test]
fn opening_reads_heads_and_the_newest_segment_whatever_the_backlog() {
    let mut segments = vec![Segment::new(1, 1, None).batch(200)];
    for id in 2..=30 {
        let last = &segments[id - 2];
        segments.push(Segment::new(id as u64, last.next, Some(last)).batch(200));
    }
    let disk = put(&segments.iter().collect::<Vec<_>>());
    let newest = segments[29].end_offset();
    let before = disk.bytes_read();
    let recovery = recover(&context(&disk), &none()).unwrap();
    let read = disk.bytes_read() - before;
    assert_eq!((recovery.next_seq.get(), recovery.report.scanned_count), (6001, 1));
    assert!(read <= 30 * 5000 + newest, "{read} bytes read to open {} bytes", newest * 30);
    assert_eq!(disk.count_at(collect::FILE_SITE), 1, "only the newest can be unsynced");
}

#[test]
fn a_clean_stop_is_believed_only_while_its_segment_is_the_newest() {
    let one = Segment::new(1, 1, None).batch(3);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let disk = put(&[&one, &two]);
    let stopped = |segment| Evidence { clean: Some(SegmentId::new(segment)), ..evidence(1, 1, 6) };
    let clean = recover(&context(&disk), &stopped(2)).unwrap();
    assert!(clean.report.clean && clean.shown_unsynced_max == 0);
    assert_eq!(disk.count_at(collect::FILE_SITE), 0);
    let unclean = recover(&context(&disk), &stopped(1)).unwrap();
    assert!(!unclean.report.clean && unclean.shown_unsynced_max > 0);
    assert_eq!(disk.count_at(collect::FILE_SITE), 1, "the older one is vouched for by its successor");
    assert_eq!(clean.segments, unclean.segments);
}

#[test]
fn the_last_tag_of_every_producer_is_found_and_void_ones_are_not() {
    let one = Segment::new(1, 1, None).tag("a", "1").batch(1).tag("b", "1").batch(1).tag("a", "2").batch(1);
    let two = Segment::new(2, 4, Some(&one)).tag("a", "2").tag("b", "1").batch(1).tag("b", "2").batch(1);
    let torn = two.clone().zero(two.batches[1].start + 70..two.batches[1].end);
    let empty = Segment::new(3, 5, Some(&two.clone().cut(two.batches[0].end)));
    let tags = |segments: &[&Segment], evidence: &Evidence| -> BTreeMap<String, String> {
        let (recovery, _) = recovered(&put(segments), evidence);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        recovery.tags.iter().map(|tag| (text(&tag.producer), text(&tag.value))).collect()
    };
    let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    assert_eq!(tags(&[&one], &none()), of(&[("a", "2"), ("b", "1")]));
    assert_eq!(tags(&[&one, &two], &none()), of(&[("a", "2"), ("b", "2")]));
    assert_eq!(tags(&[&one, &torn], &none()), of(&[("a", "2"), ("b", "1")]));
    assert_eq!(tags(&[&one, &two, &empty], &none()), of(&[("a", "2"), ("b", "1")]), "the newest is empty");
    // Behind a header alone, the link of a torn first batch, the file in front of it is read, and its tags are no longer the last.
    let link = Segment::new(3, 5, Some(&two));
    let four = Segment::new(4, 5, Some(&link)).tag("a", "2").tag("b", "2").batch(1).tag("b", "3").batch(1);
    let five = Segment::new(5, 7, Some(&four)).tag("a", "2").tag("b", "3").batch(1);
    let five = five.clone().zero(five.frames(0));
    assert_eq!(tags(&[&two, &link, &four, &five], &none()), of(&[("a", "2"), ("b", "3")]));
    let saved = OwnedTag { producer: b"c".to_vec(), value: b"9".to_vec(), at: Seq::FIRST };
    let floor = Evidence { floor_tags: vec![saved], ..none() };
    assert_eq!(tags(&[&two], &floor), of(&[("a", "2"), ("b", "2"), ("c", "9")]));
}
