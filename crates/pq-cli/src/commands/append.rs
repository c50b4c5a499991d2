//! `pq append`: lines of stdin to a stream; a seq is printed once its record is durable, and not before.

use std::time::Duration;

use pq::{Options, Queue, Ticket};

use crate::Ended;
use crate::cli::Append;
use crate::failure::Failure;
use crate::output::{Reader, put};
use crate::run::open_failure;
use crate::source::stdin::{Stdin, WhenFull};

/// Appends stdin.
pub(crate) fn append(args: &Append) -> Ended {
    let queue =
        Queue::open(&args.dir, Options::default()).map_err(|error| open_failure(&args.dir, &error))?;
    let appended = append_stdin(args, &queue);
    let closed = queue.close(Duration::from_secs(10));
    appended?;
    closed.map_err(|error| {
        Failure::wrong(format!("{}: {error}", args.dir.display()))
            .help("what was printed is durable all the same")
    })?;
    Ok(0)
}

fn append_stdin(args: &Append, queue: &Queue) -> Result<(), Failure> {
    let stream = queue.stream(&args.stream).map_err(|error| {
        Failure::new(format!("{}: stream `{}`: {error}", args.dir.display(), args.stream))
            .help("give another name")
    })?;
    let (stdin, _stop) =
        Stdin::new().map_err(|error| Failure::new(format!("stdin cannot be watched: {error}")))?;
    stdin.feed(&stream, WhenFull::Fail, &mut |ticket| confirm(args, ticket)).map(drop)
}

/// Waits until the records are durable, then says so. Nobody reading the seqs is no reason to stop appending.
fn confirm(args: &Append, ticket: Ticket) -> Result<(), Failure> {
    let seqs = ticket.seqs();
    let count = seqs.start.distance_to(seqs.end);
    let (first, last) = (seqs.start.get(), seqs.end.get().saturating_sub(1));
    ticket.wait().map_err(|error| {
        Failure::wrong(format!(
            "{}: stream `{}`: records {first} to {last} are not known to be durable: {error}",
            args.dir.display(),
            args.stream,
        ))
        .help("`pq read` shows what the stream holds; append the rest again")
    })?;
    let line = match (args.json, first == last) {
        (true, _) => format!("{{\"first\":{first},\"last\":{last},\"count\":{count}}}\n"),
        (false, true) => format!("{first}\n"),
        (false, false) => format!("{first}-{last}\n"),
    };
    let (Reader::Present | Reader::Gone) = put(line.as_bytes())?;
    Ok(())
}
