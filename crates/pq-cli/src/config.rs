//! The configuration of `pq run`: read, checked as a whole, and turned into a plan.
//!
//! ```text
//!   text ──toml──> File (names, types) ──check──> Plan (options, streams, sources, sinks)
//!                         any error: file:line: field: found, expected; help
//! ```
//! Paths are relative to the folder of the configuration file, wherever the program is started.

mod file;
mod options;
mod outputs;
mod place;
mod units;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pq::{Options, StreamSettings};
use toml::Spanned;

pub(crate) use file::{FileSync, Format, HttpBody};
use place::{Text, Wrong};

use crate::failure::Failure;
use crate::glob::PathPattern;
use crate::template::Template;

/// A checked configuration.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The queue's directory.
    pub(crate) dir: PathBuf,
    /// The queue's options, with the defaults of streams.
    pub(crate) options: Options,
    /// How long a stop may take.
    pub(crate) stop_deadline: Duration,
    /// Streams that exist whether or not a source feeds them.
    pub(crate) streams: Vec<PlannedStream>,
    /// File sources.
    pub(crate) files: Vec<PlannedFiles>,
    /// The stream that stdin feeds.
    pub(crate) stdin: Option<String>,
    /// Sinks.
    pub(crate) sinks: Vec<PlannedSink>,
}

/// A stream with settings of its own.
#[derive(Debug)]
pub(crate) struct PlannedStream {
    pub(crate) name: String,
    pub(crate) settings: StreamSettings,
}

/// What happens at the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// The source is done.
    Finish,
    /// It waits for more, and for files that come later.
    Follow,
}

/// One `[[source.file]]`.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFiles {
    pub(crate) patterns: Vec<PathPattern>,
    pub(crate) stream: Template,
    pub(crate) at_end: AtEnd,
    pub(crate) poll_interval: Duration,
}

/// One sink table.
#[derive(Debug)]
pub(crate) struct PlannedSink {
    pub(crate) consumer: String,
    pub(crate) streams: Vec<String>,
    pub(crate) kind: SinkKind,
}

/// Where records go.
#[derive(Debug)]
pub(crate) enum SinkKind {
    File { path: Template, base: PathBuf, format: Format, sync: FileSync },
    Stdout { format: Format },
    Http { url: Template, body: HttpBody, timeout: Duration, headers: Vec<(String, String)> },
    Null,
}

impl Plan {
    /// Reads and checks a configuration file.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        Self::from_text(&Text::read(path)?)
    }

    fn from_text(text: &Text) -> Result<Self, Failure> {
        let file: file::File = toml::from_str(&text.body).map_err(|error| text.parse_failure(&error))?;
        Self::from_file(text, file).map_err(|wrong| text.failure(&wrong))
    }

    fn from_file(text: &Text, file: file::File) -> Result<Self, Wrong> {
        let base = base_folder(&text.path);
        if file.queue.dir.get_ref().is_empty() {
            return Err(wrong(
                "queue.dir",
                &file.queue.dir,
                "is empty, expected a folder",
                "name a folder for the queue",
            ));
        }
        let dir = base.join(file.queue.dir.get_ref());
        let stop_deadline =
            file.queue.stop_deadline.as_ref().map_or(Duration::from_secs(10), |span| span.get_ref().0);
        if let Some(span) = file.queue.stop_deadline.as_ref().filter(|span| span.get_ref().0.is_zero()) {
            let message = "is 0, so no stop could be in time";
            return Err(wrong("queue.stop_deadline", span, message, "use \"10s\", or leave it out"));
        }
        let options = options::options(&file.queue)?;
        let streams = planned_streams(&file.stream, &options.stream)?;
        let files =
            file.source.file.iter().map(|source| planned_files(source, &base)).collect::<Result<_, _>>()?;
        let stdin = planned_stdin(&file.source.stdin)?;
        let sinks = planned_sinks(&file.sink, &base)?;
        Ok(Self { dir, options, stop_deadline, streams, files, stdin, sinks })
    }

    /// Whether the pipeline has an end of its own: it has sources, and none of them waits for more.
    pub(crate) fn ends_by_itself(&self) -> bool {
        let any = !self.files.is_empty() || self.stdin.is_some();
        any && self.files.iter().all(|files| files.at_end == AtEnd::Finish)
    }

    /// Records that one turn of a sink holds at most: it ends behind the batch that fills it.
    pub(crate) fn turn_records_max(&self) -> u64 {
        let settings = self.streams.iter().map(|stream| &stream.settings).chain([&self.options.stream]);
        let batch_bytes_max = settings.map(|settings| settings.batch_bytes_max).max().unwrap_or(0);
        let bytes = self.options.turn_bytes_max.saturating_add(batch_bytes_max);
        (bytes / crate::lines::FRAME_BYTES) as u64
    }

    /// The settings of the stream of this name.
    pub(crate) fn settings(&self, stream: &str) -> StreamSettings {
        let own = self.streams.iter().find(|planned| planned.name == stream);
        own.map_or_else(|| self.options.stream.clone(), |planned| planned.settings.clone())
    }
}

fn base_folder(config: &Path) -> PathBuf {
    match config.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A message about one value.
fn wrong<T>(field: &str, at: &Spanned<T>, message: impl Into<String>, help: &str) -> Wrong {
    Wrong { field: field.to_owned(), message: message.into(), help: help.to_owned(), span: Some(at.span()) }
}

fn planned_streams(tables: &[file::Stream], defaults: &StreamSettings) -> Result<Vec<PlannedStream>, Wrong> {
    let mut planned = Vec::new();
    let mut names = BTreeSet::new();
    for table in tables {
        let settings = options::stream_settings(table, defaults)?;
        let name = Template::new(table.name.get_ref(), &["number"]).map_err(|message| {
            wrong("stream.name", &table.name, message, "use `{number}` with `count`, or a plain name")
        })?;
        let count = match (&table.count, name.uses("number")) {
            (None, false) => 1,
            (Some(count), true) if (1..=1_000_000).contains(count.get_ref()) => *count.get_ref(),
            (Some(count), true) => {
                return Err(wrong(
                    "stream.count",
                    count,
                    "is out of range, expected 1 to 1000000",
                    "give another number",
                ));
            }
            (Some(count), false) => {
                let help = "put `{number}` into `name`, for example \"app-{number}\"";
                return Err(wrong(
                    "stream.count",
                    count,
                    "needs `{number}` in `name`, or all streams have one name",
                    help,
                ));
            }
            (None, true) => {
                return Err(wrong(
                    "stream.name",
                    &table.name,
                    "uses `{number}` without `count`",
                    "add `count = 10`",
                ));
            }
        };
        for n in 1..=count {
            let name = name.fill(&[("number", &n.to_string())]);
            if !names.insert(name.clone()) {
                let message = format!("`{name}` is the name of two streams");
                return Err(wrong("stream.name", &table.name, message, "give each stream one table"));
            }
            planned.push(PlannedStream { name, settings: settings.clone() });
        }
    }
    Ok(planned)
}

fn planned_files(table: &file::FileSource, base: &Path) -> Result<PlannedFiles, Wrong> {
    let stream = Template::new(table.stream.get_ref(), &["stem", "name"]).map_err(|message| {
        let help = "use a plain name, or `{stem}` (file name without its ending) or `{name}` for one stream per file";
        wrong("source.file.stream", &table.stream, message, help)
    })?;
    if table.paths.is_empty() {
        let help = "list at least one file or pattern, for example [\"logs/*.log\"]";
        return Err(wrong("source.file.paths", &table.stream, "`paths` is empty", help));
    }
    if let Some(empty) = table.paths.iter().find(|path| path.get_ref().is_empty()) {
        return Err(wrong(
            "source.file.paths",
            empty,
            "is empty, expected a file or a pattern",
            "name a file",
        ));
    }
    let patterns = table.paths.iter().map(|path| PathPattern::new(base, path.get_ref())).collect();
    let poll_interval = match &table.poll_interval {
        None => Duration::from_millis(250),
        Some(span) if span.get_ref().0 >= Duration::from_millis(1) => span.get_ref().0,
        Some(span) => {
            let message = "is shorter than 1ms, which would keep the processor busy";
            return Err(wrong("source.file.poll_interval", span, message, "use \"250ms\", or leave it out"));
        }
    };
    let at_end = if table.follow { AtEnd::Follow } else { AtEnd::Finish };
    Ok(PlannedFiles { patterns, stream, at_end, poll_interval })
}

fn planned_stdin(tables: &[file::StdinSource]) -> Result<Option<String>, Wrong> {
    if let Some(second) = tables.get(1) {
        return Err(wrong(
            "source.stdin",
            &second.stream,
            "is given twice, but there is one stdin",
            "remove one table",
        ));
    }
    Ok(tables.first().map(|table| table.stream.get_ref().clone()))
}

fn planned_sinks(tables: &file::Sinks, base: &Path) -> Result<Vec<PlannedSink>, Wrong> {
    let mut sinks = Vec::new();
    outputs::check(&tables.file)?;
    for table in &tables.file {
        let path = Template::new(table.path.get_ref(), &["stream"]).map_err(|message| {
            wrong("sink.file.path", &table.path, message, "for example \"out/{stream}.log\"")
        })?;
        let (format, sync) = (table.format.unwrap_or_default(), table.sync.unwrap_or(FileSync::Never));
        let kind = SinkKind::File { path, base: base.to_path_buf(), format, sync };
        sinks.push(planned_sink("file", table.consumer.as_ref(), table.streams.as_ref(), kind)?);
    }
    for table in &tables.http {
        let kind = http_kind(table)?;
        sinks.push(planned_sink("http", table.consumer.as_ref(), table.streams.as_ref(), kind)?);
    }
    for table in &tables.stdout {
        let kind = SinkKind::Stdout { format: table.format.unwrap_or_default() };
        sinks.push(planned_sink("stdout", table.consumer.as_ref(), table.streams.as_ref(), kind)?);
    }
    for table in &tables.null {
        sinks.push(planned_sink("null", table.consumer.as_ref(), table.streams.as_ref(), SinkKind::Null)?);
    }
    Ok(sinks)
}

fn planned_sink(
    kind_name: &str,
    consumer: Option<&Spanned<String>>,
    streams: Option<&Vec<Spanned<String>>>,
    kind: SinkKind,
) -> Result<PlannedSink, Wrong> {
    if let Some(empty) = consumer.filter(|name| name.get_ref().is_empty()) {
        let field = format!("sink.{kind_name}.consumer");
        return Err(wrong(
            &field,
            empty,
            "is empty, expected a name",
            "name the consumer, or leave the field out",
        ));
    }
    let consumer = consumer.map_or(kind_name, |name| name.get_ref().as_str()).to_owned();
    let streams = streams.map_or_else(
        || vec!["*".to_owned()],
        |names| names.iter().map(|name| name.get_ref().clone()).collect(),
    );
    Ok(PlannedSink { consumer, streams, kind })
}

fn http_kind(table: &file::HttpSink) -> Result<SinkKind, Wrong> {
    let refused = |message: String| {
        wrong("sink.http.url", &table.url, message, "for example \"http://127.0.0.1:9200/logs/{stream}\"")
    };
    let url = Template::new(table.url.get_ref(), &["stream"]).map_err(refused)?;
    let sample = reqwest::Url::parse(&url.fill(&[("stream", "x")]))
        .map_err(|error| refused(format!("is not a URL: {error}")))?;
    if !matches!(sample.scheme(), "http" | "https") {
        return Err(refused(format!("has the scheme `{}`, expected `http` or `https`", sample.scheme())));
    }
    let timeout = table.timeout.as_ref().map_or(Duration::from_secs(30), |span| span.get_ref().0);
    if let Some(span) = table.timeout.as_ref().filter(|span| span.get_ref().0.is_zero()) {
        return Err(wrong("sink.http.timeout", span, "is 0, so no request could succeed", "use \"30s\""));
    }
    let headers = table
        .headers
        .iter()
        .map(|(name, value)| match header_is_valid(name, value.get_ref()) {
            true => Ok((name.clone(), value.get_ref().clone())),
            false => Err(wrong(
                "sink.http.headers",
                value,
                format!("`{name}` is not a header that can be sent"),
                "use letters, digits and `-` in the name, and no line feed in the value",
            )),
        })
        .collect::<Result<_, _>>()?;
    Ok(SinkKind::Http { url, body: table.body.unwrap_or(HttpBody::Ndjson), timeout, headers })
}

fn header_is_valid(name: &str, value: &str) -> bool {
    reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
        && reqwest::header::HeaderValue::from_str(value).is_ok()
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
