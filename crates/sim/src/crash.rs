//! `pq-sim crash`: random runs, one a seed, on a few threads. The order of threads changes nothing: hashes and counts are added up.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use sim::{
    Batches, Counts, Kind, Outcome, Shape, Violation, mix, operations_of, run_seed, run_watched, setup_of,
};

/// Which seeds, and how much is told.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// One seed only, with its operations.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints each operation before it is done.
    #[arg(long)]
    verbose: bool,
    /// A batch for each record, many of them to a sync: other runs than without.
    #[arg(long)]
    many_batches: bool,
    /// Each seed leaves some kinds of operations out and draws its streams' sizes: other runs than without.
    #[arg(long)]
    swarm: bool,
    /// Operations of each run; by default drawn by the seed.
    #[arg(long)]
    operations: Option<u64>,
}

/// Violations that are printed in full; of the others, kind and seed are.
const SHOWN_MAX: usize = 10;

#[derive(Default)]
struct Sum {
    seeds: u64,
    counts: Counts,
    hash: u64,
    violations: Vec<Violation>,
}

impl Sum {
    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.counts.add(&outcome.counts);
        self.hash = self.hash.wrapping_add(mix(outcome.trace_hash ^ mix(outcome.seed)));
        self.violations.extend(outcome.violation);
    }
}

/// Runs the check; whether it passed.
pub(crate) fn run(arguments: &Arguments) -> bool {
    // A panic is an outcome like any other; its text is printed with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let batches = if arguments.many_batches { Batches::OfOneRecord } else { Batches::Full };
    let shape =
        Shape { operations: arguments.operations, batches, swarm: arguments.swarm, ..Shape::default() };
    if let Some(seed) = arguments.seed {
        return replay(seed, &shape, arguments.verbose);
    }
    let begun = Instant::now();
    let next = AtomicU64::new(arguments.from);
    let end = arguments.from.saturating_add(arguments.seeds);
    let sum = Mutex::new(Sum::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| work(&next, end, &shape, &sum));
        }
    });
    let sum = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report(arguments, sum, begun.elapsed().as_secs_f64())
}

fn work(next: &AtomicU64, end: u64, shape: &Shape, sum: &Mutex<Sum>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = run_seed(seed, shape);
        sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(outcome);
    }
}

fn report(arguments: &Arguments, mut sum: Sum, seconds: f64) -> bool {
    sum.violations.sort_by_key(|violation| violation.seed);
    for violation in sum.violations.iter().take(SHOWN_MAX) {
        println!("{violation}");
        let many = if arguments.many_batches { " --many-batches" } else { "" };
        let swarm = if arguments.swarm { " --swarm" } else { "" };
        println!("  again: pq-sim crash --seed {}{many}{swarm} --verbose", violation.seed);
    }
    for violation in sum.violations.iter().skip(SHOWN_MAX) {
        println!("also: {} in seed {}", violation.kind, violation.seed);
    }
    let counts = &sum.counts;
    println!(
        "seeds {}..{}: {} power cuts, {} kills, {} recoveries, {} more stopped, {} records, {} deliveries, {} seqs in gaps, {} calls, \
         {seconds:.1} s",
        arguments.from,
        arguments.from + arguments.seeds,
        counts.power_cuts,
        counts.kills,
        counts.recoveries,
        counts.stopped_recoveries,
        counts.records,
        counts.delivered,
        counts.gap_seqs,
        counts.calls
    );
    println!("trace hash {:016x}", sum.hash);
    let mut of: BTreeMap<Kind, u64> = BTreeMap::new();
    sum.violations.iter().for_each(|violation| *of.entry(violation.kind).or_default() += 1);
    let count = |kind| of.get(&kind).copied().unwrap_or(0);
    let others: Vec<String> = of
        .iter()
        .filter(|(kind, _)| ![Kind::Lost, Kind::Resurrected, Kind::OutOfOrder, Kind::Stuck].contains(kind))
        .map(|(kind, count)| format!(", {count} {kind}"))
        .collect();
    println!(
        "crash: {} seeds, {} power cuts, {} lost, {} resurrected, {} out of order, {} stuck{} {}",
        sum.seeds,
        counts.power_cuts,
        count(Kind::Lost),
        count(Kind::Resurrected),
        count(Kind::OutOfOrder),
        count(Kind::Stuck),
        others.concat(),
        if sum.violations.is_empty() {
            "OK".to_owned()
        } else {
            format!("FAILED {} seeds", sum.violations.len())
        }
    );
    sum.violations.is_empty()
}

/// One seed, for people.
fn replay(seed: u64, shape: &Shape, verbose: bool) -> bool {
    let setup = setup_of(seed, shape);
    if verbose {
        println!("{:#?}", setup.streams);
    }
    let outcome = run_watched(setup, &operations_of(seed, shape), &mut |step, operation, world| {
        if verbose {
            print!("{}", world.describe());
            println!("{step:4} {operation:?}");
        }
    });
    println!("{:?}", outcome.counts);
    println!("trace hash {:016x}", outcome.trace_hash);
    match &outcome.violation {
        Some(violation) => println!("crash: seed {seed} FAILED {violation}"),
        None => println!("crash: seed {seed} OK"),
    }
    outcome.violation.is_none()
}
