//! Streams with their sinks: made at the start for all that is known, and later for files that come.
//!
//! ```text
//!   stream created ─> outputs claimed ─> claims saved, all in one write ─> sinks attached
//! ```
//! An output is claimed, durably, before the first byte goes to it: see the file sink.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pq::{Attached, FdBudget, Queue, SinkSettings, Stream};

use super::events::Event;
use super::report::Reporter;
use crate::config::{Plan, PlannedSink, SinkKind};
use crate::failure::Failure;
use crate::sink::Watched;
use crate::sink::file::{Claimed, FileSink, LastStop, claim};
use crate::sink::http::{HttpSink, HttpTarget};
use crate::sink::null::NullSink;
use crate::sink::stdout::{OnFailed, StdoutSink};
use crate::source::place::FileId;
use crate::source::shard;
use crate::template::{any_matches, path_safe};

/// The queue with what is attached to it.
pub(crate) struct Pipeline {
    plan: Plan,
    queue: Queue,
    reporter: Arc<Reporter>,
    last_stop: LastStop,
    on_stdout_failed: OnFailed,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    streams: BTreeMap<String, Stream>,
    attached: Vec<Attached>,
    /// Who writes to which file, by the path configured and by what stands there.
    outputs: BTreeMap<PathBuf, String>,
    output_files: BTreeMap<FileId, PathBuf>,
    /// One client per sink table, by its index.
    targets: BTreeMap<usize, Arc<HttpTarget>>,
}

/// One sink about to be attached to one stream.
struct Ready<'a> {
    stream: Stream,
    sink: &'a PlannedSink,
    index: usize,
    output: Option<(PathBuf, Claimed)>,
}

impl Pipeline {
    pub(crate) fn new(plan: Plan, queue: Queue, reporter: Arc<Reporter>, on_stdout_failed: OnFailed) -> Self {
        let recovery = queue.recovery();
        let last_stop = if recovery.clean { LastStop::Clean } else { LastStop::Unclean };
        Self { plan, queue, reporter, last_stop, on_stdout_failed, state: Mutex::default() }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Once nothing is appended any more: sends [`Event::Drained`] when every sink has all there is. Waits for one sink after the
    /// other, so that what is not drained costs nothing meanwhile.
    ///
    /// # Errors
    /// Nobody would tell.
    pub(crate) fn tell_when_drained(&self, events: Sender<Event>) -> Result<(), Failure> {
        let runtime = self.plan.options.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| Failure::new("there is no runtime to wait on"))?;
        let attached = std::mem::take(&mut self.lock().attached);
        runtime.spawn(async move {
            for one in &attached {
                while one.lag() > 0 {
                    // Detached or closed: the run ends by another event.
                    if !one.drained().await {
                        return;
                    }
                }
            }
            let _ = events.send(Event::Drained);
        });
        Ok(())
    }

    /// Makes these streams and attaches their sinks, unless that was done.
    ///
    /// # Errors
    /// A stream, an output or a sink cannot be set up, or two sinks contradict each other.
    pub(crate) fn ensure(&self, names: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        let mut state = self.lock();
        let mut ready = Vec::new();
        let mut claims = 0_usize;
        for name in names {
            if state.streams.contains_key(&name) {
                continue;
            }
            let stream = self.open_stream(&name)?;
            for (index, sink) in self.sinks_of(&name)? {
                let output = match &sink.kind {
                    SinkKind::File { .. } => {
                        Some(self.claim_output(&mut state, &stream, sink, &mut claims)?)
                    }
                    _ => None,
                };
                ready.push(Ready { stream: stream.clone(), sink, index, output });
            }
            state.streams.insert(name, stream);
        }
        if claims > 0 {
            self.queue.save_cursors().map_err(|error| {
                Failure::new(format!("the places of the outputs cannot be saved: {error}"))
                    .help("make room on the disk, or give pq the right to write, then run it again")
            })?;
        }
        for ready in ready {
            let attached = self.attach(&mut state, ready)?;
            state.attached.push(attached);
        }
        Ok(())
    }

    fn open_stream(&self, name: &str) -> Result<Stream, Failure> {
        self.queue.stream_with(name, self.plan.settings(name)).map_err(|error| {
            Failure::new(format!("stream `{name}`: {error}"))
                .help("correct its name or its settings in the configuration; `pq stat` shows the streams there are")
        })
    }

    fn sinks_of(&self, stream: &str) -> Result<Vec<(usize, &PlannedSink)>, Failure> {
        let sinks: Vec<_> = self
            .plan
            .sinks
            .iter()
            .enumerate()
            .filter(|(_, sink)| any_matches(&sink.streams, stream))
            .collect();
        let mut consumers: Vec<&str> = sinks.iter().map(|(_, sink)| sink.consumer.as_str()).collect();
        consumers.sort_unstable();
        match consumers.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(sinks),
            Some(pair) => {
                Err(Failure::new(format!("stream `{stream}`: two sinks are its consumer `{}`", pair[0]))
                    .help("give each a `consumer` of its own, or `streams` that do not overlap"))
            }
        }
    }

    /// The output's path, and where writing goes on; the claim is in memory until cursors are saved.
    fn claim_output(
        &self,
        state: &mut State,
        stream: &Stream,
        sink: &PlannedSink,
        claims: &mut usize,
    ) -> Result<(PathBuf, Claimed), Failure> {
        let SinkKind::File { path, base, sync, .. } = &sink.kind else {
            return Err(Failure::new("only a file sink has an output"));
        };
        let path = base.join(path.fill(&[("stream", &path_safe(stream.name()))]));
        self.check_output(state, &path, stream.name())?;
        let failed = |reason: String| {
            Failure::new(format!("{}: the output cannot be set up: {reason}", path.display()))
                .help("correct `path` in [[sink.file]], or give pq the right to write there")
        };
        let consumer = stream.consumer(&sink.consumer).map_err(|error| failed(error.to_string()))?;
        let note = consumer.note();
        let claimed =
            claim(&path, &note, self.last_stop, *sync).map_err(|error| failed(error.to_string()))?;
        state.output_files.insert(claimed.extent.id(), path.clone());
        if let Some(notice) = &claimed.notice {
            self.reporter.notice(notice);
        }
        let fresh = claimed.extent.to_string().into_bytes();
        if fresh != note {
            *claims += 1;
            consumer.ack_with_note(consumer.cursor(), &fresh).map_err(|error| failed(error.to_string()))?;
        }
        Ok((path, claimed))
    }

    fn check_output(&self, state: &mut State, path: &Path, stream: &str) -> Result<(), Failure> {
        if let Some(other) = state.outputs.insert(path.to_path_buf(), stream.to_owned()) {
            if other == stream {
                return Err(Failure::new(format!(
                    "{}: the output of two sinks of stream `{stream}`",
                    path.display()
                ))
                .help("give each [[sink.file]] a `path` of its own, or `streams` that do not overlap"));
            }
            return Err(Failure::new(format!(
                "{}: the output of stream `{other}` and of stream `{stream}`",
                path.display()
            ))
            .help("put `{stream}` into `path` of [[sink.file]], or give `streams` that match one stream"));
        }
        // Before the first claim, which may cut the file.
        let id = fs::metadata(path).ok().map(|meta| FileId::of(&meta));
        if let Some(other) = id.and_then(|id| state.output_files.get(&id)) {
            return Err(Failure::new(format!(
                "{}: the same file as the output {}",
                path.display(),
                other.display()
            ))
            .help(
                "give each [[sink.file]] a `path` of its own; links and `..` do not make it another file",
            ));
        }
        let patterns = self.plan.files.iter().flat_map(|files| files.patterns.iter());
        match patterns.into_iter().find(|pattern| pattern.matches(path)) {
            None => Ok(()),
            Some(pattern) => Err(Failure::new(format!(
                "{}: an output that the source `{pattern}` would read again, for ever",
                path.display()
            ))
            .help("write the output to another folder, or choose a narrower pattern")),
        }
    }

    fn attach(&self, state: &mut State, ready: Ready<'_>) -> Result<Attached, Failure> {
        let Ready { stream, sink, index, output } = ready;
        let name = stream.name().to_owned();
        let reporter = Arc::clone(&self.reporter);
        let settings = SinkSettings::default();
        let consumer = sink.consumer.as_str();
        let attached = match (&sink.kind, output) {
            (SinkKind::File { format, sync, .. }, Some((path, claimed))) => {
                let sink = FileSink {
                    path,
                    extent: claimed.extent,
                    stream: name.clone(),
                    format: *format,
                    sync: *sync,
                    fds: self.queue.fds(),
                    reporter: Arc::clone(&reporter),
                };
                self.queue.attach(&stream, consumer, Watched::new(sink, &name, reporter), settings)
            }
            (SinkKind::Http { url, body, timeout, headers }, _) => {
                let target = match state.targets.get(&index) {
                    Some(target) => Arc::clone(target),
                    None => Arc::new(HttpTarget::new(*body, *timeout, headers, self.queue.fds())?),
                };
                state.targets.insert(index, Arc::clone(&target));
                let sink = HttpSink::new(target, url.fill(&[("stream", &path_safe(&name))]), &name);
                self.queue.attach(&stream, consumer, Watched::new(sink, &name, reporter), settings)
            }
            (SinkKind::Stdout { format }, _) => {
                let sink = StdoutSink::new(&name, *format, Arc::clone(&self.on_stdout_failed));
                self.queue.attach(&stream, consumer, Watched::new(sink, &name, reporter), settings)
            }
            (SinkKind::File { .. }, None) => {
                return Err(Failure::new(format!("stream `{name}`: no output was claimed")));
            }
            (SinkKind::Null, _) => {
                self.queue.attach(&stream, consumer, Watched::new(NullSink, &name, reporter), settings)
            }
        };
        attached.map_err(|error| Failure::new(format!("stream `{name}`, consumer `{consumer}`: {error}")))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl shard::Pipeline for Pipeline {
    fn stream(&self, name: &str) -> Result<Stream, Failure> {
        self.ensure([name.to_owned()])?;
        let stream = self.lock().streams.get(name).cloned();
        stream.ok_or_else(|| Failure::new(format!("stream `{name}` is not there")))
    }

    fn streams(&self) -> Vec<String> {
        self.queue.streams()
    }

    fn is_output(&self, file: FileId) -> bool {
        self.lock().output_files.contains_key(&file)
    }

    fn fds(&self) -> Arc<FdBudget> {
        self.queue.fds()
    }

    fn notice(&self, text: String) {
        self.reporter.notice(text);
    }

    fn failed(&self, failure: Failure) {
        self.reporter.failed(&failure);
    }
}
