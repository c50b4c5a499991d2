//! Reads a stream from outside, up to what is there at each call.

use std::sync::Arc;

use disk::Disk;
use offsets::Offsets;
use wal_format::{QueueId, Seq};
use wal_store::{
    Gap, Item, ReadBuffers, ReadFrom, ReadLimits, ScanDepth, ScanReport, StoreContext, scan_read_only,
};

use crate::core::evidence_of;
use crate::{Delivery, GapReason};

use super::InspectError;

/// A reader that owns nothing.
#[derive(Debug)]
pub struct InspectReader {
    disk: Arc<dyn Disk>,
    queue: QueueId,
    context: StoreContext,
    at: ReadFrom,
    scan: Option<ScanReport>,
    buffers: ReadBuffers,
}

impl InspectReader {
    pub(super) fn new(disk: Arc<dyn Disk>, queue: QueueId, context: StoreContext, from: Seq) -> Self {
        let at = ReadFrom { seq: from.max(Seq::FIRST), hint: None };
        Self { disk, queue, context, at, scan: None, buffers: ReadBuffers::default() }
    }

    /// The next records; `None` if there are no more for now: call again to look again.
    ///
    /// # Errors
    /// Something could not be read; nothing is skipped.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that may go on after its end, and may fail"
    )]
    pub fn next(&mut self) -> Result<Option<Delivery>, InspectError> {
        loop {
            let looked = self.scan.is_some();
            let scan = match self.scan.take() {
                Some(scan) if self.at.seq < scan.end => scan,
                Some(_) => return Ok(None),
                None => self.look()?,
            };
            if self.at.seq >= scan.end {
                return Ok(None);
            }
            // Below the oldest kept there is nothing, and that is no loss.
            let oldest = oldest(&scan);
            if self.at.seq < oldest {
                self.at = ReadFrom { seq: oldest, hint: None };
                self.scan = Some(scan);
                continue;
            }
            let from = self.at;
            let limits = ReadLimits::default();
            let mut chunk = scan.segments.read(&self.context, from, scan.end, limits, &mut self.buffers)?;
            if scan.segments.first().is_none()
                && let Some(gap) = scan.gaps.iter().find(|gap| gap.to > from.seq)
            {
                // No segment is left to read it from: what is known to have been there is lost all the same.
                chunk.items.push(Item::Gap(Gap { from: gap.from.max(from.seq), ..*gap }));
                chunk.next = gap.to;
            }
            let gone = chunk.gaps().any(|gap| matches!(gap.reason, GapReason::Lost | GapReason::Retired));
            if gone && looked && self.is_retired(chunk.next)? {
                // The owner retired it since the scan: look again.
                continue;
            }
            if chunk.is_empty() {
                return Ok(None);
            }
            self.at = ReadFrom { seq: chunk.next, hint: chunk.next_hint };
            self.scan = Some(scan);
            return Ok(Some(Delivery::new(self.context.identity, None, from.seq, chunk)));
        }
    }

    /// The seq of the oldest record kept, or lost above the floor: everything below it was delivered to everybody, or dropped by a
    /// limit, and is not told again by [`InspectReader::next`].
    ///
    /// # Errors
    /// Something could not be read.
    pub fn oldest(&mut self) -> Result<Seq, InspectError> {
        let scan = match self.scan.take() {
            Some(scan) => scan,
            None => self.look()?,
        };
        let oldest = oldest(&scan);
        self.scan = Some(scan);
        Ok(oldest)
    }

    fn look(&self) -> Result<ScanReport, InspectError> {
        let (offsets, _) = Offsets::read_only(Arc::clone(&self.disk), self.queue)?;
        let evidence = evidence_of(&offsets, self.context.identity.stream, None);
        Ok(scan_read_only(&self.context, &evidence, ScanDepth::Ends)?)
    }

    fn is_retired(&self, below: Seq) -> Result<bool, InspectError> {
        let (offsets, _) = Offsets::read_only(Arc::clone(&self.disk), self.queue)?;
        Ok(offsets.floor(self.context.identity.stream).is_some_and(|floor| floor.seq >= below))
    }
}

fn oldest(scan: &ScanReport) -> Seq {
    let kept = scan.segments.first().map_or(scan.end, |segment| segment.first_seq);
    scan.gaps.first().map_or(kept, |gap| gap.from.min(kept))
}
