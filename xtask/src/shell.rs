//! Starting programs: the workspace root, commands that must succeed, and the verdict line every check ends in.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder of the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// A command started in the workspace root, its words separated by blanks.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root());
    command
}

/// Runs a command with our own standard streams; an exit code other than 0 is an error.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("could not start {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed on its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("could not start {shown}"))?;
    if !output.status.success() {
        bail!("{shown}: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed something that is not UTF-8"))
}

/// Runs a command and returns what it printed on either stream; a failure says it.
pub(crate) fn quiet(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("could not start {shown}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    if !output.status.success() {
        bail!("{shown}: {}: {said}", output.status);
    }
    Ok(said)
}

/// Ends a check that this machine cannot run: no pass, and no failure.
pub(crate) fn skipped(name: &str, reason: &str) {
    println!("{name}: SKIPPED {reason}");
}

/// Ends a check: prints its one line, and fails if anything was found.
pub(crate) fn verdict(name: &str, figures: &str, found: &[String]) -> Result<()> {
    for line in found {
        eprintln!("{name}: {line}");
    }
    if found.is_empty() {
        println!("{name}: {figures} OK");
        return Ok(());
    }
    println!("{name}: {figures} FAILED {} of its rules, the first: {}", found.len(), found[0]);
    bail!("{name} failed")
}

fn show(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}
