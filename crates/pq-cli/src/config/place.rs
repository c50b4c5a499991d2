//! Where in the configuration file something is wrong, and a message that says so: file, line, field, what was expected, what to do.
//!
//! ```text
//! pipeline.toml:7: field `queue.wake`: unknown variant `sginal`, expected `signal` or `poll`
//!   7 | wake = "sginal"
//!     |        ^^^^^^^^
//!   help: …
//! ```

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The text of a configuration file and its name, to point into.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) path: PathBuf,
    pub(crate) body: String,
}

/// What is wrong with one place of the file.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The field's dotted name; empty if there is none.
    pub(crate) field: String,
    /// What was found and what was expected.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: String,
    pub(crate) span: Option<Range<usize>>,
}

impl Text {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let body = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!("{}: the configuration cannot be read: {error}", path.display()))
                .help("give the path of a TOML file; `pq run --help` shows one")
        })?;
        Ok(Self { path: path.to_owned(), body })
    }

    /// The message for a person, with the line shown.
    pub(crate) fn failure(&self, wrong: &Wrong) -> Failure {
        let mut text = String::new();
        let _ = self.render(&mut text, wrong);
        Failure::new(text).help(wrong.help.clone())
    }

    /// From the TOML parser's own error.
    pub(crate) fn parse_failure(&self, error: &toml::de::Error) -> Failure {
        let span = error.span();
        let field = span.as_ref().map(|span| self.field_at(span.start)).unwrap_or_default();
        self.failure(&Wrong {
            field,
            message: error.message().trim_end().replace('\n', ", "),
            help: help_for(error.message()).to_owned(),
            span,
        })
    }

    fn render(&self, f: &mut impl fmt::Write, wrong: &Wrong) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        let start = wrong.span.as_ref().map(|span| span.start);
        if let Some(start) = start {
            write!(f, ":{}", self.line_number(start))?;
        }
        if !wrong.field.is_empty() {
            write!(f, ": field `{}`", wrong.field)?;
        }
        write!(f, ": {}", wrong.message)?;
        let Some(span) = &wrong.span else { return Ok(()) };
        let (line_start, line) = self.line_at(span.start);
        let number = self.line_number(span.start).to_string();
        let before = self.body.get(line_start..span.start).unwrap_or("").chars().count();
        let line_end = line_start + line.len();
        let marked = self.body.get(span.start..span.end.min(line_end)).unwrap_or("").chars().count().max(1);
        let gutter = " ".repeat(number.len());
        write!(f, "\n  {number} | {line}\n  {gutter} | {}{}", " ".repeat(before), "^".repeat(marked))
    }

    fn line_number(&self, at: usize) -> usize {
        self.body.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn line_at(&self, at: usize) -> (usize, &str) {
        let at = at.min(self.body.len());
        let before = self.body.get(..at).unwrap_or("");
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = self.body.get(start..).unwrap_or("");
        (start, rest.lines().next().unwrap_or(""))
    }

    /// The dotted name of the field at this byte: the nearest table header above, and the key at the start of the line.
    fn field_at(&self, at: usize) -> String {
        let (start, line) = self.line_at(at);
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        let above = self.body.get(..start).unwrap_or("");
        let table = above.lines().rev().map(str::trim).find(|line| line.starts_with('['));
        let table = table.and_then(|line| line.split(']').next()).unwrap_or("").trim_matches(['[', ' ']);
        match (table.is_empty(), key.is_empty()) {
            (false, false) => format!("{table}.{key}"),
            (true, false) => key.to_owned(),
            _ => String::new(),
        }
    }
}

fn help_for(message: &str) -> &'static str {
    if message.contains("unknown field") {
        "correct the name or remove the line; `pq run --help` lists every field"
    } else if message.contains("missing field `queue`") {
        "add a [queue] table with `dir = \"…\"`; `pq run --help` shows an example"
    } else if message.contains("missing field") {
        "add the field to this table; `pq run --help` shows an example"
    } else if message.contains("invalid type")
        || message.contains("invalid value")
        || message.contains("is more than")
        || message.contains("unknown variant")
        || message.contains("is not a")
    {
        "change the value to one of the kind that is expected"
    } else {
        "this is not valid TOML: correct the line"
    }
}
