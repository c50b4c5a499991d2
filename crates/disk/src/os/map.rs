//! Read-only maps of final files: the only `unsafe` of the workspace.
//!
//! Why it is sound, and what it rests on:
//! 1. The memory is valid for as long as it is borrowed: [`Bytes`] owns the [`Mmap`], which unmaps when the last
//!    clone is dropped. The descriptor may be closed and the file unlinked meanwhile; the kernel keeps the pages.
//! 2. The bytes do not change under a shared reference: nobody writes the file while it is mapped. A map is taken
//!    only of a file that is final (the contract of `File::map`); such a file is unlinked, never recycled. The handle
//!    that was mapped refuses `write_all_at` and `set_len` from then on, so a mistake here shows as an error.
//! 3. Every byte of the map is backed: the length was compared with the file's after it became final. A program
//!    outside that cuts the file makes the kernel kill this process (SIGBUS); that is no memory error, it is
//!    documented, and reading through maps is an option that is off unless asked for.
//!
//! What the language cannot know is a *foreign* program writing into the file: then the bytes change under us, as
//! with every map. The queue's directory is 0700; who writes there can do anything else, too.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};

/// Maps the first `len` bytes; the caller has checked that the file is at least that long and final.
#[expect(unsafe_code, reason = "a map is shared memory; the proof stands at the head of this file")]
pub(super) fn map(fd: &OwnedFd, len: usize) -> io::Result<Bytes> {
    // SAFETY: points 1 to 3 above.
    let map: Mmap = unsafe { MmapOptions::new().len(len).map(fd) }?;
    Ok(Bytes::from_owner(map))
}
