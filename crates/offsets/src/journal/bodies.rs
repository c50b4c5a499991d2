//! [`Bodies`]: a list of byte strings in one allocation, refilled from save to save.

/// A list of bodies in one allocation; its owner clears and refills it, so a steady state allocates nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bodies {
    bytes: Vec<u8>,
    /// Where each body ends in `bytes`.
    ends: Vec<usize>,
}

impl Bodies {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Appends a body.
    pub fn push(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        self.ends.push(self.bytes.len());
    }

    /// The bytes of the body being written; [`finish`](Self::finish) ends it.
    pub(crate) const fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Length of the body being written.
    pub(crate) fn tail_bytes(&self) -> usize {
        self.bytes.len() - self.ends.last().copied().unwrap_or(0)
    }

    /// Ends the body being written.
    pub(crate) fn finish(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// How many bodies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all bodies and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The bodies in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let body = self.bytes.get(from..end).unwrap_or_default();
            from = end;
            body
        })
    }
}

impl<B: AsRef<[u8]>> FromIterator<B> for Bodies {
    fn from_iter<I: IntoIterator<Item = B>>(bodies: I) -> Self {
        let mut all = Self::new();
        for body in bodies {
            all.push(body.as_ref());
        }
        all
    }
}
