//! What a person reads when a configuration is wrong.

use crate::support::{Bench, finish, pq, text};

fn error_of(bench: &Bench) -> String {
    let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")), b"");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    text(&output.stderr).replace(&bench.path("").display().to_string(), "DIR/")
}

#[test]
fn a_missing_file_is_named() {
    let bench = Bench::new();
    assert_eq!(
        error_of(&bench),
        "pq: error: DIR/pipeline.toml: the configuration cannot be read: No such file or directory (os error 2)\n  \
         help: give the path of a TOML file; `pq run --help` shows one\n"
    );
}

#[test]
fn the_line_is_shown() {
    let bench = Bench::new();
    bench.config("[[sink.file]]\npath = \"out/{strem}.log\"\n");
    assert_eq!(
        error_of(&bench),
        "pq: error: DIR/pipeline.toml:4: field `sink.file.path`: `{strem}` cannot be used here, expected `{stream}`\n  \
         4 | path = \"out/{strem}.log\"\n    |        ^^^^^^^^^^^^^^^^^\n  \
         help: for example \"out/{stream}.log\"\n"
    );
    bench.config("wake = \"loud\"\n");
    assert_eq!(
        error_of(&bench),
        "pq: error: DIR/pipeline.toml:3: field `queue.wake`: unknown variant `loud`, expected `signal` or `poll`\n  \
         3 | wake = \"loud\"\n    |        ^^^^^^\n  \
         help: change the value to one of the kind that is expected\n"
    );
}

#[test]
fn sinks_that_contradict_each_other_are_refused_before_anything_runs() {
    let bench = Bench::new();
    bench.write("in/a.log", "x\n");
    bench.write("in/b.log", "x\n");
    let source = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n";
    bench.config(&format!("{source}[[sink.file]]\npath = \"out.log\"\n"));
    assert_eq!(
        error_of(&bench),
        "pq: error: DIR/out.log: the output of stream `a` and of stream `b`\n  \
         help: put `{stream}` into `path` of [[sink.file]], or give `streams` that match one stream\n"
    );
    bench.config(&format!("{source}[[sink.null]]\n[[sink.null]]\n"));
    assert_eq!(
        error_of(&bench),
        "pq: error: stream `a`: two sinks are its consumer `null`\n  \
         help: give each a `consumer` of its own, or `streams` that do not overlap\n"
    );
    bench.config(&format!("{source}[[sink.file]]\npath = \"in/{{stream}}-out.log\"\n"));
    assert!(error_of(&bench).contains("would read again, for ever"));
}

#[test]
fn two_file_sinks_on_one_path_are_refused_by_the_check_too() {
    let bench = Bench::new();
    let sinks = |first: &str, second: &str| {
        bench.config(&format!(
            "[[sink.file]]\nconsumer = \"a\"\n{first}\n[[sink.file]]\nconsumer = \"b\"\n{second}\n"
        ));
        finish(pq().arg("run").arg(bench.path("pipeline.toml")).arg("--check"), b"")
    };
    for (first, second) in [
        ("path = \"out.log\"", "path = \"./out.log\""),
        ("path = \"out.log\"\nstreams = [\"x\"]", "path = \"out.log\"\nstreams = [\"y\"]"),
        ("path = \"out/{stream}\"", "path = \"out/{stream}\"\nstreams = [\"y\"]"),
        ("path = \"out/{stream}\"\nstreams = [\"app-*\"]", "path = \"out/{stream}\"\nstreams = [\"app-1\"]"),
    ] {
        let refused = sinks(first, second);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{first} and {second}: {told}");
        assert!(
            told.contains("two sinks: consumer `a` and consumer `b`") && told.contains("help: "),
            "{told}"
        );
    }
    let apart = ["x", "y"].map(|stream| format!("path = \"out/{{stream}}\"\nstreams = [\"{stream}\"]"));
    assert!(sinks(&apart[0], &apart[1]).status.success(), "they never meet");
    assert!(!bench.path("q").exists());
}

#[test]
fn one_file_under_two_names_is_one_output() {
    let bench = Bench::new();
    bench.write("in/a.log", "x\n");
    let source = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n";
    bench.config(&format!(
        "{source}[[sink.file]]\nconsumer = \"other\"\npath = \"out/../out/a\"\n[[sink.file]]\npath = \"out/a\"\n"
    ));
    assert!(error_of(&bench).contains("DIR/out/a: the same file as the output DIR/out/../out/a"));
}

#[test]
fn an_output_that_is_no_regular_file_is_refused() {
    let bench = Bench::new();
    bench.write("in/a.log", "x\n");
    let source = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n";
    bench.config(&format!("{source}[[sink.file]]\npath = \"/dev/full\"\n"));
    let error = error_of(&bench);
    assert!(error.contains("/dev/full") && error.contains("needs a regular file"), "{error}");
}

#[test]
fn an_output_is_not_read_as_a_source_whatever_it_is_called() {
    let bench = Bench::new();
    bench.write("in/a.log", "x\n");
    bench.config(
        "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n[[sink.file]]\npath = \"in/../in/a.log\"\n",
    );
    let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")), b"");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("in/a.log: an output of this pipeline, not read as a source"), "{stderr}");
    assert_eq!(bench.read("in/a.log"), b"x\n");
}

#[test]
fn a_named_source_that_is_no_regular_file_is_told() {
    let bench = Bench::new();
    bench.config("[[source.file]]\npaths = [\"/dev/null\"]\nstream = \"s\"\n");
    let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")), b"");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("`/dev/null` is no regular file"), "{stderr}");
}

// S55
#[test]
fn settings_with_which_nothing_could_work_are_refused() {
    let bench = Bench::new();
    for (line, field) in
        [("record_bytes_max = 0", "record_bytes_max"), ("stop_deadline = \"0s\"", "stop_deadline")]
    {
        bench.config(&format!("{line}\n[[sink.null]]\n"));
        let error = error_of(&bench);
        assert!(error.contains(&format!("field `queue.{field}`")), "{error}");
    }
    bench.config("segment_bytes_max = -1\n");
    assert!(error_of(&bench).contains("help: change the value"), "{}", error_of(&bench));
}

#[test]
fn check_says_so_without_touching_anything() {
    let bench = Bench::new();
    bench.config("[[sink.null]]\n");
    let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")).arg("--check"), b"");
    assert!(output.status.success());
    assert!(!bench.path("q").exists());
}

#[test]
fn help_and_usage_errors_are_as_people_expect() {
    for args in [&["--help"][..], &["run", "--help"], &["read", "--help"], &["--version"]] {
        let output = finish(pq().args(args), b"");
        assert!(output.status.success() && !output.stdout.is_empty(), "{args:?}");
    }
    let help = text(&finish(pq().args(["run", "--help"]), b"").stdout);
    assert!(
        help.contains("name = \"app-{number}\""),
        "nothing of the example is replaced on the way: {help}"
    );
    for args in [&[][..], &["nonsense"], &["run"], &["read", "d", "s", "--from", "0"]] {
        let output = finish(pq().args(args), b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
