//! Records to stdout. Deliveries of several streams do not mix within a line.
//!
//! Nobody reading any more (`pq run … | head`) ends the pipeline quietly; nothing is acknowledged that was not written.

use std::io::{self, Write};
use std::sync::Arc;

use pq::{Delivery, SendOutcome, Sink};
use tokio::task::spawn_blocking;

use crate::config::Format;
use crate::format::encode;

/// Called once when stdout is closed.
pub(crate) type OnClosed = Arc<dyn Fn() + Send + Sync>;

/// Writes to stdout.
pub(crate) struct StdoutSink {
    stream: String,
    format: Format,
    on_closed: OnClosed,
}

impl StdoutSink {
    pub(crate) fn new(stream: &str, format: Format, on_closed: OnClosed) -> Self {
        Self { stream: stream.to_owned(), format, on_closed }
    }
}

impl Sink for StdoutSink {
    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let bytes = encode(self.format, &self.stream, delivery);
        let written = spawn_blocking(move || write(&bytes)).await;
        match written {
            Ok(Ok(())) => SendOutcome::delivered(),
            Ok(Err(error)) => {
                if error.kind() == io::ErrorKind::BrokenPipe {
                    (self.on_closed)();
                }
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
