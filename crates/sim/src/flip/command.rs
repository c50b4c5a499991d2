//! `pq-sim flip`: makes all trials, prints what each family came to, and ends in one line.

use std::time::Instant;

use crate::flip::{Effort, run, specimens};

/// Runs all trials, every how-manieth of each family; `true` if nothing was outside the rules.
#[must_use]
pub fn flip(every: u64) -> bool {
    let begun = Instant::now();
    let specimens = specimens();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // A trial that panics is counted and named; its backtrace says nothing that the harm does not.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = run(&specimens, Effort { threads, every: every.max(1) });
    std::panic::set_hook(hook);
    for line in &outcome.lines {
        println!("flip: {line}");
    }
    for violation in &outcome.violations {
        eprintln!("flip: {violation}");
    }
    let trials: Vec<String> =
        outcome.trial_counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let figures = format!(
        "{}, {} records lost and told, {} trials outside the rules, {} panics, {:.0} s",
        trials.join(", "),
        outcome.lost_count,
        outcome.violation_count,
        outcome.panic_count,
        begun.elapsed().as_secs_f64()
    );
    match outcome.violations.first() {
        None => println!("flip: {figures} OK"),
        Some(first) => println!("flip: {figures} FAILED {first}"),
    }
    outcome.violations.is_empty()
}
