//! Crash-safe cursors and floors of any number of streams and consumers in one compacted journal.
//!
//! **Is**: the durable memory of who has read what ([`Offsets`]), and the generic journal it stands on
//! ([`journal::Journal`]). **Is not**: a place for records, a policy of what to retire, a thread or a clock;
//! time is an argument, and nothing happens here but inside a call.
//!
//! ```text
//!   Save{cursors, floors, durable ends}          cursors-0000000000000007   snapshot | save | save | ...
//!        │  one write + one fdatasync  ────────►  cursors-0000000000000008   (spare: zeros, space taken)
//! ```
//!
//! Invariants: memory holds exactly what is durable, a failed save changes nothing in memory; a cursor never
//! moves back but by a seek; a consumer's id is never used again; a file whose write or sync failed is never
//! written again, and no file of an earlier run ever is.
//!
//! ```
//! use std::sync::Arc;
//! use disk::OsDisk;
//! use offsets::{CursorMove, NewConsumer, Offsets, Save, sites};
//! use wal_format::{Incarnation, QueueId, Seq, StreamId, WallTime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let (disk, queue) = (Arc::new(OsDisk::open(dir.path())?), QueueId::new(0x5eed));
//! let (mut offsets, _report) = Offsets::open(disk.clone(), queue)?;
//! let reader = offsets.create_consumer(NewConsumer {
//!     stream: StreamId::new(1),
//!     incarnation: Incarnation::new(42),
//!     name: "reader".into(),
//!     created_at: WallTime::from_nanos(0),
//!     cursor: Seq::FIRST,
//!     hint: None,
//! })?;
//! // Any number of cursors, floors and ends: one write, one fdatasync.
//! let cursors = [CursorMove::forward(reader, Seq::new(1001))];
//! offsets.save(&Save { cursors: &cursors, ..Save::default() }, sites::SAVE)?;
//!
//! // kill -9, power cut, restart ...
//! drop(offsets);
//! let (offsets, report) = Offsets::open(disk, queue)?;
//! assert_eq!(offsets.consumer(reader).map(|entry| entry.cursor), Some(Seq::new(1001)));
//! assert!(!report.journal.is_damaged());
//! # Ok(())
//! # }
//! ```

pub mod journal;

mod change;
mod check;
mod entry;
mod error;
mod offsets;
mod policy;
mod replay;
mod report;
mod state;
mod wire;

pub use check::{ACKED_RANGES_MAX, NAME_BYTES_MAX, NOTE_BYTES_MAX, TAG_BYTES_MAX};
pub use entry::{
    AckedRange, AgeMark, CleanStop, ConsumerEntry, CursorMove, Direction, DurableEnd, Floor, FloorReason,
    NewConsumer, OpenTime, OwnedTag, Position, Save, Trim, Trims,
};
pub use error::{OpenError, SaveError};
pub use offsets::{Offsets, sites};
pub use report::OffsetsReport;
