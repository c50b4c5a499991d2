//! The scheduler from outside: scripts, virtual time, and a model.

mod model;
mod scripts;
mod virtual_time;
mod world;
