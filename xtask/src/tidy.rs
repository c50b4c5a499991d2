//! House rules that no lint knows, held against the text of the sources.
//!
//! Each rule is a function from one file to what it found there; the tests below break each of them once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{command, output, root, verdict};

/// A source file may have this many lines before its tests.
const LINES_MAX: usize = 350;

/// Folder and file names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

/// One file of the repository: its path from the root, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    /// Files that hold tests only.
    fn is_test(&self) -> bool {
        let path = self.path.to_string_lossy();
        path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// Runs the check on every file git tracks or would track.
pub(crate) fn run() -> Result<()> {
    let listed = output(&mut command("git ls-files --cached --others --exclude-standard"))?;
    let mut sources = Vec::new();
    for path in listed.lines().map(PathBuf::from) {
        let full = root().join(&path);
        if is_text(&path) && full.is_file() {
            let text =
                fs::read_to_string(&full).with_context(|| format!("cannot read {}", path.display()))?;
            sources.push(Source { path, text });
        }
    }
    let found: Vec<_> = sources.iter().flat_map(check).collect();
    let lines: usize = sources.iter().map(|source| source.text.lines().count()).sum();
    verdict("tidy", &format!("{} files, {lines} lines", sources.len()), &found)
}

fn is_text(path: &Path) -> bool {
    let wanted = ["rs", "toml", "md"];
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| wanted.contains(&extension))
}

fn check(source: &Source) -> Vec<String> {
    let rules: [fn(&Source) -> Vec<String>; 6] =
        [says_nothing, blanks, opens, too_long, tests_that_wait, unfinished];
    rules.iter().flat_map(|rule| rule(source)).collect()
}

fn at(source: &Source, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", source.path.display())
}

/// No folder or file is named after nothing.
fn says_nothing(source: &Source) -> Vec<String> {
    let name_of = |part: &std::ffi::OsStr| {
        let text = part.to_string_lossy();
        text.strip_suffix(".rs").unwrap_or(&text).to_owned()
    };
    let empty = source.path.iter().map(name_of).find(|name| EMPTY_NAMES.contains(&name.as_str()));
    empty
        .map(|name| at(source, 1, &format!("`{name}` says nothing about what is inside")))
        .into_iter()
        .collect()
}

/// No blank at the end of a line, a line feed at the end of the file.
fn blanks(source: &Source) -> Vec<String> {
    let trailing = |line: &str| line.ends_with(' ') || line.ends_with('\t');
    let mut found: Vec<_> = source
        .lines()
        .filter(|(_, line)| trailing(line))
        .map(|(number, _)| at(source, number, "a blank at the end of the line"))
        .collect();
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        found.push(at(source, source.text.lines().count(), "no line feed at the end of the file"));
    }
    found
}

/// A Rust file says first what it is.
fn opens(source: &Source) -> Vec<String> {
    let exempt =
        !source.is_rust() || source.text.starts_with("//!") || source.text.starts_with("#![no_main]");
    if exempt {
        Vec::new()
    } else {
        vec![at(source, 1, "a file opens with `//!`: what it is and what it is not")]
    }
}

/// A file is one room.
fn too_long(source: &Source) -> Vec<String> {
    if !source.is_rust() || source.is_test() {
        return Vec::new();
    }
    let code = source.text.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
    // A test module declared in the middle of a file must not hide what stands behind it.
    let declared = source.text.contains("#[cfg(test)]\nmod tests;");
    let lines = if declared { source.text.lines().count() } else { code };
    if lines > LINES_MAX {
        return vec![at(
            source,
            LINES_MAX,
            &format!("{lines} lines before its tests, {LINES_MAX} are a room"),
        )];
    }
    Vec::new()
}

/// Tests neither sleep nor are left out.
fn tests_that_wait(source: &Source) -> Vec<String> {
    if !source.is_rust() {
        return Vec::new();
    }
    let sleep = concat!("thread::", "sleep(");
    let ignore = concat!("#[", "ignore");
    let behind_tests = source.text.find("#[cfg(test)]\nmod tests {").unwrap_or(usize::MAX);
    let mut offset = 0;
    let mut found = Vec::new();
    for (number, line) in source.lines() {
        let in_tests = source.is_test() || offset > behind_tests;
        if in_tests && (line.contains(sleep) || line.contains(concat!("time::", "sleep("))) {
            found.push(at(source, number, "a test sleeps: wait for the condition, or use virtual time"));
        }
        if line.trim_start().starts_with(ignore) {
            found.push(at(source, number, "a test that is not run is no test"));
        }
        offset += line.len() + 1;
    }
    found
}

/// Nothing half-done is left behind.
fn unfinished(source: &Source) -> Vec<String> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("<<<<", "<<<")];
    source
        .lines()
        .filter_map(|(number, line)| {
            let mark = marks.iter().find(|mark| line.contains(**mark))?;
            Some(at(source, number, &format!("`{mark}` was left behind")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Source { path: PathBuf::from(path), text: text.to_owned() })
    }

    #[test]
    fn a_clean_file_passes() {
        assert!(found("crates/disk/src/lib.rs", "//! Bytes.\nfn main() {}\n").is_empty());
    }

    #[test]
    fn each_broken_rule_is_found() {
        let sleeping = format!("//! T.\nfn f() {{ std::{}(d); }}\n", concat!("thread::", "sleep"));
        let ignored = format!("//! T.\n{}]\nfn f() {{}}\n", concat!("#[", "ignore"));
        let half_done = format!("//! T.\n// {}: later\n", concat!("TO", "DO"));
        for (path, text) in [
            ("crates/common/src/lib.rs", "//! T.\n"),
            ("crates/disk/src/helpers.rs", "//! T.\n"),
            ("docs/a.md", "blank \n"),
            ("docs/a.md", "no end"),
            ("crates/disk/src/a.rs", "fn f() {}\n"),
            ("crates/disk/src/a.rs", &format!("//! T.\n{}", "\n".repeat(LINES_MAX))),
            ("crates/disk/tests/a.rs", &sleeping),
            ("crates/disk/tests/a.rs", &ignored),
            ("crates/disk/src/a.rs", &half_done),
        ] {
            assert_eq!(found(path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn lines_of_a_test_module_do_not_count() {
        let text = format!("//! T.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(LINES_MAX));
        assert!(found("crates/disk/src/a.rs", &text).is_empty());
    }
}
