//! What arrived held against what was put in: lost, out of order, stored twice, delivered again.

use std::collections::HashSet;

use crate::receiver::Arrival;

/// What is wrong, counted.
#[derive(Default)]
pub(super) struct Found {
    pub(super) lost: u64,
    pub(super) out_of_order: u64,
    pub(super) twice: u64,
    pub(super) again: u64,
    pub(super) broken: Vec<String>,
}

impl Found {
    /// Holds what arrived at one destination against the numbers `0..lines`, which its stream got in this order.
    pub(super) fn add(&mut self, place: &str, arrivals: &[Arrival], lines: u64) {
        let mut seen_seqs = HashSet::new();
        let mut seen_numbers = HashSet::new();
        let mut last = None;
        let (mut out_of_order, mut twice) = (0, 0);
        for arrival in arrivals {
            if !seen_seqs.insert(arrival.seq) {
                self.again += 1;
                continue;
            }
            if !seen_numbers.insert(arrival.number) {
                twice += 1;
            }
            // First deliveries come in the order of the stream, and the stream has the order of its input.
            if last.is_some_and(|(seq, number)| arrival.seq <= seq || arrival.number <= number) {
                out_of_order += 1;
            }
            last = Some((arrival.seq, arrival.number));
        }
        let lost = (0..lines).filter(|number| !seen_numbers.contains(number)).count() as u64;
        let strange = seen_numbers.iter().filter(|number| **number >= lines).count();
        for (count, what) in [(lost, "lost"), (out_of_order, "out of order"), (twice, "twice in the stream")]
        {
            if count > 0 {
                self.broken.push(format!("{place}: {count} {what}"));
            }
        }
        if strange > 0 {
            self.broken.push(format!("{place}: {strange} records that nobody put in"));
        }
        self.lost += lost;
        self.out_of_order += out_of_order;
        self.twice += twice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arrivals: &[(u64, u64)], lines: u64) -> (u64, u64, u64, u64) {
        let arrivals: Vec<_> = arrivals.iter().map(|&(seq, number)| Arrival { seq, number }).collect();
        let mut found = Found::default();
        found.add("here", &arrivals, lines);
        (found.lost, found.out_of_order, found.twice, found.again)
    }

    #[test]
    fn each_fault_is_counted_as_what_it_is() {
        assert_eq!(found(&[(1, 0), (2, 1), (3, 2)], 3), (0, 0, 0, 0));
        assert_eq!(found(&[(1, 0), (3, 2)], 3), (1, 0, 0, 0), "lost");
        assert_eq!(found(&[(1, 0), (3, 2), (2, 1)], 3), (0, 1, 0, 0), "out of order");
        assert_eq!(found(&[(1, 0), (2, 1), (3, 1), (4, 2)], 3), (0, 1, 1, 0), "twice in the stream");
        assert_eq!(found(&[(1, 0), (2, 1), (1, 0), (2, 1), (3, 2)], 3), (0, 0, 0, 2), "delivered twice");
    }
}
