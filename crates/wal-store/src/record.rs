//! A record as it is given to the log: a payload in one or several slices, and four bits of the caller's.

use wal_format::Marks;

/// One record to append.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    payload: Payload<'a>,
    marks: Marks,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Payload<'a> {
    One(&'a [u8]),
    Many(&'a [&'a [u8]]),
}

impl<'a> Record<'a> {
    /// A record of one slice.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload: Payload::One(payload), marks: Marks::NONE }
    }

    /// A record whose payload is these slices, one behind the other.
    pub fn from_slices(slices: &'a [&'a [u8]]) -> Self {
        Self { payload: Payload::Many(slices), marks: Marks::NONE }
    }

    /// The same record with the caller's marks, stored and returned as given.
    pub fn with_marks(self, marks: Marks) -> Self {
        Self { marks, ..self }
    }

    /// Bytes of the whole payload.
    pub fn payload_bytes(&self) -> usize {
        match self.payload {
            Payload::One(payload) => payload.len(),
            Payload::Many(slices) => {
                slices.iter().fold(0, |sum: usize, slice| sum.saturating_add(slice.len()))
            }
        }
    }

    pub(crate) fn payload(&self) -> Payload<'a> {
        self.payload
    }

    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }
}

impl<'a> From<&'a [u8]> for Record<'a> {
    fn from(payload: &'a [u8]) -> Self {
        Self::new(payload)
    }
}

impl<'a> From<&'a str> for Record<'a> {
    fn from(payload: &'a str) -> Self {
        Self::new(payload.as_bytes())
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Record<'a> {
    fn from(payload: &'a [u8; N]) -> Self {
        Self::new(payload)
    }
}
