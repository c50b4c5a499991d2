//! From the journal's bodies to the state, and back.

use std::path::PathBuf;

use crate::change::{BodyError, ChangeWriter};
use crate::error::OpenError;
use crate::journal::{Bodies, JournalReport};
use crate::report::OffsetsReport;
use crate::state::State;

/// Writes the whole state.
pub(crate) fn snapshot(state: &State, all: &mut Bodies) {
    let mut write = ChangeWriter::new(all);
    state.snapshot(&mut write);
    write.finish();
}

/// Reads the whole state.
pub(crate) fn replay(bodies: &Bodies, journal: JournalReport) -> Result<(State, OffsetsReport), OpenError> {
    let mut state = State::default();
    let mut ignored_count = 0;
    for body in bodies.iter() {
        match state.replay(body) {
            Ok(ignored) => ignored_count += ignored,
            Err(BodyError::UnknownKind(kind)) => {
                let current = journal.files.iter().find(|file| file.generation == journal.generation);
                let path = current.map_or_else(PathBuf::new, |file| file.path.clone());
                return Err(OpenError::UnknownKind { path, kind });
            }
            Err(BodyError::Malformed) => ignored_count += 1,
        }
    }
    state.replayed();
    let report = OffsetsReport { consumer_count: state.consumers.len(), journal, ignored_count };
    Ok((state, report))
}
