//! What a disk was told to do wrong: which request fails, and how often.

use std::ops::Range;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Write,
    Flush,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// One request fails.
    Once,
    /// One request fails, and from then on every write to the same place.
    AtThatPlace,
    /// Every request of that kind from then on.
    ForEver,
}

/// A request that is going to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) on: On,
    /// Requests of that kind that still succeed before it.
    pub(crate) after: u64,
    pub(crate) lasts: Lasts,
}

/// How a request is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Succeed,
    Fail,
}

/// Everything that is wrong with a disk.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    plan: Option<Plan>,
    bad: Vec<Range<u64>>,
    /// Blocks a thin disk can still give out.
    room: Option<u64>,
}

impl Faults {
    /// From now on this goes wrong, and nothing else but what is bad already.
    pub(crate) fn plan(&mut self, plan: Plan) {
        self.plan = Some(plan);
    }

    /// So many blocks that were never written can still be; `None`: all.
    pub(crate) fn set_room(&mut self, room: Option<u64>) {
        self.room = room;
    }

    /// A request of that kind, for those bytes.
    pub(crate) fn ask(&mut self, on: On, bytes: Range<u64>) -> Answer {
        if self.bad.iter().any(|bad| bad.start < bytes.end && bytes.start < bad.end) {
            return Answer::Fail;
        }
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.on == on) else { return Answer::Succeed };
        if plan.after > 0 {
            plan.after -= 1;
            return Answer::Succeed;
        }
        let lasts = plan.lasts;
        if lasts != Lasts::ForEver {
            self.plan = None;
        }
        if lasts == Lasts::AtThatPlace {
            self.bad.push(bytes);
        }
        Answer::Fail
    }

    /// Gives out blocks; all of them or none.
    pub(crate) fn take_room(&mut self, blocks: u64) -> bool {
        match &mut self.room {
            None => true,
            Some(room) if *room >= blocks => {
                *room -= blocks;
                true
            }
            Some(_) => false,
        }
    }
}
