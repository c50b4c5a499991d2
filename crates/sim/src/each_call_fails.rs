//! `pq-sim faults`: every case of every scenario, scenarios shared out among a few threads. A run that hangs is named, and ends it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use sim::{Retry, Scenario, Tally, run_creation, run_parts, run_scenario, scenarios};

/// Which scenarios.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only those whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

/// No run takes nearly as long.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// What a thread is at, and since when.
type At = Mutex<Option<(String, Instant)>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Findings that are printed in full.
const SHOWN_MAX: usize = 20;

/// Runs the check; whether it passed.
pub(crate) fn run(arguments: &Arguments) -> bool {
    std::panic::set_hook(Box::new(|_| {}));
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|part| name.contains(part));
    let scenarios: Vec<Scenario> = scenarios().into_iter().filter(|scenario| wanted(scenario.name)).collect();
    let next = AtomicUsize::new(0);
    let mut sum = if wanted("create a queue") { run_creation() } else { Tally::default() };
    if wanted("room for part of a set") {
        sum.add(run_parts());
    }
    let sum = Mutex::new(sum);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at: Vec<At> = (0..arguments.threads.unwrap_or(cores).max(1)).map(|_| At::default()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&at, &is_over));
        let work = |at: &At| {
            while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                let tally = run_scenario(scenario, |case| {
                    *locked(at) = Some((format!("{}: {case}", scenario.name), Instant::now()));
                });
                let (calls, cases, found) = (tally.calls, tally.cases, tally.found.len());
                println!("{}: {calls} calls, {cases} cases, {found} wrong", scenario.name);
                locked(&sum).add(tally);
            }
            *locked(at) = None;
        };
        let workers: Vec<_> = at.iter().map(|at| scope.spawn(move || work(at))).collect();
        for worker in workers {
            let _ = worker.join();
        }
        is_over.store(true, Ordering::Release);
        watch.thread().unpark();
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (answer, count) in &sum.answers {
        let advice = match answer.retry {
            Some(Retry::Yes) => "try again",
            Some(Retry::No) => "do not try again",
            None => "no advice",
        };
        println!("told {count} times: {}, {}: {advice}", answer.verb, answer.failure);
    }
    sum.found.iter().take(SHOWN_MAX).for_each(|found| println!("{found}"));
    println!(
        "faults: simulated, {} scenarios, {} calls, {} cases, {} errors told, {} wrong {}",
        scenarios.len() + 2,
        sum.calls,
        sum.cases,
        sum.told,
        sum.found.len(),
        if sum.found.is_empty() { "OK".to_owned() } else { format!("FAILED {}", sum.found[0]) }
    );
    sum.found.is_empty()
}

/// Ends the program if a run does not come to its end.
fn watch(at: &[At], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        std::thread::park_timeout(Duration::from_secs(1));
        for at in at {
            if let Some((what, since)) = &*locked(at)
                && since.elapsed() > RUN_LIMIT
            {
                println!("faults: simulated FAILED {what}: it hangs");
                std::process::exit(1);
            }
        }
    }
}
