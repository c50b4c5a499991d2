//! Which error a client may be told for which failure, as DESIGN's classes want it: each class of error has one answer.
//!
//! | the disk says | class | what a caller may do | told as |
//! |---|---|---|---|
//! | EMFILE, ENFILE | retry later | the same call, a little later | retry |
//! | ENOSPC, EDQUOT | wait for space | the same call, once there is space | retry |
//! | EROFS, EACCES | read-only | the same call, once it is writable | retry |
//! | EIO | device | nothing with that file: it is poisoned | see below |
//! | EINTR, a short transfer | none | nobody hears of it: the disk itself repeats and completes | nothing |
//!
//! After EIO a commit that still holds its records is to be tried again (they move to a new segment), and what was given up is not; a
//! read is to be tried again (nothing was changed by it), and so is a stream that is paused until it can be recovered; what writes a
//! journal, or opens a queue, is not: nobody promises that it helps. Only a device that failed costs records, and only behind one may
//! an error follow from another instead of the disk: appends to a stream that is paused.

use disk::ErrorClass;
use sim_disk::errno;

use super::Failure;
use crate::world::{Heard, Retry};

/// What the disk's error number is for a caller; `None`: callers never hear of it.
fn class_of(failure: Failure) -> Option<(ErrorClass, i32)> {
    let Failure::Errno(errno, _) = failure else { return None };
    let class = match errno {
        errno::EMFILE | errno::ENFILE => ErrorClass::RetryLater,
        errno::ENOSPC | errno::EDQUOT => ErrorClass::NoSpace,
        errno::EROFS | errno::EACCES => ErrorClass::ReadOnly,
        errno::EIO => ErrorClass::Device,
        _ => return None,
    };
    Some((class, errno))
}

/// Why a client must not be told this because of that failure; `None`: it may.
pub(super) fn strange(failure: Failure, heard: &Heard) -> Option<String> {
    let Some((class, errno)) = class_of(failure) else {
        return Some("nobody may hear of it".to_owned());
    };
    // Errors that keep only the words of the disk keep its number.
    let says_why = heard.class == Some(class) || heard.text.contains(&format!("(os error {errno})"));
    match heard.class {
        Some(told) if told != class => return Some(format!("its class is {class:?}")),
        None if !says_why && !follows(class, heard) => {
            return Some(format!("it does not say why: {class:?}"));
        }
        _ => {}
    }
    let allowed = advice(class, heard);
    (!allowed.contains(&heard.retry)).then(|| format!("it must advise one of {allowed:?}"))
}

/// Whether it follows from what was told before.
fn follows(class: ErrorClass, heard: &Heard) -> bool {
    match heard.verb {
        // Whoever's read failed is asked to come later; and where records were given up stands nothing.
        "a read" => true,
        "append" | "save" | "close" => class == ErrorClass::Device,
        _ => false,
    }
}

/// What an error of that class may advise.
fn advice(class: ErrorClass, heard: &Heard) -> &'static [Option<Retry>] {
    match (class, heard.verb) {
        // The queue is down, or nothing was returned that could advise.
        (_, "close" | "a read") => &[None],
        // Which of both tells whether the records are still held.
        (ErrorClass::Device, "commit" | "rotate" | "wait") => &[Some(Retry::Yes), Some(Retry::No)],
        (ErrorClass::Device, "a ticket") => &[Some(Retry::No)],
        (ErrorClass::Device, "read" | "a sink's read" | "a paused stream" | "append") => &[Some(Retry::Yes)],
        (ErrorClass::Device, "create a stream") if heard.text.contains("is paused") => &[Some(Retry::Yes)],
        (ErrorClass::Device, _) => &[Some(Retry::No)],
        // Of refusals nothing is given up.
        (_, "a ticket") => &[],
        _ => &[Some(Retry::Yes)],
    }
}
