//! Single steps, for checks that break the disk at a chosen one: one line, one answer.
//!
//! | line | does |
//! |---|---|
//! | `append S COUNT BYTES WAIT` | so many records, one after the other, each waited for; at most WAIT ms for all |
//! | `batch S COUNT BYTES WAIT` | the same as one batch |
//! | `buffer S COUNT BYTES` | the same, not waited for |
//! | `rotate S` | a new segment with the next append |
//! | `consume S` | takes and acknowledges everything there is |
//! | `save WAIT` | saves all cursors; tries again for WAIT ms |
//! | `report` | says all there is |
//! | `work SEED`, `stop` | random work on streams of its own, until `stop` |
//! | `stats` | `ok poisoned P segments N cursor_saves C fds F` |
//! | `close` | closes the queue in order and ends |
//!
//! The answer begins with `ok`, or with `failed` and says why.

use std::path::Path;
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::{CONSUMER, Client, Fate};
use crate::work;

const PAUSE: Duration = Duration::from_millis(5);
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// Who obeys.
pub(crate) struct Steps<'a> {
    pub(crate) client: Arc<Client>,
    pub(crate) dir: &'a Path,
    pub(crate) working: Vec<JoinHandle<Result<()>>>,
}

/// Whether there is a next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Step,
    End,
}

impl Steps<'_> {
    /// Obeys one line.
    ///
    /// # Errors
    /// What the queue said, or the line is not understood.
    pub(crate) fn obey(&mut self, line: &str) -> Result<(Next, String)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["append", stream, count, bytes, wait] => {
                let until = until(wait)?;
                for _ in 0..count.parse()? {
                    self.append(stream, &[bytes.parse()?], until)?;
                }
                String::new()
            }
            ["batch", stream, count, bytes, wait] => {
                self.append(stream, &vec![bytes.parse()?; count.parse()?], until(wait)?)?;
                String::new()
            }
            ["buffer", stream, count, bytes] => self.buffer(stream, count.parse()?, bytes.parse()?)?,
            ["rotate", stream] => {
                self.client.stream(stream)?.rotate()?;
                String::new()
            }
            ["consume", stream] => self.consume(stream)?,
            ["save", wait] => self.save(until(wait)?)?,
            ["report"] => {
                self.client.report(self.dir)?;
                String::new()
            }
            ["work", seed] => {
                self.working = work::start(&self.client, seed.parse()?)?;
                String::new()
            }
            ["stop"] => {
                work::join(&self.client, std::mem::take(&mut self.working))?;
                String::new()
            }
            ["stats"] => self.stats(),
            ["close"] => {
                self.client.queue.close(CLOSE_DEADLINE)?;
                return Ok((Next::End, String::new()));
            }
            _ => bail!("no such step: {line}"),
        };
        Ok((Next::Step, answer))
    }

    fn append(&self, name: &str, sizes: &[usize], until: Instant) -> Result<()> {
        let stream = self.client.stream(name)?;
        let (payloads, hashes) = self.client.put(name, sizes)?;
        let ticket = self.client.append(&stream, &payloads, Some(until))?;
        match self.client.settle(name, &ticket, &hashes, Some(until))? {
            Fate::Durable => Ok(()),
            Fate::Not(why) => bail!("{why}"),
        }
    }

    fn buffer(&self, name: &str, count: usize, bytes: usize) -> Result<String> {
        let stream = self.client.stream(name)?;
        let begun = Instant::now();
        for _ in 0..count {
            let (payloads, _) = self.client.put(name, &[bytes])?;
            for payload in &payloads {
                drop(stream.append(payload)?);
            }
        }
        Ok(format!("{} us", begun.elapsed().as_micros()))
    }

    fn consume(&self, name: &str) -> Result<String> {
        let stream = self.client.stream(name)?;
        let mut consumer = stream.consumer(CONSUMER)?;
        let mut records = 0;
        while let Some(delivery) = consumer.try_next()? {
            self.client.say_delivery(name, "got", &delivery)?;
            self.client.testimony.write(&format!("done {name} {}\n", delivery.next()))?;
            drop(consumer.ack(&delivery)?);
            records += delivery.records_count();
        }
        Ok(records.to_string())
    }

    fn save(&self, until: Instant) -> Result<String> {
        while let Err(error) = self.client.queue.save_cursors() {
            if Instant::now() >= until {
                return Err(error).context("cursors are not saved");
            }
            sleep(PAUSE);
        }
        for stream in &self.client.queue.stats().streams {
            for consumer in stream.consumers.iter().filter(|consumer| consumer.name == CONSUMER) {
                self.client.testimony.write(&format!("saved {} {}\n", stream.name, consumer.saved))?;
            }
        }
        Ok(String::new())
    }

    fn stats(&self) -> String {
        let stats = self.client.queue.stats();
        let poisoned: u64 = stats.streams.iter().map(|stream| stream.poisoned_files_count).sum();
        let segments: usize = stats.streams.iter().map(|stream| stream.segments_count).sum();
        format!(
            "poisoned {poisoned} segments {segments} cursor_saves {} fds {}",
            stats.cursor_saves_count, stats.fds.peak
        )
    }
}

fn until(wait_millis: &str) -> Result<Instant> {
    Ok(Instant::now() + Duration::from_millis(wait_millis.parse()?))
}
