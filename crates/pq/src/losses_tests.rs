//! Losses: counted once, whatever is found again.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn gap(from: u64, to: u64) -> Gap {
    Gap { from: Seq::new(from), to: Seq::new(to), reason: GapReason::Lost }
}

fn ranges(losses: &Losses) -> Vec<(u64, u64)> {
    losses.iter().map(|lost| (lost.gap.from.get(), lost.gap.to.get())).collect()
}

#[test]
fn a_range_found_again_in_part_or_whole_adds_nothing() {
    let mut losses = Losses::default();
    losses.add(&gap(5, 10), Some(WallTime::from_nanos(7)));
    for again in [gap(5, 10), gap(6, 7), gap(5, 6)] {
        assert!(losses.know(&again));
        losses.add(&again, Some(WallTime::from_nanos(9)));
    }
    assert_eq!((ranges(&losses), losses.records_count()), (vec![(5, 10)], 5));
    assert_eq!(losses.news(&gap(3, 12)), [gap(3, 5), gap(10, 12)]);
    losses.add(&gap(3, 12), None);
    assert_eq!((ranges(&losses), losses.records_count()), (vec![(3, 12)], 9));
    assert_eq!(losses.of("s").next().unwrap().found_at, Some(WallTime::from_nanos(7)), "the first finding");
}

#[test]
fn neighbours_of_one_reason_are_one_and_others_stay_apart() {
    let mut losses = Losses::default();
    losses.add(&gap(1, 2), None);
    losses.add(&gap(3, 4), None);
    losses.add(&Gap { reason: GapReason::NotDurable, ..gap(4, 6) }, None);
    assert_eq!(ranges(&losses), [(1, 2), (3, 4), (4, 6)]);
    losses.add(&gap(2, 3), None);
    assert_eq!(ranges(&losses), [(1, 4), (4, 6)]);
}

#[test]
fn they_never_grow_without_bound_and_stay_counted() {
    let mut losses = Losses::default();
    let count = LOSSES_MAX as u64 + 100;
    for n in 0..count {
        losses.add(&gap(2 * n + 1, 2 * n + 2), None);
    }
    assert_eq!((losses.iter().len(), losses.records_count()), (LOSSES_MAX, count));
    assert_eq!((losses.folded().ranges_count, losses.folded().below), (100, Seq::new(200)));
    losses.add(&gap(1, 2), None);
    losses.add(&gap(2, 3), None);
    assert_eq!(losses.records_count(), count, "nothing below what was folded is counted again");
    let mut again = Losses::default();
    again.fold(losses.folded());
    losses.iter().for_each(|lost| again.add(&lost.gap, lost.found_at));
    assert_eq!(again, losses);
}

proptest! {
    #[test]
    fn every_seq_counts_once_whatever_the_order(found in proptest::collection::vec((1_u64..60, 1_u64..9), 0..30)) {
        let mut losses = Losses::default();
        let mut seqs = BTreeSet::new();
        for (from, count) in found {
            let news: u64 = losses.news(&gap(from, from + count)).iter().map(Gap::count).sum();
            let before = seqs.len() as u64;
            seqs.extend(from..from + count);
            prop_assert_eq!(news, seqs.len() as u64 - before);
            losses.add(&gap(from, from + count), None);
        }
        prop_assert_eq!(losses.records_count(), seqs.len() as u64);
        let told: BTreeSet<u64> = ranges(&losses).into_iter().flat_map(|(from, to)| from..to).collect();
        prop_assert_eq!(told, seqs);
        let all = ranges(&losses);
        prop_assert!(all.windows(2).all(|two| two[0].1 < two[1].0), "apart: {all:?}");
    }
}
