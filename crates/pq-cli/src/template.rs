//! Names with places to fill in, such as `out/{stream}.log`, and stream names made safe for use in a path.

use crate::glob::matches_name;

/// A text with `{field}` places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(String);

impl Template {
    /// Checks that only these fields are used.
    pub(crate) fn new(text: &str, fields: &[&str]) -> Result<Self, String> {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let tail = &rest[open + 1..];
            let Some(close) = tail.find('}') else {
                return Err(format!("`{text}` has a `{{` without its `}}`"));
            };
            let field = &tail[..close];
            if !fields.contains(&field) {
                return Err(format!("`{{{field}}}` cannot be used here, expected {}", listed(fields)));
            }
            rest = &tail[close + 1..];
        }
        if text.is_empty() {
            Err("expected a text that is not empty".to_owned())
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Whether it has this field.
    pub(crate) fn uses(&self, field: &str) -> bool {
        self.0.contains(&format!("{{{field}}}"))
    }

    /// Whether it has no field at all.
    pub(crate) fn is_plain(&self) -> bool {
        !self.0.contains('{')
    }

    /// The text with the fields filled in.
    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        values
            .iter()
            .fold(self.0.clone(), |text, (field, value)| text.replace(&format!("{{{field}}}"), value))
    }
}

fn listed(fields: &[&str]) -> String {
    fields.iter().map(|field| format!("`{{{field}}}`")).collect::<Vec<_>>().join(" or ")
}

/// A stream's name as a file name: what is special in a path, and `%`, becomes `%xx`, so that two names never meet.
pub(crate) fn path_safe(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        if matches!(c, '/' | '\\' | '%' | '{' | '}') || c.is_control() || (at == 0 && c == '.') {
            for byte in c.to_string().bytes() {
                safe.push_str(&format!("%{byte:02x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether any of the patterns matches a stream's name.
pub(crate) fn any_matches(patterns: &[String], stream: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || matches_name(pattern.as_bytes(), stream.as_bytes()))
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
