//! What a client sees right after opening: taken from the core's public functions alone.

use pq::core::{Core, CoreStream};
use pq::{Now, OpenReport};

use crate::oracle::{ConsumerView, StreamView, View};
use crate::violation::{Checked, Kind, Violation};

/// What there is to see.
pub(super) struct Seen {
    pub(super) view: View,
    /// The streams that run, by name.
    pub(super) handles: Vec<(String, CoreStream)>,
    /// Those that do not, and why.
    pub(super) paused: Vec<(String, pq::StreamError)>,
}

/// The streams that run, and those that do not.
pub(super) fn look(core: &Core, now: Now) -> Seen {
    let mut streams = Vec::new();
    let mut handles = Vec::new();
    let mut paused = Vec::new();
    for name in core.names() {
        match core.open_stream(&name, None, now) {
            Ok(handle) => {
                streams.push(stream(&handle));
                handles.push((name, handle));
            }
            Err(error) => paused.push((name, error)),
        }
    }
    Seen { view: View { streams }, handles, paused }
}

fn stream(handle: &CoreStream) -> StreamView {
    let ends = handle.log().ends();
    let consumers = handle.consumers().into_iter().map(|consumer| ConsumerView {
        name: consumer.name().to_owned(),
        cursor: consumer.cursor().get(),
        note: consumer.note(),
    });
    let mut tags: Vec<_> =
        handle.log().last_tags().into_iter().map(|tag| (tag.producer.to_vec(), tag.value.to_vec())).collect();
    tags.sort();
    StreamView {
        name: handle.name().to_owned(),
        incarnation: handle.incarnation(),
        first: handle.first().get(),
        durable: ends.durable.get(),
        readable: ends.readable.get(),
        consumers: consumers.collect(),
        losses: handle.losses(),
        tags,
    }
}

/// One stream on a line, for people: its ends, its segments, where its consumers stand.
pub(super) fn describe(handle: &CoreStream) -> String {
    let ends = handle.log().ends();
    let mut text = format!(
        "{}: first {} durable {} readable {} written {} appended {};",
        handle.name(),
        handle.first(),
        ends.durable,
        ends.readable,
        ends.written,
        ends.appended
    );
    for segment in &handle.log().segments() {
        text += &format!(" seg {} [{}, {})", segment.id, segment.first_seq, segment.end_seq);
    }
    for consumer in handle.consumers() {
        text += &format!("; {} at {} saved {}", consumer.name(), consumer.cursor(), consumer.saved());
    }
    text
}

/// A crash is no damage: nothing of that kind may be reported after one.
pub(super) fn check_report(report: &OpenReport) -> Checked {
    let alarm = |what: String| Err(Violation::new(Kind::FalseAlarm, what));
    if let Some(note) = report.notes.first() {
        return alarm(format!("noted: {note}"));
    }
    if let Some(stray) = report.strays.first() {
        return alarm(format!("a stray: {stray}"));
    }
    for stream in &report.streams {
        if !stream.gaps.is_empty() {
            return alarm(format!("stream {:?} lost {:?}", stream.name, stream.gaps));
        }
        if let Some(note) = stream.notes.first() {
            return alarm(format!("stream {:?}: {note}", stream.name));
        }
    }
    Ok(())
}
