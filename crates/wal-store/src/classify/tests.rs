//! The table, exhaustively: every state of three batches, in each role a file can have, at every proven end.

use sim_disk::SimDisk;
use wal_format::Seq;

use crate::build::{Seen, Segment, context, new_disk, payload, read_all};
use crate::{Evidence, QUARANTINE_DIR, Recovery, Row, recover};

/// What became of one batch (of one record) in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sound,
    /// The header is there; of the frames a part is lost.
    Torn,
    /// Nothing is left.
    Gone,
    /// One bit of the payload is wrong.
    Flipped,
}

const STATES: [State; 4] = [State::Sound, State::Torn, State::Gone, State::Flipped];

/// What the file is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The newest, with its header.
    Newest,
    /// The newest, without.
    Headless,
    /// An older one, whose successor names its end.
    Older,
    /// The same without its header.
    OlderHeadless,
}

fn file(states: [State; 3], place: Place) -> Segment {
    let mut file = Segment::new(2, 1, None).durable(1).batch(1).batch(1).batch(1);
    for (index, state) in states.into_iter().enumerate() {
        let (batch, frames) = (file.batches[index].clone(), file.frames(index));
        let in_payload = frames.start + 16 + 3;
        match state {
            State::Sound => {}
            State::Torn => file.bytes[in_payload..frames.end].fill(0),
            State::Gone => file.bytes[batch].fill(0),
            State::Flipped => file.bytes[in_payload] ^= 4,
        }
    }
    if matches!(place, Place::Headless | Place::OlderHeadless) {
        file.bytes[..4096].fill(0);
    }
    file
}

/// What the rules say: the seqs shown, those missing, and the next seq.
fn expected(states: [State; 3], place: Place, proven: u64) -> (Vec<u64>, Vec<u64>, u64) {
    let (mut shown, mut missing, mut q) = (Vec::new(), Vec::new(), 1);
    let older = matches!(place, Place::Older | Place::OlderHeadless);
    while q <= 3 {
        match states[q as usize - 1] {
            State::Sound => shown.push(q),
            // One flipped bit is proof of damage, not of tearing.
            State::Flipped => missing.push(q),
            State::Torn | State::Gone if older || q < proven => missing.push(q),
            State::Torn | State::Gone => break,
        }
        q += 1;
    }
    // A successor's batch stands at 4.
    if older { ([shown, vec![4]].concat(), missing, 5) } else { (shown, missing, q.max(proven)) }
}

fn recovered(states: [State; 3], place: Place, proven: u64) -> (SimDisk, Recovery, Seen) {
    let disk = new_disk();
    file(states, place).put(&disk);
    if matches!(place, Place::Older | Place::OlderHeadless) {
        Segment::new(3, 4, Some(&file(states, place))).durable(4).batch(1).put(&disk);
    }
    let evidence = Evidence { durable_end: Some(Seq::new(proven)), ..Evidence::default() };
    let recovery = recover(&context(&disk), &evidence).unwrap();
    let again = recover(&context(&disk.kill()), &evidence).unwrap();
    assert_eq!(
        (&again.segments, again.next_seq, &again.gaps),
        (&recovery.segments, recovery.next_seq, &recovery.gaps)
    );
    let disk = disk.power_cut(&sim_disk::Survival::Nothing);
    let seen = read_all(&context(&disk), &recovery.segments, 1, recovery.next_seq.get(), 1 << 20);
    (disk, recovery, seen)
}

#[test]
fn every_state_of_three_batches_in_every_place_at_every_proven_end() {
    let mut rows = std::collections::BTreeSet::new();
    for place in [Place::Newest, Place::Headless, Place::Older, Place::OlderHeadless] {
        for code in 0..64 {
            let states = [STATES[code / 16], STATES[code / 4 % 4], STATES[code % 4]];
            for proven in 1..=4 {
                let what = format!("{place:?} {states:?} proven below {proven}");
                let (disk, recovery, seen) = recovered(states, place, proven);
                let (shown, missing, next) = expected(states, place, proven);
                let kept: Vec<_> = seen.seqs();
                assert_eq!(kept, shown, "{what}");
                assert!(seen.records.iter().all(|(seq, bytes)| *bytes == payload(*seq, 0)), "{what}");
                let reported: Vec<u64> =
                    recovery.gaps.iter().flat_map(|gap| gap.from.get()..gap.to.get()).collect();
                match place {
                    // Nothing of the file is kept: what is missing is reported, and nobody can read there.
                    Place::Headless if recovery.segments.is_empty() => {
                        assert_eq!(reported, missing, "{what}")
                    }
                    // Inside a file that is as long as its successor says, the reader finds it.
                    Place::Older => assert_eq!((seen.missing(), reported), (missing, vec![]), "{what}"),
                    _ => assert_eq!((seen.missing(), reported), (missing.clone(), missing), "{what}"),
                }
                assert_eq!(recovery.next_seq.get(), next, "{what}");
                let quarantined = disk.files().iter().any(|path| path.starts_with(QUARANTINE_DIR))
                    || !recovery.report.quarantined.is_empty();
                let lost_there = place == Place::OlderHeadless && shown.len() < 4;
                assert_eq!(quarantined, lost_there && !recovery.gaps.is_empty(), "{what}");
                rows.extend(recovery.report.rows.iter().map(|(row, _)| *row));
            }
        }
    }
    let all = [Row::R1, Row::R2, Row::R3, Row::R4, Row::R5, Row::R6, Row::R10];
    assert!(all.iter().all(|row| rows.contains(row)), "{rows:?}");
}
