//! Commits nobody waits for inline: by lanes, or by whoever drives the core alone.

use wal_format::{Instant, Now, StreamId};
use wal_store::{CommitError, Progress, Want};

use super::Core;
use super::hub::LaneJob;
use super::listener::Listener;

impl Core {
    /// Rings the commit timers that are over, and wakes readers that are due by time.
    pub fn run_timers(&self, now: Instant) {
        self.hub.saw(now);
        // Disarmed first: what is armed from here on rings again.
        let _ = self.hub.timer.take(now);
        for id in self.hub.take_commit_timers(now) {
            if let Some(stream) = self.stream_of(id) {
                stream.timer_rang(now);
            }
        }
        self.hub.wake_due(now);
    }

    /// When [`Core::run_timers`] or [`Core::tick`] is worth a call; `None`: not before something happens.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        let tick = self.tick_due(now);
        let timers = self.hub.timer.due();
        tick.into_iter().chain(timers).min()
    }

    /// Commits every stream that was put on its lane. For a driver without threads; errors are in the tickets.
    pub fn commit_due(&self, now: Now) -> usize {
        self.hub.saw(now.instant);
        let mut count = 0;
        // As many as were there at the call: a stream whose disk refuses comes back each time.
        for _ in 0..self.hub.lane_jobs().len() {
            let Ok(LaneJob::Stream(id)) = self.hub.lane_jobs().try_recv() else { break };
            count += usize::from(self.lane_turn(id, now).is_some());
        }
        count
    }

    /// One turn of a lane: commits the stream, and arms its timer for what is left.
    pub(crate) fn lane_turn(&self, id: StreamId, now: Now) -> Option<Result<Progress, CommitError>> {
        let stream = self.stream_of(id)?;
        // The flag is cleared before the commit swaps its buffers: who asks later is served by a later turn.
        stream.listener.lane_begins();
        // A panic inside must not leave the stream off its lane for ever.
        let _on_lane = OnLane(&stream.listener);
        let result = stream.log.commit(now, Want::Batch);
        if let Err(error) = &result
            && stream.quiet.may_speak(now.instant)
        {
            tracing::warn!(stream = %stream.name, %error, "commit failed");
        }
        if let Some(due) = stream.log.due() {
            stream.listener.arm(due);
        }
        Some(result)
    }
}

struct OnLane<'a>(&'a Listener);

impl Drop for OnLane<'_> {
    fn drop(&mut self) {
        self.0.lane_ends();
    }
}
