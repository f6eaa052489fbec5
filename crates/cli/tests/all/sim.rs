//! `fairpath sim` and `fairpath emu` as a person runs them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Scratch, error_of, run, text};
use serde_json::Value;

/// Two separate links of 10 and 5 Mbit/s, the second lossy.
const SCENARIO: &str = r#"
title = "two links"
duration = "20s"
warm_up = "5s"

[[link]]
name = "wifi"
from = "server"
to = "phone"
rate = "10Mbit/s"
delay = "10ms"

[[link]]
name = "lte"
from = "server"
to = "phone"
rate = "5Mbit/s"
delay = "30ms"
loss = "0.01%"

[[flow]]
name = "download"
from = "server"
to = "phone"
paths = 2
congestion = "lia"
"#;

fn scenario(folder: &Path, text: &str) -> String {
    let path = folder.join("my.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The ratio of the goodputs of the flow over two paths and the single one, in the shared example. It
/// is averaged over nine delays of the uplink: nothing is random, so a single run only shows which flow
/// meets the full queue.
fn share(coupling: &str) -> f64 {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shared_bottleneck.toml");
    let example = std::fs::read_to_string(file).unwrap();
    assert!(example.contains("delay = \"15ms\""));
    let delays = 11..=19;
    let shares = delays.clone().map(|delay| {
        let scratch = Scratch::new();
        let file = scenario(&scratch.0, &example.replace("delay = \"15ms\"", &format!("delay = \"{delay}ms\"")));
        let output = run(&["sim", &file, "--coupling", coupling, "--json", "--out", text(&scratch.0)]);
        assert!(output.status.success(), "{output:?}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let goodput = |name| {
            let flow = result["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name);
            flow.and_then(|flow| flow["goodput_bps"].as_f64()).unwrap()
        };
        goodput("multipath") / goodput("single")
    });
    shares.sum::<f64>() / delays.count() as f64
}

#[test]
fn another_coupling_than_the_files_can_be_asked_for() {
    let (never, always, auto) = (share("never"), share("always"), share("auto"));
    assert!(never > 1.3 && always < 1.1 && auto < 1.2, "{never:.2}, {always:.2} and {auto:.2} of a single path");
    let output = run(&["sim", "my.toml", "--coupling", "maybe"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_of(&output).contains("'maybe'"));
}

#[test]
fn a_run_prints_its_flows_and_leaves_series_a_picture_and_a_summary() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, SCENARIO);
    let out = scratch.0.join("out");
    let output = run(&["sim", &file, "--out", text(&out)]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("two links: 15 s from second 5 on, seed 1"), "{shown}");
    assert!(shown.contains("path 1") && shown.contains("wifi"), "{shown}");
    let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    // 15 Mbit/s · 1448/1500 = 14.48
    let goodput = summary["flows"][0]["goodput_bps"].as_u64().unwrap();
    assert!((13_500_000..14_480_000).contains(&goodput), "{goodput}");
    let records = fs::File::open(out.join("paths.ndjson")).unwrap();
    let records = fairpath_trace::Reader::new(BufReader::new(records)).unwrap();
    // Two paths, 20 s, every 100 ms.
    assert_eq!(
        records.map(|record| record.unwrap().flow).filter(|flow| flow.as_deref() == Some("download")).count(),
        400
    );
    // A header, and four directions of links.
    let links = fs::read_to_string(out.join("links.ndjson")).unwrap();
    assert_eq!(links.lines().count(), 1 + 4 * 200);
    assert!(fs::read(out.join("paths.parquet")).unwrap().starts_with(b"PAR1"));
    assert!(fs::read(out.join("links.parquet")).unwrap().starts_with(b"PAR1"));
    let picture = fs::read_to_string(out.join("picture.svg")).unwrap();
    assert!(picture.contains("download, path 1") && picture.contains("Mbit/s"));
}

#[test]
fn the_same_seed_leaves_the_same_bytes_and_another_does_not() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, SCENARIO);
    let bytes = |name: &str, seed: &str| {
        let out = scratch.0.join(name);
        let output = run(&["sim", &file, "--seed", seed, "--out", text(&out), "--json"]);
        assert!(output.status.success(), "{output:?}");
        let of = |name: &str| fs::read(out.join(name)).unwrap();
        let files = ["paths.ndjson", "paths.parquet", "links.ndjson", "links.parquet", "summary.json", "picture.svg"];
        (files.map(of), output.stdout)
    };
    let one = bytes("one", "3");
    assert_eq!(one, bytes("two", "3"));
    assert_ne!(one, bytes("three", "4"));
}

#[test]
fn one_run_over_several_cores_leaves_the_same_bytes_for_any_number_of_them() {
    let scratch = Scratch::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fat_tree_k4.toml");
    let example = fs::read_to_string(example).unwrap().replace("5s", "200ms").replace("1s", "50ms");
    let file = scenario(&scratch.0, &example);
    let bytes = |threads: &str| {
        let out = scratch.0.join(threads);
        let output = run(&["sim", &file, "--threads", threads, "--out", text(&out), "--json"]);
        assert!(output.status.success(), "{output:?}");
        let of = |name: &str| fs::read(out.join(name)).unwrap();
        (["paths.ndjson", "links.ndjson", "summary.json", "picture.svg"].map(of), output.stdout)
    };
    let one = bytes("1");
    assert_eq!(one, bytes("3"));
}

#[test]
fn what_several_cores_cannot_run_is_told() {
    let scratch = Scratch::new();
    let near = scenario(&scratch.0, &SCENARIO.replace("delay = \"30ms\"\n", ""));
    let output = run(&["sim", &near, "--threads", "2"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = error_of(&output);
    assert!(error.contains("link \"lte\"") && error.contains("`delay`"), "{error}");
    let swept = scenario(&scratch.0, &swept().replace("\"lia\"\n", "\"${control}\"\n"));
    let output = run(&["sim", &swept, "--threads", "2"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(error_of(&output).contains("--set"), "{output:?}");
    for args in [&["--threads", "0"][..], &["--threads", "2", "--seeds", "3"]] {
        let output = run(&[&["sim", &swept], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

/// The summary and the table of a run with these arguments, and what it printed.
fn summary(folder: &Path, file: &str, args: &[&str]) -> (Value, String, String) {
    let out = folder.join("out");
    let output = run(&[&["sim", file, "--out", text(&out)], args].concat());
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let summary = serde_json::from_str(&read("summary.json")).unwrap();
    (summary, read("table.csv"), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn several_seeds_give_means_with_intervals() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, SCENARIO);
    let (result, table, shown) = summary(&scratch.0, &file, &["--seeds", "4", "--seed", "10"]);
    assert_eq!((result["first_seed"].as_u64(), result["seeds"].as_u64()), (Some(10), Some(4)));
    assert_eq!(result["seeds_change_nothing"], false);
    let class = &result["classes"][0];
    let whole = [&class["goodput_mbps"], &class["rtt_ms"]];
    let paths = [&class["paths"][1]["goodput_mbps"], &class["paths"][1]["lost_percent"]];
    let links = [&result["links"][2]["rate_mbps"], &result["links"][2]["used_percent"]];
    for estimate in [whole, paths, links].concat() {
        assert_eq!(estimate["samples"], 4, "{estimate}");
        assert!(estimate["half_width"].as_f64().unwrap() > 0.0, "{estimate}");
    }
    let seeds: Vec<u64> = result["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [10, 11, 12, 13]);
    assert!(shown.contains("seeds 10 to 13") && shown.contains('±'), "{shown}");
    let headings = ["path 1", "RTT ms", "used %", "dropped %", "wait ms", "lte"];
    assert!(headings.iter().all(|heading| shown.contains(heading)), "{shown}");
    assert!(table.starts_with("kind,name,path,quantity,mean,half_width_95,samples\nflows,download,,goodput_mbps,"));
    assert!(table.contains("\npath,download,1,rtt_ms,") && table.contains("\nlink,lte,,used_percent,"), "{table}");
    let out = scratch.0.join("out");
    assert!(fs::read_to_string(out.join("picture.svg")).unwrap().contains("download"));
    assert!(!out.join("paths.ndjson").exists(), "there are no time series of several runs");
}

#[test]
fn where_seeds_change_nothing_there_is_no_interval_and_that_is_said() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, &SCENARIO.replace("loss = \"0.01%\"\n", ""));
    let (result, table, shown) = summary(&scratch.0, &file, &["--seeds", "3"]);
    assert_eq!(result["seeds_change_nothing"], true);
    assert_eq!(result["classes"][0]["goodput_mbps"]["half_width"], Value::Null);
    assert!(!shown.contains('±') && shown.contains("The seeds change nothing here: all runs are equal"), "{shown}");
    assert!(table.lines().skip(1).all(|line| line.ends_with(",,3")), "{table}");
}

/// The scenario with a queue and a number of flows to choose.
fn swept() -> String {
    SCENARIO.replace("paths = 2", "paths = 2\ncount = \"${flows}\"").replace("20s", "6s").replace("5s", "2s")
        + "[sweep]\nflows = [1, 2]\ncontrol = [\"lia\", \"reno\"]\n"
}

#[test]
fn a_sweep_gives_one_table_and_one_picture_whatever_the_number_of_cores() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, &swept().replace("\"lia\"\n", "\"${control}\"\n"));
    let (result, table, shown) = summary(&scratch.0, &file, &["--seeds", "2", "--jobs", "1"]);
    assert_eq!(result["parameters"]["flows"], serde_json::json!([1, 2]));
    let points = result["points"].as_array().unwrap();
    let values: Vec<&Value> = points.iter().map(|point| &point["values"]).collect();
    let expected = [(1, "lia"), (1, "reno"), (2, "lia"), (2, "reno")];
    assert_eq!(
        values,
        expected.map(|(flows, control)| serde_json::json!({ "flows": flows, "control": control })).each_ref()
    );
    assert!(points.iter().all(|point| point["classes"][0]["goodput_mbps"]["samples"] == 2));
    assert!(shown.contains("two links: seeds 1 to 2, means and 95 % intervals at 4 points"), "{shown}");
    let rows = shown.lines().filter(|line| line.contains("download")).count();
    assert_eq!(rows, 4, "{shown}");
    assert!(
        table.starts_with("flows,control,kind,name,path,quantity,mean,half_width_95,samples\n1,lia,flows,download,,")
    );
    let picture = fs::read_to_string(scratch.0.join("out/picture.svg")).unwrap();
    let lines = ["download, control lia", "download, control reno", ">\nflows\n<"];
    assert!(lines.iter().all(|line| picture.contains(line)), "{picture}");
    let files =
        || ["summary.json", "table.csv", "picture.svg"].map(|name| fs::read(scratch.0.join("out").join(name)).unwrap());
    let one = files();
    let again = summary(&scratch.0, &file, &["--seeds", "2", "--jobs", "3"]);
    assert_eq!((one, shown), (files(), again.2));
}

#[test]
fn a_parameter_can_be_fixed_and_a_single_run_is_like_any_other() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, &swept().replace("\"lia\"\n", "\"${control}\"\n"));
    let out = scratch.0.join("out");
    let fixed = ["sim", &file, "--out", text(&out), "--set", "flows=3", "--set", "control=olia", "--json"];
    let output = run(&fixed);
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["flows"].as_array().unwrap().len(), 3);
    assert_eq!(result["values"], serde_json::json!({ "flows": 3, "control": "olia" }));
    assert!(out.join("paths.ndjson").exists());
    for (args, said) in [
        (&["--set", "flow=3"][..], "there is no parameter \"flow\" (is \"flows\" meant?); known are flows, control"),
        (&["--set", "flows"], "a name and a value are needed, like load=2"),
        (&["--set", "control=oila"], "there is no congestion control \"oila\" (is \"olia\" meant?)"),
        (&["--set", "control=oila"], "(with flows = 1, control = \"oila\")"),
    ] {
        let output = run(&[&["sim", &file], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(error_of(&output).contains(said), "{output:?}");
    }
    let output = run(&["emu", &file, "--to", "127.0.0.1:9", "--seconds", "1", "--set", "flows=1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = "describes 2 scenarios, one for each combination of the values in its [sweep], and one is wanted; choose with \
        --set, like --set control=lia";
    assert!(error_of(&output).ends_with(said), "{output:?}");
}

#[test]
fn a_wrong_file_gets_one_error_with_its_place_and_leaves_nothing() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, &SCENARIO.replace("5Mbit/s", "5Mbit"));
    let out = scratch.0.join("out");
    let output = run(&["sim", &file, "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(2));
    let error = error_of(&output);
    // The rate of `lte` stands in line 17.
    assert!(error.contains("my.toml:17:") && error.contains("link.rate") && error.contains("5Mbit"), "{error}");
    assert!(!out.exists());
    let output = run(&["sim", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error_of(&output).contains("cannot read the scenario nowhere.toml"), "{output:?}");
}

/// A path of 10 ms each way: what is sent to its address comes out at the server, and the answer
/// comes back, 20 ms later at least.
#[test]
fn a_datagram_crosses_the_links_of_a_scenario_in_real_time() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, SCENARIO);
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().to_string();
    let mut emulator = Command::new(env!("CARGO_BIN_EXE_fairpath"))
        .args(["emu", &file, "--to", &to, "--seconds", "2", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(emulator.stdout.take().unwrap()).lines();
    let addresses: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(addresses["flow"], "download");
    let path = addresses["paths"][0]["address"].as_str().unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let sent = Instant::now();
    client.send_to(b"there", path).unwrap();
    let mut buffer = [0; 16];
    let (length, relay) = server.recv_from(&mut buffer).unwrap();
    server.send_to(&buffer[..length], relay).unwrap();
    let (length, _) = client.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"there");
    assert!(sent.elapsed() >= Duration::from_millis(20), "{:?}", sent.elapsed());
    let end: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(end["links"][0]["name"], "wifi");
    assert_eq!(end["links"][0]["delivered_packets"], 1);
    assert!(emulator.wait().unwrap().success());
}

#[test]
fn a_flow_that_is_not_there_is_told_with_those_that_are() {
    let scratch = Scratch::new();
    let file = scenario(&scratch.0, SCENARIO);
    let output = run(&["emu", &file, "--to", "127.0.0.1:9", "--flow", "upload", "--seconds", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(error_of(&output), "error: the scenario has no flow 'upload'; it has download");
}

#[test]
fn what_does_not_fit_is_told_with_what_would() {
    let scratch = Scratch::new();
    let endless = run(&["sim", "/dev/zero"]);
    assert!(error_of(&endless).ends_with("it has more than 16777216 bytes; give a smaller one"), "{endless:?}");
    let dumbbell = "duration = \"1s\"\ntopology = { dumbbell = { pairs = 1000, bottleneck = { rate = \"1Mbit/s\" } } }\n\
        [[flow]]\nname = \"f\"\nfrom = \"left0\"\nto = \"right0\"\n";
    let file = scenario(&scratch.0, dumbbell);
    let output = run(&["sim", &file, "--seeds", "100000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_of(&output).contains("100000 seeds are too many for"), "{output:?}");
}
