//! What a failed file holds and memory does not: batches that were written, told as `Written`, and not yet synced. They
//! are read back, each verified by its checksum, and written again elsewhere just as they are.

use disk::DiskError;
use wal_format::{Now, SEGMENT_HEADER_BYTES, Seq, StreamIdentity, read_batch};

use super::Committer;
use crate::batch::Batch;
use crate::machine::{Reply, is_refusal};
use crate::shared::Shared;

impl Committer {
    /// Puts the batches of a range of the failed file in front of those in flight. What cannot be read is given up: its
    /// waiters are told now.
    ///
    /// # Errors
    /// The disk refused for now: nothing was given up, and it is to be tried again.
    pub(super) fn read_back(
        &mut self,
        log: &Shared,
        from: u64,
        to: u64,
        first: Seq,
    ) -> Result<Reply, DiskError> {
        let from = from.max(SEGMENT_HEADER_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
        let read = self.file.as_ref().map_or(Ok(0), |held| held.read_at(&mut bytes, from));
        let (read, error) = match read {
            Err(error) if is_refusal(&error) => return Err(error),
            Err(error) => (0, Some(error)),
            Ok(read) => (read, None),
        };
        bytes.truncate(read);
        let batches = verified(&log.ctx.identity, &bytes, from, first);
        let end = batches.last().map_or(first, |batch| batch.end);
        self.fail_unsynced(end, None, error.as_ref());
        let written = self.in_flight.front().map_or(log.ends.get().written, |batch| batch.first);
        if end < written {
            log.give_up(written);
        }
        let metas = batches.iter().map(Batch::meta).collect();
        for batch in batches.into_iter().rev() {
            self.in_flight.push_front(batch);
        }
        Ok(Reply::ReadBack { metas })
    }
}

/// The batches that stand in `bytes`, from `first` on, up to the first that does not verify.
fn verified(identity: &StreamIdentity, bytes: &[u8], offset: u64, first: Seq) -> Vec<Batch> {
    let mut batches = Vec::new();
    let (mut at, mut expected) = (0_usize, first);
    while let Some(Ok(view)) =
        bytes.get(at..).filter(|rest| !rest.is_empty()).map(|rest| read_batch(identity, rest))
    {
        let header = view.header();
        if header.first_seq < expected {
            break;
        }
        batches.push(Batch {
            first: header.first_seq,
            end: header.end_seq(),
            frames_bytes: view.frames_bytes().len(),
            chunks: vec![view.frames_bytes().to_vec()],
            opened: Now { wall: header.append_time, ..Now::default() },
            touched: true,
            ..Batch::default()
        });
        expected = header.end_seq();
        let end = header.end_offset(offset + at as u64);
        at = usize::try_from(end - offset).unwrap_or(usize::MAX);
    }
    batches
}
