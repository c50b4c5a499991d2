//! The files of a journal as they are made, filled ahead with zeros, and removed.
//!
//! Invariants: a generation made here is durable, bytes and name; before anything of it was written its failure is
//! told apart ([`NotMade::Untouched`]), because only then the older file may be appended to.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, DiskError, ErrorClass, File, OpenMode};
use wal_format::{ENTRY_BODY_BYTES_MAX, EntryTag, JournalHeader};

use super::bodies::Bodies;
use super::error::JournalError;
use super::names::Generation;
use super::open::Place;
use super::scan::{ENTRY_VERSION, INDEX_BYTES, KIND_LAST, KIND_MORE};
use super::sites;

/// A file that takes saves.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) generation: Generation,
    pub(super) header: JournalHeader,
    pub(super) file: Arc<dyn File>,
    /// The number of the next entry.
    pub(super) next_number: u64,
    /// Where the next entry goes, in bytes.
    pub(super) end: u64,
    /// A save that finds `end` beyond this makes a new generation.
    pub(super) compact_at: u64,
}

/// A file made in this run for the next generation: zeros, space taken, name durable or about to be.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) generation: Generation,
}

/// Why there is no new generation.
#[derive(Debug)]
pub(super) enum NotMade {
    /// Not a byte of it was written: it can never be taken for valid.
    Untouched(DiskError),
    /// It was written to, in part or whole: it may be found whole after a crash.
    Begun(DiskError),
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Writes `bytes` as a generation, into the spare that stands at `path` or a new file, and makes it durable.
pub(super) fn make(
    disk: &dyn Disk,
    dir: &Path,
    path: &Path,
    spare: bool,
    bytes: &[u8],
    capacity: u64,
) -> Result<Arc<dyn File>, NotMade> {
    let file = if spare { disk.open(path, OpenMode::ReadWrite) } else { disk.create(path) }
        .map_err(NotMade::Untouched)?;
    reserve(&*file, bytes.len() as u64, capacity).map_err(NotMade::Untouched)?;
    let begun = NotMade::Begun;
    file.write_all_at(&[IoSlice::new(bytes)], 0).map_err(begun)?;
    file.sync_data(sites::GENERATION).map_err(begun)?;
    disk.sync_dir(dir, sites::DIRECTORY).map_err(begun)?;
    Ok(file)
}

/// Takes the space for `capacity` bytes, or at least for `needed`: a full disk shows here, before anything is written.
fn reserve(file: &dyn File, needed: u64, capacity: u64) -> Result<(), DiskError> {
    match file.allocate(0..capacity.max(needed)) {
        Ok(()) => Ok(()),
        Err(error) if error.class() == ErrorClass::Unsupported => Ok(()),
        Err(error) if error.class() == ErrorClass::NoSpace && capacity > needed => {
            match file.allocate(0..needed) {
                Err(error) if error.class() != ErrorClass::Unsupported => Err(error),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error),
    }
}

/// Makes a file of `capacity` zeros, which are written, not only reserved: the space is then surely taken, and saves
/// into written blocks cost half of those into reserved ones.
pub(super) fn make_spare(disk: &dyn Disk, path: &Path, capacity: u64) -> Result<(), DiskError> {
    let file = disk.create(path)?;
    reserve(&*file, capacity, capacity)?;
    let mut offset = 0;
    while offset < capacity {
        let want = usize::try_from(capacity - offset).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&[IoSlice::new(ZEROS.get(..want).unwrap_or(&ZEROS))], offset)?;
        offset += want as u64;
    }
    file.sync_data(sites::SPARE)
}

/// Removes files, lowest generation first; those that could not be removed stay in the list.
pub(super) fn remove_dead(disk: &dyn Disk, place: &Place, dead: &mut Vec<Generation>) {
    dead.sort_unstable();
    dead.dedup();
    dead.retain(|&generation| match disk.remove_file(&place.path(generation)) {
        Ok(()) => false,
        Err(error) => error.class() != ErrorClass::NotFound,
    });
}

pub(super) fn too_large(place: &Place, bytes: u64, bytes_max: u64) -> JournalError {
    JournalError::TooLarge { prefix: place.prefix.clone(), bytes, bytes_max }
}

/// Appends bodies as one write, the first of which gets `number`; returns the number behind the last.
pub(super) fn encode(
    header: &JournalHeader,
    number: u64,
    bodies: &Bodies,
    out: &mut Vec<u8>,
    place: &Place,
) -> Result<u64, JournalError> {
    let body_bytes_max = ENTRY_BODY_BYTES_MAX - INDEX_BYTES;
    if let Some(body) = bodies.iter().find(|body| body.len() > body_bytes_max) {
        return Err(too_large(place, body.len() as u64, body_bytes_max as u64));
    }
    let count = bodies.len();
    let mut numbers = number;
    let mut indexed = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let index32 = u32::try_from(index).unwrap_or(u32::MAX);
        indexed.clear();
        indexed.extend_from_slice(&index32.to_le_bytes());
        indexed.extend_from_slice(body);
        let kind = if index + 1 == count { KIND_LAST } else { KIND_MORE };
        header.encode_entry(out, numbers, EntryTag { version: ENTRY_VERSION, kind }, &indexed);
        numbers += 1;
    }
    Ok(numbers)
}

/// Space taken ahead: what is needed until the next compaction and an eighth more, in whole 4 KiB.
pub(super) fn capacity_of(compact_at: u64, file_bytes_max: u64) -> u64 {
    (compact_at + compact_at / 8).min(file_bytes_max).next_multiple_of(4096)
}
