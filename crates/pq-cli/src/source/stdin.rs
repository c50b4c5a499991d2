//! Lines of stdin as records. There is no place to keep: what was read is gone from the pipe, so what was read is appended, also when
//! the program is told to stop in the middle of a line.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use pq::{AppendError, OnFull, Record, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::feeder::COMPLAINTS_APART;
use crate::failure::Failure;
use crate::lines::{self, Limits, Rest};

const CHUNK_BYTES: usize = 1 << 20;
/// How long a disk that refuses is left alone.
const DISK_PAUSE: Duration = Duration::from_millis(500);
/// How often a full stream is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(50);
/// How long it may refuse to take records before stdin is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the reading of stdin from another thread, even while it waits for input.
#[derive(Debug)]
pub(crate) struct StdinStop(#[expect(dead_code, reason = "closing it is the signal")] OwnedFd);

/// What is read from.
#[derive(Debug)]
pub(crate) struct Stdin {
    stop: OwnedFd,
}

/// What becomes of lines that do not fit into a full stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// They wait until records were delivered, or dropped, unless the policy is to reject.
    Wait,
    /// They are refused: nobody delivers while this program runs.
    Fail,
}

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All was read.
    Input,
    /// It was told to stop.
    Stopped,
}

impl Stdin {
    /// Stdin, and the means to stop reading it: drop that to stop.
    ///
    /// # Errors
    /// No descriptor was left.
    pub(crate) fn new() -> io::Result<(Self, StdinStop)> {
        let (stop, stopper) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Self { stop }, StdinStop(stopper)))
    }

    /// Appends everything to the stream; `appended` is called after each batch, which need not be durable yet.
    ///
    /// # Errors
    /// Stdin cannot be read, or the stream refuses records: what was appended before stays.
    pub(crate) fn feed(
        &self,
        stream: &Stream,
        when_full: WhenFull,
        appended: &mut dyn FnMut(pq::Ticket) -> Result<(), Failure>,
    ) -> Result<Ended, Failure> {
        let limits = Limits::of(stream.settings());
        let mut buffer = vec![0; CHUNK_BYTES.max(limits.record_bytes_max.saturating_add(1))];
        let mut filled = 0;
        loop {
            let got = self.read(&mut buffer[filled..])?;
            let ended = match got {
                Got::Bytes(n) => {
                    filled += n;
                    None
                }
                Got::End => Some(Ended::Input),
                Got::Stop => Some(Ended::Stopped),
            };
            let rest = if ended.is_some() { Rest::Take } else { Rest::Keep };
            let taken = self.append_all((stream, when_full), limits, &buffer[..filled], rest, appended)?;
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Makes durable what was fed. A disk that refuses is waited for until the stop: the bytes cannot be read a second time.
    ///
    /// # Errors
    /// Some of it is not durable.
    pub(crate) fn commit(&self, stream: &Stream, notify: &mut dyn FnMut(String)) -> Result<(), Failure> {
        let mut told: Option<Instant> = None;
        loop {
            let Err(error) = stream.commit_blocking() else { return Ok(()) };
            if !error.is_retryable() || self.is_stopped_within(DISK_PAUSE) {
                let text = format!("stdin: the last records could not be made durable: {error}");
                return Err(Failure::wrong(text));
            }
            if told.is_none_or(|told| told.elapsed() >= COMPLAINTS_APART) {
                notify(format!("stdin: {error}; trying again"));
                told = Some(Instant::now());
            }
        }
    }

    fn is_stopped_within(&self, pause: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
        poll(&mut fds, Some(&pause)).is_ok_and(|ready| ready > 0)
    }

    fn read(&self, buffer: &mut [u8]) -> Result<Got, Failure> {
        let stdin = io::stdin();
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(unreadable(error)),
            }
            if !fds[1].revents().is_empty() {
                return Ok(Got::Stop);
            }
            // Past std's own buffer: nobody else reads stdin, and what lies in a buffer would be lost at a stop.
            match rustix::io::read(stdin.as_fd(), &mut *buffer) {
                Ok(0) => return Ok(Got::End),
                Ok(n) => return Ok(Got::Bytes(n)),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    fn append_all(
        &self,
        to: (&Stream, WhenFull),
        limits: Limits,
        bytes: &[u8],
        rest: Rest,
        appended: &mut dyn FnMut(pq::Ticket) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        let mut taken = 0;
        loop {
            let mut records: Vec<Record<'_>> = Vec::new();
            let step = lines::split(&bytes[taken..], limits, rest, &mut records);
            if records.is_empty() {
                return Ok(taken);
            }
            // A stream that drops the newest counts what it drops.
            if let Some(ticket) = self.append_patiently(to, &records)? {
                appended(ticket)?;
            }
            taken += step;
        }
    }

    /// A disk that fails for a while is waited for, and a full stream too if somebody makes room: the bytes cannot be read a second time.
    fn append_patiently(
        &self,
        (stream, when_full): (&Stream, WhenFull),
        records: &[Record<'_>],
    ) -> Result<Option<pq::Ticket>, Failure> {
        let waits = when_full == WhenFull::Wait && stream.limits().on_full != OnFull::Reject;
        let begun = Instant::now();
        let last = loop {
            match stream.append_batch_unless_full(records, None) {
                Ok(ticket) => return Ok(Some(ticket)),
                Err(AppendError::Dropped { .. }) => return Ok(None),
                Err(error @ AppendError::Full { .. }) => {
                    if !waits || !error.is_retryable() || self.is_stopped_within(FULL_PAUSE) {
                        break error;
                    }
                }
                Err(error) if error.is_retryable() && begun.elapsed() < PATIENCE => {
                    if self.is_stopped_within(DISK_PAUSE) {
                        break error;
                    }
                }
                Err(error) => break error,
            }
        };
        let name = stream.name();
        let failure = Failure::wrong(format!("stream `{name}`: records of stdin cannot be appended: {last}"));
        Err(failure.help("mend the cause; lines from here on were not taken"))
    }
}

/// What a failing disk made the stream give up of stdin, told once it is known.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    tickets: VecDeque<pq::Ticket>,
}

impl Losses {
    pub(crate) fn watch(&mut self, ticket: pq::Ticket) {
        self.tickets.push_back(ticket);
    }

    /// Forgets what is durable; the failures of what is lost.
    pub(crate) fn settle(&mut self) -> Vec<Failure> {
        let mut lost = Vec::new();
        while let Some(settled) = self.tickets.front().and_then(pq::Ticket::peek) {
            self.tickets.pop_front();
            if let Err(error) = settled {
                lost.push(Failure::wrong(format!("stdin: {error}")).help("those lines are not stored"));
            }
        }
        lost
    }
}

enum Got {
    Bytes(usize),
    End,
    Stop,
}

fn unreadable(error: rustix::io::Errno) -> Failure {
    Failure::wrong(format!("stdin cannot be read: {error}")).help("what was read before is appended")
}

#[cfg(test)]
#[path = "stdin_tests.rs"]
mod tests;
