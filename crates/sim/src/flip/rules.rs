//! What each harm may cost, and whether what was seen is within it.
//!
//! | harm of a segment | may cost |
//! |---|---|
//! | a bit of a payload | that record, exactly |
//! | any other bit | nothing |
//! | a cut | the records that do not end in front of it, exactly (cleanly stopped) |
//! | a zeroed block | the records that overlap it, and those of a batch whose header does |
//!
//! What is lost is reported: exactly, on a cleanly stopped queue; below the durable end that was saved last, after kill -9.
//! A bit of the queue's own files costs one cursor's last move at most; nothing there ever puts a cursor ahead, or loses a record.

use crate::flip::harm::Harm;
use crate::flip::look::{Found, Seen};
use crate::flip::map::{Part, SegmentMap};
use crate::flip::specimen::{Specimen, Stop};

/// What one trial came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Records lost.
    pub(crate) lost: u64,
    /// Of those, lost without a gap: only above what was saved as durable.
    pub(crate) unreported: u64,
    /// Gaps over seqs that were delivered and retired long ago: the floor was destroyed.
    pub(crate) doubtful: u64,
    /// Cursors that stand below where they were saved last.
    pub(crate) moved_back: u64,
    /// The stream was not there: its entry was destroyed.
    pub(crate) unknown: u64,
}

/// Adds what is not within the rules to `seen.wrong`, and counts.
pub(crate) fn judge_segment(specimen: &Specimen, map: &SegmentMap, harm: Harm, seen: &mut Seen) -> Cost {
    if seen.found != Found::Running {
        seen.wrong.push(format!("the stream does not run: {:?}", seen.found));
        return Cost::default();
    }
    let missing = missing(specimen, seen);
    let cost = judge_losses(specimen, &missing, seen);
    match harm {
        Harm::Flip { bit } => {
            let expected: Vec<u64> = match map.part(bit / 8) {
                Part::Payload(seq) => vec![seq],
                _ => Vec::new(),
            };
            if missing != expected {
                seen.wrong
                    .push(format!("{:?}: {missing:?} are lost, {expected:?} should be", map.part(bit / 8)));
            }
        }
        Harm::Cut { len } => within(specimen, seen, &missing, &map.costs(len, u64::MAX), Bound::Exact),
        Harm::Zero { from, to } => within(specimen, seen, &missing, &map.costs(from, to), Bound::Most),
    }
    for (cursor, (name, saved)) in seen.cursors.iter().zip(&specimen.consumers) {
        if *cursor != saved.last().copied() {
            seen.wrong.push(format!("consumer {name} is at {cursor:?}, was saved at {saved:?}"));
        }
    }
    cost
}

/// As [`judge_segment`], for a harm of the queue's own files.
pub(crate) fn judge_state(specimen: &Specimen, harm: Harm, seen: &mut Seen) -> Cost {
    let flipped = matches!(harm, Harm::Flip { .. });
    match &seen.found {
        Found::Running => {}
        Found::Unknown if !flipped => {
            if !seen.strays.iter().any(|stray| stray.starts_with("streams/")) {
                seen.wrong.push("a stream that nobody knows is not listed".to_owned());
            }
            return Cost { unknown: 1, ..Cost::default() };
        }
        found => {
            seen.wrong.push(format!("the stream does not run: {found:?}"));
            return Cost::default();
        }
    }
    let missing = missing(specimen, seen);
    let mut cost = judge_losses(specimen, &missing, seen);
    if !missing.is_empty() {
        seen.wrong.push(format!("{missing:?} are lost"));
    }
    if flipped && cost.doubtful > 0 {
        seen.wrong.push(format!("a bit put {} retired seqs in doubt", cost.doubtful));
    }
    for (cursor, (name, saved)) in seen.cursors.iter().zip(&specimen.consumers) {
        let last = saved.last().copied();
        if *cursor > last {
            seen.wrong.push(format!("consumer {name} is ahead: {cursor:?}, saved at {saved:?}"));
        }
        if *cursor < last {
            cost.moved_back += 1;
            let before = saved.iter().rev().find(|before| Some(**before) < last);
            if flipped && *cursor != before.copied() {
                seen.wrong.push(format!("consumer {name} moved back to {cursor:?}, saved at {saved:?}"));
            }
        }
    }
    if flipped && cost.moved_back > 1 {
        seen.wrong.push(format!("a bit moved {} cursors back", cost.moved_back));
    }
    cost
}

/// The seqs at or above the floor that were acknowledged and not delivered.
fn missing(specimen: &Specimen, seen: &Seen) -> Vec<u64> {
    let mut delivered = seen.delivered.iter().copied().peekable();
    let mut is_missing = |seq: &u64| {
        while delivered.next_if(|at| at < seq).is_some() {}
        delivered.peek() != Some(seq)
    };
    (specimen.floor..specimen.end()).filter(|seq| is_missing(seq)).collect()
}

/// Compares what is lost with what is reported.
fn judge_losses(specimen: &Specimen, missing: &[u64], seen: &mut Seen) -> Cost {
    let is_reported = |seq: u64| seen.gaps.iter().any(|(from, to)| (*from..*to).contains(&seq));
    let unreported: Vec<u64> = missing.iter().copied().filter(|seq| !is_reported(*seq)).collect();
    let gapped = seen.gaps.iter().flat_map(|(from, to)| *from..(*to).min(specimen.end()));
    let too_much: Vec<u64> = gapped.clone().filter(|seq| seen.delivered.binary_search(seq).is_ok()).collect();
    let doubtful = gapped.filter(|seq| *seq < specimen.floor).count() as u64;
    let mut wrong = Vec::new();
    if !too_much.is_empty() {
        wrong.push(format!("{too_much:?} are reported lost, and were delivered"));
    }
    let promised = match specimen.stop {
        Stop::Clean => specimen.end(),
        Stop::Killed => specimen.saved_end,
    };
    if unreported.iter().any(|seq| *seq < promised) {
        wrong.push(format!("{unreported:?} are lost and not reported, {promised} was saved as durable"));
    }
    if specimen.stop == Stop::Clean {
        if seen.next_seq != specimen.end() {
            wrong.push(format!("the next seq is {}, not {}", seen.next_seq, specimen.end()));
        }
        if let Some((_, to)) = seen.gaps.iter().find(|(_, to)| *to > specimen.end()) {
            wrong.push(format!("a gap up to {to}, beyond the end {}", specimen.end()));
        }
    }
    if let Some((from, to)) = seen.opened.iter().find(|(from, to)| !(*from..*to).all(&is_reported)) {
        wrong.push(format!("the open reports {from}..{to} lost, the reader does not"));
    }
    seen.wrong.extend(wrong);
    let lost = missing.len() as u64;
    Cost { lost, unreported: unreported.len() as u64, doubtful, ..Cost::default() }
}

/// Whether what is lost must be all that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Exact,
    Most,
}

/// After kill -9 the suffix that nothing proves may be cut as torn.
fn within(specimen: &Specimen, seen: &mut Seen, missing: &[u64], allowed: &[u64], bound: Bound) {
    let proven = |seq: &u64| specimen.stop == Stop::Clean || *seq < specimen.saved_end;
    let more: Vec<_> = missing.iter().filter(|seq| proven(seq) && !allowed.contains(seq)).collect();
    if !more.is_empty() {
        seen.wrong.push(format!("{more:?} are lost and were not hit"));
    }
    if bound == Bound::Exact && allowed.iter().any(|seq| !missing.contains(seq)) {
        seen.wrong.push("records that are not there were delivered".to_owned());
    }
}
