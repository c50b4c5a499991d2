//! One stream's durable log: group commit over append-only segment files, rotation, reading, recovery, retirement.
//!
//! It is a library of its own: give it a directory of a [`disk::Disk`] and it is a crash-safe log for any number of
//! threads. It is not a queue: it knows no consumers, no cursors and no schedule. It starts no thread and reads no
//! clock; time is an argument.
//!
//! ```text
//!  append ──► open batch (memory) ──commit──► newest segment ──rotate──► older segments ──retire──► gone
//!     │            │ one write + one fdatasync       │                        │
//!     └─ Ticket ◄──┴──────── word of the batch       └────────── read ◄───────┘
//! ```
//!
//! Invariants: an append never calls the device; nothing is acknowledged as durable before its bytes and its file's
//! directory entry are; a file that once failed is never written again; the order of seqs is the order of appends.

mod batch;
#[cfg(test)]
mod build;
mod classify;
mod commit;
mod context;
mod counters;
mod ends;
mod error;
mod events;
mod gate;
mod log;
mod machine;
mod pool;
mod read;
mod record;
mod recover;
mod retire;
mod room;
mod scan;
mod segments;
mod settings;
mod stall;
mod sync;
mod tags;
mod tail;
mod ticket;
mod wait;
mod word;

pub use classify::Row;
pub use context::StoreContext;
pub use counters::Counters;
pub use ends::Ends;
pub use error::{AppendError, CommitError, LogError};
pub use events::{Events, NoEvents};
pub use log::{Log, Progress, Want};
pub use machine::DurableEnd;
pub use read::{
    Chunk, Gap, GapReason, Item, Position, ReadBuffers, ReadError, ReadFrom, ReadLimits, ReadMethod, RecordRef, Records,
    Run,
};
pub use record::Record;
pub use recover::{Evidence, QUARANTINE_DIR, RecoverError, Recovery, RecoveryReport, recover};
pub use retire::{RetireError, RetirePoint};
pub use room::Room;
pub use scan::{Finding, FindingKind, ScanDepth, ScanReport, scan_read_only};
pub use segments::{SegmentInfo, SegmentList, SegmentState, segment_id, segment_path};
pub use settings::{Level, ReadLevel, Settings, SettingsError, SyncSetting};
pub use tags::OwnedTag;
pub use ticket::Ticket;
