//! Rounds of kills and of power cuts: append, stop in the middle, read, hold against what was acknowledged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::mounted::{Kind, Mounted};
use super::trial::{Ended, Peer, Saw};
use crate::pipeline::Random;

/// A writer is stopped after at most this many acknowledged records.
const RECORDS_A_ROUND: u64 = 300;

/// What came of some rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rounds {
    pub(super) rounds: u64,
    /// Records acknowledged.
    pub(super) acknowledged: u64,
    /// Of these, missing though the log opened.
    pub(super) lost: u64,
    /// Rounds in which some were.
    pub(super) rounds_with_loss: u64,
    /// Payloads that nobody wrote.
    pub(super) wrong: u64,
    /// Times it would not open, for reading or for writing.
    pub(super) refused: u64,
    pub(super) panicked: u64,
    pub(super) hung: u64,
    /// Records acknowledged while the file system went down, and missing: no fault of a crate, see [`cuts`].
    pub(super) late_missing: u64,
}

/// A folder through its rounds.
struct Folder {
    path: PathBuf,
    acknowledged: BTreeSet<u64>,
    next: u64,
}

impl Folder {
    fn new(path: PathBuf) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        Ok(Self { path, acknowledged: BTreeSet::new(), next: 0 })
    }
}

impl Rounds {
    /// Takes a round in; `false`: the folder is not to be used again.
    fn add(&mut self, folder: &mut Folder, acknowledged: Vec<u64>, saw: &Saw) -> bool {
        self.rounds += 1;
        self.acknowledged += acknowledged.len() as u64;
        self.wrong += saw.wrong;
        folder.acknowledged.extend(acknowledged);
        let missing = folder.acknowledged.difference(&saw.numbers).count() as u64;
        let sound = match saw.ended {
            Ended::Read => {
                self.lost += missing;
                self.rounds_with_loss += u64::from(missing > 0);
                missing == 0 && saw.wrong == 0
            }
            Ended::Refused => {
                self.refused += 1;
                false
            }
            Ended::Panicked => {
                self.panicked += 1;
                false
            }
            Ended::Hung => {
                self.hung += 1;
                false
            }
        };
        let known = folder.acknowledged.last().max(saw.numbers.last());
        folder.next = known.map_or(0, |number| number + 1);
        sound
    }
}

/// Killed again and again.
pub(super) fn kills(peer: &Peer, rounds: u64, random: &mut Random) -> Result<Rounds> {
    let mut found = Rounds::default();
    let path = peer.scratch().join("killed");
    let mut folder = Folder::new(path.clone())?;
    while found.rounds < rounds {
        let mut writer = peer.write(&folder.path, folder.next, u64::MAX)?;
        writer.until(count(random)?)?;
        let acknowledged = writer.kill()?;
        let unwilling = acknowledged.is_empty();
        let saw = peer.read(&folder.path)?;
        let sound = found.add(&mut folder, acknowledged, &saw);
        if sound && unwilling {
            // It could be read, but would not take more.
            found.refused += 1;
        }
        if !sound || unwilling {
            folder = Folder::new(path.clone())?;
        }
    }
    Ok(found)
}

/// Its file system shut down again and again, so that what was not synced is gone.
pub(super) fn cuts(peer: &Peer, kind: Kind, rounds: u64, random: &mut Random) -> Result<Rounds> {
    let mut found = Rounds::default();
    let mounted = Mounted::new(kind, peer.scratch())?;
    let mut generation = 0;
    let inside = |mounted: &Mounted, generation: u64| mounted.path().join(format!("log{generation}"));
    let mut folder = Folder::new(inside(&mounted, generation))?;
    while found.rounds < rounds {
        let mut writer = peer.write(&folder.path, folder.next, u64::MAX)?;
        writer.until(count(random)?)?;
        // What is acknowledged while the file system goes down counts for nothing: XFS lets a sync that races with its shutdown
        // return Ok, which no power cut can. The writer would not live to hear it.
        let acknowledged = writer.acknowledged.clone();
        mounted.cut()?;
        let late = writer.kill()?.split_off(acknowledged.len());
        mounted.again()?;
        let unwilling = acknowledged.is_empty();
        let saw = peer.read(&folder.path)?;
        let sound = found.add(&mut folder, acknowledged, &saw);
        folder.next = folder.next.max(late.last().map_or(0, |number| number + 1));
        found.late_missing += late.iter().filter(|number| !saw.numbers.contains(number)).count() as u64;
        if sound && unwilling {
            found.refused += 1;
        }
        if !sound || unwilling {
            generation += 1;
            remove(&folder.path)?;
            folder = Folder::new(inside(&mounted, generation))?;
        }
    }
    mounted.end()?;
    Ok(found)
}

fn remove(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

fn count(random: &mut Random) -> Result<usize> {
    Ok(usize::try_from(1 + random.below(RECORDS_A_ROUND))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(numbers: &[u64], wrong: u64, ended: Ended) -> Saw {
        Saw { numbers: numbers.iter().copied().collect(), wrong, reported: false, ended }
    }

    fn folder() -> Folder {
        Folder { path: PathBuf::new(), acknowledged: BTreeSet::new(), next: 0 }
    }

    #[test]
    fn acknowledged_and_missing_is_lost_and_more_than_acknowledged_is_not() {
        let (mut found, mut folder) = (Rounds::default(), folder());
        assert!(found.add(&mut folder, vec![0, 1, 2], &saw(&[0, 1, 2, 3], 0, Ended::Read)));
        assert_eq!(folder.next, 4, "a record that was not acknowledged in time may be there");
        assert!(!found.add(&mut folder, vec![4, 5], &saw(&[0, 1, 2, 4], 0, Ended::Read)));
        assert_eq!((found.lost, found.rounds_with_loss, found.acknowledged), (1, 1, 5));
    }

    #[test]
    fn a_log_that_does_not_open_is_counted_as_that_and_not_as_lost_records() {
        let (mut found, mut folder) = (Rounds::default(), folder());
        for ended in [Ended::Refused, Ended::Panicked, Ended::Hung] {
            assert!(!found.add(&mut folder, vec![0], &saw(&[], 0, ended)));
        }
        assert_eq!((found.lost, found.refused, found.panicked, found.hung), (0, 1, 1, 1));
    }
}
