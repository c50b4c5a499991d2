//! `pq-sim hunt`: looks for a violation, seed after seed, and stops at the first. For seeded bugs: there should be one.
//!
//! ```text
//!   threads: next seed ─> run it, and a few fixed scenarios ─> found? ─┐
//!   main:    the lowest seed that found something, or never ended <────┘
//! ```
//!
//! Invariant: the seed told is the lowest that finds something, however many threads look.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use sim::scenario::{Scenario, scenarios};
use sim::{Checked, Operation, Shape, SyncSite, Violation, run_seed, run_witnesses};
use sim_disk::SimDisk;

/// How long, and for what.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seeds to try.
    #[arg(long, default_value_t = 20_000)]
    seeds: u64,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// A sync site whose syncs do nothing.
    #[arg(long)]
    ignore_site: Option<String>,
}

/// Fixed scenarios are tried with so many of the first seeds.
const WITNESS_SEEDS: u64 = 300;
/// A seed takes a few milliseconds: one that takes this long is in a loop that nothing ends.
const SEED_TIME_MAX: Duration = Duration::from_secs(60);

/// What a seed found.
struct Found {
    seed: u64,
    what: String,
}

enum News {
    Found(Found),
    /// A thread is through.
    Through,
}

/// What the threads share.
struct Hunt {
    shape: Shape,
    /// The n-th is played beside the n-th seed.
    scenarios: Vec<Scenario>,
    next: AtomicU64,
    /// Nobody looks at this or behind it.
    end: AtomicU64,
}

/// The seed a thread is at, and since when.
type Desk = Arc<Mutex<Option<(u64, Instant)>>>;

/// Looks; what it found stands in its last line.
pub(crate) fn run(arguments: Arguments) -> bool {
    std::panic::set_hook(Box::new(|_| {}));
    // A site's name lives as long as the program.
    let site = |name: String| SyncSite::new(Box::leak(name.into_boxed_str()));
    let ignored_sites = arguments.ignore_site.into_iter().map(site).collect();
    let hunt = Arc::new(Hunt {
        shape: Shape { ignored_sites, ..Shape::default() },
        scenarios: scenarios(),
        next: AtomicU64::new(1),
        end: AtomicU64::new(arguments.seeds.saturating_add(1)),
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match hunt.look(arguments.threads.unwrap_or(cores).max(1)) {
        Some(Found { seed, what }) => println!("hunt: caught by seed {seed}: {what}"),
        None => println!("hunt: survived {} seeds", arguments.seeds),
    }
    true
}

impl Hunt {
    /// What the lowest seed finds that finds anything. A thread in a loop is left behind; the end of the program ends it.
    fn look(self: &Arc<Self>, threads: usize) -> Option<Found> {
        let (sender, news) = channel();
        let mut desks: Vec<Desk> = Vec::new();
        for _ in 0..threads {
            // Not through before it began.
            let desk: Desk = Arc::new(Mutex::new(Some((u64::MAX, Instant::now()))));
            let (hunt, sender) = (Arc::clone(self), sender.clone());
            desks.push(Arc::clone(&desk));
            std::thread::spawn(move || hunt.work(&desk, &sender));
        }
        drop(sender);
        let mut lowest: Option<Found> = None;
        while !desks.is_empty() {
            let mut found = match news.recv_timeout(Duration::from_secs(1)) {
                Ok(News::Found(found)) => vec![found],
                Ok(News::Through) => {
                    desks.retain(|desk| at(desk).is_some());
                    Vec::new()
                }
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            desks.retain(|desk| {
                let stuck = at(desk).filter(|(_, since)| since.elapsed() > SEED_TIME_MAX);
                found.extend(stuck.map(|(seed, _)| Found {
                    seed,
                    what: format!("stuck: it has not ended after {} s", SEED_TIME_MAX.as_secs()),
                }));
                stuck.is_none()
            });
            for found in found {
                self.end.fetch_min(found.seed, Ordering::Relaxed);
                if lowest.as_ref().is_none_or(|lowest| found.seed < lowest.seed) {
                    lowest = Some(found);
                }
            }
        }
        lowest
    }

    fn work(&self, desk: &Desk, news: &Sender<News>) {
        let sit = |at| *desk.lock().unwrap_or_else(PoisonError::into_inner) = at;
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end.load(Ordering::Relaxed) {
                break;
            }
            sit(Some((seed, Instant::now())));
            if let Some(what) = self.found_by(seed) {
                self.end.fetch_min(seed, Ordering::Relaxed);
                let _ = news.send(News::Found(Found { seed, what }));
            }
        }
        sit(None);
        let _ = news.send(News::Through);
    }

    /// A canonical scenario, everything brought to its end, and a stop in order.
    fn play(&self, scenario: &Scenario) -> Checked {
        let mut scenario = scenario.clone();
        scenario.setup.ignored_sites.extend(&self.shape.ignored_sites);
        let mut world = scenario.play()?;
        world.settle()?;
        world.step(&Operation::Close)?;
        world.settle()?;
        world.discard();
        Ok(())
    }

    /// What a seed finds, on one line.
    fn found_by(&self, seed: u64) -> Option<String> {
        let tell = |violation: &Violation, place: String| {
            let words: Vec<&str> = violation.what.split_whitespace().collect();
            format!("{} {place}: {}", violation.kind, words.join(" "))
        };
        if let Some(violation) = run_seed(seed, &self.shape).violation {
            return Some(tell(&violation, format!("at step {}", violation.step)));
        }
        let scenario = usize::try_from(seed - 1).ok().and_then(|nth| self.scenarios.get(nth));
        if let Some(scenario) = scenario
            && let Err(violation) = self.play(scenario)
        {
            return Some(tell(&violation, format!("in {:?}", scenario.name)));
        }
        if seed > WITNESS_SEEDS {
            return None;
        }
        let ignore =
            |disk: &SimDisk| self.shape.ignored_sites.iter().for_each(|site| disk.ignore_site(*site));
        let violation = run_witnesses(seed, &ignore).err()?;
        Some(tell(&violation, "in a fixed scenario".to_owned()))
    }
}

/// The seed a thread is at; `None`: it is through.
fn at(desk: &Desk) -> Option<(u64, Instant)> {
    *desk.lock().unwrap_or_else(PoisonError::into_inner)
}
