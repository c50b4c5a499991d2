//! What a repair found, and what it does or would do: data, with a line for people in each.

use std::path::Path;

use serde::Serialize;

/// See [`plan`](crate::repair::plan) and [`apply`](crate::repair::apply).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// It was done; else it is a plan.
    pub applied: bool,
    /// What is done, in this order, a file each.
    pub steps: Vec<RepairStep>,
    /// Damaged files that stay as they are, and why: nothing more can be read of them, and they still say something.
    pub left: Vec<RepairStep>,
    /// Seqs found to be lost that the queue did not remember; they are written down. `to` is the first seq behind.
    pub losses: Vec<NewLoss>,
    /// No file of the catalog is left of which anything can be read. In a queue that never had a stream that is as it should be; beside
    /// directories with segments it means that the streams' names and settings are lost.
    pub catalog_missing: bool,
    /// Directories of streams that the catalog does not know. Nothing is done with them unless they are asked for by name.
    pub orphans: Vec<OrphanInfo>,
    /// What lies in the queue's directories and is not the queue's: never touched.
    pub strays: Vec<String>,
    /// Streams that cannot be repaired now.
    pub blocked: Vec<StreamBlocked>,
}

impl RepairReport {
    /// Whether there was nothing to do, nothing is blocked, and no directory holds segments that nobody knows.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.steps.is_empty()
            && self.losses.is_empty()
            && self.blocked.is_empty()
            && self.orphans.iter().all(|orphan| orphan.segments_count == 0)
    }

    /// Whether damage is left: in a plan all that was found; behind a repair the streams that cannot be repaired now, the files that stay
    /// as they are, and the directories with segments that no stream stands for and that nobody asked to adopt.
    #[must_use]
    pub fn is_damage_left(&self) -> bool {
        if !self.applied && !self.is_clean() {
            return true;
        }
        !self.left.is_empty() || !self.blocked.is_empty() || self.orphans.iter().any(OrphanInfo::is_left)
    }

    /// Bytes that are written, in all.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.bytes).fold(0, u64::saturating_add)
    }

    /// Records found to be lost, in all.
    #[must_use]
    pub fn lost_count(&self) -> u64 {
        self.losses.iter().map(|loss| loss.to.saturating_sub(loss.from)).fold(0, u64::saturating_add)
    }
}

/// One file, what is wrong with it, and what is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairStep {
    /// The stream's name; `None`: the queue's own.
    pub stream: Option<String>,
    /// The file, relative to the queue's directory.
    pub path: String,
    /// What is wrong with it.
    pub found: Vec<String>,
    /// What is done.
    pub action: String,
    /// Bytes that are written for it.
    pub bytes: u64,
    /// Records that cannot be read because of it, as (from, to); `to` is the first seq behind.
    pub lost: Vec<(u64, u64)>,
    /// Where the original is kept, relative to the queue's directory.
    pub kept: Option<String>,
}

impl RepairStep {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            stream: None,
            path: path.display().to_string(),
            found: Vec::new(),
            action: String::new(),
            bytes: 0,
            lost: Vec::new(),
            kept: None,
        }
    }
}

/// A range of seqs that was not known to be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NewLoss {
    /// The stream's name.
    pub stream: String,
    /// The first lost seq.
    pub from: u64,
    /// The seq behind the last lost one.
    pub to: u64,
    /// Why, in a word or two.
    pub reason: String,
}

/// A directory with a stream's name that no catalog entry stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OrphanInfo {
    /// The directory, relative to the queue's.
    pub dir: String,
    /// The id its name stands for.
    pub id: u64,
    /// Files with a segment's name in it.
    pub segments_count: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The name it has from now on, if that was asked for.
    pub adopted_as: Option<String>,
    /// Why it cannot be adopted; `None`: it can.
    pub refused: Option<String>,
}

impl OrphanInfo {
    /// Whether it holds segments and is no stream's, and stays so.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.segments_count > 0 && self.adopted_as.is_none()
    }
}

/// A stream that cannot be repaired now, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamBlocked {
    /// The stream's name.
    pub stream: String,
    /// Why.
    pub reason: String,
}
