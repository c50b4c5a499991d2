//! Records as JSON: one object a line, text where the payload is text, base64 where it is not.

use pq::RecordRef;
use serde::Serialize;

use crate::lines::has_line_feed;

/// One record as it is shown outside.
#[derive(Debug, Serialize)]
pub(crate) struct JsonRecord<'a> {
    stream: &'a str,
    seq: u64,
    /// Nanoseconds since 1970.
    appended_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "is_true")]
    line_feed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this form")]
fn is_true(value: &bool) -> bool {
    *value
}

impl<'a> JsonRecord<'a> {
    pub(crate) fn new(stream: &'a str, record: &RecordRef<'a>) -> Self {
        let line = std::str::from_utf8(record.payload).ok();
        Self {
            stream,
            seq: record.seq.get(),
            appended_at: record.appended_at.nanos(),
            line,
            base64: line.is_none().then(|| base64(record.payload)),
            line_feed: has_line_feed(record),
        }
    }

    /// Appends the object and a line feed.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // Writing to memory does not fail, and the object holds nothing that JSON cannot say.
        let _ = serde_json::to_writer(&mut *out, self);
        out.push(b'\n');
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let at = (word >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit <= three.len() { char::from(DIGITS[at]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
