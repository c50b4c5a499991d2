//! The configuration file as it is written: tables and fields, checked for names and types only. What the fields mean together is
//! checked by the plan made from them.
//!
//! Every table denies unknown fields. A field whose value is checked later keeps its span, so that the message can name the line.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::units::{Size, Span};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) queue: Queue,
    #[serde(default)]
    pub(crate) stream: Vec<Stream>,
    #[serde(default)]
    pub(crate) source: Sources,
    #[serde(default)]
    pub(crate) sink: Sinks,
}

/// `[queue]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    pub(crate) dir: Spanned<String>,
    pub(crate) wake: Option<Wake>,
    pub(crate) push_back: Option<Spanned<Span>>,
    pub(crate) pool_size: Option<Spanned<usize>>,
    pub(crate) lanes: Option<Spanned<usize>>,
    pub(crate) fds_max: Option<Spanned<usize>>,
    pub(crate) cursor_save_interval: Option<Spanned<Span>>,
    pub(crate) bytes_max: Option<Spanned<Size>>,
    pub(crate) reserve_bytes: Option<Spanned<Size>>,
    pub(crate) buffer_bytes_max: Option<Spanned<Size>>,
    pub(crate) turn_bytes_max: Option<Spanned<Size>>,
    pub(crate) backoff_first: Option<Spanned<Span>>,
    pub(crate) backoff_max: Option<Spanned<Span>>,
    pub(crate) stop_deadline: Option<Spanned<Span>>,
    pub(crate) sync: Option<Spanned<String>>,
    pub(crate) segment_bytes_max: Option<Spanned<Size>>,
    pub(crate) segment_age_max: Option<Spanned<Span>>,
    pub(crate) batch_bytes_max: Option<Spanned<Size>>,
    pub(crate) batch_records_max: Option<Spanned<u32>>,
    pub(crate) commit_interval: Option<Spanned<Span>>,
    pub(crate) record_bytes_max: Option<Spanned<Size>>,
    pub(crate) stream_bytes_max: Option<Spanned<Size>>,
    pub(crate) on_full: Option<Spanned<Full>>,
    pub(crate) age_max: Option<Spanned<Span>>,
}

/// What becomes of records that do not fit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Full {
    Block,
    Reject,
    DropOldest,
    DropNewest,
}

/// How a caught-up reader learns of new records.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wake {
    Signal,
    Poll,
}

/// `[[stream]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stream {
    pub(crate) name: Spanned<String>,
    pub(crate) count: Option<Spanned<u32>>,
    pub(crate) sync: Option<Spanned<String>>,
    pub(crate) segment_bytes_max: Option<Spanned<Size>>,
    pub(crate) segment_age_max: Option<Spanned<Span>>,
    pub(crate) batch_bytes_max: Option<Spanned<Size>>,
    pub(crate) batch_records_max: Option<Spanned<u32>>,
    pub(crate) commit_interval: Option<Spanned<Span>>,
    pub(crate) record_bytes_max: Option<Spanned<Size>>,
    pub(crate) bytes_max: Option<Spanned<Size>>,
    pub(crate) on_full: Option<Spanned<Full>>,
    pub(crate) age_max: Option<Spanned<Span>>,
}

/// `[[source.…]]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sources {
    #[serde(default)]
    pub(crate) file: Vec<FileSource>,
    #[serde(default)]
    pub(crate) stdin: Vec<StdinSource>,
}

/// `[[source.file]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSource {
    pub(crate) paths: Vec<Spanned<String>>,
    pub(crate) stream: Spanned<String>,
    #[serde(default)]
    pub(crate) follow: bool,
    pub(crate) poll_interval: Option<Spanned<Span>>,
}

/// `[[source.stdin]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdinSource {
    pub(crate) stream: Spanned<String>,
}

/// `[[sink.…]]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sinks {
    #[serde(default)]
    pub(crate) file: Vec<FileSink>,
    #[serde(default)]
    pub(crate) stdout: Vec<StdoutSink>,
    #[serde(default)]
    pub(crate) http: Vec<HttpSink>,
    #[serde(default)]
    pub(crate) null: Vec<NullSink>,
}

/// `[[sink.file]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSink {
    pub(crate) path: Spanned<String>,
    pub(crate) streams: Option<Vec<Spanned<String>>>,
    pub(crate) consumer: Option<Spanned<String>>,
    pub(crate) format: Option<Format>,
    pub(crate) sync: Option<FileSync>,
}

/// How records look at their destination.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// As they stood in their source, byte for byte.
    #[default]
    Lines,
    /// The seq, a tab, the payload, a line feed.
    Seq,
    /// One JSON object a line.
    Json,
}

/// When a file sink makes its output durable.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileSync {
    Never,
    EachTurn,
}

/// `[[sink.stdout]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdoutSink {
    pub(crate) streams: Option<Vec<Spanned<String>>>,
    pub(crate) consumer: Option<Spanned<String>>,
    pub(crate) format: Option<Format>,
}

/// `[[sink.null]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NullSink {
    pub(crate) streams: Option<Vec<Spanned<String>>>,
    pub(crate) consumer: Option<Spanned<String>>,
}

/// `[[sink.http]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpSink {
    pub(crate) url: Spanned<String>,
    pub(crate) streams: Option<Vec<Spanned<String>>>,
    pub(crate) consumer: Option<Spanned<String>>,
    pub(crate) body: Option<HttpBody>,
    pub(crate) timeout: Option<Spanned<Span>>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Spanned<String>>,
}

/// The shape of a request's body.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HttpBody {
    /// One JSON object a record.
    Ndjson,
    /// The payloads as they are, one a line.
    Lines,
}
