//! One bit flipped in files that were written and closed in order, then read: what is lost, whether that is said, and whether
//! anything comes that nobody wrote.
//!
//! The bits are spread evenly over the used part of all files; a file allocated ahead counts up to its last byte that is not zero.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::trial::{Ended, Peer};
use crate::pipeline::Random;

/// Records of the log that is flipped.
const RECORDS: u64 = 200;
/// No file is searched further for its last byte.
const USED_MAX: u64 = 64 << 20;

/// What came of the flips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flips {
    pub(super) flips: u64,
    /// Bytes of the files, as far as used.
    pub(super) bytes: u64,
    /// Payloads delivered that nobody wrote.
    pub(super) wrong: u64,
    /// Records missing though the log opened, over all flips.
    pub(super) lost: u64,
    /// The most that one flip cost.
    pub(super) lost_max: u64,
    /// Flips that lost records, and the reader said nothing.
    pub(super) silent: u64,
    /// Flips that lost records.
    pub(super) lossy: u64,
    pub(super) refused: u64,
    pub(super) panicked: u64,
    pub(super) hung: u64,
}

/// Flips that many bits, one at a time.
pub(super) fn run(peer: &Peer, flips: u64, random: &mut Random) -> Result<Flips> {
    let sound = peer.scratch().join("sound");
    if sound.exists() {
        fs::remove_dir_all(&sound)?;
    }
    let (acknowledged, in_order) = peer.write(&sound, 0, RECORDS)?.wait()?;
    ensure!(in_order && acknowledged.len() as u64 == RECORDS, "the writer did not end in order");
    let saw = peer.read(&sound)?;
    ensure!(saw.numbers.len() as u64 == RECORDS, "a log without a flip gave {} records", saw.numbers.len());
    let files = used(&sound)?;
    let bits: u64 = files.iter().map(|(_, used)| used * 8).sum();
    let mut found = Flips { bytes: bits / 8, ..Flips::default() };
    for index in 0..flips.min(bits) {
        let step = bits / flips.min(bits);
        let bit = index * step + random.below(step);
        let copy = peer.copy(&sound)?;
        flip(&copy, &files, bit)?;
        let saw = peer.read_in(&copy)?;
        found.flips += 1;
        found.wrong += saw.wrong;
        let lost = RECORDS - saw.numbers.iter().filter(|number| **number < RECORDS).count() as u64;
        match saw.ended {
            Ended::Read => {
                found.lost += lost;
                found.lost_max = found.lost_max.max(lost);
                found.lossy += u64::from(lost > 0);
                // A wrong payload in a record's place is counted as that.
                found.silent += u64::from(lost > saw.wrong && !saw.reported);
            }
            Ended::Refused => found.refused += 1,
            Ended::Panicked => found.panicked += 1,
            Ended::Hung => found.hung += 1,
        }
    }
    Ok(found)
}

/// All files below a folder, relative to it, with their used length; empty ones are left out.
fn used(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let used = used_bytes(&path)?;
                if used > 0 {
                    files.push((path.strip_prefix(folder)?.to_owned(), used));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Up to the last byte that is not zero.
fn used_bytes(path: &Path) -> Result<u64> {
    let file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let len = file.metadata()?.len().min(USED_MAX);
    let mut bytes = vec![0; usize::try_from(len)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1))
}

fn flip(folder: &Path, files: &[(PathBuf, u64)], bit: u64) -> Result<()> {
    let mut left = bit;
    for (path, used) in files {
        if left < used * 8 {
            let file = fs::OpenOptions::new().read(true).write(true).open(folder.join(path))?;
            let mut byte = [0];
            file.read_exact_at(&mut byte, left / 8)?;
            byte[0] ^= 1 << (left % 8);
            file.write_all_at(&byte, left / 8)?;
            return Ok(());
        }
        left -= used * 8;
    }
    anyhow::bail!("bit {bit} is behind the last file")
}
