//! What a person can do about a queue that does not open.

use std::path::Path;

use pq::{ErrorClass, OpenError};

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
fn help_of_disk(dir: &Path, error: &pq::DiskError) -> String {
    let path = dir.join(error.path());
    match error.class() {
        ErrorClass::RetryLater => {
            "raise the process's limit of open files (`ulimit -n`) or free memory, then run it again".to_owned()
        }
        ErrorClass::NoSpace => {
            "make room on the disk, or raise the quota or the limit of file sizes (`ulimit -f`), then run it again"
                .to_owned()
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
        ErrorClass::NotFound => {
            format!("{} is gone: does something else change this folder?", path.display())
        }
        ErrorClass::Unsupported => {
            "put the queue on a local file system, such as ext4, XFS or btrfs".to_owned()
        }
        _ => "the device fails: see the kernel's log; what was durable is on it still, or in your copy".to_owned(),
    }
}
