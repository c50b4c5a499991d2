//! What a client sees of a queue right after opening it.

use pq::{Gap, Incarnation};

/// How the last life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stopped {
    /// In order: nothing may be missing, nothing may come twice.
    Clean,
    /// Killed, on a disk that did not fail: what was written stays.
    Killed,
    /// Without power: what was durable stays.
    PowerCut,
    /// Killed or without power on a disk that had failed: the same, and what was given up may not have been told.
    Failing,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerView {
    /// Its name.
    pub name: String,
    /// Its cursor.
    pub cursor: u64,
    /// The note saved with it.
    pub note: Vec<u8>,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamView {
    /// Its name.
    pub name: String,
    /// Its life.
    pub incarnation: Incarnation,
    /// The oldest seq kept.
    pub first: u64,
    /// The end of what is durable.
    pub durable: u64,
    /// The end of what readers see.
    pub readable: u64,
    /// Its consumers.
    pub consumers: Vec<ConsumerView>,
    /// Everything ever found to be lost.
    pub losses: Vec<Gap>,
    /// Records its limits ever dropped before every consumer had them: for bytes, and for age.
    pub dropped: (u64, u64),
    /// The last tag of each producer.
    pub tags: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The streams that run, by name.
    pub streams: Vec<StreamView>,
}
