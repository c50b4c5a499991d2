//! Records to stdout. Deliveries of several streams do not mix within a line.
//!
//! Whatever goes wrong with stdout ends the pipeline (`pq run … | head` too): part of a line may be out there, and writing it again would
//! not mend that. Nothing is acknowledged that was not written.

use std::io::{self, Write};
use std::sync::Arc;

use pq::{Delivery, SendOutcome, Sink};
use tokio::task::spawn_blocking;

use crate::config::Format;
use crate::format::encode;

/// Called with what is wrong once stdout cannot be written.
pub(crate) type OnFailed = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// Writes to stdout.
pub(crate) struct StdoutSink {
    stream: String,
    format: Format,
    on_failed: OnFailed,
}

impl StdoutSink {
    pub(crate) fn new(stream: &str, format: Format, on_failed: OnFailed) -> Self {
        Self { stream: stream.to_owned(), format, on_failed }
    }
}

impl Sink for StdoutSink {
    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let bytes = encode(self.format, &self.stream, delivery);
        let written = spawn_blocking(move || write(&bytes)).await;
        match written {
            Ok(Ok(())) => SendOutcome::delivered(),
            Ok(Err(error)) => {
                (self.on_failed)(&error);
                SendOutcome::retry(format!("stdout: {error}"))
            }
            Err(error) => SendOutcome::retry(format!("stdout: {error}")),
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
