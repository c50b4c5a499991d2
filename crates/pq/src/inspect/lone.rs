//! Reads a file in quarantine, by itself. Whose it is its header says, or its name and the catalog.

use std::path::Path;

use wal_format::{Seq, StreamIdentity};
use wal_store::quarantine;
use wal_store::{LoneSegment, QUARANTINE_DIR, ReadBuffers, ReadFrom, ReadLimits, StoreContext};

use crate::Delivery;
use crate::repair::segment_header;

use super::{InspectError, Inspection};

/// A reader of one file in quarantine.
#[derive(Debug)]
pub struct QuarantineReader {
    context: StoreContext,
    segment: LoneSegment,
    stream: Option<String>,
    at: ReadFrom,
    buffers: ReadBuffers,
}

impl QuarantineReader {
    pub(super) fn open(inspection: &Inspection, name: &str) -> Result<Self, InspectError> {
        let path = Path::new(QUARANTINE_DIR).join(name);
        let refuse = |reason: &str| InspectError::Quarantined {
            name: path.display().to_string(),
            reason: reason.to_owned(),
        };
        // A name is a name, and no path.
        let file = quarantine::list(&*inspection.disk)?.into_iter().find(|file| file.name == name);
        let file =
            file.ok_or_else(|| refuse("there is no such file; `pq stat` lists what is in quarantine"))?;
        let header = segment_header(&*inspection.disk, &path)?;
        let catalog = inspection.catalog()?;
        let (identity, id) = match (header, file.segment) {
            (Some(header), _) => (header.identity, header.segment),
            (None, Some((stream, segment))) => {
                let entry = catalog.entries().find(|entry| entry.id == stream);
                let entry = entry.ok_or_else(|| {
                    refuse("its header cannot be read, and the catalog does not know its stream: nothing says how to read it")
                })?;
                let incarnation = entry.incarnation;
                (StreamIdentity { queue: inspection.queue, stream, incarnation }, segment)
            }
            (None, None) => return Err(refuse("it is no segment: neither its name nor its header says so")),
        };
        let known =
            catalog.entries().find(|e| (e.id, e.incarnation) == (identity.stream, identity.incarnation));
        let stream = known.filter(|_| identity.queue == inspection.queue).map(|entry| entry.name.clone());
        let context = inspection.context_of(identity);
        let segment = LoneSegment::look(&context, &path, id)?;
        let segment = segment.ok_or_else(|| refuse("no record of its stream can be read in it"))?;
        let at = ReadFrom { seq: segment.seqs().0, hint: None };
        Ok(Self { context, segment, stream, at, buffers: ReadBuffers::default() })
    }

    /// The stream it belongs to, by name; `None`: one that is gone, or another queue's.
    #[must_use]
    pub fn stream(&self) -> Option<&str> {
        self.stream.as_deref()
    }

    /// The first seq in it, and the one behind the last.
    #[must_use]
    pub fn seqs(&self) -> (Seq, Seq) {
        self.segment.seqs()
    }

    /// The next records and gaps, in the order of seqs; `None` at its end.
    ///
    /// # Errors
    /// It could not be read; nothing is skipped.
    #[expect(clippy::should_implement_trait, reason = "an iterator that may fail, as the reader of a stream")]
    pub fn next(&mut self) -> Result<Option<Delivery>, InspectError> {
        let from = self.at;
        let end = self.segment.seqs().1;
        let chunk = self.segment.read(&self.context, from, end, ReadLimits::default(), &mut self.buffers)?;
        if chunk.is_empty() {
            return Ok(None);
        }
        self.at = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
        Ok(Some(Delivery::new(self.context.identity, None, from.seq, chunk)))
    }
}
