//! Runs every fuzz target for a while, each under a limit of memory and of time for one input, and prints what was executed.
//!
//! The targets are those of `fuzz/Cargo.toml`. What a run finds on the way goes to `fuzz/target/grown`, and the kept corpus stays as it is.
//! It needs a nightly toolchain and cargo-fuzz; where one of them is missing the check says
//! SKIPPED, with the reason. What was found once is replayed by `cargo test` on stable, so nothing rests on this check alone.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::shell::{command, root, verdict};

/// Most memory of a target, and of one allocation, in MiB.
const MEMORY_MB_MAX: u64 = 256;
/// Most time of one input, in seconds.
const INPUT_SECONDS_MAX: u64 = 10;
/// Longest input, in bytes.
const INPUT_BYTES_MAX: u64 = 8 << 10;

/// How long, and how many at once.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target.
    #[arg(long)]
    target: Option<String>,
    /// Targets that run at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

/// What one target came to.
struct Run {
    target: String,
    executions: u64,
    peak_mb: u64,
    failed: Option<String>,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.seconds > 0 && arguments.jobs > 0, "--seconds and --jobs must be at least 1");
    if let Some(missing) = missing() {
        println!("fuzz: SKIPPED {missing}");
        return Ok(());
    }
    let targets = targets(&fs::read_to_string(root().join("fuzz/Cargo.toml"))?);
    let targets: Vec<_> =
        targets.into_iter().filter(|t| arguments.target.as_ref().is_none_or(|only| only == t)).collect();
    ensure!(!targets.is_empty(), "there is no such target");
    let built = cargo_fuzz().args(["build", "--sanitizer", "none"]).status()?;
    ensure!(built.success(), "the targets do not build");
    let begun = Instant::now();
    let runs = run_all(&targets, arguments)?;
    let mut found = Vec::new();
    for run in &runs {
        println!("fuzz: {}: {} executions, at most {} MiB", run.target, run.executions, run.peak_mb);
        found.extend(run.failed.iter().map(|what| format!("{}: {what}", run.target)));
    }
    let executions: u64 = runs.iter().map(|run| run.executions).sum();
    let figures = format!(
        "{} targets, {executions} executions, {} s each, at most {MEMORY_MB_MAX} MiB, {:.0} s in all",
        runs.len(),
        arguments.seconds,
        begun.elapsed().as_secs_f64()
    );
    verdict("fuzz", &figures, &found)
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    let works = |line: &str| {
        let ran = command(line).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.is_ok_and(|status| status.success())
    };
    if !works("cargo +nightly --version") {
        return Some("no nightly toolchain: rustup toolchain install nightly");
    }
    if !works("cargo +nightly fuzz --version") {
        return Some("no cargo-fuzz: cargo install cargo-fuzz");
    }
    None
}

fn cargo_fuzz() -> Command {
    let mut command = command("cargo +nightly fuzz");
    // The target directory of the workspace is another toolchain's.
    command.env_remove("CARGO_TARGET_DIR");
    command
}

/// The names of the manifest's programs.
fn targets(manifest: &str) -> Vec<String> {
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    let bins = lines.windows(2).filter(|pair| pair[0] == "[[bin]]");
    bins.filter_map(|pair| Some(pair[1].strip_prefix("name = \"")?.trim_end_matches('"').to_owned()))
        .collect()
}

fn run_all(targets: &[String], arguments: &Arguments) -> Result<Vec<Run>> {
    let (next, runs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = run_one(target, arguments.seconds);
                    runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(run);
                }
            });
        }
    });
    let mut runs: Vec<Run> = runs
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .into_iter()
        .collect::<Result<_>>()?;
    runs.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(runs)
}

fn run_one(target: &str, seconds: u64) -> Result<Run> {
    // New inputs are written to the first of the corpora.
    let grown = root().join("fuzz/target/grown").join(target);
    fs::create_dir_all(&grown).with_context(|| format!("cannot make {}", grown.display()))?;
    let mut command = cargo_fuzz();
    command.args(["run", "--sanitizer", "none", target]);
    command.arg(grown).arg(root().join("fuzz/corpus").join(target));
    command.args(["--", "-print_final_stats=1", "-use_value_profile=1"]);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-rss_limit_mb={MEMORY_MB_MAX}"),
        format!("-malloc_limit_mb={MEMORY_MB_MAX}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-max_len={INPUT_BYTES_MAX}"),
    ]);
    let output = command.output().with_context(|| format!("could not start the target {target}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let stat = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    let failed = (!output.status.success()).then(|| why(&said));
    Ok(Run {
        target: target.to_owned(),
        executions: stat("stat::number_of_executed_units:"),
        peak_mb: stat("stat::peak_rss_mb:"),
        failed,
    })
}

/// The lines that say what went wrong, the message of a panic among them, and where the input is.
fn why(said: &str) -> String {
    let telling = ["panicked at", "ERROR:", "Test unit written to"];
    let tells = |line: &str| telling.iter().any(|mark| line.contains(mark));
    let before = std::iter::once("").chain(said.lines());
    let lines =
        before.zip(said.lines()).filter(|(before, line)| tells(line) || before.contains("panicked at"));
    let text: Vec<&str> = lines.map(|(_, line)| line).take(5).collect();
    if text.is_empty() { said.lines().last().unwrap_or("it failed").to_owned() } else { text.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_programs_of_the_manifest() {
        let manifest =
            "[package]\nname = \"x\"\n\n[[bin]]\nname = \"a\"\npath = \"a.rs\"\n\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(manifest), ["a", "b"]);
    }

    #[test]
    fn what_went_wrong_is_told() {
        let said =
            "INFO: x\nthread 'main' panicked at src/a.rs:1:\nno\n   0: f\n./Test unit written to crash-1\n";
        assert_eq!(why(said), "thread 'main' panicked at src/a.rs:1:; no; ./Test unit written to crash-1");
        assert_eq!(why("error: no such target\n"), "error: no such target");
    }
}
