//! Random identities: of queues and of the lives of streams. Never equal to one another is all they must be; a simulation gives a seed
//! so that a run is a function of it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Where identities and jitter come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seed {
    /// The operating system's randomness.
    #[default]
    Random,
    /// This number: the same run again.
    Fixed(u64),
}

/// Draws numbers.
#[derive(Debug)]
pub(super) struct Ids {
    fixed: Option<u64>,
}

impl Ids {
    pub(super) fn new(seed: Seed) -> Self {
        let fixed = match seed {
            Seed::Random => None,
            Seed::Fixed(seed) => Some(seed),
        };
        Self { fixed }
    }

    pub(super) fn draw(&mut self) -> u64 {
        match &mut self.fixed {
            // The standard library keys each hasher from the operating system's generator.
            None => RandomState::new().build_hasher().finish(),
            Some(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
        }
    }

    /// 128 bits, never 0.
    pub(super) fn identity(&mut self) -> u128 {
        (u128::from(self.draw()) << 64 | u128::from(self.draw())).max(1)
    }
}
