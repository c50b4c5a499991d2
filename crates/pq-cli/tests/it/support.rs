//! A folder with a configuration, the program started on it, and polling for what it should do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Only a failure waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("pq-it-").tempdir().expect("a temporary folder");
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        fs::write(&path, bytes).expect("the file");
        path
    }

    pub(crate) fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut file =
            fs::OpenOptions::new().append(true).create(true).open(self.path(name)).expect("the file");
        file.write_all(bytes.as_ref()).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_default()
    }

    /// Writes `pipeline.toml`; `[queue] dir = "q"` is put in front.
    pub(crate) fn config(&self, rest: &str) -> PathBuf {
        self.write("pipeline.toml", format!("[queue]\ndir = \"q\"\n{rest}"))
    }

    /// `pq run pipeline.toml`, to its end.
    pub(crate) fn run(&self) -> Ran {
        let config = self.path("pipeline.toml");
        let summary = self.path("summary.json");
        let mut command = pq();
        command.arg("run").arg(config).arg("--summary-json").arg(&summary);
        let output = finish(&mut command, b"");
        let summary = fs::read(&summary).ok().and_then(|json| serde_json::from_slice(&json).ok());
        Ran { output, summary: summary.unwrap_or_default() }
    }

    /// `pq run pipeline.toml`, in the background.
    pub(crate) fn start(&self) -> Running {
        let mut command = pq();
        command.arg("run").arg(self.path("pipeline.toml")).arg("--quiet");
        Running::start(&mut command)
    }

    /// `pq <command> q …`, to its end.
    pub(crate) fn tool(&self, command: &str, args: &[&str]) -> Output {
        self.tool_with(command, args, b"")
    }

    pub(crate) fn tool_with(&self, command: &str, args: &[&str], input: &[u8]) -> Output {
        finish(pq().arg(command).arg(self.path("q")).args(args), input)
    }

    /// Polls until the file holds this.
    pub(crate) fn until_holds(&self, name: &str, expected: &[u8]) {
        until(&format!("{name} holds {:?}", String::from_utf8_lossy(expected)), || {
            self.read(name) == expected
        });
    }
}

pub(crate) struct Ran {
    pub(crate) output: Output,
    pub(crate) summary: serde_json::Value,
}

impl Ran {
    pub(crate) fn success(self) -> Self {
        assert!(self.output.status.success(), "{}: {}", self.output.status, self.stderr());
        self
    }

    pub(crate) fn figure(&self, name: &str) -> u64 {
        self.summary[name].as_u64().unwrap_or_else(|| panic!("{name} is in {}", self.summary))
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// A program in the background; it does not outlive the test.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().expect("started")))
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.as_ref().expect("running").id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Polls until its stderr holds these words; what is on stderr is read from here on.
    pub(crate) fn until_says(&mut self, words: &str) {
        let stderr = self.0.as_mut().expect("running").stderr.take().expect("not read yet");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                heard.lock().expect("heard").push_str(&line);
            }
        });
        until(&format!("it says {words:?}"), || said.lock().expect("heard").contains(words));
    }

    /// Waits for its end, with all it wrote.
    pub(crate) fn end(mut self) -> Output {
        self.0.take().expect("running").wait_with_output().expect("ended")
    }

    pub(crate) fn stop(self) -> Output {
        self.signal("-TERM");
        let output = self.end();
        assert!(output.status.success(), "{output:?}");
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn pq() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("pq"))
}

pub(crate) fn finish(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut stdin = child.stdin.take().expect("stdin");
    // A program that ends early closes its stdin; that is for the test to judge.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("ended")
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines that hold what breaks naive programs.
pub(crate) fn awkward() -> Vec<u8> {
    let mut bytes = b"\n\nplain\r\n\r\n \xff\xfe\x00 \n\xe5\xba\x97\n".to_vec();
    for n in 0..5_000_u32 {
        bytes.extend_from_slice(format!("line {n} {}\n", "x".repeat((n % 97) as usize)).as_bytes());
    }
    bytes.extend_from_slice(b"no line feed at the end");
    bytes
}

/// Files in a folder.
pub(crate) fn listed(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries.filter_map(Result::ok).map(|e| e.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}
