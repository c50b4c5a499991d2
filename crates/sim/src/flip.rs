//! Every bit, every truncation, every zeroed block of a queue's files, one at a time: what it costs, and whether that is told.
//!
//! ```text
//!   specimen (clean stop | kill -9) ──> copy ──> one harm ──> open, read, append ──> rules ──> counts
//! ```
//!
//! Each trial is a whole life of the queue on its own copy of a simulated disk, so the order and the number of threads do not
//! matter; nothing is random. What is not within the rules is named with its harm, which is all that is needed to see it again.

mod command;
pub(crate) mod harm;
mod look;
pub(crate) mod map;
mod rules;
mod specimen;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sim_disk::SimDisk;

pub use command::flip;
use harm::{Harm, Harms};
use look::{Depth, Seen, look};
use rules::{Cost, judge_segment, judge_state};
use specimen::{Size, Specimen, Stop};

/// Trials a thread takes at once.
const SHARE: u64 = 64;
/// Of the flips, one in this many goes on after reading: appends, delivers, opens again.
const GO_ON_EVERY: u64 = 61;
/// One segment is at least this long, in bytes.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Most violations that are kept word for word.
const WORDS_MAX: usize = 20;

/// How thoroughly.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Threads, at least 1.
    threads: usize,
    /// Every how-manieth trial of each family is made: 1 for all.
    every: u64,
}

/// What was found.
#[derive(Debug, Default)]
struct Outcome {
    /// One line a file and family of harms.
    lines: Vec<String>,
    /// What was not within the rules, the first of them word for word.
    violations: Vec<String>,
    /// How many trials were not within the rules.
    violation_count: u64,
    /// Trials, by family.
    trial_counts: BTreeMap<&'static str, u64>,
    /// Trials that panicked.
    panic_count: u64,
    /// Records lost over all trials.
    lost_count: u64,
}

/// One file and one family of harms.
struct Task {
    path: PathBuf,
    harms: Harms,
    /// Index in the specimen's segments; `None`: a file of the queue's own state.
    segment: Option<usize>,
}

/// What the trials of one task came to.
#[derive(Default)]
struct Tally {
    trial_count: u64,
    panic_count: u64,
    violation_count: u64,
    violations: Vec<String>,
    /// How many trials had this cost.
    none: u64,
    one: u64,
    more: u64,
    sum: Cost,
}

/// The queues that are harmed.
fn specimens() -> Vec<(Specimen, Target)> {
    let build = |stop| {
        let large = Specimen::build(stop, Size::Large);
        assert!(large.segments.iter().any(|segment| segment.bytes >= SEGMENT_BYTES_MIN));
        [(large, Target::Segments), (Specimen::build(stop, Size::Small), Target::State)]
    };
    [Stop::Clean, Stop::Killed].into_iter().flat_map(build).collect()
}

/// Which files of a specimen are harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Segments,
    State,
}

/// Makes all trials.
fn run(specimens: &[(Specimen, Target)], effort: Effort) -> Outcome {
    let mut outcome = Outcome::default();
    for (specimen, target) in specimens {
        for task in tasks(specimen, *target) {
            let begun = Instant::now();
            let tally = try_all(specimen, &task, effort);
            outcome.add(specimen, &task, tally, begun.elapsed().as_secs_f64());
        }
    }
    outcome
}

fn tasks(specimen: &Specimen, target: Target) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut add = |path: &Path, bytes: u64, segment: Option<usize>| {
        let blocks = [512, 4096].map(|block| Harms::Blocks { bytes, block });
        for harms in [Harms::Flips { bytes }, Harms::Cuts { bytes }].into_iter().chain(blocks) {
            tasks.push(Task { path: path.to_owned(), harms, segment });
        }
    };
    match target {
        Target::Segments => {
            let segments = specimen.segments.iter().enumerate();
            segments.for_each(|(index, map)| add(&map.path, map.bytes, Some(index)));
        }
        Target::State => specimen.state_files().iter().for_each(|(path, bytes)| add(path, *bytes, None)),
    }
    tasks
}

fn try_all(specimen: &Specimen, task: &Task, effort: Effort) -> Tally {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Tally::default());
    let count = task.harms.count().div_ceil(effort.every);
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let from = next.fetch_add(SHARE, Ordering::Relaxed);
                    if from >= count {
                        break;
                    }
                    for number in from..(from + SHARE).min(count) {
                        tally.add_trial(specimen, task, number * effort.every);
                    }
                }
                let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                total.merge(tally);
            });
        }
    });
    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One life of a harmed queue.
fn trial(specimen: &Specimen, task: &Task, harm: Harm, depth: Depth) -> (Seen, Cost) {
    let disk = SimDisk::from_snapshot(&specimen.snapshot);
    harm.apply(&disk, &task.path);
    let mut seen = look(specimen, &disk, depth);
    let cost = match task.segment.and_then(|index| specimen.segments.get(index)) {
        Some(map) => judge_segment(specimen, map, harm, &mut seen),
        None => judge_state(specimen, harm, &mut seen),
    };
    (seen, cost)
}

impl Tally {
    fn add_trial(&mut self, specimen: &Specimen, task: &Task, number: u64) {
        let harm = task.harms.get(number);
        let is_flip = matches!(harm, Harm::Flip { .. });
        let depth = if is_flip && !number.is_multiple_of(GO_ON_EVERY) { Depth::Read } else { Depth::GoOn };
        self.trial_count += 1;
        let wrong = match catch_unwind(AssertUnwindSafe(|| trial(specimen, task, harm, depth))) {
            Ok((seen, cost)) => {
                match cost.lost {
                    0 => self.none += 1,
                    1 => self.one += 1,
                    _ => self.more += 1,
                }
                self.sum.add(cost);
                seen.wrong
            }
            Err(_) => {
                self.panic_count += 1;
                vec!["a panic".to_owned()]
            }
        };
        if let Some(first) = wrong.first() {
            self.violation_count += 1;
            if self.violations.len() < WORDS_MAX {
                self.violations.push(format!(
                    "{}, {}, {harm}: {first}",
                    specimen.stop.name(),
                    task.path.display()
                ));
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.trial_count += other.trial_count;
        self.panic_count += other.panic_count;
        self.violation_count += other.violation_count;
        self.violations.extend(other.violations);
        self.none += other.none;
        self.one += other.one;
        self.more += other.more;
        self.sum.add(other.sum);
    }
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.unreported += other.unreported;
        self.doubtful += other.doubtful;
        self.moved_back += other.moved_back;
        self.unknown += other.unknown;
    }
}

impl Outcome {
    fn add(&mut self, specimen: &Specimen, task: &Task, tally: Tally, seconds: f64) {
        let what = match task.harms {
            Harms::Blocks { block, .. } => format!("{} of {block} B", task.harms.name()),
            harms => harms.name().to_owned(),
        };
        let sum = tally.sum;
        let mut line = format!(
            "{:10} {}: {} {what}: {} cost no record, {} one, {} more ({} in all)",
            specimen.stop.name(),
            task.path.display(),
            tally.trial_count,
            tally.none,
            tally.one,
            tally.more,
            sum.lost
        );
        for (count, words) in [
            (sum.unreported, "unreported above what was saved as durable"),
            (sum.doubtful, "retired seqs in doubt without their floor"),
            (sum.moved_back, "cursors behind"),
            (sum.unknown, "streams listed as unknown"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {words}"));
            }
        }
        line.push_str(&format!(", {seconds:.1} s"));
        self.lines.push(line);
        *self.trial_counts.entry(task.harms.name()).or_default() += tally.trial_count;
        self.violation_count += tally.violation_count;
        self.panic_count += tally.panic_count;
        self.lost_count += sum.lost;
        let room = WORDS_MAX.saturating_sub(self.violations.len());
        self.violations.extend(tally.violations.into_iter().take(room));
    }
}
