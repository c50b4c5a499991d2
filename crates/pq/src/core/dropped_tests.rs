//! Ranges as readers meet them.

use super::*;

fn dropped(ranges: &[(u64, u64, FloorReason)]) -> Dropped {
    let range = |&(from, to, reason): &(u64, u64, FloorReason)| Trim {
        from: Seq::new(from),
        to: Seq::new(to),
        reason,
    };
    let dropped = Dropped::default();
    dropped.set(&Trims { ranges: ranges.iter().map(range).collect(), trimmed_count: 1, expired_count: 2 });
    dropped
}

fn gaps(chunk: &Chunk) -> Vec<(u64, u64, GapReason)> {
    chunk.gaps().map(|gap| (gap.from.get(), gap.to.get(), gap.reason)).collect()
}

#[test]
fn a_reader_is_told_each_reason_with_its_exact_range_up_to_its_bound() {
    let dropped = dropped(&[(10, 50, FloorReason::Trimmed), (50, 80, FloorReason::Expired)]);
    let told = |at, bound| dropped.chunk_at(Seq::new(at), Seq::new(bound)).map(|c| (c.next.get(), gaps(&c)));
    assert_eq!(told(20, 1000), Some((80, vec![(20, 50, GapReason::Trimmed), (50, 80, GapReason::Expired)])));
    assert_eq!(told(20, 30), Some((30, vec![(20, 30, GapReason::Trimmed)])));
    assert_eq!(told(79, 80), Some((80, vec![(79, 80, GapReason::Expired)])));
    assert_eq!(told(80, 1000), None, "the first seq that is kept");
    assert_eq!(told(9, 1000), None, "in front of it nothing was dropped");
}

#[test]
fn a_cursor_below_the_floor_waits_for_its_gap_or_is_lifted() {
    let dropped = dropped(&[(10, 50, FloorReason::Trimmed)]);
    let lift = |cursor, floor| dropped.lift(Seq::new(cursor), Seq::new(floor)).get();
    assert_eq!(lift(20, 50), 20, "it waits in the range");
    assert_eq!(lift(3, 50), 10, "what it had before is no gap");
    assert_eq!(lift(50, 50), 50);
    assert_eq!(lift(60, 100), 100, "delivered: lifted without a gap");
    assert_eq!(lift(120, 100), 120);
}

#[test]
fn retired_gaps_get_their_reasons_and_nothing_is_lost_between() {
    let dropped = dropped(&[(10, 20, FloorReason::Trimmed), (30, 40, FloorReason::Expired)]);
    let gap = Gap { from: Seq::new(5), to: Seq::new(45), reason: GapReason::Retired };
    let mut chunk = Chunk { items: vec![Item::Gap(gap)], next: Seq::new(45), next_hint: None };
    dropped.name_gaps(&mut chunk);
    assert_eq!(
        gaps(&chunk),
        [
            (5, 10, GapReason::Retired),
            (10, 20, GapReason::Trimmed),
            (20, 30, GapReason::Retired),
            (30, 40, GapReason::Expired),
            (40, 45, GapReason::Retired),
        ]
    );
}
