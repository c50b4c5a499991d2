//! The queue's options and the settings of streams, from the fields of `[queue]` and `[[stream]]`.
//!
//! The library checks the values; this file translates its field names back to those of the configuration, and finds their lines.

use std::ops::Range;
use std::time::Duration;

use pq::{OnFull, Options, OptionsError, ReadLevel, StreamSettings, SyncSetting};
use toml::Spanned;

use super::file;
use super::place::Wrong;
use super::units::{Size, Span};
use super::wrong;

/// A limit should hold so many segments, unless that makes them tiny.
const SEGMENTS_PER_LIMIT: u64 = 8;
const SEGMENT_FITTED_MIN: u64 = 64 << 10;

/// Fields that were given, to find the one an error is about.
#[derive(Default)]
struct Given {
    table: &'static str,
    fields: Vec<(&'static str, &'static str, Range<usize>)>,
}

impl Given {
    /// Notes the field and applies its value.
    fn set<T>(
        &mut self,
        names: (&'static str, &'static str),
        value: Option<&Spanned<T>>,
        apply: impl FnOnce(&T),
    ) {
        if let Some(value) = value {
            self.fields.push((names.0, names.1, value.span()));
            apply(value.get_ref());
        }
    }

    fn wrong(&self, error: &OptionsError) -> Wrong {
        let name = error.field;
        let given = self.fields.iter().find(|(_, theirs, _)| *theirs == name);
        Wrong {
            field: format!("{}.{}", self.table, given.map_or(name, |(ours, _, _)| *ours)),
            message: error.reason.clone(),
            help: "give another value, or leave the field out for its default".to_owned(),
            span: given.map(|(_, _, span)| span.clone()),
        }
    }
}

/// The options of the queue.
pub(super) fn options(queue: &file::Queue) -> Result<Options, Wrong> {
    let mut options = Options::default();
    let mut given = Given { table: "queue", ..Given::default() };
    options.stream = settings_of_queue(queue, &mut given)?;
    push_back(queue, &mut options)?;
    given.set(("pool_size", "readers_count"), queue.pool_size.as_ref(), |n| options.readers_count = *n);
    given.set(("lanes", "lanes_count"), queue.lanes.as_ref(), |n| options.lanes_count = *n);
    given.set(("fds_max", "fds_max"), queue.fds_max.as_ref(), |n| options.fds_max = Some(*n));
    given.set(("cursor_save_interval", "cursor_interval"), queue.cursor_save_interval.as_ref(), |span| {
        options.cursor_interval = span.0;
    });
    given.set(("buffer_bytes_max", "buffer_bytes_max"), queue.buffer_bytes_max.as_ref(), |size| {
        options.buffer_bytes_max = size.0;
    });
    given.set(("bytes_max", "bytes_max"), queue.bytes_max.as_ref(), |size| options.bytes_max = Some(size.0));
    given.set(("reserve_bytes", "reserve_bytes"), queue.reserve_bytes.as_ref(), |size| {
        options.reserve_bytes = size.0;
    });
    given.set(("turn_bytes_max", "turn_bytes_max"), queue.turn_bytes_max.as_ref(), |size| {
        options.turn_bytes_max = bytes(*size);
    });
    given.set(("backoff_first", "backoff_first"), queue.backoff_first.as_ref(), |span| {
        options.backoff_first = span.0
    });
    given
        .set(("backoff_max", "backoff_max"), queue.backoff_max.as_ref(), |span| options.backoff_max = span.0);
    options.validate().map_err(|error| given.wrong(&error))?;
    Ok(options)
}

fn push_back(queue: &file::Queue, options: &mut Options) -> Result<(), Wrong> {
    options.push_back = match (queue.wake.unwrap_or(file::Wake::Signal), &queue.push_back) {
        (file::Wake::Signal, None) => None,
        (file::Wake::Signal, Some(span)) => {
            let message = "has no meaning when a commit wakes the readers";
            return Err(wrong("queue.push_back", span, message, "add `wake = \"poll\"`, or remove the line"));
        }
        (file::Wake::Poll, None) => Some(Duration::from_millis(50)),
        (file::Wake::Poll, Some(span)) if span.get_ref().0.is_zero() => {
            return Err(wrong(
                "queue.push_back",
                span,
                "is 0, which would keep the processor busy",
                "use \"50ms\"",
            ));
        }
        (file::Wake::Poll, Some(span)) => Some(span.get_ref().0),
    };
    Ok(())
}

fn settings_of_queue(queue: &file::Queue, given: &mut Given) -> Result<StreamSettings, Wrong> {
    let fields = Fields {
        sync: queue.sync.as_ref(),
        segment_bytes_max: queue.segment_bytes_max.as_ref(),
        segment_age_max: queue.segment_age_max.as_ref(),
        batch_bytes_max: queue.batch_bytes_max.as_ref(),
        batch_records_max: queue.batch_records_max.as_ref(),
        commit_interval: queue.commit_interval.as_ref(),
        record_bytes_max: queue.record_bytes_max.as_ref(),
        bytes_max: ("stream_bytes_max", queue.stream_bytes_max.as_ref()),
        on_full: queue.on_full.as_ref(),
        age_max: queue.age_max.as_ref(),
        queue_bytes_max: queue.bytes_max.as_ref(),
    };
    fields.apply(StreamSettings::default(), given)
}

/// The settings of one `[[stream]]`.
pub(super) fn stream_settings(
    table: &file::Stream,
    defaults: &StreamSettings,
) -> Result<StreamSettings, Wrong> {
    let mut given = Given { table: "stream", ..Given::default() };
    let fields = Fields {
        sync: table.sync.as_ref(),
        segment_bytes_max: table.segment_bytes_max.as_ref(),
        segment_age_max: table.segment_age_max.as_ref(),
        batch_bytes_max: table.batch_bytes_max.as_ref(),
        batch_records_max: table.batch_records_max.as_ref(),
        commit_interval: table.commit_interval.as_ref(),
        record_bytes_max: table.record_bytes_max.as_ref(),
        bytes_max: ("bytes_max", table.bytes_max.as_ref()),
        on_full: table.on_full.as_ref(),
        age_max: table.age_max.as_ref(),
        queue_bytes_max: None,
    };
    let settings = fields.apply(defaults.clone(), &mut given)?;
    // The queue's own check covers the settings of streams: no second set of rules here.
    let options = Options { stream: settings.clone(), ..Options::default() };
    options.validate().map_err(|error| given.wrong(&error))?;
    Ok(settings)
}

struct Fields<'a> {
    sync: Option<&'a Spanned<String>>,
    segment_bytes_max: Option<&'a Spanned<Size>>,
    segment_age_max: Option<&'a Spanned<Span>>,
    batch_bytes_max: Option<&'a Spanned<Size>>,
    batch_records_max: Option<&'a Spanned<u32>>,
    commit_interval: Option<&'a Spanned<Span>>,
    record_bytes_max: Option<&'a Spanned<Size>>,
    /// The name it has in this table.
    bytes_max: (&'static str, Option<&'a Spanned<Size>>),
    on_full: Option<&'a Spanned<file::Full>>,
    age_max: Option<&'a Spanned<Span>>,
    queue_bytes_max: Option<&'a Spanned<Size>>,
}

impl Fields<'_> {
    fn apply(&self, mut settings: StreamSettings, given: &mut Given) -> Result<StreamSettings, Wrong> {
        if let Some(text) = self.sync {
            (settings.sync, settings.read_level) = sync_setting(text)?;
        }
        given.set(("sync", "sync"), self.sync, |_| ());
        given.set(("segment_bytes_max", "segment_bytes_max"), self.segment_bytes_max, |size| {
            settings.segment_bytes_max = size.0;
        });
        given.set(("segment_age_max", "segment_age_max"), self.segment_age_max, |span| {
            settings.segment_age_max = Some(span.0);
        });
        given.set(("batch_bytes_max", "batch_bytes_max"), self.batch_bytes_max, |size| {
            settings.batch_bytes_max = bytes(*size);
        });
        given.set(("batch_records_max", "batch_records_max"), self.batch_records_max, |n| {
            settings.batch_records_max = *n;
        });
        given.set(("commit_interval", "commit_interval"), self.commit_interval, |span| {
            settings.commit_interval = span.0;
        });
        given.set(("record_bytes_max", "record_bytes_max"), self.record_bytes_max, |size| {
            settings.record_bytes_max = bytes(*size);
        });
        // The library's field of the stream; the queue's own has the name alone.
        given.set((self.bytes_max.0, "limits.bytes_max"), self.bytes_max.1, |size| {
            settings.limits.bytes_max = Some(size.0);
        });
        given.set(("on_full", "limits.on_full"), self.on_full, |full| {
            settings.limits.on_full = match full {
                file::Full::Block => OnFull::Block,
                file::Full::Reject => OnFull::Reject,
                file::Full::DropOldest => OnFull::DropOldest,
                file::Full::DropNewest => OnFull::DropNewest,
            };
        });
        given.set(("age_max", "limits.age_max"), self.age_max, |span| settings.limits.age_max = Some(span.0));
        self.fit(&mut settings);
        Ok(settings)
    }

    /// Who lowers one limit should not have to know the defaults of the others: those not given follow.
    fn fit(&self, settings: &mut StreamSettings) {
        if self.segment_bytes_max.is_none() {
            // Space comes back by whole segments: a few of them make a limit.
            let limits = [self.bytes_max.1, self.queue_bytes_max].into_iter().flatten();
            for limit in limits.map(|limit| limit.get_ref().0) {
                let segment = (limit / SEGMENTS_PER_LIMIT).max(SEGMENT_FITTED_MIN);
                settings.segment_bytes_max = settings.segment_bytes_max.min(segment);
            }
        }
        let segment = usize::try_from(settings.segment_bytes_max).unwrap_or(usize::MAX);
        let room = segment.saturating_sub(4096 + 4096);
        if self.batch_bytes_max.is_none() && room > 0 {
            settings.batch_bytes_max = settings.batch_bytes_max.min(room);
        }
        if self.record_bytes_max.is_none() {
            settings.record_bytes_max = settings.record_bytes_max.min((settings.batch_bytes_max / 2).max(1));
        }
    }
}

/// A stream that never syncs shows what is written: nothing else would ever be shown.
fn sync_setting(text: &Spanned<String>) -> Result<(SyncSetting, ReadLevel), Wrong> {
    let refused = |message: String| {
        let help =
            "use \"each-batch\" (the default), \"each-append\", \"every 100ms\", \"on-rotate\" or \"never\"";
        wrong("sync", text, message, help)
    };
    match text.get_ref().trim() {
        "never" => Ok((SyncSetting::Never, ReadLevel::Written)),
        "on-rotate" => Ok((SyncSetting::OnRotate, ReadLevel::Durable)),
        "each-batch" => Ok((SyncSetting::EachBatch, ReadLevel::Durable)),
        "each-append" => Ok((SyncSetting::EachAppend, ReadLevel::Durable)),
        other => match other.strip_prefix("every ") {
            Some(span) => {
                let span: Span = span.parse().map_err(refused)?;
                Ok((SyncSetting::Every(span.0), ReadLevel::Durable))
            }
            None => Err(refused(format!("`{other}` is not a sync setting"))),
        },
    }
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}
