//! The machine's answers to failures: which cost a file, which are waited out, and when a log gives up.
//!
//! | failure | file | then |
//! |---|---|---|
//! | create or open refused (descriptors, space, read-only) | none | stalled: everything kept, tried again |
//! | write or sync refused in a file with durable batches | poisoned | at once in a new segment |
//! | a batch's write refused in a new file, others written before | void | at once again, synced behind as many as went |
//! | sync refused in a new file with several batches | void | at once again, synced behind half of them |
//! | write or sync refused in a new file of one batch | void | stalled; one batch next |
//! | reading back refused | poisoned | stalled: read again |
//! | anything else (device) | poisoned | a new segment: at once, then after a back-off, up to 3 |
//! | the third new segment failed too | void | given up, paused, probed |

use disk::{DiskError, ErrorClass};
use wal_format::{Instant, SegmentId};

use super::{Active, Closed, Doing, Machine, Meta, Probe, RoundEnd, SITE_PROBE, Step};

/// New segments tried for a batch whose file failed.
const NEW_SEGMENTS_MAX: u32 = 3;
/// The waits double this often at most.
const DOUBLINGS_MAX: u32 = 6;

/// A file of which a write or sync failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Poisoned {
    pub(super) id: SegmentId,
    pub(super) durable_offset: u64,
    /// What is no longer in memory and not durable: this range.
    read_back: Option<(u64, u64)>,
}

/// What is wrong at the moment.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) poisoned: Option<Poisoned>,
    /// So many batches are written between two syncs, since more were refused; `None`: as many as there are.
    batches_max: Option<usize>,
    /// Failed files in a row.
    failures: u32,
    /// Refusals, or failed probes, in a row.
    refusals: u32,
    /// The round must end like this.
    stop: Option<RoundEnd>,
    /// Everything must be given up.
    give_up: Option<(DiskError, SegmentId)>,
    /// No attempt before this, because of this.
    wait: Option<(Instant, DiskError)>,
    /// When a stalled log is worth another attempt by itself.
    retry_at: Option<Instant>,
    /// Paused: probed not before this, because of this.
    paused: Option<(Instant, DiskError)>,
    probe: Option<Probe>,
}

impl Trouble {
    pub(super) fn begin(&mut self) {
        self.stop = None;
    }

    /// Whether the last file failed, and nothing became durable since.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Whether so many batches are written that they must be made durable before the next one is.
    pub(super) fn is_enough(&self, batches: usize) -> bool {
        self.batches_max.is_some_and(|max| batches >= max)
    }

    /// Something became durable.
    pub(super) fn over(&mut self) {
        self.batches_max = self.batches_max.map(|max| max.saturating_mul(2));
        self.failures = 0;
        self.refusals = 0;
        self.wait = None;
        self.retry_at = None;
    }

    /// What was refused is not there any more, stored or given up: nothing is to be tried again by itself.
    pub(super) fn nothing_left(&mut self) {
        self.batches_max = None;
        self.retry_at = None;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let paused = self.paused.as_ref().map(|(at, _)| *at);
        let wait = self.wait.as_ref().map(|(at, _)| *at);
        paused.or(wait).or(self.retry_at)
    }
}

/// Whether an error means "not now" rather than "broken".
pub(crate) fn is_refusal(error: &DiskError) -> bool {
    matches!(error.class(), ErrorClass::RetryLater | ErrorClass::NoSpace | ErrorClass::ReadOnly)
}

impl Machine {
    /// The step a failure asks for, if one does.
    pub(super) fn next_in_trouble(&mut self) -> Option<Step> {
        if let Some(poisoned) = self.trouble.poisoned {
            let refused = self.trouble.stop.take_if(|_| poisoned.read_back.is_some());
            return Some(refused.map_or_else(|| self.leave_poisoned(poisoned), Step::Done));
        }
        if let Some((error, segment)) = self.trouble.give_up.take() {
            return Some(self.give_up(error, segment));
        }
        if let Some(end) = self.trouble.stop.take() {
            return Some(Step::Done(end));
        }
        if let Some(stage) = self.trouble.probe {
            return Some(self.probe_step(stage));
        }
        if let Some((at, error)) = self.trouble.paused.clone() {
            return Some(self.paused(at, error));
        }
        match self.trouble.wait.take() {
            Some((at, error)) if self.now.instant < at => {
                self.trouble.wait = Some((at, error.clone()));
                let wait = at.saturating_since(self.now.instant);
                Some(Step::Done(RoundEnd::Backoff { error, at, wait }))
            }
            _ => None,
        }
    }

    fn leave_poisoned(&mut self, poisoned: Poisoned) -> Step {
        if let Some((from, to)) = poisoned.read_back {
            self.doing = Doing::ReadingBack;
            return Step::ReadBack { from, to, first: self.durable.end };
        }
        let next = self.next_segment.unwrap_or(poisoned.id);
        let closed = match poisoned.durable_offset {
            // Not its first seq: those in front of it may have been given up, or left out, and stand nowhere either.
            0 => Closed::Void { end: self.durable.end },
            end_offset => Closed::Kept { end: self.durable.end, end_offset },
        };
        self.doing = Doing::Closing;
        Step::Close { segment: poisoned.id, closed, next }
    }

    fn give_up(&mut self, error: DiskError, segment: SegmentId) -> Step {
        self.queue.clear();
        self.cursor = 0;
        self.trouble.failures = 0;
        let at = self.now.instant.saturating_add(self.settings.probe_after);
        self.trouble.paused = Some((at, error.clone()));
        self.trouble.stop = Some(RoundEnd::GaveUp(error.clone()));
        self.doing = Doing::Telling;
        Step::GiveUp { error: Some(error), segment: Some(segment) }
    }

    pub(super) fn ids_used_up(&mut self) -> Step {
        self.queue.clear();
        self.trouble.stop = Some(RoundEnd::IdsUsedUp);
        self.doing = Doing::Telling;
        Step::GiveUp { error: None, segment: None }
    }

    /// The driver panicked in the middle of a step: its batches are lost, the file is not trusted any more.
    pub(crate) fn abandon(&mut self) {
        self.doing = Doing::Nothing;
        self.queue.clear();
        self.poison_file();
    }

    fn paused(&mut self, at: Instant, error: DiskError) -> Step {
        let Some(segment) = self.next_segment.filter(|_| self.now.instant >= at) else {
            return Step::Done(RoundEnd::Paused(error));
        };
        self.probe_step(Probe::Create(segment))
    }

    fn probe_step(&mut self, stage: Probe) -> Step {
        self.trouble.probe = None;
        self.doing = Doing::Probing(stage);
        match stage {
            Probe::Create(segment) => Step::Create { segment },
            Probe::Write(_) => Step::ProbeWrite,
            Probe::Sync(_) => Step::SyncFile(SITE_PROBE),
            Probe::Remove(segment) => Step::ProbeRemove { segment },
        }
    }

    pub(super) fn probed(&mut self, stage: Probe) {
        self.trouble.probe = match stage {
            Probe::Create(segment) => {
                self.next_segment = segment.checked_next();
                Some(Probe::Write(segment))
            }
            Probe::Write(segment) => Some(Probe::Sync(segment)),
            Probe::Sync(segment) => {
                self.trouble.paused = None;
                self.trouble.refusals = 0;
                Some(Probe::Remove(segment))
            }
            Probe::Remove(_) => None,
        };
    }

    pub(super) fn read_back(&mut self, metas: Vec<Meta>) {
        for meta in metas.into_iter().rev() {
            self.queue.push_front(meta);
        }
        if let Some(poisoned) = &mut self.trouble.poisoned {
            poisoned.read_back = None;
        }
    }

    pub(super) fn went_wrong(&mut self, doing: Doing, error: DiskError) {
        match doing {
            Doing::Creating { segment, .. } => {
                if !is_refusal(&error) {
                    // Whatever stands under that name is not ours to use.
                    self.next_segment = segment.checked_next();
                    self.failed(error, segment);
                } else {
                    self.refused(error);
                }
            }
            Doing::Opening if is_refusal(&error) => self.refused(error),
            Doing::Writing { index } => self.poison(error, index),
            Doing::Opening | Doing::SyncingFile | Doing::SyncingDir => self.poison(error, self.cursor / 2),
            Doing::Probing(stage) => self.probe_failed(stage, error),
            // It stands in the file alone, which stays as it is until it can be read.
            Doing::ReadingBack => self.refused(error),
            // It cannot fail as a step: what went wrong in it is the driver's answer.
            Doing::Closing => self.closed(),
            Doing::Taking | Doing::Telling | Doing::Nothing => {}
        }
    }

    /// The file failed: never written, synced or trusted again. What is in it and not durable moves. A refusal says that a new file
    /// has room for `fitting` batches, perhaps.
    fn poison(&mut self, error: DiskError, fitting: usize) {
        let Some(active) = self.poison_file() else { return };
        if !is_refusal(&error) {
            self.failed(error, active.id);
        } else if active.durable_offset == 0 {
            // Room for all of them may never come, and what was written cannot be synced: the file is poisoned. Fewer each time.
            self.trouble.batches_max = Some(fitting.max(1));
            if fitting == 0 {
                self.refused(error);
            }
        }
    }

    fn poison_file(&mut self) -> Option<Active> {
        self.cursor = 0;
        self.publish = false;
        let active = self.active.take()?;
        let unread = active.published_offset > active.durable_offset;
        self.trouble.poisoned = Some(Poisoned {
            id: active.id,
            durable_offset: active.durable_offset,
            read_back: unread.then_some((active.durable_offset, active.published_offset)),
        });
        Some(active)
    }

    fn failed(&mut self, error: DiskError, segment: SegmentId) {
        self.trouble.failures += 1;
        match self.trouble.failures {
            1 => {}
            n if n > NEW_SEGMENTS_MAX => self.trouble.give_up = Some((error, segment)),
            n => {
                let at = self.wait_until(n - 2);
                self.trouble.wait = Some((at, error));
            }
        }
    }

    /// Records wait while what space is left is for something else; somebody resumes them. What is written takes no more space: its end
    /// and its sync are not kept waiting, or they would be due for ever.
    pub(super) fn next_while_held(&mut self, error: DiskError) -> Step {
        let active = self.active.filter(|active| active.offset > 0);
        if let Some(active) = active.filter(|active| self.is_aged(active)) {
            self.held = Some(error);
            return self.close_step(&active);
        }
        if let Some(active) = active.filter(|active| self.wants_sync(active)) {
            self.held = Some(error);
            return self.sync_step(&active, super::SITE_BATCH);
        }
        self.trouble.retry_at = None;
        Step::Done(RoundEnd::Stalled(error))
    }

    fn refused(&mut self, error: DiskError) {
        let at = self.wait_until(self.trouble.refusals);
        self.trouble.refusals = self.trouble.refusals.saturating_add(1);
        self.trouble.retry_at = Some(at);
        self.trouble.stop = Some(RoundEnd::Stalled(error));
    }

    fn probe_failed(&mut self, stage: Probe, error: DiskError) {
        let wait = self.settings.probe_after.saturating_mul(1 << self.trouble.refusals.min(DOUBLINGS_MAX));
        match stage {
            // The probe itself succeeded; a block of zeros under a used-up id is no harm.
            Probe::Remove(_) => {}
            Probe::Create(_) => self.pause_again(wait, error),
            Probe::Write(segment) | Probe::Sync(segment) => {
                self.pause_again(wait, error);
                self.trouble.probe = Some(Probe::Remove(segment));
            }
        }
    }

    fn pause_again(&mut self, wait: std::time::Duration, error: DiskError) {
        self.trouble.refusals = self.trouble.refusals.saturating_add(1);
        self.trouble.paused = Some((self.now.instant.saturating_add(wait), error));
    }

    fn wait_until(&self, doublings: u32) -> Instant {
        let wait = self.settings.retry_after.saturating_mul(1 << doublings.min(DOUBLINGS_MAX));
        self.now.instant.saturating_add(wait)
    }
}
