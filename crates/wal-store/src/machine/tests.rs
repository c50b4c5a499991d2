//! The machine driven without a disk: scripts for the order of steps, random failures for the invariants.

use std::io;
use std::path::Path;
use std::time::Duration;

use disk::{DiskError, Op};
use proptest::prelude::*;
use wal_format::{Instant, Now, SegmentId, Seq};

use super::{Ask, Closed, Machine, Meta, Reply, RoundEnd, Start, Step};
use crate::{Settings, SyncSetting};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn error(errno: i32) -> DiskError {
    DiskError::new(Op::Write, Path::new("x"), io::Error::from_raw_os_error(errno))
}

fn now(millis: u64) -> Now {
    Now { instant: Instant::from_nanos(millis * 1_000_000), ..Now::default() }
}

fn settings(sync: SyncSetting) -> Settings {
    Settings {
        sync,
        segment_bytes_max: 10_000,
        segment_age_max: Some(Duration::from_secs(1)),
        unsynced_bytes_max: 3_000,
        ..Settings::default()
    }
}

/// A driver that does nothing and remembers what a disk would have seen.
struct Driver {
    machine: Machine,
    next: u64,
    steps: Vec<String>,
    /// Answers by step number; others go well.
    failures: Vec<(usize, i32)>,
    step_count: usize,
    /// Segments of which a step failed.
    failed_files: Vec<SegmentId>,
    file: Option<SegmentId>,
    /// What is written and synced in the current file, and whether its name is durable.
    written_end: u64,
    synced_end: u64,
    named: bool,
    published_durable: u64,
    open_batches: Vec<Meta>,
}

impl Driver {
    fn new(sync: SyncSetting) -> Self {
        Self::with(settings(sync))
    }

    fn with(settings: Settings) -> Self {
        let start = Start { end: Seq::FIRST, prev_seq: 0, next_segment: SegmentId::FIRST, predecessor: None };
        Self {
            machine: Machine::new(settings, start),
            next: 1,
            steps: Vec::new(),
            failures: Vec::new(),
            step_count: 0,
            failed_files: Vec::new(),
            file: None,
            written_end: 1,
            synced_end: 1,
            named: false,
            published_durable: 1,
            open_batches: Vec::new(),
        }
    }

    fn append(&mut self, frames_bytes: u64) {
        let first = Seq::new(self.next);
        self.next += 1;
        self.open_batches.push(Meta { first, end: Seq::new(self.next), frames_bytes });
    }

    fn round(&mut self, millis: u64, ask: Ask) -> RoundEnd {
        self.steps.clear();
        self.machine.begin(now(millis), ask, None);
        loop {
            assert!(self.step_count < 100_000, "the machine spins: {:?}", self.steps.last());
            let step = self.machine.next();
            if let Step::Done(end) = step {
                return end;
            }
            self.step_count += 1;
            let failure = self.failures.iter().find(|(k, _)| *k == self.step_count).map(|(_, errno)| *errno);
            let result = self.answer(&step, ask, failure.filter(|errno| may_fail(&step, *errno)));
            self.machine.reply(result);
        }
    }

    fn answer(&mut self, step: &Step, ask: Ask, failure: Option<i32>) -> Result<Reply, DiskError> {
        self.steps.push(name(step));
        let touches =
            matches!(step, Step::Write(_) | Step::SyncFile(_) | Step::ProbeWrite | Step::Open { .. });
        if touches {
            assert!(
                self.file.is_none_or(|file| !self.failed_files.contains(&file)),
                "{step:?} on a failed file"
            );
        }
        if let Some(errno) = failure {
            if !matches!(step, Step::Create { .. } | Step::Open { .. } | Step::ProbeRemove { .. }) {
                self.failed_files.extend(self.file);
            }
            return Err(error(errno));
        }
        match step {
            Step::Take => {
                self.open_batches.drain(..).for_each(|meta| self.machine.push(meta));
                return Ok(Reply::Taken { ask });
            }
            Step::Create { segment } => {
                self.file = Some(*segment);
                self.named = false;
                // What a left file holds unsynced counts no more.
                self.written_end = self.published_durable;
                self.synced_end = self.published_durable;
            }
            Step::Write(write) => {
                let meta = self.machine.queue[write.index];
                assert_eq!(write.header.is_some(), write.offset == 0);
                assert!(write.prev_seq < meta.first.get() && write.durable <= meta.first);
                self.written_end = meta.end.get();
                let start = write.offset.max(4096);
                return Ok(Reply::Written { end_offset: start + 64 + meta.frames_bytes });
            }
            Step::SyncFile(_) => self.synced_end = self.written_end,
            Step::SyncDir(_) => self.named = true,
            Step::Publish(publish) => {
                let durable = publish.durable.end.get();
                assert!(durable >= self.published_durable);
                if durable > self.published_durable {
                    assert!(
                        self.named && durable <= self.synced_end,
                        "published {durable} before it was synced"
                    );
                }
                self.published_durable = durable;
            }
            Step::ReadBack { first, .. } => {
                // One batch of what was published and not durable.
                let end = Seq::new(first.get() + 1);
                return Ok(Reply::ReadBack { metas: vec![Meta { first: *first, end, frames_bytes: 100 }] });
            }
            Step::Close { closed: Closed::Kept { end, .. }, .. } => {
                assert_eq!(end.get(), self.published_durable)
            }
            _ => {}
        }
        Ok(Reply::Done)
    }
}

fn may_fail(step: &Step, errno: i32) -> bool {
    // What cannot be read is no failed step: the driver gives it up.
    if matches!(step, Step::ReadBack { .. }) {
        return errno != EIO;
    }
    !matches!(step, Step::Take | Step::Publish(_) | Step::Close { .. } | Step::GiveUp { .. } | Step::Done(_))
}

fn name(step: &Step) -> String {
    let text = format!("{step:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}

const DURABLE: Ask = Ask { durable: true, rotate: false, release_file: false };
const ROTATE: Ask = Ask { durable: true, rotate: true, release_file: false };

#[test]
fn the_first_batch_brings_file_sync_and_name_and_the_next_only_a_write_and_a_sync() {
    let mut driver = Driver::new(SyncSetting::EachBatch);
    driver.append(100);
    driver.round(1, Ask::default());
    assert_eq!(driver.steps, ["Take", "Create", "Write", "SyncFile", "SyncDir", "Publish"]);
    driver.append(100);
    driver.append(100);
    driver.round(2, Ask::default());
    assert_eq!(driver.steps, ["Take", "Write", "Write", "SyncFile", "Publish"]);
    driver.round(3, DURABLE);
    assert_eq!(driver.steps, ["Take"]);
}

#[test]
fn the_old_segment_is_synced_published_and_closed_before_the_new_one_is_created() {
    let mut driver = Driver::new(SyncSetting::Never);
    driver.append(100);
    driver.round(1, Ask::default());
    driver.append(2000);
    driver.round(2, Ask::default());
    assert_eq!(driver.steps, ["Take", "Write", "Publish"]);
    driver.append(9000);
    driver.round(3, Ask::default());
    let expected =
        ["Take", "SyncFile", "Publish", "Close", "Create", "Write", "SyncFile", "SyncDir", "Publish"];
    assert_eq!(driver.steps, expected);
}

#[test]
fn a_request_to_rotate_waits_for_what_is_open_and_is_kept_over_a_refusal() {
    let mut driver = Driver::new(SyncSetting::EachBatch);
    driver.append(100);
    driver.failures = vec![(2, ENOSPC)];
    assert!(matches!(driver.round(1, ROTATE), RoundEnd::Stalled(_)));
    assert_eq!(driver.steps, ["Take", "Create"]);
    driver.round(2, Ask::default());
    assert_eq!(driver.steps, ["Take", "Create", "Write", "SyncFile", "SyncDir", "Publish", "Close"]);
    driver.round(3, Ask::default());
    assert_eq!(driver.steps, ["Take"], "once");
}

#[test]
fn a_failed_sync_moves_the_batch_at_once_then_with_growing_waits_then_gives_up() {
    let mut driver = Driver::new(SyncSetting::EachBatch);
    driver.append(100);
    driver.round(1, Ask::default());
    driver.append(100);
    let first = driver.step_count;
    // The first sync fails, and the sync in each new segment.
    driver.failures = vec![(first + 3, EIO), (first + 7, EIO)];
    let end = driver.round(10, Ask::default());
    let expected = ["Take", "Write", "SyncFile", "Close", "Create", "Write", "SyncFile", "Close"];
    assert_eq!(driver.steps, expected);
    assert!(matches!(end, RoundEnd::Backoff { at, .. } if at == now(20).instant), "{end:?}");
    assert_eq!(driver.machine.due(), Some(now(20).instant));
    assert!(matches!(driver.round(19, Ask::default()), RoundEnd::Backoff { .. }));
    assert_eq!(driver.steps, [""; 0]);
    driver.append(100);
    driver.failures = vec![(driver.step_count + 3, EIO)];
    let end = driver.round(20, Ask::default());
    assert_eq!(driver.steps, ["Create", "Write", "SyncFile", "Close"], "nothing new is put at risk");
    assert!(matches!(end, RoundEnd::Backoff { at, .. } if at == now(40).instant), "{end:?}");
    driver.failures = vec![(driver.step_count + 3, EIO)];
    let end = driver.round(40, Ask::default());
    assert_eq!(driver.steps, ["Create", "Write", "SyncFile", "Close", "GiveUp"]);
    assert!(matches!(end, RoundEnd::GaveUp(_)));
    assert!(matches!(driver.round(1039, Ask::default()), RoundEnd::Paused(_)));
    let end = driver.round(1040, Ask::default());
    let expected = [
        "Create",
        "ProbeWrite",
        "SyncFile",
        "ProbeRemove",
        "Take",
        "Create",
        "Write",
        "SyncFile",
        "SyncDir",
        "Publish",
    ];
    assert_eq!(driver.steps, expected);
    assert!(matches!(end, RoundEnd::Clean { dirty: false }));
}

/// Nothing but the machine's end of a set makes it sync.
fn roomy() -> Settings {
    Settings { unsynced_bytes_max: 100_000, ..settings(SyncSetting::EachBatch) }
}

// S33: room for two batches of four.
#[test]
fn what_a_new_file_had_room_for_is_stored_before_the_rest_waits() {
    let mut driver = Driver::with(roomy());
    (0..4).for_each(|_| driver.append(500));
    driver.failures = vec![(5, ENOSPC), (13, ENOSPC), (16, ENOSPC)];
    let end = driver.round(1, Ask::default());
    let refused = ["Take", "Create", "Write", "Write", "Write", "Close"];
    let stored = ["Create", "Write", "Write", "SyncFile", "SyncDir", "Publish"];
    let rest = ["Write", "Close", "Create", "Write", "Close"];
    assert_eq!(driver.steps, [&refused[..], &stored, &rest].concat());
    assert!(matches!(end, RoundEnd::Stalled(_)), "{end:?}");
    assert_eq!(driver.published_durable, 3);
    driver.failures.clear();
    driver.round(100, Ask::default());
    assert_eq!(driver.published_durable, 5);
    driver.append(500);
    driver.append(500);
    driver.round(101, Ask::default());
    assert_eq!(driver.steps, ["Take", "Write", "Write", "SyncFile", "Publish"], "and forgotten");
}

// S34: the kernel accepts what it finds no room for when it is synced.
#[test]
fn a_set_whose_sync_is_refused_is_tried_in_halves() {
    let mut driver = Driver::with(roomy());
    (0..4).for_each(|_| driver.append(500));
    // Four, then two, then one.
    driver.failures = vec![(7, ENOSPC), (12, ENOSPC)];
    let end = driver.round(1, Ask::default());
    assert!(matches!(end, RoundEnd::Clean { .. }), "{end:?}");
    let one = ["Create", "Write", "SyncFile", "SyncDir", "Publish", "Write", "Write", "SyncFile", "Publish"];
    let rest = ["Write", "SyncFile", "Publish"];
    assert_eq!(driver.steps[13..], [&one[..], &rest].concat());
    assert_eq!(driver.published_durable, 5);
}

#[test]
fn a_new_file_that_has_room_for_nothing_is_waited_out() {
    let mut driver = Driver::with(roomy());
    (0..3).for_each(|_| driver.append(500));
    driver.failures = vec![(3, ENOSPC)];
    assert!(matches!(driver.round(1, Ask::default()), RoundEnd::Stalled(_)));
    assert_eq!(driver.steps, ["Take", "Create", "Write", "Close"]);
    assert!(driver.machine.due().is_some());
    driver.round(100, Ask::default());
    assert_eq!(driver.published_durable, 4);
}

#[test]
fn a_segment_is_closed_when_it_is_old_even_without_a_batch() {
    let mut driver = Driver::new(SyncSetting::Never);
    driver.append(100);
    driver.round(5, Ask::default());
    driver.append(100);
    driver.round(6, Ask::default());
    assert_eq!(driver.machine.due(), Some(now(1005).instant));
    driver.round(1004, Ask::default());
    assert_eq!(driver.steps, ["Take"]);
    driver.round(1005, Ask::default());
    assert_eq!(driver.steps, ["Take", "SyncFile", "Publish", "Close"]);
    assert_eq!(driver.machine.due(), None);
}

#[test]
fn a_closed_file_is_opened_before_it_is_written_or_synced() {
    let mut driver = Driver::new(SyncSetting::EachBatch);
    driver.append(100);
    driver.round(1, Ask::default());
    assert!(driver.machine.may_close_file());
    driver.machine.file_closed();
    assert!(!driver.machine.may_close_file());
    driver.append(100);
    driver.round(2, Ask::default());
    assert_eq!(driver.steps, ["Take", "Open", "Write", "SyncFile", "Publish"]);
}

/// One round of a random run.
fn rounds() -> impl Strategy<Value = Vec<(u64, Vec<u64>, bool, bool)>> {
    let batches = proptest::collection::vec(50_u64..4_000, 0..4);
    proptest::collection::vec((0_u64..1500, batches, any::<bool>(), any::<bool>()), 1..20)
}

fn sync() -> impl Strategy<Value = SyncSetting> {
    let every = Just(SyncSetting::Every(Duration::from_millis(300)));
    prop_oneof![Just(SyncSetting::Never), Just(SyncSetting::EachBatch), every]
}

proptest! {
    /// Whatever fails, in whatever order: no step on a failed file, nothing published before it is synced, no spin, and
    /// once nothing fails any more everything left gets durable.
    #[test]
    fn any_failures_keep_the_rules(
        rounds in rounds(),
        sync in sync(),
        unsynced_bytes_max in prop_oneof![Just(3_000), Just(100_000)],
        failures in proptest::collection::vec((1_usize..120, prop_oneof![Just(EIO), Just(ENOSPC)]), 0..12),
    ) {
        let mut driver = Driver::with(Settings { unsynced_bytes_max, ..settings(sync) });
        driver.failures = failures;
        let mut millis = 0;
        for (wait, batches, durable, rotate) in rounds {
            millis += wait;
            batches.into_iter().for_each(|bytes| driver.append(bytes));
            driver.round(millis, Ask { durable, rotate, release_file: false });
        }
        driver.failures.clear();
        for _ in 0..4 {
            millis += 100_000;
            driver.append(60);
            driver.round(millis, DURABLE);
        }
        prop_assert_eq!(driver.published_durable, driver.next);
    }
}
