//! Line coverage of the crates that hold data, and the error arms that no test runs.
//!
//! `cargo llvm-cov` runs the tests of those crates, and of no other: each shall be held by its own. This reads its lcov file. Lines of tests do not count.
//! An error arm is a line that makes, returns or matches an `Err`, or maps one: where such a line is never run, nobody knows what
//! happens there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::pipeline::Scratch;
use crate::shell::{command, must, root, verdict};

/// Folders under `crates` and the least share of lines, in percent, that their tests must run.
const CRATES: [(&str, u64); 3] = [("wal-store", 90), ("offsets", 90), ("scheduler", 90)];
const PACKAGES: [&str; 3] = ["wal-store", "offsets", "pq-scheduler"];

/// How often each line of a file was run.
type Lines = BTreeMap<usize, u64>;

/// Lines of one crate.
#[derive(Default)]
struct Counted {
    lines: u64,
    run: u64,
    arms: Vec<String>,
}

/// Runs the tests with instrumentation and prints what they did not reach.
pub(crate) fn run() -> Result<()> {
    let has = Command::new("cargo").args(["llvm-cov", "--version"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!("coverage: SKIPPED, no cargo-llvm-cov here (cargo install cargo-llvm-cov)");
        return Ok(());
    }
    let scratch = Scratch::new("coverage")?;
    let lcov = scratch.path().join("lcov.info");
    let mut test = command("cargo llvm-cov test --quiet --lcov --output-path");
    test.arg(&lcov);
    for package in PACKAGES {
        test.args(["--package", package]);
    }
    must(&mut test)?;
    let files = parse(&fs::read_to_string(&lcov).context("cargo llvm-cov left no report")?);
    let mut found = Vec::new();
    let mut figures = Vec::new();
    let mut arms_count = 0;
    for (name, least) in CRATES {
        let counted = count(name, &files)?;
        counted.arms.iter().for_each(|arm| println!("not run: {arm}"));
        arms_count += counted.arms.len();
        let tenths = counted.run * 1000 / counted.lines.max(1);
        figures.push(format!("{name} {}.{} % of {} lines", tenths / 10, tenths % 10, counted.lines));
        if tenths < least * 10 {
            found.push(format!("{name}: less than {least} % of its lines are run"));
        }
    }
    verdict("coverage", &format!("{}, {arms_count} error arms not run", figures.join(", ")), &found)?;
    scratch.passed();
    Ok(())
}

/// Lines by file of an lcov report.
fn parse(text: &str) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    let mut lines = None;
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            lines = Some(files.entry(path.to_owned()).or_default());
        } else if let (Some(rest), Some(lines)) = (line.strip_prefix("DA:"), &mut lines) {
            let mut numbers = rest.split(',').map(str::parse::<u64>);
            if let (Some(Ok(number)), Some(Ok(count))) = (numbers.next(), numbers.next()) {
                *lines.entry(usize::try_from(number).unwrap_or(usize::MAX)).or_insert(0) += count;
            }
        }
    }
    files
}

fn count(name: &str, files: &BTreeMap<String, Lines>) -> Result<Counted> {
    let source = root().join("crates").join(name).join("src");
    let mut counted = Counted::default();
    for (path, lines) in files {
        let Ok(short) = Path::new(path).strip_prefix(&source) else { continue };
        let short = short.to_string_lossy();
        if is_test(&short) {
            continue;
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        counted.lines += lines.len() as u64;
        counted.run += lines.values().filter(|count| **count > 0).count() as u64;
        let arms =
            arms_not_run(&text, lines).map(|(number, code)| format!("{name}/src/{short}:{number}: {code}"));
        counted.arms.extend(arms);
    }
    Ok(counted)
}

fn is_test(path: &str) -> bool {
    path.contains("tests/") || path.ends_with("tests.rs") || path.ends_with("build.rs")
}

fn arms_not_run<'a>(text: &'a str, lines: &'a Lines) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let code = line.trim();
        let is_arm = ["Err(", "map_err(", "Error::", "or_else("].iter().any(|word| code.contains(word));
        let never = lines.get(&(index + 1)) == Some(&0);
        (is_arm && never && !code.starts_with("//")).then_some((index + 1, code))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_run_if_any_test_binary_runs_it() {
        let files = parse("SF:/a.rs\nDA:1,0\nDA:2,3\nend_of_record\nSF:/a.rs\nDA:1,2\nend_of_record\n");
        assert_eq!(files["/a.rs"], Lines::from([(1, 2), (2, 3)]));
    }

    #[test]
    fn an_error_arm_that_nobody_ran_is_listed() {
        let text = "match x {\n    Ok(a) => a,\n    Err(e) => return e,\n}\n// Err( in a comment\n";
        let lines = Lines::from([(1, 1), (2, 1), (3, 0), (5, 0)]);
        assert_eq!(arms_not_run(text, &lines).collect::<Vec<_>>(), [(3, "Err(e) => return e,")]);
        assert_eq!(arms_not_run(text, &Lines::from([(3, 1)])).count(), 0);
    }
}
