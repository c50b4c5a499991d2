//! Finding and reading the generations of a journal: list, read, classify, pick, tidy up.
//!
//! Invariants: with [`Access::Own`] what is read is what the medium holds, names included, and only leftovers are
//! removed, after a valid generation was found; with [`Access::Look`] nothing on the disk changes and a generation
//! that vanishes under the reader (its owner compacted) makes it list again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{Advice, Cached, Disk, DiskError, EntryKind, ErrorClass, File, OpenMode};
use wal_format::JournalHeader;

use super::bodies::Bodies;
use super::error::JournalError;
use super::names::{Generation, NameKind, classify, path_of};
use super::report::{FileOutcome, FileReport, JournalReport, Removal};
use super::scan::{Scan, scan};
use super::sites;

/// Times a reader beside a live owner lists the directory before it gives up.
const LOOK_TRIES: usize = 16;
/// No journal file is read or written beyond this, whatever its length says, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 256 << 20;
/// Times the cache is asked to drop a file's pages.
const DROP_TRIES: usize = 3;
/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The one owner, before it writes.
    Own,
    /// Anybody, beside a live owner.
    Look,
}

/// Where a journal is and whose it is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) dir: PathBuf,
    pub(super) prefix: String,
    /// With generation 0, which no file has.
    pub(super) header: JournalHeader,
}

impl Place {
    pub(super) fn path(&self, generation: Generation) -> PathBuf {
        path_of(&self.dir, &self.prefix, generation)
    }

    pub(super) const fn header(&self, generation: Generation) -> JournalHeader {
        JournalHeader { kind: self.header.kind, queue: self.header.queue, generation: generation.0 }
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) report: JournalReport,
    pub(super) bodies: Bodies,
    /// Valid or left over, to be removed once a new generation is durable.
    pub(super) older: Vec<Generation>,
    /// The highest number any file bears, as far as numbers can still grow from it.
    pub(super) top: u64,
}

/// Lists, reads and picks.
pub(super) fn find(disk: &dyn Disk, place: &Place, access: Access) -> Result<Found, JournalError> {
    let mut tries = LOOK_TRIES;
    loop {
        if access == Access::Own {
            sync_names(disk, &place.dir)?;
        }
        let names = list(disk, place)?;
        tries -= 1;
        match read_all(disk, place, access, &names) {
            Err(JournalError::Disk(error))
                if access == Access::Look && error.class() == ErrorClass::NotFound && tries > 0 => {}
            Err(error) => return Err(error),
            Ok((mut report, bodies)) => {
                if access == Access::Own {
                    remove_leftovers(disk, &mut report);
                }
                report.files.extend(names.stray.iter().map(|name| FileReport {
                    path: place.dir.join(name),
                    generation: None,
                    bytes: 0,
                    outcome: FileOutcome::Stray,
                    removal: Removal::Kept,
                }));
                let (older, top) = (older_of(&report), top_of(&report).max(names.taken));
                return Ok(Found { report, bodies, older, top });
            }
        }
    }
}

/// After a kill the directory may show names the medium does not have.
fn sync_names(disk: &dyn Disk, dir: &Path) -> Result<(), DiskError> {
    match disk.sync_dir(dir, sites::OPEN) {
        // Nothing can be pending where nothing can be written.
        Err(error) if matches!(error.class(), ErrorClass::ReadOnly | ErrorClass::Unsupported) => Ok(()),
        other => other,
    }
}

struct Names {
    generations: BTreeSet<Generation>,
    stray: BTreeSet<OsString>,
    /// The highest number that something else than a file bears.
    taken: u64,
}

/// Numbers from here on hardly have successors: a name like that, unless it is valid, does not push the next one.
const NEAR_THE_END: u64 = u64::MAX - (1 << 32);

fn list(disk: &dyn Disk, place: &Place) -> Result<Names, DiskError> {
    let mut names = Names { generations: BTreeSet::new(), stray: BTreeSet::new(), taken: 0 };
    disk.list(&place.dir, &mut |entry| {
        match classify(&place.prefix, entry.name) {
            NameKind::Generation(generation) if entry.kind == EntryKind::File => {
                names.generations.insert(generation);
            }
            kind @ (NameKind::Generation(_) | NameKind::Stray) => {
                if let NameKind::Generation(Generation(number)) = kind
                    && number < NEAR_THE_END
                {
                    names.taken = names.taken.max(number);
                }
                names.stray.insert(entry.name.to_owned());
            }
            NameKind::Other => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

fn read_all(
    disk: &dyn Disk,
    place: &Place,
    access: Access,
    names: &Names,
) -> Result<(JournalReport, Bodies), JournalError> {
    let mut report = JournalReport::default();
    let mut current: Option<(usize, Scan)> = None;
    let mut damaged: Option<(usize, Scan)> = None;
    let mut newer: Option<(PathBuf, u16)> = None;
    for &generation in names.generations.iter().rev() {
        let path = place.path(generation);
        let bytes = match read_file(disk, &path, access) {
            Ok(bytes) => bytes,
            // The state is known; what an older file holds does not matter.
            Err(_) if current.is_some() => {
                report.files.push(line(path, generation, 0, FileOutcome::Unreadable));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let found = scan(&place.header(generation), &bytes);
        let outcome = match found.outcome {
            FileOutcome::Current if current.is_some() => FileOutcome::Older,
            outcome => outcome,
        };
        if let FileOutcome::Version { found } = outcome {
            newer.get_or_insert_with(|| (path.clone(), found));
        }
        let index = report.files.len();
        report.files.push(line(path, generation, bytes.len() as u64, outcome));
        if outcome == FileOutcome::Current {
            current = Some((index, found));
        } else if outcome == FileOutcome::Damaged && found.entry_count > 0 && damaged.is_none() {
            damaged = Some((index, found));
        }
    }
    if current.is_none()
        && let Some((path, version)) = newer
    {
        return Err(JournalError::Version { path, version });
    }
    let Some((index, scan)) = current.or(damaged) else { return Ok((report, Bodies::new())) };
    Ok((adopt(report, index, &scan), scan.bodies))
}

fn line(path: PathBuf, generation: Generation, bytes: u64, outcome: FileOutcome) -> FileReport {
    FileReport { path, generation: Some(generation), bytes, outcome, removal: Removal::Kept }
}

fn adopt(mut report: JournalReport, index: usize, scan: &Scan) -> JournalReport {
    if let Some(file) = report.files.get_mut(index) {
        report.generation = file.generation;
        if file.outcome == FileOutcome::Damaged {
            file.outcome = FileOutcome::Salvaged;
        }
    }
    JournalReport {
        entry_count: scan.entry_count,
        mended_count: scan.mended_count,
        lost_count: scan.lost_count,
        torn_bytes: scan.torn_bytes,
        ..report
    }
}

/// Reads a file, at most [`FILE_BYTES_MAX`] of it; allocates for what is there, not for what a length claims.
fn read_file(disk: &dyn Disk, path: &Path, access: Access) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(path, OpenMode::Read)?;
    if access == Access::Own {
        drop_cache(&*file)?;
    }
    let bytes_max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    loop {
        let have = bytes.len();
        let want = READ_BYTES.min(bytes_max - have);
        bytes.resize(have + want, 0);
        let got = file.read_at(bytes.get_mut(have..).unwrap_or_default(), have as u64)?;
        bytes.truncate(have + got);
        if got < want || want == 0 {
            return Ok(bytes);
        }
    }
}

/// After a failed sync in an earlier life the cache shows what the disk lacks: read the disk.
fn drop_cache(file: &dyn File) -> Result<(), DiskError> {
    // A first error may be an earlier life's, told once; the pages it was about are clean now and can be dropped.
    file.sync_data(sites::OPEN).or_else(|_| file.sync_data(sites::OPEN))?;
    // Only what will be read: a file may say that it is enormous.
    let len = file.len()?.min(FILE_BYTES_MAX);
    for _ in 0..DROP_TRIES {
        match file.advise(Advice::DropCache, 0..len) {
            Err(error) if error.class() != ErrorClass::Unsupported => return Err(error),
            _ => {}
        }
        if file.cached(0..len)? != Cached::Some {
            break;
        }
    }
    // Pages that somebody keeps in the cache (a backup reads the file, say) are no reason not to open: the first save
    // writes all of the state anew, whatever it was read from.
    Ok(())
}

fn remove_leftovers(disk: &dyn Disk, report: &mut JournalReport) {
    if !report.files.iter().any(|file| file.outcome == FileOutcome::Current) {
        // Without a valid generation nothing is known to be superseded; only what holds nothing goes.
        for file in &mut report.files {
            if matches!(file.outcome, FileOutcome::Empty | FileOutcome::Prepared) {
                remove(disk, file);
            }
        }
        return;
    }
    for file in &mut report.files {
        if file.outcome.is_leftover() {
            remove(disk, file);
        }
    }
}

fn remove(disk: &dyn Disk, file: &mut FileReport) {
    file.removal = match disk.remove_file(&file.path) {
        Ok(()) => Removal::Removed,
        Err(_) => Removal::Failed,
    };
}

fn older_of(report: &JournalReport) -> Vec<Generation> {
    report
        .files
        .iter()
        .filter(|file| file.outcome == FileOutcome::Current || file.removal == Removal::Failed)
        .filter_map(|file| file.generation)
        .collect()
}

/// New generations must exceed whatever might ever be taken for valid. A name near the top of the type that holds
/// nothing valid must not end the numbers, though.
fn top_of(report: &JournalReport) -> u64 {
    let counts = |file: &&FileReport| match file.outcome {
        FileOutcome::Current | FileOutcome::Salvaged | FileOutcome::Older | FileOutcome::Version { .. } => {
            true
        }
        _ => file.generation.is_none_or(|generation| generation.0 < NEAR_THE_END),
    };
    report.files.iter().filter(counts).filter_map(|file| file.generation).map(|g| g.0).max().unwrap_or(0)
}
