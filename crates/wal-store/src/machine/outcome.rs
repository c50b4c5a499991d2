//! What the machine knows after a step went well.

use wal_format::{Instant, Predecessor, SegmentId, Seq};

use super::failure::Poisoned;
use super::{DurableEnd, Machine};

/// The segment being written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Active {
    pub(super) id: SegmentId,
    pub(super) first: Seq,
    pub(super) created: Instant,
    /// Where the next batch starts; 0 until the first batch brings the header.
    pub(super) offset: u64,
    /// Everything before is durable; 0: nothing is.
    pub(super) durable_offset: u64,
    /// Batches that end before here are no longer in the queue.
    pub(super) published_offset: u64,
    /// Whether the driver has the file open.
    pub(super) open: bool,
    /// Whether no write happened since the last sync.
    pub(super) clean: bool,
    /// Whether the file's name is durable.
    pub(super) named: bool,
}

impl Machine {
    pub(super) fn created(&mut self, segment: SegmentId, first: Seq) {
        self.next_segment = segment.checked_next();
        self.active = Some(Active {
            id: segment,
            first,
            created: self.now.instant,
            offset: 0,
            durable_offset: 0,
            published_offset: 0,
            open: true,
            clean: true,
            named: false,
        });
    }

    pub(super) fn set_open(&mut self) {
        if let Some(active) = &mut self.active {
            active.open = true;
        }
    }

    pub(super) fn wrote(&mut self, index: usize, end_offset: u64) {
        let (Some(active), Some(meta)) = (&mut self.active, self.queue.get(index)) else { return };
        active.offset = end_offset;
        active.clean = false;
        self.prev_seq = meta.end.get() - 1;
        self.cursor = index + 1;
    }

    pub(super) fn synced(&mut self) {
        self.last_sync = self.now.instant;
        if let Some(active) = &mut self.active {
            active.clean = true;
            if active.named {
                self.now_durable();
            }
        }
    }

    pub(super) fn named(&mut self) {
        if let Some(active) = &mut self.active {
            active.named = true;
            self.now_durable();
        }
    }

    pub(super) fn now_durable(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.durable_offset = active.offset;
        let end =
            self.cursor.checked_sub(1).and_then(|last| self.queue.get(last)).map_or(self.written, |b| b.end);
        self.durable = DurableEnd { end, segment: Some(active.id), offset: active.offset };
        self.durable_prev_seq = self.prev_seq;
        self.publish = true;
        self.trouble.over();
    }

    /// The segment was left, in good order or not.
    pub(super) fn closed(&mut self) {
        if let Some(Poisoned { id, durable_offset, .. }) = self.trouble.poisoned.take() {
            if durable_offset > 0 {
                self.predecessor = Some(Predecessor { id, end_offset: durable_offset });
            }
            self.prev_seq = self.durable_prev_seq;
            return;
        }
        let Some(active) = self.active.take() else { return };
        self.predecessor = Some(Predecessor { id: active.id, end_offset: active.offset });
        self.ask.rotate = self.ask.rotate && !self.queue.is_empty();
    }
}
