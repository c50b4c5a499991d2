//! The names of things: sequence numbers, ids of streams, segments and consumers, and the identity of a stream.
//!
//! Each is a newtype over its integer, so that no two of them can be mistaken for one another. All are `Copy`, ordered,
//! hashed by value and printed as people read them: numbers in decimal, random 128-bit identities in hexadecimal.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $int:ty, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($int);

        impl $name {
            /// Wraps the number as it is; every value is allowed.
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self(value)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }
    };
}

id! {
    /// The dense number of a record in its stream, from 1. Ends are exclusive: an empty stream ends at [`Seq::FIRST`].
    Seq, u64, "{}"
}

id! {
    /// The number of a stream in its queue, never used again once given.
    StreamId, u64, "{}"
}

id! {
    /// The number of a segment file in its stream, from 1, ascending in the order of writing.
    SegmentId, u64, "{}"
}

id! {
    /// The number of a registered consumer in its queue, never used again once given.
    ConsumerId, u64, "{}"
}

id! {
    /// The random identity of a queue directory.
    QueueId, u128, "{:032x}"
}

id! {
    /// The random identity of one life of a stream: a stream created again under its name has another one.
    Incarnation, u128, "{:032x}"
}

impl Seq {
    /// The first record of a stream.
    pub const FIRST: Self = Self(1);
    /// The greatest exclusive end; no record ever bears it.
    pub const MAX: Self = Self(u64::MAX);

    /// The seq after this one, or `None` at the top of the type.
    #[must_use]
    pub const fn checked_next(self) -> Option<Self> {
        self.checked_add(1)
    }

    /// The seq `records` further on, or `None` if the type cannot hold it.
    #[must_use]
    pub const fn checked_add(self, records: u64) -> Option<Self> {
        match self.0.checked_add(records) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The seq `records` further on, or [`Seq::MAX`].
    #[must_use]
    pub const fn saturating_add(self, records: u64) -> Self {
        Self(self.0.saturating_add(records))
    }

    /// The number of seqs in `[self, end)`; 0 if `end` lies before.
    #[must_use]
    pub const fn distance_to(self, end: Self) -> u64 {
        end.0.saturating_sub(self.0)
    }
}

impl SegmentId {
    /// The first segment of a stream.
    pub const FIRST: Self = Self(1);

    /// The id after this one, or `None` at the top of the type.
    #[must_use]
    pub const fn checked_next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }
}

/// Who a stream is. Every checksum is seeded with the incarnation, so bytes of any other stream never decode as this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamIdentity {
    /// The queue the stream belongs to.
    pub queue: QueueId,
    /// The stream's number in its queue.
    pub stream: StreamId,
    /// This life of the stream.
    pub incarnation: Incarnation,
}

impl fmt::Display for StreamIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} stream {} incarnation {}", self.queue, self.stream, self.incarnation)
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
