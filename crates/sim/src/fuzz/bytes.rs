//! Fuzzing input as an endless supply of small numbers and short slices: it never fails, it only runs dry.

/// Takes things from the front of some bytes.
#[derive(Debug, Clone)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// At most 64 KiB of the input are used, so that a run is bounded whatever the fuzzer tries.
    pub(crate) fn of(data: &'a [u8]) -> Self {
        Self(data.get(..1 << 16).unwrap_or(data))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 once they are used up.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number that is mostly small, and sometimes at an edge of its type.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small),
            200..=239 => u64::from(self.short()),
            240..=247 => u64::from(self.short()) << 16 | u64::from(self.short()),
            248 => u64::from(u32::MAX),
            249 => u64::from(u32::MAX) + 1,
            250 => 1 << 30,
            251 => (1 << 30) + 1,
            252 => u64::MAX - 1,
            253 => u64::MAX >> 1,
            _ => u64::MAX,
        }
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.short()).checked_rem(end).unwrap_or(0)
    }

    /// At most `bytes_max` of the next bytes, as many as the next byte says.
    pub(crate) fn slice(&mut self, bytes_max: usize) -> &'a [u8] {
        let wanted = usize::from(self.byte()).min(bytes_max).min(self.0.len());
        let (slice, rest) = self.0.split_at(wanted);
        self.0 = rest;
        slice
    }
}
