//! What changed since the last tick: the list between those who acknowledge, rotate, seek or meet a loss, and the tick that saves it.
//!
//! Whoever adds to it arms the tick; what could not be saved comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use wal_format::{Seq, StreamId};

use crate::Gap;
use crate::clock::locked;

use super::consumer::ConsumerState;
use super::hub::Hub;

/// What changed since the last tick.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Consumers whose cursor or note moved.
    pub(crate) cursors: Vec<Arc<ConsumerState>>,
    /// Streams where something may be retired.
    pub(crate) touched: BTreeSet<StreamId>,
    /// Streams whose durable end may have moved.
    pub(crate) moved: BTreeSet<StreamId>,
    /// What readers met and the catalog does not know: (stream, from, to).
    pub(crate) lost: BTreeSet<(StreamId, Seq, Seq)>,
}

impl Hub {
    /// Something of this stream may be retired: the tick is armed.
    pub(crate) fn touch(&self, stream: StreamId) {
        locked(&self.changed).touched.insert(stream);
        self.saver.request();
    }

    /// A reader met a loss that is not remembered: the tick is armed.
    pub(crate) fn lost(&self, stream: StreamId, gap: &Gap) {
        if locked(&self.changed).lost.insert((stream, gap.from, gap.to)) {
            self.saver.request();
        }
    }

    /// Whether a loss waits to be remembered.
    pub(crate) fn has_lost(&self) -> bool {
        !locked(&self.changed).lost.is_empty()
    }

    /// A cursor moved: the tick is armed.
    pub(crate) fn cursor_moved(&self, consumer: &Arc<ConsumerState>) {
        locked(&self.changed).cursors.push(Arc::clone(consumer));
        self.saver.request();
    }

    /// What changed since the last call.
    pub(crate) fn take_changed(&self) -> Changed {
        std::mem::take(&mut *locked(&self.changed))
    }

    /// It could not be saved: it is still to be.
    pub(crate) fn put_back(&self, changed: Changed) {
        let mut now = locked(&self.changed);
        now.cursors.extend(changed.cursors);
        now.touched.extend(changed.touched);
        now.moved.extend(changed.moved);
        now.lost.extend(changed.lost);
    }
}
