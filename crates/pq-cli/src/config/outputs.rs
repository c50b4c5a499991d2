//! Two file sinks that would write to one file, as far as the configuration alone can tell; what links and streams that come later bring
//! together is found when the outputs are claimed.

use std::path::Path;

use super::file::FileSink;
use super::{Wrong, wrong};
use crate::template::{Template, any_matches};

/// Refuses the second of two sinks with one path, unless `{stream}` and their `streams` keep them apart.
pub(super) fn check(tables: &[FileSink]) -> Result<(), Wrong> {
    for (index, second) in tables.iter().enumerate() {
        let Some(first) = tables.iter().take(index).find(|first| meet(first, second)) else { continue };
        let message = format!(
            "is the path of two sinks: consumer `{}` and consumer `{}`",
            consumer(first),
            consumer(second)
        );
        let help = "give each [[sink.file]] a `path` of its own; with `{stream}` in it, `streams` that do not overlap do, too";
        return Err(wrong("sink.file.path", &second.path, message, help));
    }
    Ok(())
}

fn consumer(table: &FileSink) -> &str {
    table.consumer.as_ref().map_or("file", |name| name.get_ref().as_str())
}

fn meet(first: &FileSink, second: &FileSink) -> bool {
    // By components: `./out.log` is `out.log`.
    let [first_path, second_path] = [first, second].map(|table| Path::new(".").join(table.path.get_ref()));
    if first_path != second_path {
        return false;
    }
    let is_plain = Template::new(second.path.get_ref(), &["stream"]).is_ok_and(|path| path.is_plain());
    is_plain || overlap(&patterns(first), &patterns(second))
}

fn patterns(table: &FileSink) -> Vec<String> {
    let named = table.streams.as_ref();
    named.map_or_else(|| vec!["*".to_owned()], |names| names.iter().map(|n| n.get_ref().clone()).collect())
}

/// Whether a pattern of one is one of the other, or matches it.
fn overlap(first: &[String], second: &[String]) -> bool {
    first.iter().any(|pattern| second.contains(pattern) || any_matches(second, pattern))
        || second.iter().any(|pattern| any_matches(first, pattern))
}
