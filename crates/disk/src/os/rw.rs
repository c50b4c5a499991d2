//! Reading and writing all of it: short transfers, interruptions and long slice lists end here.

use std::io::IoSlice;

use rustix::io::{Errno, Result};

/// The most slices the kernel takes in one call (`UIO_MAXIOV`).
pub(super) const IOV_MAX: usize = 1024;

/// Fills `buf` from `offset` by repeated calls of `read`; short only when `read` returns 0.
pub(super) fn read_full(
    buf: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize>,
) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).ok_or(Errno::OVERFLOW)?;
        match read(rest, at) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Writes all slices from `offset` on by repeated calls of `write`.
///
/// On an error returns it with the offset at which nothing was written yet.
pub(super) fn write_full(
    mut bufs: &[IoSlice<'_>],
    offset: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> Result<usize>,
) -> std::result::Result<(), (Errno, u64)> {
    let mut at = offset;
    // Bytes of the first slice that are written already.
    let mut skip = 0;
    loop {
        while let Some((first, rest)) = bufs.split_first().filter(|(first, _)| first.len() <= skip) {
            skip -= first.len();
            bufs = rest;
        }
        let Some(first) = bufs.first() else { return Ok(()) };
        let written = if skip > 0 {
            // The rest of a slice that a short write cut; alone, so that no list must be built.
            let tail = first.get(skip..).unwrap_or_default();
            write(&[IoSlice::new(tail)], at)
        } else {
            write(bufs.get(..IOV_MAX).unwrap_or(bufs), at)
        };
        match written {
            // The kernel does not do this to a regular file; spinning would be worse than an error.
            Ok(0) => return Err((Errno::IO, at)),
            Ok(n) => {
                skip += n;
                at = at.checked_add(n as u64).ok_or((Errno::OVERFLOW, at))?;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err((errno, at)),
        }
    }
}

#[cfg(test)]
mod tests;
