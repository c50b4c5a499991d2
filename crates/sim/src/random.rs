//! Where choices come from: a seed, or a string of bytes that a fuzzer made.
//!
//! Invariant: what is drawn depends on nothing but the source's state, so a run is a function of its seed or its bytes.

/// A source of choices.
pub trait Draw {
    /// A number below `n`; 0 if `n` is 0 or 1.
    fn below(&mut self, n: u64) -> u64;

    /// One time in `n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number from `from` to `to`, both included.
    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from).saturating_add(1))
    }

    /// One of these; `first` if there are no more.
    fn pick<T: Copy>(&mut self, first: T, more: &[T]) -> T
    where
        Self: Sized,
    {
        match self.below(more.len() as u64 + 1) {
            0 => first,
            n => usize::try_from(n - 1).ok().and_then(|n| more.get(n)).copied().unwrap_or(first),
        }
    }
}

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }
}

impl Draw for Random {
    fn below(&mut self, n: u64) -> u64 {
        if n <= 1 { 0 } else { self.next_number() % n }
    }
}

/// Numbers from a string of bytes: one byte for a small choice, more for a wide one, 0 once they are used up.
#[derive(Debug, Clone)]
pub struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// The numbers these bytes stand for.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Whether nothing is left to choose by.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

impl Draw for Bytes<'_> {
    fn below(&mut self, n: u64) -> u64 {
        let mut value = 0;
        let mut reach: u64 = 1;
        while reach < n {
            let Some((&byte, left)) = self.left.split_first() else { break };
            self.left = left;
            value = (value << 8) | u64::from(byte);
            reach = reach.saturating_mul(256);
        }
        if n <= 1 { 0 } else { value % n }
    }
}

/// SplitMix64: one well-mixed number for each number.
#[must_use]
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
