//! Faults of real kernels under a queue at work: no room, no inodes, no quota, a thin disk, read-only, too few descriptors, files that
//! may not grow, interruptions, a slow disk.
//!
//! ```text
//!   witness works ─> the fault begins ─> it answers with a reason, nothing dies ─> the fault ends ─> it goes on by itself
//!   and in the next life, on the same disk: all that was promised is there
//! ```
//! What this machine cannot do is SKIPPED, with the reason.

mod limits;
mod room;
mod scene;
mod stuck;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::mounted::{Place, enter};
use crate::pipeline::Scratch;
use crate::power_cut::Programs;
use crate::shell::{skipped, verdict};
use scene::{Case, Outcome, Stage};

/// Which.
#[derive(Args)]
pub(crate) struct Arguments {
    /// On the simulated disk instead: every call of every scenario, every error, once and from then on.
    #[arg(long)]
    simulated: bool,
    /// `--only NAME`: cases whose name contains this; with --simulated as `pq-sim faults` takes them: `--only NAME`, `--threads T`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

const CASES: [Case; 13] = [
    ("full disk", room::full_disk),
    ("full disk at open", room::full_at_open),
    ("no inodes", room::no_inodes),
    ("quota", room::quota),
    ("thin disk", room::thin_disk),
    ("read-only at open", stuck::read_only_at_open),
    ("read-only by the kernel", stuck::read_only_by_the_kernel),
    ("read-only for a while", stuck::read_only_for_a_while),
    ("slow disk", stuck::slow_disk),
    ("few descriptors", limits::few_descriptors),
    ("no descriptors for a while", limits::no_descriptors_for_a_while),
    ("interruptions", limits::interruptions),
    ("file-size limit", limits::file_size_limit),
];

/// Runs the cases.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.simulated {
        return crate::sim::faults(&arguments.arguments);
    }
    let only = match arguments.arguments.as_slice() {
        [] => "",
        [flag, name] if flag == "--only" => name,
        other => bail!("{other:?} is not understood: `--only NAME`, or `--simulated`"),
    };
    match enter()? {
        Place::Inside => {}
        Place::Done => return Ok(()),
        Place::Skipped(reason) => {
            skipped("faults", &reason);
            return Ok(());
        }
    }
    let scratch = Scratch::new("faults")?;
    let programs = Programs::build(&["pq-queue-cli"])?;
    let (mut passed, mut skips, mut found) = (0, 0, Vec::new());
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(only)) {
        let stage = Stage::new(&programs, scratch.path(), name)?;
        match case(&stage).with_context(|| (*name).to_owned())? {
            Outcome::Skipped(reason) => {
                println!("{name}: SKIPPED {reason}");
                skips += 1;
            }
            Outcome::Ran { figures, broken } => {
                println!("{name}: {figures}");
                passed += u64::from(broken.is_empty());
                found.extend(broken.into_iter().map(|what| format!("{name}: {what}")));
            }
        }
    }
    let skipped = if skips > 0 { format!(", {skips} SKIPPED") } else { String::new() };
    verdict("faults", &format!("{passed} faults of real kernels{skipped}"), &found)?;
    scratch.passed();
    Ok(())
}
