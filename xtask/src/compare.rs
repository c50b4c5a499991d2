//! pq beside published crates that claim persistence, under the same kill -9, the same power cuts and the same flipped bits.
//!
//! ```text
//!   kill        writer killed after some acknowledged records │ copy read │ every acknowledged number must be there
//!   power cut   the same on ext4 and XFS on a loop file, shut down so that what was not synced is gone; acknowledgements are
//!               kept outside of that file system
//!   flips       a log written and closed in order; one bit flipped; read
//! ```
//! Every crate runs at the strongest setting its documentation names (`benches/src/peer/others.rs`). What is counted are records
//! acknowledged and missing, payloads that nobody wrote, readers that panicked or hung, and logs that refused to open. A folder
//! that lost or refused is not used again: each loss counts once. Findings about others fail nothing; one about pq does.

mod flips;
mod mounted;
mod rounds;
mod table;
mod trial;

use anyhow::{Result, ensure};
use clap::Args;

use crate::pipeline::{Random, Scratch, build_with};
use crate::shell::verdict;
use table::Row;
use trial::Peer;

const NAMES: [&str; 5] = ["pq", "okaywal", "queue-file", "walrus-rust", "yaque"];

/// How much of each.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Times each writer is killed.
    #[arg(long, default_value_t = 50)]
    kills: u64,
    /// Power cuts of each writer on each file system.
    #[arg(long, default_value_t = 30)]
    cuts: u64,
    /// Bits flipped, one at a time, in each crate's files.
    #[arg(long, default_value_t = 1000)]
    flips: u64,
    /// Only this one.
    #[arg(long)]
    only: Option<String>,
    /// What moments and bits follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all of it and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let names: Vec<_> =
        NAMES.iter().filter(|name| arguments.only.as_deref().is_none_or(|only| only == **name)).collect();
    ensure!(!names.is_empty(), "no crate is named {:?}", arguments.only);
    let scratch = Scratch::new("compare")?;
    let program = build_with("pq-bench", "pq-bench", "peers")?;
    let mut rows = Vec::new();
    for name in names {
        let peer = Peer::new(&program, name, scratch.path())?;
        let mut random = Random::new(arguments.seed);
        let mut row = Row::new(name, peer.setting()?);
        row.kills = rounds::kills(&peer, arguments.kills, &mut random)?;
        for (kind, place) in mounted::Kind::ALL.into_iter().zip(&mut row.cuts) {
            *place = match mounted::unavailable(kind) {
                Some(reason) => table::Cuts::Skipped(reason),
                None => table::Cuts::Made(rounds::cuts(&peer, kind, arguments.cuts, &mut random)?),
            };
        }
        row.flips = flips::run(&peer, arguments.flips, &mut random)?;
        println!("{}", row.details());
        rows.push(row);
    }
    print!("\n{}", table::markdown(&rows));
    println!(
        "compare: seed {}, {} kills, {} power cuts per file system, {} flips each",
        arguments.seed, arguments.kills, arguments.cuts, arguments.flips
    );
    let Some(ours) = rows.iter().find(|row| row.name == "pq") else {
        println!("compare: {} crates, pq was not among them OK", rows.len());
        scratch.passed();
        return Ok(());
    };
    let skipped: Vec<_> = ours.cuts.iter().filter_map(table::Cuts::skipped).collect();
    let others = if skipped.is_empty() { String::new() } else { format!(", SKIPPED {}", skipped.join("; ")) };
    let figures = format!(
        "{} crates; pq: {} lost in {} kills and {} power cuts, {} wrong payloads in {} flips{others}",
        rows.len(),
        ours.lost(),
        ours.kills.rounds,
        ours.cuts_made(),
        ours.wrong(),
        ours.flips.flips
    );
    verdict("compare", &figures, &ours.broken())?;
    scratch.passed();
    Ok(())
}
