//! `pq-sim enumerate`: every scenario stopped at every call, on a few threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use sim::Violation;
use sim::enumerate::{Sampling, Tally, calls_of, enumerate_call};
use sim::scenario::{Scenario, scenarios};

/// How much is drawn where not everything can be listed.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Ends inside a recovery, for each medium of a scenario of many calls.
    #[arg(long, default_value_t = 12)]
    second: u64,
    /// Ends inside a second recovery, for each medium.
    #[arg(long, default_value_t = 30)]
    third: u64,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Only scenarios whose name holds this.
    #[arg(long)]
    only: Option<String>,
}

/// Violations that are printed in full.
const SHOWN_MAX: usize = 10;

struct Work {
    scenario: usize,
    call: u64,
    calls: u64,
}

/// Runs the check; whether it passed.
pub(crate) fn run(arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let is_wanted =
        |scenario: &Scenario| arguments.only.as_ref().is_none_or(|only| scenario.name.contains(only));
    let all: Vec<Scenario> = scenarios().into_iter().filter(is_wanted).collect();
    let mut work = Vec::new();
    let mut violations: Vec<Violation> = Vec::new();
    for (scenario, of) in all.iter().enumerate() {
        match calls_of(of) {
            Ok(calls) => work.extend((0..=calls).map(|call| Work { scenario, call, calls })),
            Err(violation) => violations.push(violation),
        }
    }
    let sampling = Sampling { second: arguments.second, third: arguments.third };
    let tallies = Mutex::new(vec![Tally::default(); all.len()]);
    let found = Mutex::new(violations);
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(scenario) = all.get(item.scenario) else { continue };
                    match enumerate_call(scenario, item.call, item.calls, sampling) {
                        Ok(tally) => {
                            let mut tallies = locked(&tallies);
                            tallies.get_mut(item.scenario).into_iter().for_each(|sum| sum.add(&tally));
                        }
                        Err(violation) => locked(&found).push(violation),
                    }
                }
            });
        }
    });
    let tallies = tallies.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let violations = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report(&all, &tallies, &violations, begun.elapsed().as_secs_f64())
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn report(all: &[Scenario], tallies: &[Tally], violations: &[Violation], seconds: f64) -> bool {
    let mut sum = Tally::default();
    println!(
        "{:40} {:>6} {:>9} {:>9} {:>10} {:>9}",
        "scenario", "calls", "ends", "media", "in recov.", "and again"
    );
    for (scenario, tally) in all.iter().zip(tallies) {
        sum.add(tally);
        println!(
            "{:40} {:6} {:9} {:9} {:10} {:9}",
            scenario.name, tally.calls, tally.states, tally.media, tally.second_states, tally.third_states
        );
    }
    for violation in violations.iter().take(SHOWN_MAX) {
        println!("{violation}");
    }
    println!(
        "enumerate: {} scenarios, {} calls, {} ends, {} media, {} ends inside recovery, {} twice, {} violations, {seconds:.0} s {}",
        all.len(),
        sum.calls,
        sum.states,
        sum.media,
        sum.second_states,
        sum.third_states,
        violations.len(),
        if violations.is_empty() { "OK" } else { "FAILED" }
    );
    violations.is_empty()
}
