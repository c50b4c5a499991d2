//! The HTTP sink against a small server that fails first.

#![expect(clippy::unwrap_used, reason = "a server in a test that breaks ends the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::{Bench, text};

struct Request {
    path: String,
    headers: String,
    body: Vec<u8>,
}

/// Never answers.
const HOLD: &str = "hold";

/// Answers with these statuses in turn, the last one for ever; an empty one hangs up without an answer.
fn serve(answers: &'static [&'static str]) -> (u16, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = channel();
    thread::spawn(move || {
        let mut answers = answers.iter().peekable();
        let mut last = "204 No Content";
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            while let Some(request) = receive(&mut reader) {
                last = answers.next().unwrap_or(&last);
                if sender.send(request).is_err() || last.is_empty() {
                    break;
                }
                if last == HOLD {
                    // Until the client hangs up.
                    let _ = reader.read(&mut [0]);
                    break;
                }
                let answer = format!("HTTP/1.1 {last}\r\nContent-Length: 0\r\n\r\n");
                if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (port, requests)
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut headers = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line == "\r\n" {
            break;
        }
        headers.push_str(&line.to_lowercase());
    }
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path: first.split(' ').nth(1)?.to_owned(), headers, body })
}

fn config(bench: &Bench, port: u16, body: &str) {
    bench.write("in/a.log", b"one\ntwo\xff\nthree");
    bench.config(&format!(
        "backoff_first = \"1ms\"\nbackoff_max = \"5ms\"\n[[source.file]]\npaths = [\"in/a.log\"]\nstream = \"a\"\n\
         [[sink.http]]\nurl = \"http://127.0.0.1:{port}/logs/{{stream}}\"\nbody = \"{body}\"\n\
         headers = {{ x-team = \"blue\" }}\n"
    ));
}

// S64
#[test]
fn records_are_posted_until_they_are_taken() {
    let bench = Bench::new();
    let (port, requests) =
        serve(&["500 No", "", "429 Slow\r\nRetry-After: 0", "404 No", "400 No", "301 No", "200 OK"]);
    config(&bench, port, "ndjson");
    let ran = bench.run().success();
    assert_eq!((ran.figure("records_delivered"), ran.figure("lag")), (3, 0));
    let got: Vec<Request> = requests.try_iter().collect();
    assert_eq!(got.len(), 7);
    for request in &got {
        assert_eq!(request.path, "/logs/a");
        assert!(request.headers.contains("x-team: blue") && request.headers.contains("application/x-ndjson"));
        let lines: Vec<serde_json::Value> =
            text(&request.body).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seqs: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, [1, 2, 3]);
        assert_eq!((&lines[0]["line"], &lines[0]["stream"]), (&"one".into(), &"a".into()));
        assert_eq!((&lines[1]["base64"], &lines[2]["line_feed"]), (&"dHdv/w==".into(), &false.into()));
    }
    // S61
    let again = bench.run().success();
    assert_eq!(again.figure("records_delivered"), 0);
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn a_server_that_takes_less_at_once_gets_less_at_once() {
    let bench = Bench::new();
    let (port, requests) = serve(&["413 Too Large", "200 OK"]);
    config(&bench, port, "lines");
    bench.run().success();
    let bodies: Vec<Vec<u8>> = requests.try_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [&b"one\ntwo\xff\nthree\n"[..], b"one\n", b"two\xff\n", b"three\n"]);
}

// S51
#[test]
fn a_stop_does_not_wait_for_a_stuck_server_longer_than_its_deadline() {
    let bench = Bench::new();
    let (port, requests) = serve(&[HOLD]);
    config(&bench, port, "ndjson");
    let with_deadline = |deadline: &str| {
        let config = text(&bench.read("pipeline.toml"));
        let lines = config.lines().filter(|line| !line.starts_with("stop_deadline"));
        let config: Vec<&str> = lines.collect();
        bench.write(
            "pipeline.toml",
            config.join("\n").replace("dir = \"q\"", &format!("dir = \"q\"\nstop_deadline = \"{deadline}\"")),
        );
    };
    with_deadline("100ms");
    let running = bench.start();
    requests.recv().unwrap();
    running.signal("-TERM");
    let output = running.end();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("could not be closed in time"), "{}", text(&output.stderr));

    let (port, requests) = serve(&[HOLD]);
    config(&bench, port, "ndjson");
    with_deadline("1h");
    let running = bench.start();
    requests.recv().unwrap();
    running.signal("-INT");
    running.signal("-TERM");
    let code = running.end().status.code();
    assert!(matches!(code, Some(130 | 143)), "a second signal ends it at once: {code:?}");

    let (port, _requests) = serve(&["200 OK"]);
    config(&bench, port, "ndjson");
    assert_eq!(bench.run().success().figure("records_delivered"), 3);
}

#[test]
fn a_dead_server_is_named_and_a_stop_keeps_what_it_did_not_take() {
    let bench = Bench::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    config(&bench, port, "ndjson");
    let running = bench.start();
    crate::support::until("the lag is seen", || {
        text(&bench.tool("stat", &["--json"]).stdout).contains("\"lag_records\": 3")
    });
    running.stop();
    let read = bench.tool("read", &["a"]);
    assert_eq!(read.stdout, b"one\ntwo\xff\nthree");
}
