//! How the program tells what went wrong, and what it does where nobody reads.

use std::process::Stdio;

use crate::common::{Scratch, error_of, fairpath, run, text};
use serde_json::Value;

/// The only line of standard output, as an object.
fn object(output: &std::process::Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_program_that_asked_for_json_has_errors_as_objects_too() {
    let ticket = crate::common::ticket_of_nobody();
    for (args, code, exit) in [
        (&["send", "no such file", ticket.as_str(), "--json"][..], "no_such_file", 1),
        (&["send", "Cargo.toml", "fp1wrong", "--json"], "usage", 2),
        (&["send", "--magic", "--json"], "usage", 2),
        (&["recv", "--dir", "Cargo.toml", "--json"], "failed", 1),
        (&["paths", "--via", "nosuch0", "--json"], "usage", 2),
        (&["perf", "client", "fp1wrong", "--json"], "usage", 2),
        (&["stream", "recv", "--json"], "usage", 2),
        (&["sim", "no such.toml", "--json"], "failed", 1),
    ] {
        let output = run(args);
        let told = object(&output);
        let error = &told["error"];
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {told}");
        assert_eq!((error["code"].as_str(), error["exit_code"].as_i64()), (Some(code), Some(exit.into())), "{args:?}");
        assert!(error["text"].as_str().is_some_and(|text| !text.is_empty()), "{args:?}: {told}");
        // A person is told the same.
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    let silent = run(&["send", "no such file", &ticket]);
    assert!(silent.stdout.is_empty() && silent.status.code() == Some(1));
}

/// `fairpath … | head` closes the pipe when it has enough. That of standard error can be closed, too.
#[test]
fn a_pipe_that_nobody_reads_is_no_failure() {
    for args in [&["paths"][..], &["paths", "--json"], &["completions", "bash"], &["lab", "list"], &["help", "send"]] {
        let mut child = fairpath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.is_empty(), "{args:?}: {:?}: {said}", ended.status);
    }
    let mut child = fairpath(&["send", "no such file", &crate::common::ticket_of_nobody()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "no panic, which would be 101");
}

#[test]
fn what_the_log_says_has_no_codes_of_colour_in_a_file() {
    let output = fairpath(&[
        "send",
        "Cargo.toml",
        &crate::common::ticket_of_nobody(),
        "--via",
        "127.0.0.1",
        "--give-up-after",
        "0",
    ])
    .env("FAIRPATH_LOG", "trace")
    .output()
    .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.lines().count() > 3, "there is no log: {log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let scratch = Scratch::new();
    let directory = scratch.0.join("man/man1");
    let output = run(&["man", text(&directory)]);
    assert!(output.status.success(), "{output:?}");
    for page in ["fairpath.1", "fairpath-send.1", "fairpath-stream-recv.1"] {
        let page = std::fs::read_to_string(directory.join(page)).unwrap();
        assert!(page.contains(".SH NAME") && (page.contains("Common use") || page.contains("Example")), "{page}");
    }
}

#[test]
fn people_are_helped_first_and_research_comes_last() {
    for command in [&["send"][..], &["recv"], &["stream", "send"], &["perf", "client"]] {
        let output = run(&[&["help"], command].concat());
        let help = String::from_utf8_lossy(&output.stdout);
        let at = |word: &str| help.find(word).unwrap_or_else(|| panic!("{command:?} has no {word}: {help}"));
        let first = help.find("Common use:").or_else(|| help.find("Example:")).expect("there are examples");
        assert!(first < at("Usage:") && at("Usage:") < at("Options:"), "{help}");
        let research = at("For research");
        for option in ["--congestion", "--coupling", "--detector", "--hold"] {
            // Where it is explained; an example may use it.
            assert!(research < at(&format!("\n      {option} ")), "{option}: {help}");
        }
        assert!(at("--via") < research && at("--help") < research, "{help}");
    }
}

/// It was taken before, and flows went their own ways.
#[test]
fn a_scheduler_of_live_flows_is_refused_in_words() {
    let ticket = crate::common::ticket_of_nobody();
    let send = ["stream", "send", "--from", "udp://127.0.0.1:9", ticket.as_str()];
    let recv = ["stream", "recv", "--to", "udp://127.0.0.1:9"];
    for (end, more, words) in [
        (&send[..], &["--scheduler", "ecf"][..], "--scheduler ecf has no effect on live flows"),
        (&recv, &["--scheduler", "arrival"], "--scheduler arrival has no effect on live flows"),
        (&send, &["--path", "lo:weight=2"], "weight in --path lo:weight=2 has no effect on live flows"),
    ] {
        let output = run(&[end, more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(error_of(&output).contains(words), "{output:?}");
    }
    let help = run(&["stream", "send", "--help"]);
    assert!(!String::from_utf8_lossy(&help.stdout).contains("--scheduler <"), "it is offered");
}
