//! Progress while a pipeline runs: bars on a terminal, plain lines elsewhere, nothing when nothing changes.
//!
//! ```text
//!   dpkg          [=========>      ] 12,000 appended  12,000 durable   9,000 delivered   3,000 lag
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use pq::{Queue, QueueStats, StreamStats};

use super::report::Reporter;
use crate::output::count;
use crate::source::Stop;

/// Streams with a bar of their own; more would push each other off the screen.
const BARS_MAX: usize = 12;
const BAR_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Shows progress until it is dropped.
pub(crate) struct Progress {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(queue: Queue, reporter: Arc<Reporter>) -> Self {
        let stop = Stop::default();
        let shown = stop.clone();
        let thread = thread::Builder::new().name("pq-progress".to_owned()).spawn(move || {
            if reporter.bars().is_some() {
                show_bars(&queue, &reporter, &shown)
            } else {
                show_lines(&queue, &reporter, &shown)
            }
        });
        // Without progress the pipeline runs all the same.
        Self { stop, thread: thread.ok() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Figures of some streams together.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Figures {
    appended: u64,
    durable: u64,
    delivered: u64,
    lag: u64,
}

impl Figures {
    fn of(stream: &StreamStats) -> Self {
        Self {
            appended: stream.appended_end.saturating_sub(1),
            durable: stream.durable_end.saturating_sub(1),
            delivered: stream
                .consumers
                .iter()
                .map(|consumer| consumer.cursor.saturating_sub(1))
                .min()
                .unwrap_or(0),
            lag: stream.consumers.iter().map(|consumer| consumer.lag_records).max().unwrap_or(0),
        }
    }

    fn of_all(stats: &QueueStats) -> Self {
        stats.streams.iter().map(Self::of).fold(Self::default(), |sum, one| Self {
            appended: sum.appended + one.appended,
            durable: sum.durable + one.durable,
            delivered: sum.delivered + one.delivered,
            lag: sum.lag + one.lag,
        })
    }

    fn text(&self) -> String {
        let Self { appended, durable, delivered, lag } = self;
        format!(
            "{:>11} appended {:>11} durable {:>11} delivered {:>9} lag",
            count(*appended),
            count(*durable),
            count(*delivered),
            count(*lag)
        )
    }
}

fn show_lines(queue: &Queue, reporter: &Reporter, stop: &Stop) {
    let mut moves = queue.moves_count();
    let mut last = Figures::of_all(&queue.stats());
    while !stop.sleep(LINE_INTERVAL) {
        // The figures of all streams are worth their price only if one of them may be another now.
        let before = std::mem::replace(&mut moves, queue.moves_count());
        if moves == before {
            continue;
        }
        let stats = queue.stats();
        let figures = Figures::of_all(&stats);
        if figures != last {
            reporter.notice(format!(
                "{} in {} streams{}",
                figures.text().trim_start(),
                stats.streams.len(),
                troubles(&stats)
            ));
            last = figures;
        }
    }
}

/// The sink that fails, if one does: the first thing to know about a pipeline that stands still.
fn troubles(stats: &QueueStats) -> String {
    let failing = stats
        .streams
        .iter()
        .flat_map(|stream| stream.consumers.iter().map(move |consumer| (stream, consumer)));
    let mut failing =
        failing.filter(|(_, consumer)| consumer.lag_records > 0 && consumer.last_failure.is_some());
    let Some((stream, consumer)) = failing.next() else { return String::new() };
    let more = failing.count();
    let reason = consumer.last_failure.as_deref().unwrap_or_default();
    let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("; {} of `{}` is failing: {reason}{others}", consumer.name, stream.name)
}

fn show_bars(queue: &Queue, reporter: &Reporter, stop: &Stop) {
    let Some(multi) = reporter.bars() else { return };
    let mut bars: BTreeMap<String, ProgressBar> = BTreeMap::new();
    let total = multi.add(ProgressBar::new_spinner());
    loop {
        let stats = queue.stats();
        for stream in stats.streams.iter().take(BARS_MAX) {
            let bar = bars.entry(stream.name.clone()).or_insert_with(|| {
                multi.insert_before(
                    &total,
                    ProgressBar::new(0).with_style(style()).with_prefix(shortened(&stream.name)),
                )
            });
            let figures = Figures::of(stream);
            bar.set_length(figures.appended.max(1));
            bar.set_position(figures.delivered);
            bar.set_message(figures.text());
        }
        let hidden = stats.streams.len().saturating_sub(BARS_MAX);
        let rest = if hidden > 0 { format!("; {hidden} streams are not shown") } else { String::new() };
        total.set_message(format!("all{:>49}{rest}{}", Figures::of_all(&stats).text(), troubles(&stats)));
        if stop.sleep(BAR_INTERVAL) {
            break;
        }
    }
    // The summary says it all, and better.
    bars.values().for_each(ProgressBar::finish_and_clear);
    total.finish_and_clear();
    let _ = multi.clear();
}

fn style() -> ProgressStyle {
    let template = ProgressStyle::with_template("{prefix:20} [{bar:24}] {msg}");
    template.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= 20 { name.to_owned() } else { name.chars().take(19).chain(['…']).collect() }
}
