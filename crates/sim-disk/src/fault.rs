//! Planned faults: which call, the how-manieth, what happens, how often.
//!
//! A plan counts calls from the moment it is made. All plans are looked at for each call; the first that fires wins.

use std::path::Path;

use disk::{Op, SyncSite};

/// Which calls a fault or a gate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum On {
    /// Every call.
    Any,
    /// Every call of this kind.
    Op(Op),
    /// Calls of this kind on paths that end with these characters, such as `.seg`.
    OpPath(Op, String),
    /// Syncs, of files or directories, at this site.
    Site(SyncSite),
}

impl On {
    pub(crate) fn matches(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Op(op) => *op == call.op,
            Self::OpPath(op, end) => *op == call.op && call.path.to_string_lossy().ends_with(end.as_str()),
            Self::Site(site) => call.site == Some(*site),
        }
    }
}

/// One call of the disk, as plans see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) op: Op,
    pub(crate) path: &'a Path,
    pub(crate) site: Option<SyncSite>,
}

/// Where the machine stops in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Nothing of the call happened.
    Before,
    /// A write: the first half of its bytes. Anything else: as `After`, but the caller never learns of it, and for a
    /// sync what it covered is still unsynced, so that a power cut may keep any subset.
    Middle,
    /// The call did its work; the caller never learned of it.
    After,
}

/// What a call meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The call fails; a write has written this many bytes before.
    Error { errno: i32, after_bytes: u64 },
    /// The first transfer of the call is this short; invisible to the caller.
    Short { bytes: u64 },
    /// The machine stops; this call and all later ones fail until it is switched on again.
    Halt(Moment),
}

/// One planned fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    on: On,
    first: u64,
    end: u64,
    effect: Effect,
    seen_count: u64,
}

impl Fault {
    /// The `k`-th matching call from now, counted from 1, fails with this error number.
    ///
    /// A failed `sync_data` loses the unsynced bytes as real kernels do: see the crate's head.
    #[must_use]
    pub fn once(on: On, k: u64, errno: i32) -> Self {
        Self::times(on, k, 1, errno)
    }

    /// The `k`-th matching call and the next `count - 1` fail.
    #[must_use]
    pub fn times(on: On, k: u64, count: u64, errno: i32) -> Self {
        let effect = Effect::Error { errno, after_bytes: 0 };
        Self { on, first: k, end: k.saturating_add(count), effect, seen_count: 0 }
    }

    /// From the `k`-th matching call on, every one fails.
    #[must_use]
    pub fn forever(on: On, k: u64, errno: i32) -> Self {
        Self::times(on, k, u64::MAX, errno)
    }

    /// The `k`-th matching read or write transfers at most `bytes` bytes in its first system call; callers see nothing.
    #[must_use]
    pub fn short(on: On, k: u64, bytes: u64) -> Self {
        Self { effect: Effect::Short { bytes }, ..Self::times(on, k, 1, 0) }
    }

    /// The machine stops in the `k`-th matching call; go on with [`SimDisk::power_cut`] or [`SimDisk::kill`].
    ///
    /// [`SimDisk::power_cut`]: crate::SimDisk::power_cut
    /// [`SimDisk::kill`]: crate::SimDisk::kill
    #[must_use]
    pub fn halt(on: On, k: u64, moment: Moment) -> Self {
        Self { effect: Effect::Halt(moment), ..Self::times(on, k, 1, 0) }
    }

    /// The same from its first call on, for ever.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.end = u64::MAX;
        self
    }

    /// As if so many matching calls had been seen already.
    #[must_use]
    pub fn seen(mut self, calls: u64) -> Self {
        self.seen_count = calls;
        self
    }

    /// A failing write has written this many bytes before it fails.
    #[must_use]
    pub fn after_bytes(mut self, bytes: u64) -> Self {
        if let Effect::Error { after_bytes, .. } = &mut self.effect {
            *after_bytes = bytes;
        }
        self
    }

    /// Counts a call; says what happens if this is its turn.
    pub(crate) fn meet(&mut self, call: &Call<'_>) -> Option<Effect> {
        if !self.on.matches(call) {
            return None;
        }
        self.seen_count = self.seen_count.saturating_add(1);
        (self.first..self.end).contains(&self.seen_count).then_some(self.effect)
    }
}
