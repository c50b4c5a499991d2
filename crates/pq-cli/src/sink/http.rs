//! Records to an HTTP server: POST after POST, in order, until each is answered with 2xx.
//!
//! ```text
//!   2xx            arrived
//!   429, 503 with Retry-After      not before that time
//!   413            half as much, down to one record
//!   all else       (4xx, 5xx, 3xx, refused, reset, timeout) again with back-off; nothing is dropped
//! ```
//! A delivery is cut into requests of about `REQUEST_BYTES`; when one fails, only it and those behind it are sent again.
//! At least once: a request whose answer was lost is sent again. The headers `pq-stream` and `pq-seq` (of the first record; the others
//! follow without a hole) tell repeats apart, and so do `stream` and `seq` of each object.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use pq::{Delivery, FdBudget, Permit, RecordRef, SendOutcome, Seq, Sink};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, redirect};

use crate::config::HttpBody;
use crate::failure::Failure;
use crate::json::JsonRecord;

/// Bytes of a body from which on a new request is begun.
const REQUEST_BYTES: usize = 1 << 20;
/// Idle connections kept by one client; they count against the descriptor budget.
const IDLE_CONNECTIONS: usize = 2;
/// Longest wait a server may ask for.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// What all streams of one sink table share.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    client: Client,
    body: HttpBody,
    fds: Arc<FdBudget>,
    _idle: Option<Permit>,
}

impl HttpTarget {
    /// A client for these settings.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(
        body: HttpBody,
        timeout: Duration,
        headers: &[(String, String)],
        fds: Arc<FdBudget>,
    ) -> Result<Self, Failure> {
        // A second call finds the first one's provider in place, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("pq/", env!("CARGO_PKG_VERSION")))
            .timeout(timeout)
            .connect_timeout(timeout.min(Duration::from_secs(10)))
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(Duration::from_secs(5))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .default_headers(header_map(headers))
            .build()
            .map_err(|error| {
                Failure::new(format!("the HTTP client cannot be set up: {}", chain(&error)))
                    .help("for https, install the system's certificates (package `ca-certificates`)")
            })?;
        let idle = NonZeroUsize::new(IDLE_CONNECTIONS).and_then(|n| fds.try_acquire(n));
        Ok(Self { client, body, fds, _idle: idle })
    }
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let pairs = headers.iter().filter_map(|(name, value)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    });
    pairs.collect()
}

/// Posts one stream's records.
#[derive(Debug)]
pub(crate) struct HttpSink {
    target: Arc<HttpTarget>,
    url: String,
    stream: String,
    /// Records of a request at most; halved when the server says 413.
    records_max: usize,
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Arrived,
    Wait(Duration),
    TooLarge,
    Again(String),
}

impl HttpSink {
    pub(crate) fn new(target: Arc<HttpTarget>, url: String, stream: &str) -> Self {
        Self { target, url, stream: stream.to_owned(), records_max: usize::MAX }
    }

    async fn post(&self, first: Seq, body: Vec<u8>) -> Answer {
        let content_type = match self.target.body {
            HttpBody::Ndjson => "application/x-ndjson",
            HttpBody::Lines => "application/octet-stream",
        };
        let mut request = self.target.client.post(&self.url).header(CONTENT_TYPE, content_type).body(body);
        request = request.header("pq-seq", first.get());
        if let Ok(stream) = HeaderValue::from_bytes(self.stream.as_bytes()) {
            request = request.header("pq-stream", stream);
        }
        match request.send().await {
            Err(error) => Answer::Again(chain(&error)),
            Ok(response) => {
                let answer = classify(response.status(), response.headers().get(RETRY_AFTER));
                // Read to its end, so that the connection can be used again; what it says does not matter.
                let _ = response.bytes().await;
                answer
            }
        }
    }

    fn add(&self, record: &RecordRef<'_>, body: &mut Vec<u8>) {
        match self.target.body {
            HttpBody::Ndjson => JsonRecord::new(&self.stream, record).write(body),
            HttpBody::Lines => {
                body.extend_from_slice(record.payload);
                body.push(b'\n');
            }
        }
    }

    /// One request from this record on; its body, and how many records it holds.
    fn request(&self, records: &[RecordRef<'_>]) -> (Vec<u8>, usize) {
        let mut body = Vec::new();
        let mut count = 0;
        let mut next = None;
        for record in records.iter().take(self.records_max) {
            // One run of seqs a request: its first, in the header, then says them all.
            if next.is_some_and(|next| next != record.seq.get()) {
                break;
            }
            next = record.seq.get().checked_add(1);
            self.add(record, &mut body);
            count += 1;
            if body.len() >= REQUEST_BYTES {
                break;
            }
        }
        (body, count)
    }
}

impl Sink for HttpSink {
    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        // Taken without waiting: a task that holds a turn must not wait for what another turn would give back.
        let Some(_permit) = self.target.fds.try_acquire(NonZeroUsize::MIN) else {
            return SendOutcome::Throttled { wait: Duration::from_millis(50) };
        };
        let records: Vec<RecordRef<'_>> = delivery.records().collect();
        let mut done = 0;
        while done < records.len() {
            let (body, count) = self.request(&records[done..]);
            match self.post(seq_at(&records, done, delivery), body).await {
                Answer::Arrived => done += count,
                Answer::TooLarge if count > 1 => self.records_max = count / 2,
                // The rest comes again; if the server still refuses, its reason is heard then.
                _ if done > 0 => {
                    return SendOutcome::Partial { next: seq_at(&records, done, delivery), note: None };
                }
                Answer::Wait(wait) => return SendOutcome::Throttled { wait },
                Answer::TooLarge => {
                    return SendOutcome::retry(format!("{}: 413 for a single record", self.url));
                }
                Answer::Again(reason) => return SendOutcome::retry(format!("{}: {reason}", self.url)),
            }
        }
        SendOutcome::delivered()
    }
}

fn seq_at(records: &[RecordRef<'_>], at: usize, delivery: &Delivery) -> Seq {
    records.get(at).map_or_else(|| delivery.next(), |record| record.seq)
}

fn classify(status: StatusCode, retry_after: Option<&HeaderValue>) -> Answer {
    if status.is_success() {
        return Answer::Arrived;
    }
    let wait =
        retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
    match (status, wait) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => {
            Answer::Wait(wait.min(WAIT_MAX))
        }
        (StatusCode::PAYLOAD_TOO_LARGE, _) => Answer::TooLarge,
        _ => Answer::Again(format!("answered {status}")),
    }
}

/// What the error came from: reqwest's own text says only that a request failed, and repeats the URL.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        source = inner.source();
    }
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
