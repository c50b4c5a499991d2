//! A plain HTTP receiver on loopback: takes NDJSON posts, remembers which seq of which stream brought which line.
//!
//! It is a destination that knows nothing of pq: what it remembers is what a client saw. A request whose body did not arrive
//! whole is forgotten; one that did is remembered even if its answer gets lost, as at any real receiver.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};

/// One delivered record: its seq and the number its line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) seq: u64,
    pub(crate) number: u64,
}

type Arrivals = Arc<Mutex<HashMap<String, Vec<Arrival>>>>;

/// A listening receiver; its threads end with the process.
pub(crate) struct Receiver {
    address: SocketAddr,
    arrivals: Arrivals,
}

impl Receiver {
    /// Listens on a free port of the loopback address.
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let arrivals = Arrivals::default();
        let kept = Arc::clone(&arrivals);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let arrivals = Arc::clone(&kept);
                // A connection ends with an error when its client is killed; what arrived whole is already remembered.
                std::thread::spawn(move || serve(&connection, &arrivals).ok());
            }
        });
        Ok(Self { address, arrivals })
    }

    /// Where to post to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// What arrived of a stream, in the order it did.
    pub(crate) fn arrived(&self, stream: &str) -> Vec<Arrival> {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.get(stream).cloned().unwrap_or_default()
    }
}

fn serve(connection: &TcpStream, arrivals: &Arrivals) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some(request) = Request::read(&mut reader)? {
        let taken = request.arrivals()?;
        arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(request.stream)
            .or_default()
            .extend(taken);
        let mut writer = connection;
        writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    }
    Ok(())
}

struct Request {
    stream: String,
    first_seq: u64,
    body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; `None` where it ends.
    fn read(reader: &mut impl BufRead) -> Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut headers = HashMap::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                bail!("the request ended in its headers");
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
                None => break,
            };
        }
        let header = |name: &str| headers.get(name).with_context(|| format!("no header {name}"));
        let mut body = vec![0; header("content-length")?.parse()?];
        reader.read_exact(&mut body)?;
        Ok(Some(Self { stream: header("pq-stream")?.clone(), first_seq: header("pq-seq")?.parse()?, body }))
    }

    fn arrivals(&self) -> Result<Vec<Arrival>> {
        let lines = self.body.strip_suffix(b"\n").unwrap_or(&self.body).split(|byte| *byte == b'\n');
        let mut arrivals = Vec::new();
        for (seq, line) in (self.first_seq..).zip(lines) {
            arrivals.push(Arrival { seq, number: number_of(line)? });
        }
        Ok(arrivals)
    }
}

/// The number a line begins with.
pub(crate) fn number_of(line: &[u8]) -> Result<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&line[..digits])?.parse().with_context(|| {
        format!("a line that no input has: {:?}", String::from_utf8_lossy(&line[..line.len().min(80)]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_sent() {
        let text = b"POST / HTTP/1.1\r\npq-stream: a\r\nPq-Seq: 7\r\ncontent-length: 8\r\n\r\n12 x\n13\nPOST";
        let request = Request::read(&mut &text[..]).ok().flatten();
        let arrivals = request.and_then(|request| request.arrivals().ok());
        assert_eq!(arrivals, Some(vec![Arrival { seq: 7, number: 12 }, Arrival { seq: 8, number: 13 }]));
    }

    #[test]
    fn a_cut_request_is_no_request() {
        let text = b"POST / HTTP/1.1\r\npq-stream: a\r\nPq-Seq: 7\r\ncontent-length: 8\r\n\r\n12 x\n";
        assert!(Request::read(&mut &text[..]).is_err());
    }
}
