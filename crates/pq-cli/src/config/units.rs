//! Sizes and durations as people write them: `64MiB`, `10 MB`, `4096`; `50ms`, `1.5s`, `2h`.
//!
//! Not a place for meaning: whether a value makes sense is checked where it is used.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A count of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const SPANS: &[(&str, f64)] = &[
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

const SIZE_EXPECTED: &str = "a size such as 4096, \"512KiB\", \"64MiB\" or \"10MB\"";
const SPAN_EXPECTED: &str = "a duration such as \"50ms\", \"1s\", \"2m\" or \"1h\"";

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let number: u64 = number.replace('_', "").parse().map_err(|_| expected(text, SIZE_EXPECTED))?;
        let (_, factor) =
            SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(|| expected(text, SIZE_EXPECTED))?;
        number.checked_mul(*factor).map(Self).ok_or_else(|| format!("`{text}` is more than 2^64 bytes"))
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let number: f64 = number.parse().map_err(|_| expected(text, SPAN_EXPECTED))?;
        let (_, factor) =
            SPANS.iter().find(|(name, _)| *name == unit).ok_or_else(|| expected(text, SPAN_EXPECTED))?;
        Duration::try_from_secs_f64(number * factor).map(Self).map_err(|_| expected(text, SPAN_EXPECTED))
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim())
}

fn expected(found: &str, what: &str) -> String {
    format!("`{found}` is not {what}")
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SIZE_EXPECTED)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Size, E> {
        u64::try_from(value).map(Size).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Size, E> {
        Ok(Size(value))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Size, E> {
        value.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SPAN_EXPECTED)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Span, E> {
        value.parse().map_err(E::custom)
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
