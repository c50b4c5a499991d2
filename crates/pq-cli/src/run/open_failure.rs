//! What a person can do about a queue that does not open.

use std::path::Path;

use pq::inspect::InspectError;
use pq::{DiskError, DiskOp, ErrorClass, OpenError};

use crate::failure::Failure;

/// The message names the directory, and says what to do.
pub(crate) fn open_failure(dir: &Path, error: &OpenError) -> Failure {
    let shown = dir.display();
    if matches!(error, OpenError::InUse { .. }) {
        return Failure::new(format!("{shown}: the queue is in use by another process")).help(
            "stop that one first; `pq stat`, `pq verify` and `pq read` without --consumer work beside it",
        );
    }
    let failure = Failure::new(format!("{shown}: the queue cannot be opened: {error}"));
    match dir.metadata() {
        Err(_) => failure.help("give the queue's directory, the one that `dir` in [queue] names"),
        Ok(meta) if !meta.is_dir() => failure.help("this is a file; give the queue's directory"),
        Ok(_) => failure.help(help(dir, error)),
    }
}

/// A queue that was opened for looking, and something in it cannot be looked at.
pub(crate) fn inspect_failure(dir: &Path, error: &InspectError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", dir.display()));
    match (error, error.disk()) {
        (_, Some(error)) => failure.help(help_of_disk(dir, error)),
        (InspectError::NotFound { .. }, None) => {
            failure.help(format!("`pq stat {}` shows the streams there are", dir.display()))
        }
        _ => failure,
    }
}

fn help(dir: &Path, error: &OpenError) -> String {
    if let Some(error) = error.disk() {
        return help_of_disk(dir, error);
    }
    match error {
        OpenError::NotAQueue => "this folder holds no queue; give the one that `dir` in [queue] names",
        OpenError::Options(error) if error.field == "fds_max" => {
            "raise the process's limit of open files, or let the queue have fewer by `fds_max` in [queue]"
        }
        OpenError::Options(_) => "correct that setting",
        OpenError::Version { .. } => "nothing was changed; open it with the version that wrote it",
        OpenError::Thread(_) => "raise the limit of processes and threads (`ulimit -u`), then run it again",
        _ => "nothing was changed; `pq verify` tells what is damaged",
    }
    .to_owned()
}

/// What helps against what the disk said.
pub(crate) fn help_of_disk(dir: &Path, error: &DiskError) -> String {
    // The queue's directory itself is named as it was given; all else within it.
    let path = if error.path() == dir { dir.to_path_buf() } else { dir.join(error.path()) };
    match error.class() {
        ErrorClass::RetryLater => {
            "raise the process's limit of open files (`ulimit -n`) or free memory, then run it again".to_owned()
        }
        ErrorClass::NoSpace => {
            "make room on the disk, or raise the quota or the limit of file sizes (`ulimit -f`), then run it again"
                .to_owned()
        }
        ErrorClass::ReadOnly if is_read(error.op()) => {
            format!("give pq the right to read {} (a directory: to enter it, too), then run it again", path.display())
        }
        ErrorClass::ReadOnly => format!(
            "give pq the right to write to {}, or mount the file system for writing; `pq stat`, `pq verify` and `pq read` \
             without --consumer work as it is",
            path.display()
        ),
        ErrorClass::WrongKind | ErrorClass::Exists | ErrorClass::NotEmpty => format!(
            "something that is not the queue's stands in its place: move {} away, then run it again",
            path.display()
        ),
        ErrorClass::NotFound => format!(
            "{} is gone: does something else change this folder? `pq repair {}` says what it costs",
            path.display(),
            dir.display()
        ),
        ErrorClass::Unsupported => {
            "put the queue on a local file system, such as ext4, XFS or btrfs".to_owned()
        }
        _ => "the device fails: see the kernel's log; what was durable is on it still, or in your copy".to_owned(),
    }
}

/// Whether this asks for the right to read. What exists is only ever opened for reading, but for the lock.
fn is_read(op: DiskOp) -> bool {
    matches!(op, DiskOp::Open | DiskOp::List | DiskOp::Read | DiskOp::Stat | DiskOp::Len | DiskOp::Map)
}

#[cfg(test)]
#[path = "open_failure_tests.rs"]
mod tests;
