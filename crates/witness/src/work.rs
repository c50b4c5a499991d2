//! Random work on several streams at once, until it is told to stop or the power goes: producers that wait and producers that do not,
//! batches, rotations, consumers that acknowledge and save.

use std::sync::Arc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pq::{Consumer, ReadError, Stream};

use crate::client::{CONSUMER, Client};
use crate::payloads::Numbers;

/// One of each kind of sync setting.
const STREAMS: [&str; 3] = ["each", "lazy", "solo"];
const PRODUCERS: u64 = 2;
/// A consumer looks this often whether the work is over.
const LOOK: Duration = Duration::from_millis(20);
/// A disk that refuses is left alone this long.
const PAUSE: Duration = Duration::from_millis(2);

/// Starts the work.
///
/// # Errors
/// A stream or its consumer cannot be opened.
pub(crate) fn start(client: &Arc<Client>, seed: u64) -> Result<Vec<JoinHandle<Result<()>>>> {
    let mut threads = Vec::new();
    for (number, name) in (0..).zip(STREAMS) {
        let stream = client.stream(name)?;
        let consumer = stream.consumer(CONSUMER)?;
        let seed = seed.wrapping_add(number * (PRODUCERS + 1));
        for producer in 0..PRODUCERS {
            let (client, stream) = (Arc::clone(client), stream.clone());
            threads.push(spawn(move || produce(&client, &stream, &mut Numbers::new(seed + producer))));
        }
        let client = Arc::clone(client);
        threads.push(spawn(move || consume(&client, consumer, &mut Numbers::new(seed + PRODUCERS))));
    }
    Ok(threads)
}

fn produce(client: &Client, stream: &Stream, numbers: &mut Numbers) -> Result<()> {
    while !client.is_stopped() {
        match numbers.below(16) {
            0..8 => append(client, stream, &sizes(numbers, 1))?,
            8..12 => {
                let count = 1 + numbers.below(8);
                append(client, stream, &sizes(numbers, count))?;
            }
            12..15 => burst(client, stream, numbers)?,
            // What a rotation leaves undone, the next commit does.
            _ => drop(stream.rotate()),
        }
    }
    Ok(())
}

fn sizes(numbers: &mut Numbers, count: u64) -> Vec<usize> {
    let mut size = || match numbers.below(8) {
        0 => 0,
        7 => numbers.below(3500),
        _ => numbers.below(400),
    };
    (0..count).map(|_| usize::try_from(size()).unwrap_or(0)).collect()
}

/// One batch, waited for.
fn append(client: &Client, stream: &Stream, sizes: &[usize]) -> Result<()> {
    let (payloads, hashes) = client.put(stream.name(), sizes)?;
    match client.append(stream, &payloads, None) {
        Ok(ticket) => drop(client.settle(stream.name(), &ticket, &hashes, None)?),
        Err(_) => sleep(PAUSE),
    }
    Ok(())
}

/// Several appends on their way at once; of some nobody wants to know what became of them.
fn burst(client: &Client, stream: &Stream, numbers: &mut Numbers) -> Result<()> {
    let mut tickets = Vec::new();
    for _ in 0..1 + numbers.below(20) {
        let (payloads, hashes) = client.put(stream.name(), &sizes(numbers, 1))?;
        match client.append(stream, &payloads, None) {
            Ok(ticket) => tickets.push((ticket, hashes)),
            Err(_) => break,
        }
    }
    for (ticket, hashes) in tickets {
        if numbers.below(4) > 0 {
            client.settle(stream.name(), &ticket, &hashes, None)?;
        }
    }
    Ok(())
}

fn consume(client: &Client, mut consumer: Consumer, numbers: &mut Numbers) -> Result<()> {
    let name = consumer.stream().name().to_owned();
    while !client.is_stopped() {
        let delivery = match consumer.next_timeout(LOOK) {
            Ok(Some(delivery)) => delivery,
            Ok(None) => return Ok(()),
            Err(ReadError::TimedOut) => continue,
            Err(error) if error.is_retryable() => {
                sleep(PAUSE);
                continue;
            }
            Err(error) => bail!("stream {name}: {error}"),
        };
        client.say_delivery(&name, "got", &delivery)?;
        if numbers.below(4) == 0 {
            continue;
        }
        let to = delivery.next();
        client.testimony.write(&format!("done {name} {to}\n"))?;
        let acked = consumer.ack(&delivery)?;
        if numbers.below(3) == 0 && acked.wait().is_ok() {
            client.testimony.write(&format!("saved {name} {to}\n"))?;
        }
    }
    Ok(())
}

/// Waits for the end of the work.
///
/// # Errors
/// Something went wrong that no refusal of the disk explains.
pub(crate) fn join(client: &Client, threads: Vec<JoinHandle<Result<()>>>) -> Result<()> {
    client.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let until = Instant::now() + Duration::from_secs(20);
    for thread in threads {
        while !thread.is_finished() {
            if Instant::now() > until {
                bail!("a thread does not end");
            }
            sleep(PAUSE);
        }
        match thread.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("a thread panicked"),
        }
    }
    Ok(())
}
