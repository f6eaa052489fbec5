//! `fairpath demo` as a person runs it, only shorter. What its numbers must be, it says itself; three
//! seconds on a busy machine do not decide that.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::time::{Duration, Instant};

use common::{Scratch, error_of, run, text};
use fairpath_trace::Reader;
use serde_json::Value;

#[test]
fn eleven_runs_a_picture_and_a_trace_come_out() {
    let scratch = Scratch::new();
    let out = scratch.0.join("not/yet/there");
    let output = run(&["demo", "--seconds", "3", "--json", "--out", text(&out)]);
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 11);
    for run in runs {
        assert!(run["goodput_bps"].as_u64().unwrap() > 0, "{run}");
        assert!(!run["verdict"].as_str().unwrap().is_empty(), "{run}");
        let shared = run["network"] == "shared";
        assert_eq!(shared, run["competitor_bps"].is_u64(), "{run}");
        assert_eq!(shared, run["one_path_bps"].is_u64(), "{run}");
        assert!(run["measured_seconds"].as_f64().unwrap() >= if shared { 3.0 } else { 0.75 }, "{run}");
    }

    let found: Vec<&Value> = runs.iter().filter(|run| run["mode"] == "auto").map(|run| &run["sharing"]).collect();
    assert!(
        found.len() == 2 && found.iter().all(|sharing| sharing["pairs"].as_array().unwrap().len() == 1),
        "{found:?}"
    );

    let beside = |mode: &str| runs.iter().find(|run| run["network"] == "shared" && run["mode"] == mode).unwrap();
    let (one, ours) = (beside("cubic"), beside("auto"));
    assert_eq!((&one["competitor"], &ours["competitor"]), (&"cubic".into(), &"cubic".into()));
    assert_eq!(ours["one_path_bps"], one["goodput_bps"], "what one CUBIC path gets in our place");
    assert_eq!(beside("lia")["competitor"], "reno");
    let share = ours["goodput_bps"].as_f64().unwrap() / ours["competitor_bps"].as_f64().unwrap();
    assert!((ours["share"].as_f64().unwrap() / share - 1.0).abs() < 1e-6, "{ours}");

    let svg = fs::read_to_string(result["picture"].as_str().unwrap()).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{} bytes", svg.len());
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());

    let trace = fs::File::open(result["trace"].as_str().unwrap()).unwrap();
    let mut traced = BTreeSet::new();
    for record in Reader::new(BufReader::new(trace)).unwrap() {
        let record = record.unwrap();
        traced.insert(record.run.expect("a record of the demo names its run"));
    }
    assert_eq!(traced.len(), 11, "{traced:?}");
}

#[test]
fn only_one_coupling_runs_where_only_that_is_asked_for() {
    let scratch = Scratch::new();
    let output = run(&["demo", "--seconds", "2", "--coupling", "auto", "--json", "--out", text(&scratch.0)]);
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let modes: Vec<&str> = result["runs"].as_array().unwrap().iter().map(|run| run["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["single", "auto", "single", "cubic", "auto"]);
}

#[test]
fn a_directory_that_cannot_be_created_is_told_before_the_runs() {
    let scratch = Scratch::new();
    let below_a_file = scratch.file("file", b"").join("out");
    let begun = Instant::now();
    let output = run(&["demo", "--out", text(&below_a_file)]);
    assert!(begun.elapsed() < Duration::from_secs(5), "no run was waited for");
    let error = error_of(&output);
    assert!(error.contains("cannot create the directory") && error.contains(text(&below_a_file)), "{error}");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}
