//! The program from outside: started as a person starts it, with real files and a real disk.
//!
//! No test sleeps for a fixed time: what must happen is polled for, with a deadline that only a failure reaches.

mod config;
mod damage;
mod follow;
mod http;
mod kill;
mod limits;
mod mend;
mod pipeline;
mod process_limits;
mod support;
mod tools;
