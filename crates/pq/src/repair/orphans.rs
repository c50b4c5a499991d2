//! Directories of streams that the catalog does not know: listed, and adopted only when asked for by name.
//!
//! What a segment's header says in clear (queue, stream, incarnation) is proof; a name and settings are not in it, so the name is the
//! user's to give, and the settings are the defaults.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{Disk, DiskError, EntryKind, ErrorClass, OpenMode};
use wal_format::{QueueId, SEGMENT_HEADER_BYTES, SegmentHeader, StreamId};
use wal_store::segment_id;

use crate::StreamSettings;
use crate::catalog::{Catalog, Entry};
use crate::core::{STREAMS, stream_dir};
use crate::names;

use super::{OrphanInfo, Repair, RepairError};

/// What a directory's segments say about it.
struct Orphan {
    dir: PathBuf,
    segments_count: usize,
    bytes: u64,
    /// Those that are sound, by id.
    headers: Vec<SegmentHeader>,
}

impl Repair<'_> {
    /// Adopts what is asked for, and tells of the rest. Returns what is planned only: the catalog does not know it.
    pub(super) fn adopt(
        &mut self,
        queue: QueueId,
        catalog: &mut Catalog,
        orphans: &[StreamId],
    ) -> Result<Vec<Entry>, RepairError> {
        let mut planned = Vec::new();
        let asked = self.options.adopt.clone();
        for (id, name) in &asked {
            let refuse = |reason: &str| RepairError::Adopt {
                dir: stream_dir(*id).display().to_string(),
                name: name.clone(),
                reason: reason.to_owned(),
            };
            names::check(name)?;
            match catalog.named(name) {
                // A repair that was killed had done it.
                Some(entry) if entry.id == *id => continue,
                Some(_) => return Err(refuse("a stream of that name exists; give another name")),
                None if !orphans.contains(id) => {
                    return Err(refuse("there is no such directory, or it is a stream's already"));
                }
                None => {}
            }
            let orphan = look(&*self.disk, *id)?;
            let header = orphan.identity(queue, *id).map_err(|reason| refuse(&reason))?;
            let entry = entry_of(&header, name);
            if self.does() {
                catalog.adopt(&entry)?;
            } else {
                planned.push(entry);
            }
            self.tell(OrphanInfo { adopted_as: Some(name.clone()), ..orphan.info(*id) });
        }
        for id in orphans.iter().filter(|id| !asked.iter().any(|(asked, _)| asked == *id)) {
            let orphan = look(&*self.disk, *id)?;
            let refused = orphan.identity(queue, *id).err();
            self.tell(OrphanInfo { refused, ..orphan.info(*id) });
        }
        if self.does() {
            catalog.spend(orphans.iter().copied());
        }
        Ok(planned)
    }

    /// A directory with segments is somebody's, and no stray.
    fn tell(&mut self, orphan: OrphanInfo) {
        if orphan.adopted_as.is_some() || orphan.is_left() {
            self.report.strays.retain(|stray| *stray != orphan.dir);
        }
        self.report.orphans.push(orphan);
    }
}

fn entry_of(header: &SegmentHeader, name: &str) -> Entry {
    Entry {
        id: header.identity.stream,
        name: name.to_owned(),
        incarnation: header.identity.incarnation,
        created_at: header.created_at,
        settings: StreamSettings::default(),
        deleted: false,
        losses: crate::losses::Losses::default(),
    }
}

impl Orphan {
    fn info(&self, id: StreamId) -> OrphanInfo {
        OrphanInfo {
            dir: self.dir.display().to_string(),
            id: id.get(),
            segments_count: self.segments_count,
            bytes: self.bytes,
            adopted_as: None,
            refused: None,
        }
    }

    /// The header of its oldest segment, if all headers name this queue, this stream and one life of it.
    fn identity(&self, queue: QueueId, id: StreamId) -> Result<SegmentHeader, String> {
        let Some(first) = self.headers.first() else {
            return Err(
                "no segment in it has a header that can be read: nothing proves whose it is".to_owned()
            );
        };
        if let Some(other) = self.headers.iter().find(|header| header.identity.queue != queue) {
            return Err(format!("segment {} is another queue's", other.segment));
        }
        if let Some(other) = self.headers.iter().find(|header| header.identity.stream != id) {
            return Err(format!("segment {} is stream {}'s", other.segment, other.identity.stream));
        }
        match self.headers.iter().find(|header| header.identity.incarnation != first.identity.incarnation) {
            Some(other) => Err(format!(
                "segments {} and {} are of two lives of the stream; move those of one of them elsewhere",
                first.segment, other.segment
            )),
            None => Ok(*first),
        }
    }
}

fn look(disk: &dyn Disk, id: StreamId) -> Result<Orphan, DiskError> {
    let dir = stream_dir(id);
    let mut names = Vec::new();
    disk.list(&dir, &mut |entry| {
        if entry.kind == EntryKind::File && segment_id(entry.name).is_some() {
            names.push(dir.join(entry.name));
        }
        ControlFlow::Continue(())
    })?;
    names.sort_unstable();
    let mut orphan = Orphan { dir, segments_count: names.len(), bytes: 0, headers: Vec::new() };
    for path in &names {
        orphan.bytes += disk.stat(path)?.len;
        orphan.headers.extend(header(disk, path)?);
    }
    Ok(orphan)
}

/// The header of a segment file, as it is or with one bit mended.
pub(crate) fn header(disk: &dyn Disk, path: &Path) -> Result<Option<SegmentHeader>, DiskError> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    let got = file.read_at(&mut bytes, 0)?;
    let bytes = bytes.get(..got).unwrap_or_default();
    Ok(SegmentHeader::decode(bytes).ok().or_else(|| SegmentHeader::repair(bytes)))
}

/// The queue's id as the headers of all segments of all streams say; `None` if none does, or they differ.
pub(crate) fn queue_of_segments(disk: &dyn Disk) -> Result<Option<QueueId>, DiskError> {
    let mut dirs = Vec::new();
    let listed = disk.list(Path::new(STREAMS), &mut |entry| {
        if entry.kind == EntryKind::Dir {
            dirs.push(Path::new(STREAMS).join(entry.name));
        }
        ControlFlow::Continue(())
    });
    match listed {
        Err(error) if error.class() == ErrorClass::NotFound => return Ok(None),
        listed => listed?,
    }
    let mut queue = None;
    for dir in dirs {
        let mut files = Vec::new();
        disk.list(&dir, &mut |entry| {
            if entry.kind == EntryKind::File && segment_id(entry.name).is_some() {
                files.push(dir.join(entry.name));
            }
            ControlFlow::Continue(())
        })?;
        for path in files {
            let Some(header) = header(disk, &path)? else { continue };
            // A foreign file among ours proves nothing about either.
            if queue.is_some_and(|queue| queue != header.identity.queue) {
                return Ok(None);
            }
            queue = Some(header.identity.queue);
        }
    }
    Ok(queue)
}
