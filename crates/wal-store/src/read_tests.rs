//! Reading, over files built from the format.

use disk::Op;
use sim_disk::{Fault, On, SimDisk};
use wal_format::{BatchFlags, SegmentId, Seq};

use crate::build::{Segment, context, dir, new_disk, payload, read_all, read_with};
use crate::read::{GapReason, Position, ReadBuffers, ReadError, ReadFrom, ReadLimits, ReadMethod};
use crate::segments::{SegmentInfo, SegmentList, SegmentState, segment_path};
use crate::{Chunk, Gap, Item, StoreContext};

fn info(segment: &Segment, first: u64) -> SegmentInfo {
    SegmentInfo {
        id: segment.id,
        first_seq: Seq::new(first),
        end_seq: Seq::new(segment.next),
        end_offset: segment.end_offset(),
        state: SegmentState::Rotated,
    }
}

fn put(segments: &[Segment]) -> (SimDisk, SegmentList) {
    let disk = new_disk();
    segments.iter().for_each(|segment| segment.put(&disk));
    let mut first = 1;
    let list = segments.iter().map(|segment| {
        let info = info(segment, first);
        first = segment.next;
        info
    });
    (disk, list.collect())
}

fn three() -> Vec<Segment> {
    let one = Segment::new(1, 1, None).batch(3).padded(2).batch(1).batch(40);
    let two = Segment::new(2, one.next, Some(&one)).batch(1).batch(1);
    let three = Segment::new(5, two.next, Some(&two)).padded(7).padded(1).batch(2);
    vec![one, two, three]
}

#[test]
fn everything_comes_back_from_every_seq_at_every_size_and_by_both_methods() {
    let (disk, list) = put(&three());
    let ctx = context(&disk);
    let end = list.last().unwrap().end_seq.get();
    for method in [ReadMethod::Read, ReadMethod::Map] {
        for bytes_max in [0, 1, 100, 1000, 1 << 20] {
            let mut buffers = ReadBuffers::new(method);
            for from in 1..=end {
                let seen = read_with(&ctx, &list, from, end, bytes_max, &mut buffers);
                assert_eq!(seen.seqs(), (from..end).collect::<Vec<_>>());
                assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)));
                assert!(seen.gaps.is_empty());
            }
        }
    }
}

#[test]
fn nothing_at_or_above_the_bound_is_returned() {
    let (disk, list) = put(&three());
    let ctx = context(&disk);
    let end = list.last().unwrap().end_seq.get();
    for bound in 1..=end {
        let seen = read_all(&ctx, &list, 1, bound, 1 << 20);
        assert_eq!(seen.seqs(), (1..bound).collect::<Vec<_>>());
        assert!(seen.gaps.is_empty());
    }
}

#[test]
fn a_hint_is_checked_and_a_wrong_one_costs_only_a_search() {
    let segments = three();
    let (disk, list) = put(&segments);
    let ctx = context(&disk);
    let mut buffers = ReadBuffers::default();
    let seq = Seq::new(5);
    let offsets = (0..segments[0].end_offset() + 100)
        .step_by(7)
        .chain(segments[0].batches.iter().map(|b| b.start as u64));
    for offset in offsets {
        for segment in [1, 2] {
            let hint = Some(Position { segment: SegmentId::new(segment), offset });
            let chunk = list
                .read(&ctx, ReadFrom { seq, hint }, Seq::new(7), ReadLimits::default(), &mut buffers)
                .unwrap();
            let seqs: Vec<_> = chunk.records().map(|record| record.seq.get()).collect();
            assert_eq!(seqs, [5, 6], "hint at {offset}");
        }
    }
}

#[test]
fn a_large_segment_is_read_with_one_read_a_fill_and_the_memory_comes_back() {
    let mut segment = Segment::new(1, 1, None);
    for _ in 0..300 {
        segment = segment.batch_of(&vec![vec![9; 240]; 50], BatchFlags::NONE);
    }
    let (disk, list) = put(&[segment]);
    let ctx = context(&disk);
    let mut buffers = ReadBuffers::default();
    let before = disk.count(Op::Read);
    let seen = read_with(&ctx, &list, 1, 15_001, 1 << 20, &mut buffers);
    assert_eq!(seen.records.len(), 15_000);
    let fills = disk.count(Op::Read) - before;
    assert!(fills <= 5, "{fills} reads of a MiB each for 4 MiB");
    assert_eq!(disk.count(Op::Open), 1);
    assert_eq!(buffers.idle_bytes(), 1 << 20, "one block, reused");
    // A search by headers hops; it does not read the segment.
    let before = disk.bytes_read();
    let chunk = list
        .read(
            &ctx,
            ReadFrom { seq: Seq::new(14_990), hint: None },
            Seq::new(15_001),
            ReadLimits { bytes_max: 1 },
            &mut buffers,
        )
        .unwrap();
    assert_eq!(chunk.record_count(), 11);
    assert!(disk.bytes_read() - before < 4 << 20);
}

#[test]
fn a_batch_longer_than_the_limit_is_read_whole_with_one_more_read() {
    let big = vec![vec![3u8; 200_000]; 4];
    let (disk, list) = put(&[Segment::new(1, 1, None).batch(1).batch_of(&big, BatchFlags::PADDED).batch(1)]);
    let seen = read_all(&context(&disk), &list, 1, 7, 1 << 16);
    assert_eq!(seen.seqs(), [1, 2, 3, 4, 5, 6]);
    assert!(disk.count(Op::Read) <= 8);
}

#[test]
fn skipped_seqs_are_a_gap_that_says_not_durable() {
    let one = Segment::new(1, 1, None).batch(2).skip_to(6).batch(2);
    let two = Segment::new(2, one.next, Some(&one)).skip_to(20).batch(1);
    let disk = new_disk();
    one.put(&disk);
    two.put(&disk);
    let list =
        [info(&one, 1), SegmentInfo { first_seq: Seq::new(20), ..info(&two, 20) }].into_iter().collect();
    let seen = read_all(&context(&disk), &list, 1, 21, 1 << 20);
    assert_eq!(seen.seqs(), [1, 2, 6, 7, 20]);
    let gaps: Vec<_> = seen.gaps.iter().map(|gap| (gap.from.get(), gap.to.get(), gap.reason)).collect();
    assert_eq!(gaps, [(3, 6, GapReason::NotDurable), (8, 20, GapReason::NotDurable)]);
}

#[test]
fn retired_seqs_are_no_loss_and_missing_ones_are() {
    let (disk, mut list) = put(&three());
    list.remove(SegmentId::new(1));
    let first = list.first().unwrap().first_seq.get();
    let reasons = |list: &SegmentList| {
        let seen = read_all(&context(&disk), list, 1, first + 1, 1 << 20);
        seen.gaps.iter().map(|gap| (gap.from.get(), gap.to.get(), gap.reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&list), [(1, first, GapReason::Lost)]);
    list.set_retired_below(Seq::new(10));
    assert_eq!(reasons(&list), [(1, 10, GapReason::Retired), (10, first, GapReason::Lost)]);
}

/// S24, for readers: every bit of an older segment.
#[test]
fn one_flipped_bit_costs_one_record_at_most_and_nothing_outside_a_payload() {
    let one = Segment::new(1, 1, None).tag("p", "v").batch(3).padded(2).batch(1);
    let two = Segment::new(2, one.next, Some(&one)).batch(2);
    let (disk, list) = put(&[one.clone(), two]);
    let path = segment_path(&dir(), one.id);
    let payloads: Vec<(u64, std::ops::Range<usize>)> = (1..=6)
        .map(|seq| {
            let bytes = payload(seq, 0);
            let at = one.bytes.windows(bytes.len()).position(|window| window == bytes).unwrap();
            (seq, at..at + bytes.len())
        })
        .collect();
    // The segment header is recovery's; readers do not look at it.
    for bit in 4096 * 8..one.bytes.len() * 8 {
        if one.bytes[bit / 8 - 64..bit / 8 + 1] == [0; 65] && bit % 509 > 0 {
            continue; // the zeros that pad a batch are all the same
        }
        disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
        let seen = read_all(&context(&disk), &list, 1, 9, 1 << 20);
        let hit = payloads.iter().find(|(_, range)| range.contains(&(bit / 8))).map(|(seq, _)| *seq);
        assert_eq!(seen.missing(), hit.into_iter().collect::<Vec<_>>(), "byte {}", bit / 8);
        assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)));
        assert_eq!(seen.records.len() + seen.missing().len(), 8);
        disk.corrupt(&path, bit as u64 / 8, bit as u32 % 8);
    }
}

/// S19 and S32, for readers: damage costs what it covers, and the reader moves on.
#[test]
fn a_zeroed_sector_costs_the_records_it_covers_and_the_batch_whose_header_it_hits() {
    let mut one = Segment::new(1, 1, None);
    for _ in 0..12 {
        one = one.batch(9);
    }
    let (disk, list) = put(&[one.clone()]);
    let path = segment_path(&dir(), one.id);
    let records: Vec<_> = (1..one.next).map(|seq| (seq, payload(seq, 0))).collect();
    for sector in (4096..one.bytes.len()).step_by(512) {
        let range = sector..(sector + 512).min(one.bytes.len());
        disk.damage(&path, |bytes| bytes[range.clone()].fill(0));
        let seen = read_all(&context(&disk), &list, 1, one.next, 1 << 20);
        let missing = seen.missing();
        for (index, batch) in one.batches.iter().enumerate() {
            let seqs = index as u64 * 9 + 1..index as u64 * 9 + 10;
            if batch.end <= range.start || batch.start >= range.end {
                assert!(!missing.iter().any(|seq| seqs.contains(seq)), "batch {index}, sector {sector}");
            }
        }
        assert_eq!(seen.records.len() + missing.len(), records.len());
        assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)));
        disk.damage(&path, |bytes| bytes.copy_from_slice(&one.bytes));
    }
}

/// S28, for readers: the file is gone or shorter.
#[test]
fn a_missing_or_cut_file_is_a_gap_and_the_rest_is_read() {
    let segments = three();
    for cut in [0, 100, 4096, 4200, 5000, 8192, 8300] {
        let (disk, list) = put(&segments);
        disk.damage(segment_path(&dir(), segments[0].id), |bytes| bytes.truncate(cut));
        let end = list.last().unwrap().end_seq.get();
        let seen = read_all(&context(&disk), &list, 1, end, 1 << 20);
        assert_eq!(seen.gaps.len(), 1);
        assert_eq!(seen.records.len() + seen.missing().len(), end as usize - 1);
        assert!(seen.records.contains_key(&segments[0].next));
    }
    let (disk, list) = put(&segments);
    disk::Disk::remove_file(&disk, &segment_path(&dir(), segments[0].id)).unwrap();
    let seen = read_all(&context(&disk), &list, 3, segments[0].next + 1, 1 << 20);
    assert_eq!(seen.missing(), (3..segments[0].next).collect::<Vec<_>>());
    assert_eq!(seen.seqs(), [segments[0].next]);
}

/// S37, S38, S40.
#[test]
fn a_failed_read_changes_nothing_and_short_reads_are_invisible() {
    let (disk, list) = put(&three());
    let end = list.last().unwrap().end_seq;
    for (on, errno) in [(Op::Open, sim_disk::errno::EMFILE), (Op::Read, sim_disk::errno::EIO)] {
        let ctx = context(&disk);
        let mut buffers = ReadBuffers::default();
        disk.plan(Fault::once(On::Op(on), 1, errno));
        let from = ReadFrom { seq: Seq::FIRST, hint: None };
        let mut read = || list.read(&ctx, from, end, ReadLimits::default(), &mut buffers);
        let failed = read();
        if on == Op::Read {
            assert!(failed.unwrap_err().is_retryable());
        }
        assert_eq!(read().unwrap().items.len(), 1);
        disk.clear_faults();
    }
    for bytes in [1, 63, 4000] {
        disk.plan(Fault::short(On::Op(Op::Read), 1, bytes));
        assert_eq!(
            read_all(&context(&disk), &list, 1, end.get(), 1 << 20).records.len(),
            end.get() as usize - 1
        );
        disk.clear_faults();
    }
}

/// S37, S38: why seqs are missing in front of a segment stands in its first batch; a disk that does not answer is no loss.
#[test]
fn a_disk_that_does_not_say_why_seqs_are_missing_makes_no_gap() {
    let one = Segment::new(1, 1, None).batch(2);
    let two = Segment::new(2, one.next, Some(&one)).skip_to(20).batch(1);
    let (disk, _) = put(&[one.clone(), two.clone()]);
    let path = segment_path(&dir(), two.id);
    let list: SegmentList = [info(&one, 1), info(&two, 20)].into_iter().collect();
    let read = |ctx: &StoreContext| {
        let from = ReadFrom { seq: Seq::new(3), hint: None };
        list.read(ctx, from, Seq::new(21), ReadLimits::default(), &mut ReadBuffers::default())
    };
    let is_gap = |chunk: Chunk, why| {
        let gap = Gap { from: Seq::new(3), to: Seq::new(20), reason: why };
        matches!(chunk.items.as_slice(), [Item::Gap(found)] if *found == gap) && chunk.next == gap.to
    };
    for op in [Op::Open, Op::Read] {
        let ctx = context(&disk);
        disk.plan(Fault::once(On::OpPath(op, "2.seg".into()), 1, sim_disk::errno::EIO));
        let failed = read(&ctx).unwrap_err();
        let is_that =
            matches!(&failed, ReadError::Disk { segment, source } if *segment == two.id && source.op() == op);
        assert!(is_that && failed.is_retryable(), "{failed}");
        assert!(is_gap(read(&ctx).unwrap(), GapReason::NotDurable), "{op}");
        disk.clear_faults();
    }
    disk::Disk::remove_file(&disk, &path).unwrap();
    assert!(is_gap(read(&context(&disk)).unwrap(), GapReason::Lost), "nobody can say any more");
}

/// R7, for readers.
#[test]
fn a_batch_of_a_newer_program_is_refused_and_what_stands_before_it_is_read() {
    let one = Segment::new(1, 1, None).batch(3).batch(2).of_next_version(1);
    let (disk, list) = put(std::slice::from_ref(&one));
    let (ctx, mut buffers) = (context(&disk), ReadBuffers::default());
    let mut read = |seq, hint| {
        list.read(&ctx, ReadFrom { seq, hint }, Seq::new(6), ReadLimits { bytes_max: 1 }, &mut buffers)
    };
    let before = read(Seq::FIRST, None).unwrap();
    assert_eq!((before.record_count(), before.next), (3, Seq::new(4)));
    for _ in 0..2 {
        let refused = read(before.next, before.next_hint).unwrap_err();
        let at = one.batches[1].start as u64;
        let is_that = matches!(&refused, ReadError::NewerFormat { segment, offset, .. } if *segment == one.id && *offset == at);
        assert!(is_that && !refused.is_retryable(), "{refused}");
    }
    assert_eq!(disk.read(segment_path(&dir(), one.id)), one.bytes);
}
