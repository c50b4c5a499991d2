//! Closing: commit what is open, save cursors, say that nothing was left.
//!
//! The clean-stop record is written last, and only if nothing failed before it: it says that every stream is durable up to its end.

use std::sync::Arc;

use offsets::{DurableEnd, OpenTime, Save, sites};
use wal_format::{Instant, Now, StreamId};

use crate::clock::locked;
use crate::{CloseError, CloseReport};

use super::{Core, Phase, StreamState, durable_end_of};

impl Core {
    /// No consumer is taken, no stream created from now on; readers get the end.
    pub(crate) fn begin_close(&self) -> bool {
        let first = self.enter(Phase::Closing);
        self.hub.ring_all();
        first
    }

    /// Commits everything, saves cursors, writes the clean-stop record, gives the lock back.
    ///
    /// # Errors
    /// What failed. Everything that could be done was done, and nothing was unlinked behind a failure.
    pub fn close(&self, now: impl Fn() -> Now) -> Result<CloseReport, CloseError> {
        self.begin_close();
        let mut report = CloseReport::default();
        let mut failed = Vec::new();
        for stream in self.all_streams() {
            let before = stream.ends().durable;
            match stream.log.close(now()) {
                Ok(durable) => report.committed_count += before.distance_to(durable.end),
                Err(error) => failed.push(format!("stream {:?} was not committed: {error}", stream.name)),
            }
        }
        match self.tick(now()) {
            Ok(tick) => report.cursors_saved_count = tick.cursors_count,
            Err(error) => failed.push(format!("cursors were not saved: {error}")),
        }
        if self.hub.has_lost() {
            failed.push("losses that readers met are not written down".to_owned());
        }
        // Where the next run must look at the medium, or leave seqs out, this was no stop that lets it do without.
        let gave_up = self.all_streams().iter().any(|stream| stream.log.has_given_up());
        if failed.is_empty() && !gave_up {
            match self.write_clean_stop(now().instant) {
                Ok(()) => report.clean = true,
                Err(error) => failed.push(format!("the clean stop was not recorded: {error}")),
            }
        }
        {
            // Behind a save that is on; none begins after this.
            let _ledger = locked(&self.ledger);
            self.enter(Phase::Closed);
        }
        self.hub.ring_all();
        self.files.clear();
        drop(locked(&self.held).take());
        if failed.is_empty() { Ok(report) } else { Err(CloseError::Incomplete { reason: failed.join("; ") }) }
    }

    /// Ends as a kill does: nothing more is written, what was not is forgotten, tickets hear `Closed`. For a simulator whose process is
    /// dead; whoever drops a core instead has what is open committed as far as the disk allows.
    pub fn abandon(self) {
        self.begin_close();
        self.enter(Phase::Closed);
        for stream in self.all_streams() {
            stream.log.abandon();
        }
    }

    fn write_clean_stop(&self, now: Instant) -> Result<(), offsets::SaveError> {
        // A stream that left seqs out and stored nothing behind them yet is not named: the next run must leave them out again, since
        // readers of an earlier one may have seen records there.
        let streams = self.all_streams();
        let end_of = |stream: &Arc<StreamState>| Some((stream.id, durable_end_of(&stream.log)?));
        let is_in_order = |stream: &&Arc<StreamState>| stream.log.durable_end().end == stream.ends().appended;
        let ends: Vec<_> = streams.iter().filter(is_in_order).filter_map(end_of).collect();
        let mut ledger = locked(&self.ledger);
        // What is stored of the others is proven all the same: damage to it must not pass for a torn end.
        let is_news = |(id, end): &(StreamId, DurableEnd)| {
            ledger.offsets.durable_end(*id).is_none_or(|known| known.end < end.end)
        };
        let others = streams.iter().filter(|stream| !is_in_order(stream)).filter_map(end_of);
        let others: Vec<_> = others.filter(is_news).collect();
        if !others.is_empty() {
            let save = Save { durable_ends: &others, ..Save::default() };
            self.saving(now, || ledger.offsets.save(&save, sites::SAVE))?;
        }
        if ledger.offsets.open_time() > OpenTime::default() {
            // A run that was shorter than the time between two marks has aged its streams too.
            let save = Save { open_time: Some(self.ages.open_time(now)), ..Save::default() };
            self.saving(now, || ledger.offsets.save(&save, sites::SAVE))?;
        }
        // Streams that never ran have no end to name; a record of none still says that nothing was pending.
        self.saving(now, || ledger.offsets.clean_stop(&ends))
    }
}
