//! Terms of single paths, given on the command line, over loopback: costs, caps and quotas.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Listening, Scratch, error_of, fairpath, run, text};
use serde_json::Value;

const LOOPBACK: [&str; 5] = ["perf", "server", "--listen", "127.0.0.1:0", "--once"];
const VIA: [&str; 4] = ["--via", "127.0.1.1", "--via", "127.0.2.1"];

/// Some seconds of sending with this state directory.
fn measure(state: &Path, seconds: &str, more: &[&str]) -> Output {
    let server = Listening::start(&LOOPBACK);
    let args = ["perf", "client", &server.ticket, "--seconds", seconds, "--json"];
    fairpath(&[&args[..], more].concat()).env("XDG_STATE_HOME", state).output().unwrap()
}

/// The report on the path from this address.
fn path(output: &Output, address: &str) -> Value {
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths = result["paths"].as_array().unwrap().clone();
    paths
        .into_iter()
        .find(|path| path["local"] == address)
        .unwrap_or_else(|| panic!("no path from {address}: {result}"))
}

#[test]
fn a_cap_is_kept_and_told() {
    let scratch = Scratch::new();
    let output = measure(&scratch.0, "6", &[&VIA[..], &["--path", "127.0.2.1:cap=4Mbit/s"]].concat());
    let (free, capped) = (path(&output, "127.0.1.1"), path(&output, "127.0.2.1"));
    assert_eq!((&free["cap_bps"], &capped["cap_bps"]), (&Value::Null, &4_000_000.into()));
    // Some data exceeds the cap: bursts of ten datagrams of 8,952 bytes, before and after the cap is
    // known, and keep-alives, which are not paced. 0.3 MB were seen, in a run of 3 MB.
    let rate = capped["rate_bps"].as_u64().unwrap();
    assert!((1..5_000_000).contains(&rate), "{capped}");
    assert!(free["rate_bps"].as_u64().unwrap() > 5_000_000, "{free}");
    assert_eq!(capped["idle"], "idle: its cap is 4.0 Mbit/s", "{capped}");
}

#[test]
fn every_path_is_told_with_its_share_its_round_trip_its_queue_its_health_and_its_cost() {
    let scratch = Scratch::new();
    let output = measure(&scratch.0, "2", &[&VIA[..], &["--path", "127.0.2.1:cost=3"]].concat());
    let dear = path(&output, "127.0.2.1");
    assert_eq!((&dear["cost"], &dear["health"]), (&3.into(), &"open".into()), "{dear}");
    for key in ["share", "srtt_ns", "queueing_delay_ns", "rate_bps"] {
        assert!(dear[key].as_f64().is_some_and(|number| number >= 0.0), "{key}: {dear}");
    }
}

#[test]
fn a_quota_closes_its_path_and_is_counted_over_runs() {
    let scratch = Scratch::new();
    let said = [&VIA[..], &["--path", "127.0.2.1:quota=3MB"]].concat();
    let first = path(&measure(&scratch.0, "2", &said), "127.0.2.1");
    assert_eq!((&first["health"], &first["state"]), (&"used up".into(), &"closed".into()), "{first}");
    assert!(first["idle"].as_str().unwrap().starts_with("used up: "), "{first}");
    let used = first["quota_used_bytes"].as_u64().unwrap();
    assert!(used >= 3_000_000 && used >= first["bytes"].as_u64().unwrap(), "{first}");
    let counts: Value =
        serde_json::from_str(&std::fs::read_to_string(scratch.0.join("fairpath/quota.json")).unwrap()).unwrap();
    let counted = counts["bytes"]["127.0.2.1"].as_u64().unwrap();
    assert!(counted >= used && counted < used + 1_000_000, "what was written ahead is given back: {counts}, {used}");
    let second = measure(&scratch.0, "1", &said);
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains("127.0.2.1: the quota of 3.0 MB is used up") && told.contains("it is not used"), "{told}");
    let result: Value = serde_json::from_slice(&second.stdout).unwrap();
    let locals: Vec<&Value> = result["paths"].as_array().unwrap().iter().map(|path| &path["local"]).collect();
    assert_eq!(locals, ["127.0.1.1"], "{result}");
}

#[test]
fn where_the_last_path_is_used_up_that_is_an_error() {
    let scratch = Scratch::new();
    let output = measure(&scratch.0, "20", &["--via", "127.0.2.1", "--path", "127.0.2.1:quota=1MB"]);
    let error = error_of(&output);
    assert!(error.contains("the quota of lo:127.0.2.1 is used up, and no other path is there"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn live_flows_keep_to_a_quota_too() {
    let scratch = Scratch::new();
    let player = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = format!("udp://{}", player.local_addr().unwrap());
    let receiver = Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to]);
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let from = format!("udp://{port}");
    let args = ["stream", "send", "--from", &from, &receiver.ticket, "--via", "127.0.2.1"];
    let mut sender = fairpath(&[&args[..], &["--path", "127.0.2.1:quota=300kB"]].concat());
    sender.env("XDG_STATE_HOME", &scratch.0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut sender = sender.spawn().unwrap();
    let encoder = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    // 2 Mbit/s, until it ends: two seconds after the quota is used up.
    let begun = Instant::now();
    while sender.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
        let _ = encoder.send_to(&[7; 1_316], port);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = sender.kill();
    let output = sender.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the quota of lo:127.0.2.1 is used up, and no other path is there"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let counts: Value =
        serde_json::from_str(&std::fs::read_to_string(scratch.0.join("fairpath/quota.json")).unwrap()).unwrap();
    // And what came back until the end was told.
    let counted = counts["bytes"]["127.0.2.1"].as_u64().unwrap();
    assert!((300_000..400_000).contains(&counted), "{counts}");
}

#[test]
fn a_sender_and_a_receiver_count_too() {
    let scratch = Scratch::new();
    let (inbox, file) = (scratch.0.join("inbox"), scratch.file("x", &vec![7; 2_000_000]));
    let state = [scratch.0.join("a"), scratch.0.join("b")];
    // The receiver has one address, where all paths end.
    let mut receiver = fairpath(&["recv", "--listen", "127.0.0.1:0", "--dir", text(&inbox), "--json"]);
    receiver.args(["--path", "127.0.0.1:quota=1GB"]).env("XDG_STATE_HOME", &state[0]);
    let mut receiver = Listening::of(receiver);
    let args = [&["send", text(&file), &receiver.ticket, "--json"], &VIA[..]].concat();
    // Without a cost: over a dear path a connection is made last, and this one is over before the second path opens.
    let said = ["--path", "127.0.1.1:quota=2GB"];
    let sent = fairpath(&[&args[..], &said].concat()).env("XDG_STATE_HOME", &state[1]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(receiver.child.wait().unwrap().code(), Some(0));
    let metered = path(&sent, "127.0.1.1");
    assert_eq!(metered["quota_bytes"], 2_000_000_000_u64, "{metered}");
    let (_, received, _) = receiver.end();
    let received: Value = serde_json::from_str(&received).unwrap();
    let used: Vec<u64> =
        received["paths"].as_array().unwrap().iter().map(|path| path["quota_used_bytes"].as_u64().unwrap()).collect();
    assert!(used.iter().all(|used| (2_000_000..4_000_000).contains(used)), "{received}");
}

#[test]
fn what_cannot_be_meant_is_a_usage_error_that_names_the_value() {
    let server = Listening::start(&LOOPBACK);
    for (said, words) in [
        ("127.0.2.1:cap=5", "cap: \"5\" has no unit; write a rate like \"30Mbit/s\""),
        ("127.0.2.1:coast=5", "there is no key \"coast\""),
        ("wwan9:cost=1", "--path: no interface or address 'wwan9' on this machine"),
        ("127.0.2.1:weight=2", "weight in --path 127.0.2.1:weight=2 has no effect with --scheduler arrival"),
    ] {
        let refused = run(&["perf", "client", &server.ticket, "--path", said]);
        let error = error_of(&refused);
        assert!(error.contains(words), "{said}: {error}");
        assert_eq!(refused.status.code(), Some(2), "{said}");
    }
    let received = run(&["recv", "--path", "127.0.0.1:weight=2"]);
    assert!(error_of(&received).contains("weight in --path 127.0.0.1:weight=2 says what is sent"), "{received:?}");
    assert_eq!(received.status.code(), Some(2));
    let limited = run(&["perf", "client", &server.ticket, "--limit", "0Mbit/s"]);
    assert!(error_of(&limited).contains("nothing could be sent; a rate such as 20Mbit/s is needed"), "{limited:?}");
    assert_eq!(limited.status.code(), Some(2));
}
