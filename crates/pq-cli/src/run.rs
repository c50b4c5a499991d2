//! `pq run`: a pipeline from its start to its end.
//!
//! ```text
//!   configuration ─> queue open ─> streams, claims, sinks ─> sources
//!        sources done, all delivered ─┐
//!        SIGINT, SIGTERM, stdout fails┴─> sources stop ─> queue closes (within the deadline) ─> summary
//! ```
//! One thread waits for events; sources have threads of their own; sinks are driven by the queue.

mod events;
mod open_failure;
pub(crate) mod pipeline;
mod progress;
pub(crate) mod report;
mod summary;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::MultiProgress;
use pq::{GapReason, Queue};

use crate::Ended;
use crate::cli::Run;
use crate::config::{AtEnd, Plan};
use crate::failure::{EXIT_CANNOT, EXIT_WRONG, Failure};
use crate::output::{missing, stdout_failure, tell};
use crate::source::Stop;
use crate::source::shard::{self, Part, Pipeline as _, Shard};
use crate::source::stdin::{Ended as StdinEnded, Losses, Stdin, StdinStop, WhenFull};
use events::{Event, watch_signals};
pub(crate) use open_failure::{help_of_disk, inspect_failure, open_failure};
use pipeline::Pipeline;
use progress::Progress;
use report::Reporter;
use summary::Summary;

/// Threads that read files.
const SHARDS_COUNT: u64 = 2;

/// Runs a pipeline.
pub(crate) fn run(args: &Run) -> Ended {
    let mut plan = Plan::load(&args.config)?;
    if args.drain {
        plan.files.iter_mut().for_each(|files| files.at_end = AtEnd::Finish);
    }
    if args.check {
        tell(&format!("{}: the configuration is right", args.config.display()));
        return Ok(0);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("pq-sinks")
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the runtime cannot be started: {error}")))?;
    let (events, received) = channel();
    // Before anything is opened: a signal at any later moment means a clean stop.
    watch_signals(&runtime, events.clone())
        .map_err(|error| Failure::new(format!("signals cannot be watched: {error}")))?;
    plan.options.runtime = Some(runtime.handle().clone());
    let ended = run_plan(args, plan, &events, &received);
    // A sink stuck in a system call must not hold the program.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

fn run_plan(args: &Run, plan: Plan, events: &Sender<Event>, received: &Receiver<Event>) -> Ended {
    let started = Instant::now();
    let has_end = args.drain || plan.ends_by_itself();
    let deadline = plan.stop_deadline;
    let shows_bars = !args.quiet && std::io::stderr().is_terminal();
    let reporter = Arc::new(Reporter::new(shows_bars.then(MultiProgress::new)));
    let queue = open(&plan)?;
    let is_lost = report_recovery(&queue, &reporter);
    let failed_events = events.clone();
    let on_stdout_failed = Arc::new(move |error: &io::Error| {
        let failure =
            stdout_failure(error).help("what was not written is kept: run it again, and it goes on there");
        drop(failed_events.send(Event::StdoutFailed(failure)));
    });
    let pipeline = Arc::new(Pipeline::new(plan, queue.clone(), Arc::clone(&reporter), on_stdout_failed));
    let progress = (!args.quiet).then(|| Progress::start(queue.clone(), Arc::clone(&reporter)));
    let why = pipeline.ensure(first_streams(&pipeline)).and_then(|()| {
        let mut sources = Sources::start(&pipeline, events)?;
        let why = wait(&pipeline, &mut sources.left, events, received, has_end);
        sources.stop(received, deadline / 2);
        why
    });
    drop(progress);
    let closed = queue.close(deadline);
    let why = why?;
    if let Err(error) = &closed {
        reporter.failed(&Failure::wrong(error.to_string()).help("run it again: it goes on where it was"));
    }
    let summary = Summary::new(&queue, started.elapsed(), pipeline.plan().turn_records_max(), why.word());
    if !args.quiet {
        tell(&summary.text());
    }
    if let Some(path) = &args.summary_json {
        summary.write_json(path)?;
    }
    Ok(match why {
        Why::StdoutFailed => EXIT_CANNOT,
        _ if is_lost || reporter.failures_count() > 0 || summary.lost_count() > 0 => EXIT_WRONG,
        _ => 0,
    })
}

/// Opens the queue; the message names its directory.
fn open(plan: &Plan) -> Result<Queue, Failure> {
    Queue::open(&plan.dir, plan.options.clone()).map_err(|error| open_failure(&plan.dir, &error))
}

/// Tells what opening found; whether records were found to be lost.
fn report_recovery(queue: &Queue, reporter: &Reporter) -> bool {
    let recovery = queue.recovery();
    recovery.notes.iter().for_each(|note| reporter.notice(note));
    recovery.strays.iter().for_each(|name| reporter.notice(format!("{name} is not the queue's, ignored")));
    for stream in &recovery.streams {
        stream.notes.iter().for_each(|note| reporter.notice(format!("stream `{}`: {note}", stream.name)));
        for gap in &stream.gaps {
            reporter.notice(format!("stream `{}`: {}", stream.name, missing(*gap)));
        }
        if let Some(reason) = &stream.paused {
            let failure = Failure::wrong(format!("stream `{}` is paused: {reason}", stream.name));
            reporter.failed(&failure.help(
                "the others go on without it; `pq verify` tells what is wrong, and the next run tries again",
            ));
        }
    }
    recovery.streams.iter().flat_map(|stream| &stream.gaps).any(|gap| gap.reason == GapReason::Lost)
}

/// All streams known at the start: declared, fed, or there from earlier runs. One that is paused is told of already, and keeps no other
/// from running; what feeds it says so.
fn first_streams(pipeline: &Pipeline) -> BTreeSet<String> {
    let plan = pipeline.plan();
    let declared = plan.streams.iter().map(|stream| stream.name.clone());
    let fed = plan.files.iter().flat_map(shard::stream_names_of);
    let all = declared.chain(fed).chain(plan.stdin.clone()).chain(pipeline.queue().streams());
    let streams = &pipeline.queue().recovery().streams;
    let is_paused = |name: &String| streams.iter().any(|s| s.paused.is_some() && s.name == *name);
    all.filter(|name| !is_paused(name)).collect()
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Done,
    Signal(&'static str),
    StdoutFailed,
}

impl Why {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Signal(name) => name,
            Self::StdoutFailed => "stdout failed",
        }
    }
}

/// The threads that read.
struct Sources {
    stop: Stop,
    stdin_stop: Option<StdinStop>,
    left: usize,
}

impl Sources {
    fn start(pipeline: &Arc<Pipeline>, events: &Sender<Event>) -> Result<Self, Failure> {
        let stop = Stop::default();
        let mut left = 0;
        let files = &pipeline.plan().files;
        for index in 0..if files.is_empty() { 0 } else { SHARDS_COUNT } {
            let part = Part { index, count: SHARDS_COUNT };
            let shard = Shard::new(Arc::clone(pipeline), files.clone(), part, stop.clone());
            let events = events.clone();
            spawn("pq-source", move || drop(events.send(Event::SourceEnded(shard.run()))))?;
            left += 1;
        }
        let stdin_stop = match &pipeline.plan().stdin {
            None => None,
            Some(name) => {
                left += 1;
                Some(start_stdin(pipeline, name, events.clone())?)
            }
        };
        Ok(Self { stop, stdin_stop, left })
    }

    /// Tells the threads to stop, and gives them some time: what they have read is appended.
    fn stop(self, received: &Receiver<Event>, deadline: Duration) {
        self.stop.set();
        drop(self.stdin_stop);
        let until = Instant::now() + deadline;
        let mut left = self.left;
        while left > 0 {
            match received.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::SourceEnded(_)) => left -= 1,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

fn start_stdin(pipeline: &Arc<Pipeline>, name: &str, events: Sender<Event>) -> Result<StdinStop, Failure> {
    let stream = pipeline.stream(name)?;
    let (stdin, stop) =
        Stdin::new().map_err(|error| Failure::new(format!("stdin cannot be watched: {error}")))?;
    let pipeline = Arc::clone(pipeline);
    spawn("pq-stdin", move || {
        let mut losses = Losses::default();
        let fed = stdin.feed(&stream, WhenFull::Wait, &mut |ticket| {
            losses.watch(ticket);
            losses.settle().into_iter().for_each(|lost| pipeline.failed(lost));
            Ok(())
        });
        let committed = fed.and_then(|ended| {
            stdin.commit(&stream, &mut |text| pipeline.notice(text))?;
            Ok(ended)
        });
        losses.settle().into_iter().for_each(|lost| pipeline.failed(lost));
        let ended = committed.map(drop::<StdinEnded>);
        drop(events.send(Event::SourceEnded(ended)));
    })?;
    Ok(stop)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| Failure::new(format!("a thread cannot be started: {error}")))
}

/// Waits until all is delivered, or something ends the run.
fn wait(
    pipeline: &Pipeline,
    left: &mut usize,
    events: &Sender<Event>,
    received: &Receiver<Event>,
    has_end: bool,
) -> Result<Why, Failure> {
    while *left > 0 || !has_end {
        match received.recv() {
            Ok(event) => match stops(pipeline, event) {
                Heard::Stop(why) => return Ok(why),
                Heard::SourceEnded => *left = left.saturating_sub(1),
            },
            Err(_) => return Err(Failure::new("nothing is left to wait for")),
        }
    }
    // Nothing is appended any more.
    pipeline.tell_when_drained(events.clone())?;
    loop {
        match received.recv() {
            Ok(event) => {
                if let Heard::Stop(why) = stops(pipeline, event) {
                    return Ok(why);
                }
            }
            Err(_) => return Err(Failure::new("nothing is left to wait for")),
        }
    }
}

enum Heard {
    Stop(Why),
    SourceEnded,
}

fn stops(pipeline: &Pipeline, event: Event) -> Heard {
    match event {
        Event::Signal(name) => Heard::Stop(Why::Signal(name)),
        Event::StdoutFailed(failure) => {
            pipeline.failed(failure);
            Heard::Stop(Why::StdoutFailed)
        }
        Event::Drained => Heard::Stop(Why::Done),
        Event::SourceEnded(ended) => {
            if let Err(failure) = ended {
                pipeline.failed(failure);
            }
            Heard::SourceEnded
        }
    }
}
