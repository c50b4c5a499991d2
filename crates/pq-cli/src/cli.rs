//! The command line: what can be said, and the help that explains it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Durable streams of records: append, deliver, look, check.
///
/// A queue is a directory. It holds streams: records in order, numbered from 1 (their seq). What was reported durable survives kill -9
/// and power loss; what was delivered is deleted, segment by segment.
#[derive(Debug, Parser)]
#[command(name = "pq", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  printf 'one\\ntwo\\n' | pq append /tmp/q greetings
  pq read /tmp/q greetings
  pq stat /tmp/q

Exit codes: 0 all is well; 1 it ran, and records are lost, damaged or were refused; 2 it could not run, or not write its output.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a pipeline: sources -> streams -> sinks, as a configuration file says
    Run(Run),
    /// Append the lines of stdin to a stream; each seq is printed once its record is durable
    ///
    /// The queue and the stream are created if they do not exist. A line is a record; a last line without a line feed and an empty line are
    /// records too. Prints the seqs of each batch once it is durable, as `7` or `7-9`.
    Append(Append),
    /// Print the records of a stream
    ///
    /// Without --consumer it only looks: it works beside a running pq, moves no cursor and needs no lock. With --consumer it reads as that
    /// consumer, from its cursor on, and acknowledges what it printed; then nobody else may own the queue.
    Read(Read),
    /// Show streams, segments, consumers and how far each is
    ///
    /// It only looks: it works beside a running pq, needs no lock and changes nothing. The numbers are those that are saved: a consumer may
    /// be a fraction of a second further. Below them: records that are known to be lost, files in quarantine, which only you remove, and
    /// what could not be shown. Exit codes: 0 all of it; 1 a stream could not be looked through, or segments are there that no stream
    /// stands for: the others are shown; 2 it could not run.
    Stat(Look),
    /// Check every byte; change nothing
    ///
    /// Reads every segment and checks every checksum, and sees what `pq repair` would mend of the queue's own files; works beside a running
    /// pq. Exit codes: 0 clean; 1 damage found, told exactly (which records are lost, in which file, at which byte; a stream that cannot
    /// be looked through is damaged, and the others are checked); 2 the check could not run, or its result not be written. What a crash
    /// left behind the end of a file is no damage, nor is a loss that is written down already (`pq stat` lists those) and of which no
    /// damaged byte is left.
    Verify(Look),
    /// Print a stream as JSON lines, gaps as lines of their own
    ///
    /// A record is {"stream","seq","appended_at","line" or, if it is not UTF-8, "base64"}; appended_at in nanoseconds since 1970. Where no
    /// line feed followed it in its source (a last line without one, a piece of a line that was too long) there is "line_feed":false
    /// too. Seqs that are not there are {"stream","gap":{"from","to","count","reason"}}; to is the first seq behind; what lies below the
    /// oldest kept is told (reason "retired", no loss) if --from asks for it. With --quarantine it prints what
    /// can be read of a file in quarantine. It only looks: it works beside a running pq. Exit codes: 0 all of it; 1 records of it are lost;
    /// 2 it could not run.
    Export(Export),
    /// Say what is damaged, what mending it costs, and with --apply do it
    ///
    /// Without --apply it only plans: it works beside a running pq and changes nothing. With --apply nobody else may own the queue. It
    /// writes damaged segments again with all their whole records (a copy, read back, then put in place in one step), writes down exactly
    /// which records are lost, and writes damaged catalogs and cursors again with all that is sound in them. Every original is kept in
    /// the directory `quarantine`, which only you empty. Killed at any moment it loses nothing: run it again. What it cannot mend by itself
    /// is a lost catalog: the names of streams stand nowhere else, so --adopt gives them. Exit codes: 0 nothing to do or, with --apply,
    /// all of it done; 1 there is damage or, with --apply, some is left, and what mends it is told; 2 it could not run.
    Repair(Repair),
}

pub(crate) const RUN_HELP: &str = "\
A configuration (paths are relative to its folder; durations \"50ms\" \"1s\" \"2h\"; sizes 4096 \"64MiB\" \"10MB\"):

  [queue]
  dir = \"data\"                   # the queue's directory; the only field that must be there
  # The defaults of all streams; each may stand in a [[stream]] too:
  sync = \"each-batch\"            # or \"each-append\", \"every 100ms\", \"on-rotate\", \"never\"
  segment_bytes_max = \"64MiB\"    # a file is rotated before it grows past this,
  segment_age_max = \"1h\"         # or this long after its creation
  batch_bytes_max = \"10MiB\"      # a batch is written and synced when it holds this much,
  batch_records_max = 100000     # or so many records,
  commit_interval = \"20ms\"       # or after this time
  record_bytes_max = \"1MiB\"      # a longer line is split
  stream_bytes_max = \"1GiB\"      # most bytes of a stream's files (in a [[stream]]: bytes_max); default: no limit
  on_full = \"block\"              # at that limit, or the queue's: sources wait; or \"reject\", \"drop-oldest\", \"drop-newest\"
  age_max = \"30d\"                # older segments are dropped, delivered or not; default: never
  # The queue's own:
  wake = \"signal\"                # a commit wakes the readers; or \"poll\" with push_back = \"50ms\"
  pool_size = 4                  # sinks at work at the same time
  lanes = 4                      # threads that commit in the background
  bytes_max = \"20GiB\"            # most bytes of the queue's directory, quarantine included; default: no limit
  reserve_bytes = \"1MiB\"         # kept so that a full disk can drain
  fds_max = 64                   # open files and sockets; default: what `ulimit -n` allows, less a margin
  buffer_bytes_max = \"64MiB\"     # memory for records that are not written yet
  turn_bytes_max = \"1MiB\"        # what a sink gets before another one has its turn
  cursor_save_interval = \"200ms\" # what a crash delivers again, except to files
  backoff_first = \"100ms\"        # the wait after a failure, doubled up to
  backoff_max = \"30s\"
  stop_deadline = \"10s\"          # how long a stop may take

  [[stream]]                     # only for streams with settings of their own, or without a source
  name = \"app-{number}\"          # with `count`: app-1, app-2, ...
  count = 1000

  [[source.file]]                # one record a line, every byte kept
  paths = [\"logs/*.log\"]         # * ? [a-z], and ** for any folders
  stream = \"{stem}\"              # {stem}, {name}: one stream per file; a plain name: all into one
  follow = false                 # true: like tail -F, across rotation and truncation
  poll_interval = \"250ms\"        # how often a followed file is looked at; a quiet one up to 4 times less often

  [[source.stdin]]
  stream = \"input\"

  [[sink.file]]                  # exactly once, also after kill -9
  path = \"out/{stream}.log\"
  streams = [\"*\"]                # patterns of stream names; default all
  consumer = \"file\"              # the cursor's name; default: the kind of sink
  format = \"lines\"               # byte for byte; or \"seq\": seq, tab, line; or \"json\"
  sync = \"never\"                 # or \"each-turn\": on the disk before it counts as delivered

  [[sink.http]]                  # POST until 2xx, with back-off
  url = \"http://127.0.0.1:8080/{stream}\"
  body = \"ndjson\"                # {\"stream\",\"seq\",\"appended_at\",\"line\" or \"base64\"} as `pq export` prints; or \"lines\": payloads
  timeout = \"30s\"
  headers = { authorization = \"...\" }

  [[sink.stdout]]
  [[sink.null]]

It ends when every source is read and everything is delivered. With a followed source, or none, it runs until SIGINT or SIGTERM: then
it stops within stop_deadline, and a second signal ends it at once; nothing durable is lost either way. Run it again and it goes on
where it was: sources where they were read up to, sinks behind what they got.

A line longer than record_bytes_max is split into records; joined again by the file and stdout sinks, no byte is lost. Rotation by
copying and truncating (copytruncate) can lose what is written between the copy and the truncation; rotation by renaming loses nothing.

Records go to stdout only by a stdout sink; progress, notices and the summary go to stderr. A stdout that cannot be written (nobody reads
it, or its disk is full) ends the run with a message and exit code 2; what was not written is kept.";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_HELP)]
pub(crate) struct Run {
    /// The configuration, a TOML file (`pq run --help` shows one)
    pub(crate) config: PathBuf,
    /// End when what is there now is delivered, even with followed sources or none
    #[arg(long)]
    pub(crate) drain: bool,
    /// Check the configuration and end
    #[arg(long)]
    pub(crate) check: bool,
    /// No progress and no summary; notices and errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Write the final figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) summary_json: Option<PathBuf>,
}

/// Arguments of `append`.
#[derive(Debug, Args)]
pub(crate) struct Append {
    /// The queue's directory
    pub(crate) dir: PathBuf,
    /// The stream
    pub(crate) stream: String,
    /// Print {"first":7,"last":9,"count":3} instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `read`.
#[derive(Debug, Args)]
pub(crate) struct Read {
    /// The queue's directory
    pub(crate) dir: PathBuf,
    /// The stream
    pub(crate) stream: String,
    /// Read as this consumer and acknowledge; it is created if it does not exist
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) consumer: Option<String>,
    /// Begin at this seq; default: the oldest kept
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: Option<u64>,
    /// End after so many records
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Wait for more instead of ending
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print {"stream","seq","appended_at","line" or "base64"} instead of the bytes, as `pq export` does
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The queue's directory
    pub(crate) dir: PathBuf,
    /// The stream
    #[arg(required_unless_present = "quarantine")]
    pub(crate) stream: Option<String>,
    /// The first seq to print; default: the oldest kept
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: Option<u64>,
    /// The last seq to print; default: the newest there is
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) to: Option<u64>,
    /// Read this file in quarantine instead of the stream
    #[arg(long, value_name = "FILE")]
    pub(crate) quarantine: Option<PathBuf>,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// The queue's directory
    pub(crate) dir: PathBuf,
    /// Do it; nobody else may own the queue
    #[arg(long)]
    pub(crate) apply: bool,
    /// Make a directory that no stream stands for (its 16 digits) a stream of this name; may be given several times
    #[arg(long, value_name = "ID=NAME")]
    pub(crate) adopt: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `stat` and `verify`.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// The queue's directory
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
