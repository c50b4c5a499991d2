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
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use disk::{Disk, FdBudget, FdLimit, FileCache, OsDisk};
//! use wal_format::{Incarnation, Now, QueueId, StreamId, StreamIdentity};
//! use wal_store::{Evidence, Level, Log, NoEvents, Room, Settings, StoreContext, recover};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path().join("logs");
//! let disk = OsDisk::create(&root)?;
//! disk.create_dir(Path::new("log"))?;
//! let context = StoreContext {
//!     disk: Arc::new(disk),
//!     files: FileCache::new(FdBudget::new(FdLimit { total: 16, reserved: 4 })),
//!     room: Arc::new(Room::new(16 << 20)),
//!     identity: StreamIdentity {
//!         queue: QueueId::new(1),
//!         stream: StreamId::new(1),
//!         incarnation: Incarnation::new(0x5eed),
//!     },
//!     dir: "log".into(),
//!     events: Arc::new(NoEvents),
//! };
//! let recovery = recover(&context, &Evidence::default())?;
//! let log = Log::open(context, &recovery, Settings::default())?;
//!
//! let now = Now::default(); // read your clock here
//! let first = log.append("one", now)?;
//! let second = log.append("two", now)?;
//! second.wait(Level::Durable, now)?; // commits both: one write, one sync
//! assert!(first.peek(Level::Durable).is_some_and(|outcome| outcome.is_ok()));
//! assert_eq!(log.ends().durable, second.end());
//! log.close(now)?;
//! # Ok(())
//! # }
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
mod limits;
mod line;
mod log;
mod machine;
mod meter;
mod pool;
pub mod quarantine;
mod read;
mod record;
mod recover;
mod retire;
mod rewrite;
mod room;
mod scan;
mod segments;
mod settings;
mod shared;
mod space;
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
pub use error::{AppendError, CommitError, FullOf, LogError};
pub use events::{Events, NoEvents};
pub use limits::{Limits, OnFull};
pub use log::{Log, Progress, Want};
pub use machine::DurableEnd;
pub use meter::Pressure;
pub use quarantine::{QUARANTINE_DIR, quarantine_bytes};
pub use read::{
    Chunk, Gap, GapReason, Item, LoneSegment, Position, ReadBuffers, ReadError, ReadFrom, ReadLimits,
    ReadMethod, RecordRef, Records, Run,
};
pub use record::Record;
pub use recover::{Evidence, RecoverError, Recovery, RecoveryReport, recover};
pub use retire::{RetireError, RetirePoint};
pub use rewrite::{Rewrite, RewriteAccess, RewriteError, RewriteKind, RewritePlan, plan_rewrites};
pub use room::Room;
pub use scan::{Finding, FindingKind, ScanDepth, ScanReport, scan_read_only};
pub use segments::{SegmentInfo, SegmentList, SegmentState, segment_id, segment_path};
pub use settings::{Level, ReadLevel, Settings, SettingsError, SyncSetting};
pub use space::{Keeper, Space};
pub use tags::OwnedTag;
pub use ticket::Ticket;
