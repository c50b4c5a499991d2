//! The commands beside `run`.

pub(crate) mod append;
pub(crate) mod read;
pub(crate) mod stat;
pub(crate) mod verify;
