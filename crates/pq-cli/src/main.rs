//! `pq`: run pipelines over persistent queues, append, read, look, check and mend.
//!
//! ```text
//!   main ── cli (what was asked) ──┬── run: config -> sources -> queue -> sinks
//!                                  ├── append, read
//!                                  ├── stat, verify, export   (beside a running owner, changing nothing)
//!                                  └── repair
//! ```
//! It is the only crate that knows files other than the queue's own, HTTP, signals and terminals.

mod cli;
mod commands;
mod config;
mod failure;
mod format;
mod glob;
mod json;
mod lines;
mod output;
mod run;
mod sink;
mod source;
mod template;

use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Cli, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    outlive_size_limit();
    let ended = match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Append(args) => commands::append::append(args),
        Command::Read(args) => commands::read::read(args),
        Command::Stat(args) => commands::stat::stat(args),
        Command::Verify(args) => commands::verify::verify(args),
        Command::Export(args) => commands::export::export(args),
        Command::Repair(args) => commands::repair::repair(args),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::tell(&format!("pq: error: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

/// Whatever is written beyond the limit of file sizes (`ulimit -f`), an output for example, fails as on a full disk; without a handler
/// the signal that comes with it would end the program.
fn outlive_size_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    // Without descriptors the queue cannot be opened either: that says more than this could.
    let Ok(runtime) = runtime else { return };
    let _inside = runtime.enter();
    // The handler stays for as long as the process lives; nobody needs to hear of the signal.
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())));
}

/// How a command ends: an exit code, or a message with one.
pub(crate) type Ended = Result<u8, Failure>;
