//! The numbers of the system errors that fault plans name, as Linux has them.

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such file or directory.
pub const ENOENT: i32 = 2;
/// Interrupted: repeated by the disk itself, never seen by callers.
pub const EINTR: i32 = 4;
/// Input/output error.
pub const EIO: i32 = 5;
/// Bad descriptor.
pub const EBADF: i32 = 9;
/// Try again.
pub const EAGAIN: i32 = 11;
/// Out of memory.
pub const ENOMEM: i32 = 12;
/// Permission denied.
pub const EACCES: i32 = 13;
/// Busy.
pub const EBUSY: i32 = 16;
/// File exists.
pub const EEXIST: i32 = 17;
/// Not a directory.
pub const ENOTDIR: i32 = 20;
/// Is a directory.
pub const EISDIR: i32 = 21;
/// Invalid argument.
pub const EINVAL: i32 = 22;
/// Too many open files in the system.
pub const ENFILE: i32 = 23;
/// Too many open files in the process.
pub const EMFILE: i32 = 24;
/// File too large.
pub const EFBIG: i32 = 27;
/// No space left.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;
/// Directory not empty.
pub const ENOTEMPTY: i32 = 39;
/// Too many symbolic links; here: not a regular file.
pub const ELOOP: i32 = 40;
/// Not supported.
pub const EOPNOTSUPP: i32 = 95;
/// Quota exceeded.
pub const EDQUOT: i32 = 122;
