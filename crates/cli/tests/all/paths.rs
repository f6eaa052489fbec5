//! `fairpath paths` as a person runs it.

use std::collections::BTreeSet;

use crate::common::{error_of, run};
use serde_json::Value;

#[test]
fn every_address_is_shown_with_its_verdict() {
    let output = run(&["paths"]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("interface"), "{shown}");
    let loopback = shown.lines().find(|line| line.contains("127.0.0.1")).expect("loopback is listed");
    assert!(loopback.starts_with("lo") && loopback.contains("not used: reaches only this machine"), "{loopback}");
    // An interface with addresses of both families starts one path.
    let used = shown.lines().filter(|line| line.ends_with("  used")).filter_map(|line| line.split_whitespace().next());
    let verdict = shown.lines().find(|line| line.contains("can start here")).unwrap();
    match used.collect::<BTreeSet<_>>().len() {
        0 => assert_eq!(verdict, "No path can start here."),
        1 => assert!(verdict.starts_with("One path can start here"), "{verdict}"),
        more => assert_eq!(verdict, format!("{more} paths can start here.")),
    }
}

#[test]
fn what_is_named_is_used_and_the_rest_is_not() {
    let output = run(&["paths", "--via", "127.0.1.1", "--via", "127.0.2.1", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = list.as_array().unwrap();
    let used: Vec<_> =
        list.iter().filter(|one| one["used"] == true).map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(used, ["127.0.1.1", "127.0.2.1"]);
    for one in list {
        if one["used"] == true {
            assert!(["device", "source address"].contains(&one["bound_by"].as_str().unwrap()), "{one}");
            assert!(one["reason"].is_null(), "{one}");
        } else {
            assert_eq!(one["reason"], "not among the interfaces asked for");
        }
    }
}

#[test]
fn an_unknown_interface_is_a_usage_error_that_names_those_there_are() {
    let output = run(&["paths", "--via", "wwan9"]);
    let error = error_of(&output);
    let (_, those_there_are) = error.split_once("there are ").unwrap_or_default();
    assert!(error.contains("'wwan9'") && those_there_are.split(", ").any(|name| name.trim() == "lo"), "{error}");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
