//! What a person reads when a configuration is wrong, and what a right one means.

use super::*;

fn load(body: &str) -> Result<Plan, String> {
    let text = Text { path: PathBuf::from("conf/pipeline.toml"), body: body.to_owned() };
    Plan::from_text(&text).map_err(|failure| failure.to_string())
}

fn message(body: &str) -> String {
    load(body).map(|plan| format!("{plan:?}")).expect_err("refused")
}

#[test]
fn the_smallest_configuration_is_a_queue() {
    let plan = load("[queue]\ndir = \"q\"\n").unwrap();
    assert_eq!(plan.dir, Path::new("conf/q"), "relative to the folder of the file");
    assert!(!plan.ends_by_itself(), "without a source it runs until it is told to stop");
    assert!(plan.sinks.is_empty());
}

#[test]
fn the_configuration_in_the_help_is_valid() {
    let help = crate::cli::RUN_HELP;
    let example: String = help
        .lines()
        .skip_while(|line| !line.contains("[queue]"))
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    let plan = load(&example).unwrap_or_else(|error| panic!("{error}\nin:\n{example}"));
    assert_eq!((plan.streams.len(), plan.files.len(), plan.sinks.len()), (1000, 1, 4));
    assert_eq!(plan.streams[999].name, "app-1000");
}

// S55
#[test]
fn an_error_names_file_line_field_and_what_to_do() {
    assert_eq!(
        message("[queue]\ndir = \"q\"\nwakee = \"signal\"\n"),
        "conf/pipeline.toml:3: field `queue.wakee`: unknown field `wakee`, expected one of `dir`, `wake`, `push_back`, \
         `pool_size`, `lanes`, `fds_max`, `cursor_save_interval`, `bytes_max`, `reserve_bytes`, `buffer_bytes_max`, \
         `turn_bytes_max`, `backoff_first`, `backoff_max`, `stop_deadline`, `sync`, `segment_bytes_max`, `segment_age_max`, \
         `batch_bytes_max`, `batch_records_max`, `commit_interval`, `record_bytes_max`, `stream_bytes_max`, `on_full`, `age_max`\n  \
         3 | wakee = \"signal\"\n    | ^^^^^\n  \
         help: correct the name or remove the line; `pq run --help` lists every field"
    );
    assert_eq!(
        message("[queue]\ndir = \"q\"\nwake = \"sginal\"\n"),
        "conf/pipeline.toml:3: field `queue.wake`: unknown variant `sginal`, expected `signal` or `poll`\n  \
         3 | wake = \"sginal\"\n    |        ^^^^^^^^\n  \
         help: change the value to one of the kind that is expected"
    );
    assert_eq!(
        message("[queue]\ndir = \"q\"\nsegment_bytes_max = \"64 megs\"\n"),
        "conf/pipeline.toml:3: field `queue.segment_bytes_max`: `64 megs` is not a size such as 4096, \"512KiB\", \"64MiB\" \
         or \"10MB\"\n  3 | segment_bytes_max = \"64 megs\"\n    |                     ^^^^^^^^^\n  \
         help: change the value to one of the kind that is expected"
    );
    assert_eq!(
        message("[[sink.null]]\n"),
        "conf/pipeline.toml:1: missing field `queue`\n  1 | [[sink.null]]\n    | ^\n  \
         help: add a [queue] table with `dir = \"…\"`; `pq run --help` shows an example"
    );
}

// S55
#[test]
fn values_that_cannot_be_are_refused_by_the_name_of_their_field() {
    let queue = "[queue]\ndir = \"q\"\n";
    for (body, field, about) in [
        ("pool_size = 0", "queue.pool_size", "0"),
        ("lanes = 0", "queue.lanes", "0"),
        ("cursor_save_interval = \"0s\"", "queue.cursor_save_interval", ""),
        ("segment_bytes_max = 0", "queue.", ""),
        ("push_back = \"50ms\"", "queue.push_back", "wake = \"poll\""),
        ("wake = \"poll\"\npush_back = \"0s\"", "queue.push_back", "busy"),
        ("sync = \"sometimes\"", "sync", "each-batch"),
        ("sync = \"every 3 parsecs\"", "sync", "duration"),
        ("[[stream]]\nname = \"s\"\ncount = 2", "stream.count", "{number}"),
        ("[[stream]]\nname = \"s-{number}\"", "stream.name", "count"),
        ("[[stream]]\nname = \"s\"\n[[stream]]\nname = \"s\"", "stream.name", "two streams"),
        ("[[source.file]]\npaths = []\nstream = \"s\"", "source.file.paths", "empty"),
        ("[[source.file]]\npaths = [\"x\"]\nstream = \"{stream}\"", "source.file.stream", "{stem}"),
        ("[[source.file]]\npaths = [\"x\"]\nstream = \"s\"\npoll_interval = \"0s\"", "poll_interval", "busy"),
        ("[[source.stdin]]\nstream = \"a\"\n[[source.stdin]]\nstream = \"b\"", "source.stdin", "twice"),
        ("[[sink.file]]\npath = \"{name}\"", "sink.file.path", "{stream}"),
        ("[[sink.http]]\nurl = \"ftp://x/\"", "sink.http.url", "expected `http` or `https`"),
        ("[[sink.http]]\nurl = \"nope\"", "sink.http.url", "not a URL"),
        ("[[sink.http]]\nurl = \"http://x/\"\ntimeout = \"0s\"", "sink.http.timeout", "no request"),
        ("[[sink.http]]\nurl = \"http://x/\"\nheaders = { \"a b\" = \"c\" }", "sink.http.headers", "a b"),
        ("[[sink.null]]\nconsumer = \"\"", "sink.null.consumer", "empty"),
        ("[[sink.null]]\npath = \"x\"", "sink.null.path", "unknown field"),
    ] {
        let text = message(&format!("{queue}{body}\n"));
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("conf/pipeline.toml:"), "{text}");
        assert!(first.contains(field), "{field} is named in: {text}");
        assert!(text.contains(about), "{about} is said in: {text}");
        assert!(text.contains("\n  help: "), "{text}");
    }
}

#[test]
fn limits_that_were_not_given_follow_those_that_were() {
    let plan = load("[queue]\ndir = \"q\"\nsegment_bytes_max = \"256KiB\"\n").unwrap();
    let settings = plan.settings("any");
    assert!(settings.batch_bytes_max < 256 << 10 && settings.record_bytes_max <= settings.batch_bytes_max);
}

#[test]
fn a_stream_has_the_settings_of_its_table_over_those_of_the_queue() {
    let body = "[queue]\ndir = \"q\"\nsync = \"never\"\n[[stream]]\nname = \"s\"\nsync = \"every 1s\"\n";
    let plan = load(body).unwrap();
    assert_eq!(plan.settings("s").sync, pq::SyncSetting::Every(Duration::from_secs(1)));
    assert_eq!(plan.settings("s").read_level, pq::ReadLevel::Durable);
    assert_eq!(plan.settings("other").sync, pq::SyncSetting::Never);
    assert_eq!(plan.settings("other").read_level, pq::ReadLevel::Written, "nothing else would ever be shown");
}
