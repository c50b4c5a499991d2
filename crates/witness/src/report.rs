//! What is in a queue: as somebody sees it who only looks, and as each stream's consumer gets it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use pq::Seq;
use pq::inspect::Inspection;

use crate::client::{CONSUMER, Client};

impl Client {
    /// Says what opening found.
    pub(crate) fn say_opening(&self) -> Result<()> {
        let recovery = self.queue.recovery();
        let clean = if recovery.clean { "clean" } else { "unclean" };
        let created = if recovery.created { "created" } else { "existing" };
        let mut text = format!("open {clean} {created}\n");
        for note in &recovery.notes {
            let _ = writeln!(text, "note {note}");
        }
        for stray in &recovery.strays {
            let _ = writeln!(text, "note stray {stray}");
        }
        for stream in &recovery.streams {
            for note in &stream.notes {
                let _ = writeln!(text, "note {}: {note}", stream.name);
            }
            for gap in &stream.gaps {
                let (name, reason) = (&stream.name, gap.reason);
                let _ = writeln!(text, "note {name}: gap {} to {}: {reason}", gap.from, gap.to);
            }
        }
        self.testimony.write(&text)
    }

    /// Says everything that is kept, of every stream.
    pub(crate) fn report(&self, dir: &Path) -> Result<()> {
        for (name, reason) in self.queue.paused() {
            self.testimony.write(&format!("paused {name} {reason}\n"))?;
        }
        let paused: Vec<_> = self.queue.paused().into_iter().map(|(name, _)| name).collect();
        for name in self.queue.streams().iter().filter(|name| !paused.contains(name)) {
            self.report_stream(dir, name)?;
        }
        self.testimony.write("reported\n")
    }

    fn report_stream(&self, dir: &Path, name: &str) -> Result<()> {
        let stream = self.stream(name)?;
        let mut consumer = stream.consumer(CONSUMER)?;
        let (first, readable) = (stream.first(), stream.ends().readable);
        let text = format!("stream {name} {first} {readable}\ncursor {name} {}\n", consumer.cursor());
        self.testimony.write(&text)?;
        let mut reader = Inspection::open(dir)?.read(name, Seq::FIRST)?;
        while let Some(delivery) = reader.next()? {
            self.say_delivery(name, "record", &delivery)?;
        }
        while let Some(delivery) = consumer.try_next()? {
            self.say_delivery(name, "deliver", &delivery)?;
        }
        Ok(())
    }
}
