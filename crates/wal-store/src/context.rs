//! What a log needs from outside: a disk, descriptors, room, an identity, a directory, and somebody to tell.

use std::path::PathBuf;
use std::sync::Arc;

use disk::{Disk, FileCache};
use wal_format::StreamIdentity;

use crate::{Events, Room};

/// Everything a stream's log borrows from its surroundings. Cheap to clone.
#[derive(Clone)]
pub struct StoreContext {
    /// Where the files live.
    pub disk: Arc<dyn Disk>,
    /// Clean files kept open while descriptors allow it.
    pub files: Arc<FileCache>,
    /// Memory for records not yet written, shared by all streams of a queue.
    pub room: Arc<Room>,
    /// Queue, stream and incarnation: the seed of every checksum.
    pub identity: StreamIdentity,
    /// The stream's directory, relative to the disk's root. It must exist.
    pub dir: PathBuf,
    /// Who is told that somebody waits, that something became readable, and of rotations.
    pub events: Arc<dyn Events>,
}

impl std::fmt::Debug for StoreContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreContext")
            .field("identity", &self.identity)
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
