//! The specimen is what it says, a sample of all harms stays within the rules, and a broken rule is seen.

use super::*;
use crate::flip::map::Part;

#[test]
fn the_unharmed_specimen_is_delivered_whole() {
    for (specimen, _) in specimens() {
        let seen = look(&specimen, &SimDisk::from_snapshot(&specimen.snapshot), Depth::GoOn);
        assert_eq!(seen.wrong, Vec::<String>::new());
        assert_eq!(seen.delivered, (specimen.floor..specimen.end()).collect::<Vec<_>>());
        assert_eq!((seen.gaps.len(), seen.opened.len()), (0, 0));
        let saved: Vec<_> = specimen.consumers.iter().map(|(_, saved)| saved.last().copied()).collect();
        assert_eq!(seen.cursors, saved);
    }
}

// S17, S19, S24, S28
#[test]
fn a_sample_of_all_harms_stays_within_the_rules() {
    let outcome = run(&specimens(), Effort { threads: 2, every: 5003 });
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert_eq!((outcome.panic_count, outcome.trial_counts.len()), (0, 3));
    assert!(outcome.lost_count > 0);
}

#[test]
fn a_loss_that_nobody_reports_is_seen() {
    let specimen = Specimen::build(Stop::Clean, Size::Small);
    let map = &specimen.segments[0];
    let bit = (0..map.bytes).find(|at| matches!(map.part(*at), Part::Payload(_))).map_or(0, |at| at * 8);
    let judged = |spoil: &dyn Fn(&mut Seen)| {
        let disk = SimDisk::from_snapshot(&specimen.snapshot);
        let harm = Harm::Flip { bit };
        harm.apply(&disk, &map.path);
        let mut seen = look(&specimen, &disk, Depth::Read);
        spoil(&mut seen);
        let cost = judge_segment(&specimen, map, harm, &mut seen);
        (seen.wrong.len(), cost.lost)
    };
    assert_eq!(judged(&|_| {}), (0, 1));
    assert!(judged(&|seen| seen.gaps.clear()).0 > 0, "a gap withheld");
    assert!(
        judged(&|seen| seen.delivered.truncate(seen.delivered.len() - 1)).0 > 0,
        "a record lost that was not hit"
    );
    assert!(judged(&|seen| seen.cursors[1] = Some(9999)).0 > 0, "a cursor moved");
    assert!(judged(&|seen| seen.next_seq -= 1).0 > 0, "a seq to be used twice");
}
