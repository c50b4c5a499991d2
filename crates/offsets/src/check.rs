//! What is refused before a byte is written.

use wal_format::Seq;

use crate::entry::{AckedRange, CursorMove, Direction, Floor, Save};
use crate::error::SaveError;
use crate::state::State;

/// Longest name of a consumer, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Longest note of a consumer, in bytes.
pub const NOTE_BYTES_MAX: usize = 256;
/// Most ranges acked above a cursor.
pub const ACKED_RANGES_MAX: usize = 1024;
/// Longest producer and value of a tag together, in bytes.
pub const TAG_BYTES_MAX: usize = 256;

pub(crate) fn name(name: &str) -> Result<(), SaveError> {
    in_range("consumer name bytes", name.len(), 1, NAME_BYTES_MAX)
}

/// Checks a save against what is durable.
pub(crate) fn save(state: &State, save: &Save<'_>) -> Result<(), SaveError> {
    for to in save.cursors {
        cursor(state, to)?;
    }
    for (stream, floor) in save.floors {
        tags(floor)?;
        let Some(before) = state.floors.get(stream) else { continue };
        if floor.seq < before.seq || floor.segment < before.segment {
            return Err(SaveError::FloorBack { stream: *stream, from: before.seq, to: floor.seq });
        }
    }
    Ok(())
}

fn cursor(state: &State, to: &CursorMove) -> Result<(), SaveError> {
    let Some(entry) = state.consumers.get(&to.consumer) else {
        return Err(SaveError::UnknownConsumer { consumer: to.consumer });
    };
    if to.direction == Direction::Forward && to.cursor < entry.cursor {
        return Err(SaveError::CursorBack { consumer: to.consumer, from: entry.cursor, to: to.cursor });
    }
    in_range("note bytes", to.note.as_ref().map_or(0, Vec::len), 0, NOTE_BYTES_MAX)?;
    acked(to.cursor, &to.acked_above)
}

/// Ascending, apart from each other, above the cursor.
fn acked(cursor: Seq, ranges: &[AckedRange]) -> Result<(), SaveError> {
    in_range("acked ranges", ranges.len(), 0, ACKED_RANGES_MAX)?;
    let mut end = cursor;
    for (index, range) in ranges.iter().enumerate() {
        if range.from <= end || range.to <= range.from {
            return Err(SaveError::AckedOrder { index });
        }
        end = range.to;
    }
    Ok(())
}

fn tags(floor: &Floor) -> Result<(), SaveError> {
    for tag in &floor.tags {
        in_range("tag bytes", tag.producer.len() + tag.value.len(), 0, TAG_BYTES_MAX)?;
    }
    Ok(())
}

const fn in_range(what: &'static str, got: usize, min: usize, max: usize) -> Result<(), SaveError> {
    if got < min || got > max { Err(SaveError::OutOfRange { what, got, min, max }) } else { Ok(()) }
}
