//! What the waiting thread hears.

use std::io;
use std::sync::mpsc::Sender;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Something that may end the run.
#[derive(Debug)]
pub(crate) enum Event {
    /// A thread that reads is done.
    SourceEnded(Result<(), Failure>),
    /// Every sink has all there is.
    Drained,
    /// A person, or a service manager, wants it to stop.
    Signal(&'static str),
    /// The stdout sink cannot write: nobody reads it, or its disk is full.
    StdoutFailed(Failure),
}

/// Sends the first SIGINT or SIGTERM as an event; a second one ends the process at once, as it would have without us.
pub(crate) fn watch_signals(runtime: &Runtime, events: Sender<Event>) -> io::Result<()> {
    let _inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    runtime.spawn(async move {
        let mut is_second = false;
        loop {
            let (name, code) = tokio::select! {
                Some(()) = interrupt.recv() => ("SIGINT", 130),
                Some(()) = terminate.recv() => ("SIGTERM", 143),
                else => return,
            };
            if is_second {
                std::process::exit(code);
            }
            is_second = true;
            let _ = events.send(Event::Signal(name));
        }
    });
    Ok(())
}
