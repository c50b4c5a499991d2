//! Which test covers which line of docs/scenarios.md.
//!
//! ```text
//!   // S33: a full disk …        a comment above a test, its doc, or a comment in its body
//!   #[test]
//!   fn name() { … }              S33 ← name
//! ```
//! It reads comments, not strings, and knows test functions by their attribute, so that a mention elsewhere does not count. Lists
//! (`S03 S04`) and ranges (`S08–S10`) name each of their ids. Whether a test does what the line says, only a reader can judge:
//! the listing is there to be read beside docs/scenarios.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::shell::{command, output, root, verdict};

/// Ids up to this one must have a test; later ones are listed as information.
const MUST: u8 = 60;

/// A scenario's number: 33 of `S33`.
type Id = u8;

/// One test function and the scenarios its comments name.
#[derive(Debug, PartialEq, Eq)]
struct Test {
    name: String,
    ids: BTreeSet<Id>,
}

/// Lists all scenarios with their tests.
pub(crate) fn run() -> Result<()> {
    let text =
        fs::read_to_string(root().join("docs/scenarios.md")).context("cannot read docs/scenarios.md")?;
    let lines = scenarios(&text);
    ensure!((1..=MUST).all(|id| lines.contains_key(&id)), "docs/scenarios.md lacks a line of S01 to S{MUST}");
    let listed = output(&mut command("git ls-files --cached --others --exclude-standard -- *.rs"))?;
    let mut tests_of: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    let mut naming = BTreeSet::new();
    for path in listed.lines().filter(|path| root().join(path).is_file()) {
        let text = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
        for test in tests(&text) {
            let shown = format!("{}: {}", short(path), test.name);
            for id in test.ids {
                tests_of.entry(id).or_default().push(shown.clone());
                if id <= MUST {
                    naming.insert(shown.clone());
                }
            }
        }
    }
    for id in lines.keys() {
        let tests = tests_of.get(id).map_or_else(|| "-".to_owned(), |tests| tests.join(", "));
        println!("S{id:02} {tests}");
    }
    let mut found: Vec<_> = tests_of
        .iter()
        .filter(|(id, _)| !lines.contains_key(id))
        .map(|(id, tests)| format!("S{id:02} is no scenario, but {} names it", tests[0]))
        .collect();
    let missing = (1..=MUST).filter(|id| !tests_of.contains_key(id));
    found.extend(missing.map(|id| format!("S{id:02} has no test: {}", lines[&id])));
    let named = (1..=MUST).filter(|id| tests_of.contains_key(id)).count();
    verdict("scenarios", &format!("{named} of {MUST} named by {} tests", naming.len()), &found)
}

/// The lines `- S33 what to try …`, by id.
fn scenarios(text: &str) -> BTreeMap<Id, &str> {
    let line = |line| {
        let rest = str::strip_prefix(line, "- ")?;
        let (id, length) = id_at(rest)?;
        Some((id, rest.get(length..).unwrap_or_default().trim()))
    };
    text.lines().filter_map(line).collect()
}

fn short(path: &str) -> &str {
    path.strip_prefix("crates/").unwrap_or(path)
}

/// All test functions of a file that name a scenario. The file is formatted: a function ends at the brace below its `fn`.
fn tests(text: &str) -> Vec<Test> {
    let mut found = Vec::new();
    let mut above = BTreeSet::new();
    let (mut is_test, mut in_attribute) = (false, false);
    let mut inside: Option<(usize, Test)> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if let Some((fn_indent, test)) = &mut inside {
            test.ids.extend(ids(comment(line)));
            if indent <= *fn_indent && code.starts_with('}') {
                found.extend(inside.take().map(|(_, test)| test));
            }
            continue;
        }
        if in_attribute || code.starts_with("#[") {
            is_test |= is_test_attribute(code);
            in_attribute = !code.ends_with(']');
        } else if code.starts_with("//") {
            above.extend(ids(code));
        } else if let Some(name) = function_name(code) {
            let test = Test { name: name.to_owned(), ids: std::mem::take(&mut above) };
            if std::mem::take(&mut is_test) {
                if code.ends_with('}') {
                    found.push(test);
                } else {
                    inside = Some((indent, test));
                }
            }
        } else {
            above.clear();
            is_test = false;
        }
    }
    found.retain(|test| !test.ids.is_empty());
    found
}

fn is_test_attribute(code: &str) -> bool {
    ["#[test]", "#[tokio::test"].iter().any(|start| code.starts_with(start))
}

fn function_name(code: &str) -> Option<&str> {
    let code = code.strip_prefix("async ").unwrap_or(code);
    let rest = code.strip_prefix("fn ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// What stands behind the first `//` outside a string.
fn comment(line: &str) -> &str {
    let mut quoted = false;
    let mut before = '\0';
    for (at, c) in line.char_indices() {
        match c {
            '"' if before != '\\' && before != '\'' => quoted = !quoted,
            '/' if before == '/' && !quoted => return line.get(at..).unwrap_or_default(),
            _ => {}
        }
        before = c;
    }
    ""
}

/// Every id of a comment; a range names all between its ends.
fn ids(comment: &str) -> BTreeSet<Id> {
    let mut found = BTreeSet::new();
    let mut open_range: Option<Id> = None;
    let mut rest = comment;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        if !before.is_alphanumeric()
            && let Some((id, length)) = id_at(rest)
        {
            found.extend(open_range.take().unwrap_or(id)..=id);
            rest = rest.get(length..).unwrap_or_default();
            open_range = rest.starts_with(['–', '-', '…']).then_some(id);
            before = '0';
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if !matches!(c, '–' | '-' | '…') {
            open_range = None;
        }
        before = c;
    }
    found
}

/// `S` and two digits at the start of a text, and no third; with their length.
fn id_at(text: &str) -> Option<(Id, usize)> {
    let digits = text.strip_prefix('S')?;
    let id = digits.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_digit()))?;
    let ends = digits.chars().nth(2).is_none_or(|next| !next.is_alphanumeric());
    if ends { Some((id.parse().ok()?, 3)) } else { None }
}

#[cfg(test)]
#[path = "scenarios_tests.rs"]
mod scenarios_tests;
