//! A thread that feeds some of the streams.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pq::{CommitError, FdBudget, Stream};

use super::Stop;
use super::feeder::{Feeder, Turn};
use super::place::FileId;
use crate::config::{AtEnd, PlannedFiles};
use crate::failure::Failure;
use crate::template::path_safe;

/// How long a disk that refuses is left alone.
const DISK_PAUSE: Duration = Duration::from_millis(500);
/// While nothing comes, files are looked at up to so many times less often.
const QUIET_FACTOR: u32 = 4;

/// What a shard needs of the pipeline.
pub(crate) trait Pipeline: Send + Sync {
    /// The stream of this name, created and with its sinks attached.
    fn stream(&self, name: &str) -> Result<Stream, Failure>;
    /// Names of the streams that exist.
    fn streams(&self) -> Vec<String>;
    /// Whether this file is one that the pipeline writes.
    fn is_output(&self, file: FileId) -> bool;
    /// The queue's descriptors.
    fn fds(&self) -> Arc<FdBudget>;
    /// Tells a person something.
    fn notice(&self, text: String);
    /// A stream cannot be fed any more; the others go on.
    fn failed(&self, failure: Failure);
}

/// Which of how many shards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

impl Part {
    fn owns(self, stream: &str) -> bool {
        let hash =
            stream.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        hash % self.count == self.index
    }
}

/// One shard's work.
pub(crate) struct Shard<P> {
    pipeline: Arc<P>,
    files: Vec<PlannedFiles>,
    part: Part,
    stop: Stop,
    feeders: BTreeMap<String, Feeder>,
    buffer: Vec<u8>,
    is_followed: bool,
    poll_interval: Duration,
    next_find: Instant,
    /// Outputs among the files found, each told once.
    outputs_told: BTreeSet<FileId>,
}

impl<P: Pipeline> Shard<P> {
    pub(crate) fn new(pipeline: Arc<P>, files: Vec<PlannedFiles>, part: Part, stop: Stop) -> Self {
        let is_followed = files.iter().any(|files| files.at_end == AtEnd::Follow);
        let poll_interval =
            files.iter().map(|files| files.poll_interval).min().unwrap_or(Duration::from_secs(1));
        let next_find = Instant::now();
        let (feeders, buffer) = (BTreeMap::new(), Vec::new());
        let outputs_told = BTreeSet::new();
        Self {
            pipeline,
            files,
            part,
            stop,
            feeders,
            buffer,
            is_followed,
            poll_interval,
            next_find,
            outputs_told,
        }
    }

    /// Feeds until every file is at its end, or the stop; then everything appended is durable.
    ///
    /// # Errors
    /// A stream could not be created or committed.
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.take_up_known_streams()?;
        self.find(Finding::First)?;
        self.rescue();
        let mut pause = self.poll_interval;
        while !self.stop.is_set() {
            let turn = self.turns();
            match turn {
                Turn::Progress => pause = self.poll_interval,
                Turn::Finished if !self.is_followed => break,
                Turn::Unproven if !self.is_followed => {
                    if !self.commit_now()? && self.stop.sleep(DISK_PAUSE) {
                        break;
                    }
                }
                Turn::Idle | Turn::Unproven | Turn::Finished => {
                    if self.stop.sleep(pause) {
                        break;
                    }
                    pause = (pause * 2).min(self.poll_interval * QUIET_FACTOR);
                }
            }
            if self.is_followed && Instant::now() >= self.next_find {
                self.find(Finding::Again)?;
            }
        }
        self.commit()
    }

    /// Streams that files fed in an earlier run may have places whose files were renamed since.
    fn take_up_known_streams(&mut self) -> Result<(), Failure> {
        for name in self.pipeline.streams() {
            if self.part.owns(&name) {
                let feeder = Feeder::new(self.pipeline.stream(&name)?);
                if feeder.has_unseen() {
                    self.feeders.insert(name, feeder);
                }
            }
        }
        Ok(())
    }

    fn find(&mut self, finding: Finding) -> Result<(), Failure> {
        let started = Instant::now();
        for files in self.files.clone() {
            if finding == Finding::Again && files.at_end == AtEnd::Finish {
                continue;
            }
            let found = found_files(&files);
            if finding == Finding::First && self.part.index == 0 {
                self.tell_missing(&files, &found);
            }
            for (path, meta) in found {
                let name = stream_name(&files, &path);
                if self.part.owns(&name) {
                    // Sinks first: only then is it known which files are outputs.
                    self.feeder(&name)?;
                    if !self.is_output(&path, &meta) {
                        self.feeder(&name)?.offer(&path, &meta, files.at_end);
                    }
                }
            }
        }
        // Looking for files costs at most a fiftieth of the time, however many there are.
        self.next_find = Instant::now() + self.poll_interval.max(started.elapsed() * 50);
        Ok(())
    }

    /// Whether the pipeline itself writes this file, under whatever name: it would be read again, for ever.
    fn is_output(&mut self, path: &Path, meta: &Metadata) -> bool {
        let id = FileId::of(meta);
        let is_output = self.pipeline.is_output(id);
        if is_output && self.outputs_told.insert(id) {
            self.pipeline.failed(
                Failure::wrong(format!(
                    "{}: an output of this pipeline, not read as a source",
                    path.display()
                ))
                .help("write the output to another folder, or choose a narrower pattern"),
            );
        }
        is_output
    }

    /// A file that is named and not there is an error, as for `cat`; one that is followed may come later; a pattern may match nothing.
    fn tell_missing(&self, files: &PlannedFiles, found: &[(PathBuf, Metadata)]) {
        let named = files.patterns.iter().filter(|pattern| pattern.names_one_file());
        for missing in named.filter(|pattern| !found.iter().any(|(path, _)| pattern.matches(path))) {
            let what = if missing.exists() { "is no regular file" } else { "is not there" };
            match files.at_end {
                AtEnd::Follow => self.pipeline.notice(format!("`{missing}` {what} yet")),
                AtEnd::Finish => self.pipeline.failed(
                    Failure::wrong(format!("`{missing}` {what}")).help("correct `paths` in [[source.file]]"),
                ),
            }
        }
        if found.is_empty() && files.patterns.iter().any(|pattern| !pattern.names_one_file()) {
            self.pipeline.notice(format!("no file matches {}", patterns(files)));
        }
    }

    fn feeder(&mut self, name: &str) -> Result<&mut Feeder, Failure> {
        if !self.feeders.contains_key(name) {
            let feeder = Feeder::new(self.pipeline.stream(name)?);
            self.feeders.insert(name.to_owned(), feeder);
        }
        self.feeders.get_mut(name).ok_or_else(|| Failure::new(format!("stream `{name}` has no feeder")))
    }

    fn rescue(&mut self) {
        if self.feeders.values().any(Feeder::has_unseen) {
            let found = files_beside(&self.files);
            let at_end = if self.is_followed { AtEnd::Follow } else { AtEnd::Finish };
            self.feeders.values_mut().for_each(|feeder| feeder.rescue(&found, at_end));
        }
    }

    /// One chunk of every stream.
    fn turns(&mut self) -> Turn {
        let fds = self.pipeline.fds();
        let mut all = Turn::Finished;
        let mut failed = Vec::new();
        for (name, feeder) in &mut self.feeders {
            self.buffer.resize(self.buffer.len().max(feeder.buffer_bytes()), 0);
            let bytes = feeder.buffer_bytes();
            let pipeline = &self.pipeline;
            match feeder.turn(&fds, &mut self.buffer[..bytes], &mut |text| pipeline.notice(text)) {
                Ok(Turn::Progress) => all = Turn::Progress,
                Ok(Turn::Idle) if all != Turn::Progress => all = Turn::Idle,
                Ok(Turn::Unproven) if all == Turn::Finished => all = Turn::Unproven,
                Ok(_) => {}
                Err(failure) => failed.push((name.clone(), failure)),
            }
            if self.stop.is_set() {
                break;
            }
        }
        for (name, failure) in failed {
            self.feeders.remove(&name);
            self.pipeline.failed(failure);
        }
        all
    }

    /// Makes durable what was read to its end, unless the disk refuses: `false`. What is given up is read again in the next turn.
    fn commit_now(&mut self) -> Result<bool, Failure> {
        let mut is_done = true;
        for (name, feeder) in &mut self.feeders {
            let pipeline = &self.pipeline;
            match feeder.stream().commit_blocking() {
                Ok(_) => {}
                Err(CommitError::Closed) => return Err(not_durable(name, &CommitError::Closed)),
                Err(error) => {
                    is_done = false;
                    if error.is_retryable() {
                        feeder.complain(&error.to_string(), &mut |text| pipeline.notice(text));
                    }
                }
            }
        }
        Ok(is_done)
    }

    fn commit(&self) -> Result<(), Failure> {
        for (name, feeder) in &self.feeders {
            feeder.stream().commit_blocking().map_err(|error| not_durable(name, &error))?;
        }
        Ok(())
    }
}

fn not_durable(name: &str, error: &CommitError) -> Failure {
    Failure::wrong(format!("stream `{name}`: the last records could not be made durable: {error}"))
        .help("mend the cause and run it again: the source goes on where the stream ends")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    First,
    Again,
}

/// Regular files only, the oldest first: of a file and its rotated forms the rotated ones are read first.
fn found_files(files: &PlannedFiles) -> Vec<(PathBuf, Metadata)> {
    let paths = files.patterns.iter().flat_map(crate::glob::PathPattern::expand);
    let mut found: Vec<_> =
        paths.filter_map(|path| fs::metadata(&path).ok().map(|meta| (path, meta))).collect();
    found.retain(|(_, meta)| meta.is_file());
    if files.at_end == AtEnd::Follow {
        found.sort_by_key(|(_, meta)| meta.modified().ok());
    }
    found
}

/// Names of the streams that these files feed now; a plain name whether or not there is a file.
pub(crate) fn stream_names_of(files: &PlannedFiles) -> Vec<String> {
    if files.stream.is_plain() {
        return vec![files.stream.fill(&[])];
    }
    found_files(files).iter().map(|(path, _)| stream_name(files, path)).collect()
}

fn patterns(files: &PlannedFiles) -> String {
    files.patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(" or ")
}

fn stream_name(files: &PlannedFiles, path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    files.stream.fill(&[("stem", &path_safe(&stem)), ("name", &path_safe(&name))])
}

fn files_beside(files: &[PlannedFiles]) -> BTreeMap<FileId, PathBuf> {
    let folders =
        files.iter().flat_map(|files| files.patterns.iter()).flat_map(crate::glob::PathPattern::folders);
    let entries =
        folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten()).filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.metadata().ok().map(|meta| (entry, meta)))
        .filter(|(_, meta)| meta.is_file())
        .map(|(entry, meta)| (FileId::of(&meta), entry.path()))
        .collect()
}
