//! 1,000 caught-up streams, one destination in ten dead: what the program uses of a core while nothing happens.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::pipeline::{CrashPoints, Running, Scratch, build};
use crate::shell::verdict;

const STREAMS: usize = 1000;
const DEAD_EVERY: usize = 10;
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
/// The longest back-off by default: after it, dead destinations are tried at their cap.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// As long, so that every dead destination is tried once in it.
const WATCHED: Duration = BACKOFF_MAX;
/// Of one core.
const SHARE_MAX: f64 = 0.005;

/// Runs the check under both policies.
pub(crate) fn run() -> Result<()> {
    let scratch = Scratch::new("idle")?;
    let program = build("pq-queue-cli", "pq", CrashPoints::Absent)?;
    let mut found = Vec::new();
    let mut figures = Vec::new();
    for policy in ["signal", "poll"] {
        let folder = scratch.path().join(policy);
        prepare(&folder, policy)?;
        let used = watch(&program, &folder)?;
        let text = format!("{policy} {:.3} % of a core, {:.0} wake-ups/s", used.share * 100.0, used.wakeups);
        println!("idle: {text}");
        if used.share >= SHARE_MAX {
            found.push(format!(
                "{policy}: {:.2} % of a core, at most {} %",
                used.share * 100.0,
                SHARE_MAX * 100.0
            ));
        }
        figures.push(text);
    }
    verdict("idle", &format!("{STREAMS} streams, {}", figures.join("; ")), &found)?;
    scratch.passed();
    Ok(())
}

/// One line for every stream; nine of ten take it, the tenth's destination refuses connections.
fn prepare(folder: &Path, policy: &str) -> Result<()> {
    fs::create_dir_all(folder.join("in"))?;
    for stream in 0..STREAMS {
        let fate = if stream % DEAD_EVERY == 0 { "dead" } else { "alive" };
        fs::write(folder.join(format!("in/{fate}-{stream}.log")), format!("the only line of {stream}\n"))?;
    }
    let push_back = if policy == "poll" { "push_back = \"1s\"" } else { "" };
    let text = format!(
        r#"
[queue]
dir = "queue"
wake = "{policy}"
{push_back}

[[source.file]]
paths = ["in/*.log"]
stream = "{{stem}}"

[[sink.file]]
streams = ["alive-*"]
path = "out/{{stream}}.log"

[[sink.http]]
streams = ["dead-*"]
url = "{}"
"#,
        dead_url()?
    );
    Ok(fs::write(folder.join("idle.toml"), text)?)
}

/// An address of this machine where nobody listens.
fn dead_url() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind on loopback")?;
    Ok(format!("http://{}/", listener.local_addr()?))
}

struct Used {
    share: f64,
    wakeups: f64,
}

/// Starts the program, waits until all that can be delivered is, lets the back-off grow, and watches.
fn watch(program: &Path, folder: &Path) -> Result<Used> {
    let mut command = Command::new(program);
    command.args(["run", "idle.toml"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Running::start(&mut command)?;
    let alive = STREAMS - STREAMS.div_ceil(DEAD_EVERY);
    let end = Instant::now() + SETTLE_LIMIT;
    while delivered(folder) < alive {
        ensure!(
            Instant::now() < end,
            "{} of {alive} streams delivered after {SETTLE_LIMIT:?}",
            delivered(folder)
        );
        if let Some(status) = child.wait_until(Instant::now() + Duration::from_millis(200))? {
            anyhow::bail!("the program ended with {status}");
        }
    }
    // The dead destinations are tried again ever less often; wait until that has settled near its cap.
    ensure!(child.wait_until(Instant::now() + BACKOFF_MAX)?.is_none(), "the program ended");
    let before = usage(child.id())?;
    let begun = Instant::now();
    ensure!(child.wait_until(begun + WATCHED)?.is_none(), "the program ended");
    let after = usage(child.id())?;
    let seconds = begun.elapsed().as_secs_f64();
    child.kill()?;
    Ok(Used {
        share: (after.0 - before.0) as f64 / 1e9 / seconds,
        wakeups: (after.1 - before.1) as f64 / seconds,
    })
}

fn delivered(folder: &Path) -> usize {
    let full = |file: &fs::DirEntry| file.metadata().is_ok_and(|data| data.len() > 0);
    fs::read_dir(folder.join("out")).map_or(0, |files| files.flatten().filter(full).count())
}

/// Nanoseconds on a core and voluntary switches of all threads of a process.
fn usage(process: u32) -> Result<(u64, u64)> {
    let (mut nanos, mut switches) = (0, 0);
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let folder = thread?.path();
        let times = fs::read_to_string(folder.join("schedstat"))?;
        nanos += times.split(' ').next().unwrap_or_default().parse::<u64>().context("schedstat")?;
        let status = fs::read_to_string(folder.join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        switches += line.context("no count of switches")?.trim().parse::<u64>()?;
    }
    Ok((nanos, switches))
}
