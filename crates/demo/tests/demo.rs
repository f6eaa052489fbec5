//! The demo as a person runs it: it shows what the README shows, however busy the machine is.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fairpath_trace::Reader;
use serde_json::Value;

/// The lines of the README between which the demo's output stands.
const MARKS: [&str; 2] = ["<!-- output of the demo -->\n```\n", "```\n<!-- end of the output -->"];

/// Processes that keep cores busy, until they are dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Self {
        // Each ends by itself if this test is killed.
        let spin = [
            "-c",
            "end=$(($(date +%s) + 300)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done",
        ];
        let one = || Command::new("sh").args(spin).stdin(Stdio::null()).spawn().expect("a shell");
        Self((0..count).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn run(args: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairpath-demo")).args(args).arg("--out").arg(out).output().unwrap()
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

#[test]
fn the_demo_shows_what_the_readme_shows() {
    let scratch = tempfile::tempdir().unwrap();
    let output = run(&["--no-live"], scratch.path());
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let (table, rest) = shown.split_once("\nPicture: ").expect("it says where the picture is");
    let last = rest.lines().last().unwrap();
    let shown = format!("{table}\n{last}\n");
    let picture = fs::read_to_string(scratch.path().join("demo.svg")).unwrap();
    assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());

    let (readme, kept) = (document("README.md"), document("docs/demo.svg"));
    let written = fs::read_to_string(&readme).unwrap();
    let (before, after) = written.split_once(MARKS[0]).expect("the README shows the demo's output");
    let (block, after) = after.split_once(MARKS[1]).expect("the output ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&readme, format!("{before}{}{shown}{}{after}", MARKS[0], MARKS[1])).unwrap();
        fs::write(&kept, &picture).unwrap();
        return;
    }
    assert_eq!(block, shown, "README.md is not what the demo shows: run with UPDATE_DOCS=1 and look at the change");
    assert!(
        fs::read_to_string(&kept).unwrap() == picture,
        "docs/demo.svg is old: run with UPDATE_DOCS=1 and look at it"
    );
}

/// The demo with few seeds, beside processes that keep every core busy and without them, and one scene live.
#[test]
fn a_busy_machine_shows_the_same_and_a_live_scene_and_a_trace_come_out() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("not/yet/there");
    let output = run(&["--seeds", "2", "--json"], &out);
    // Two seeds may be too few for a verdict; then an error follows the result.
    let mut objects = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let result = objects.next().unwrap().unwrap();
    assert_eq!(output.status.success(), result["as_promised"].as_bool().unwrap(), "{output:?}");
    assert_eq!(result["runs"].as_array().unwrap().len(), 6);

    let live = result["live"].as_array().unwrap();
    assert_eq!(live.len(), 1);
    for rate in ["goodput_mbps", "competitor_mbps"] {
        assert!(live[0][rate].as_f64().unwrap() > 0.5, "{live:?}");
    }
    assert!(live[0]["late_ms"].is_f64() && live[0]["too_busy"].is_boolean(), "{live:?}");
    assert_eq!(live[0]["sharing"]["pairs"].as_array().unwrap().len(), 1, "{live:?}");

    let trace = fs::File::open(result["trace"].as_str().unwrap()).unwrap();
    let mut traced = BTreeSet::new();
    for record in Reader::new(BufReader::new(trace)).unwrap() {
        traced.insert(record.unwrap().run.expect("a record of the demo names its run"));
    }
    assert_eq!(traced.len(), 6, "{traced:?}");

    let busy = Busy::start(4);
    let beside = run(&["--seeds", "2", "--json", "--no-live"], &scratch.path().join("busy"));
    drop(busy);
    let shown: Value = serde_json::Deserializer::from_slice(&beside.stdout).into_iter().next().unwrap().unwrap();
    assert_eq!(shown["runs"], result["runs"], "other figures beside busy processes");
    let picture = |directory: &Path| fs::read(directory.join("demo.svg")).unwrap();
    assert!(picture(&scratch.path().join("busy")) == picture(&out), "another picture beside busy processes");
}

#[test]
fn a_directory_that_cannot_be_created_is_told_before_the_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    let below_a_file = file.join("out");
    let begun = Instant::now();
    let output = run(&[], &below_a_file);
    assert!(begun.elapsed() < Duration::from_secs(5), "no run was waited for");
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = format!("error: cannot create the directory {}", below_a_file.display());
    assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}
