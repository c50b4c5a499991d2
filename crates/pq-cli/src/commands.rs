//! The commands beside `run`.

pub(crate) mod append;
pub(crate) mod export;
pub(crate) mod read;
pub(crate) mod repair;
pub(crate) mod stat;
pub(crate) mod verify;
