//! `pq-sim hunt`: looks for a violation, seed after seed, and stops at the first. For seeded bugs: there should be one.

use clap::Args;
use sim::{Shape, SyncSite, run_seed, run_witnesses};

/// How long, and for what.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seeds to try.
    #[arg(long, default_value_t = 20_000)]
    seeds: u64,
    /// A sync site whose syncs do nothing.
    #[arg(long)]
    ignore_site: Option<String>,
}

/// Fixed scenarios are tried with so many of the first seeds.
const WITNESS_SEEDS: u64 = 300;

/// Looks; what it found stands in its last line.
pub(crate) fn run(arguments: Arguments) -> bool {
    std::panic::set_hook(Box::new(|_| {}));
    // A site's name lives as long as the program.
    let ignored: Vec<SyncSite> = arguments
        .ignore_site
        .into_iter()
        .map(|name| SyncSite::new(Box::leak(name.into_boxed_str())))
        .collect();
    let shape = Shape { ignored_sites: ignored.clone(), ..Shape::default() };
    for seed in 1..=arguments.seeds {
        let mut found = run_seed(seed, &shape).violation;
        if found.is_none() && seed <= WITNESS_SEEDS {
            found =
                run_witnesses(seed, &|disk| ignored.iter().for_each(|site| disk.ignore_site(*site))).err();
        }
        if let Some(found) = found {
            println!("hunt: caught by seed {seed}: {found}");
            return true;
        }
    }
    println!("hunt: survived {} seeds", arguments.seeds);
    true
}
