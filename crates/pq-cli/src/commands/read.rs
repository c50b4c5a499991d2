//! `pq read`: records to stdout, as they stood in their source or as JSON; looking only, or as a consumer.

use std::thread::sleep;
use std::time::Duration;

use pq::inspect::{InspectError, Inspection};
use pq::{Consumer, Delivery, Gap, GapReason, Item, Options, Queue, Seq};

use crate::Ended;
use crate::cli::Read;
use crate::failure::{EXIT_WRONG, Failure};
use crate::json::JsonRecord;
use crate::lines::join;
use crate::output::{Reader, missing, put, tell};
use crate::run::{inspect_failure, open_failure};

/// How often a followed stream is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Reads a stream.
pub(crate) fn read(args: &Read) -> Ended {
    let mut printer = Printer { args, left: args.count.unwrap_or(u64::MAX), lost: 0 };
    match &args.consumer {
        None => look(args, &mut printer)?,
        Some(name) => consume(args, name, &mut printer)?,
    }
    Ok(if printer.lost > 0 { EXIT_WRONG } else { 0 })
}

fn failed(args: &Read, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: stream `{}`: {error}", args.dir.display(), args.stream))
}

fn look(args: &Read, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let inspection = Inspection::open(&args.dir).map_err(|error| open_failure(&args.dir, &error))?;
    let from = args.from.map_or(Seq::FIRST, Seq::new);
    let failed = |error: InspectError| inspect_failure(&args.dir, &error);
    let mut reader = inspection.read(&args.stream, from).map_err(failed)?;
    // Asked for by number, and not there any more: delivered to everybody, or dropped by a limit. No loss.
    let oldest = reader.oldest().map_err(failed)?;
    if args.from.is_some() && from < oldest {
        tell(&format!("pq: {}", missing(Gap { from, to: oldest, reason: GapReason::Retired })));
    }
    while printer.left > 0 {
        match reader.next().map_err(failed)? {
            Some(delivery) => {
                if printer.print(&delivery)?.reader == Reader::Gone {
                    break;
                }
            }
            None if args.follow => sleep(LOOK_INTERVAL),
            None => break,
        }
    }
    Ok(())
}

fn consume(args: &Read, name: &str, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let queue =
        Queue::open(&args.dir, Options::default()).map_err(|error| open_failure(&args.dir, &error))?;
    let consumed = if queue.streams().contains(&args.stream) {
        let stream = queue.stream(&args.stream).map_err(|error| failed(args, error))?;
        let mut consumer = stream.consumer(name).map_err(|error| failed(args, error))?;
        consume_all(args, &mut consumer, printer)
    } else {
        let help = format!("`pq stat {}` shows the streams there are", args.dir.display());
        Err(failed(args, "there is no such stream").help(help))
    };
    let closed = queue.close(Duration::from_secs(10));
    consumed?;
    closed.map(drop).map_err(|error| {
        Failure::wrong(format!("{}: {error}", args.dir.display()))
            .help("some records may be printed again next time")
    })
}

fn consume_all(args: &Read, consumer: &mut Consumer, printer: &mut Printer<'_>) -> Result<(), Failure> {
    while printer.left > 0 {
        let delivery = if args.follow { consumer.next_blocking() } else { consumer.try_next() };
        let Some(delivery) = delivery.map_err(|error| failed(args, error))? else { break };
        let printed = printer.print(&delivery)?;
        if printed.reader == Reader::Gone {
            break;
        }
        // Only what was printed is done with: the rest of the delivery comes again.
        let acked = consumer.ack_to(printed.next).map_err(|error| failed(args, error))?;
        if args.follow {
            acked.wait().map_err(|error| failed(args, error))?;
        }
    }
    Ok(())
}

struct Printer<'a> {
    args: &'a Read,
    left: u64,
    lost: u64,
}

struct Printed {
    /// Seq behind the last record printed.
    next: Seq,
    reader: Reader,
}

impl Printer<'_> {
    fn print(&mut self, delivery: &Delivery) -> Result<Printed, Failure> {
        let mut out = Vec::with_capacity(delivery.bytes());
        let mut next = delivery.first();
        for item in delivery.items() {
            match item {
                Item::Record(_) if self.left == 0 => break,
                Item::Record(record) => {
                    if self.args.json {
                        JsonRecord::new(&self.args.stream, &record).write(&mut out);
                    } else {
                        join(&record, &mut out);
                    }
                    self.left -= 1;
                    next = Seq::new(record.seq.get().saturating_add(1));
                }
                Item::Gap(gap) => {
                    self.lost += gap.count();
                    tell(&format!("pq: {}", missing(gap)));
                    next = gap.to;
                }
                _ => {}
            }
        }
        Ok(Printed { next, reader: put(&out)? })
    }
}
