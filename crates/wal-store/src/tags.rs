//! Producers' places: the last tag each producer wrote, carried from segment to segment.
//!
//! The first batch of every segment repeats all of them, so that recovery needs to look at the newest segment only.

use std::collections::BTreeMap;

use wal_format::{Seq, StreamIdentity, Tag};

/// A producer's opaque place in its source, with the seq after which it stood in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTag {
    /// The producer's name.
    pub producer: Vec<u8>,
    /// Its place, as it gave it.
    pub value: Vec<u8>,
    /// First seq of the batch that carried it.
    pub at: Seq,
}

/// The last tag of each producer.
#[derive(Debug, Clone, Default)]
pub(crate) struct TagSet(BTreeMap<Vec<u8>, (Vec<u8>, Seq)>);

impl TagSet {
    pub(crate) fn from_tags(tags: &[OwnedTag]) -> Self {
        Self(tags.iter().map(|tag| (tag.producer.clone(), (tag.value.clone(), tag.at))).collect())
    }

    /// Replaces the producer's tag; allocates only for a producer not seen before.
    pub(crate) fn set(&mut self, producer: &[u8], value: &[u8], at: Seq) {
        match self.0.get_mut(producer) {
            Some((known, known_at)) => {
                known.clear();
                known.extend_from_slice(value);
                *known_at = at;
            }
            None => {
                self.0.insert(producer.to_vec(), (value.to_vec(), at));
            }
        }
    }

    /// Takes over every tag of `newer`.
    pub(crate) fn merge(&mut self, newer: &Self) {
        for (producer, (value, at)) in &newer.0 {
            self.set(producer, value, *at);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a meta frame for each tag; `next` is the seq of the record behind them.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, identity: &StreamIdentity, next: Seq) {
        for (producer, (value, _)) in &self.0 {
            // Their lengths were checked when they came in, or when they were decoded.
            if let Ok(tag) = Tag::new(producer, value) {
                tag.encode(out, identity, next);
            }
        }
    }

    pub(crate) fn to_tags(&self) -> Vec<OwnedTag> {
        let owned = |(producer, (value, at)): (&Vec<u8>, &(Vec<u8>, Seq))| OwnedTag {
            producer: producer.clone(),
            value: value.clone(),
            at: *at,
        };
        self.0.iter().map(owned).collect()
    }
}
