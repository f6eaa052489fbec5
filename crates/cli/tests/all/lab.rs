//! `fairpath lab` as a person runs it.

use std::fs;

use crate::common::{Scratch, error_of, run, text};
use serde_json::Value;

#[test]
fn one_experiment_leaves_a_report_a_table_a_figure_and_a_page() {
    let scratch = Scratch::new();
    let out = scratch.0.join("results");
    let output = run(&["lab", "run", "daimd/table1", "--quick", "--seeds", "2", "--out", text(&out)]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("Rates on idle paths") && shown.contains("paper") && shown.contains("HOLDS"), "{shown}");
    let last = shown.lines().last().unwrap();
    assert_eq!(last, "3 claims: 2 hold, 1 hold partly (daimd/table1 \"as printed\").");
    for file in ["table1.csv", "rates.svg", "report.json"] {
        assert!(out.join("daimd/table1").join(file).is_file(), "{file}");
    }
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("1 of ") && page.contains("<svg") && !page.contains("<script"), "{} bytes", page.len());
}

#[test]
fn what_is_run_again_is_the_same_to_the_byte() {
    let scratch = Scratch::new();
    let report = |name: &str, jobs: &str| {
        let out = scratch.0.join(name);
        let output = run(&[
            "lab",
            "run",
            "daimd/fig2",
            "--quick",
            "--seeds",
            "2",
            "--jobs",
            jobs,
            "--out",
            text(&out),
            "--json",
        ]);
        assert!(output.status.success(), "{output:?}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["experiments"][0]["experiment"], "daimd/fig2");
        assert_eq!(result["experiments"][0]["verdicts"][0]["outcome"], "holds");
        fs::read(out.join("daimd/fig2/report.json")).unwrap()
    };
    assert_eq!(report("one", "1"), report("two", "2"));
}

#[test]
fn what_was_interrupted_goes_on_with_what_the_same_command_has_left() {
    let scratch = Scratch::new();
    let out = scratch.0.join("results");
    let shown = |options: &[&str]| {
        let command = ["lab", "run", "daimd/fig2", "--quick", "--jobs", "2", "--out", text(&out)];
        let output = run(&[&command, options].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let is_kept = |shown: &str| shown.contains("as it was kept");
    assert!(!is_kept(&shown(&["--seeds", "2", "--resume"])), "nothing was there");
    let again = shown(&["--seeds", "2", "--resume"]);
    assert!(is_kept(&again) && again.lines().last().unwrap().starts_with("4 claims: 4 hold"), "{again}");
    assert!(!is_kept(&shown(&["--seeds", "2"])), "nobody asked for it");
    assert!(!is_kept(&shown(&["--seeds", "3", "--resume"])), "another command");
}

#[test]
fn the_list_names_the_experiment_of_each_table() {
    let output = run(&["lab", "list"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().any(|line| line.starts_with("Table II ") && line.contains("daimd/table2")), "{shown}");
    let output = run(&["lab", "list", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let experiments = list["experiments"].as_array().unwrap();
    assert!(experiments.iter().any(|one| one["name"] == "daimd/table2"), "{list}");
}

#[test]
fn an_unknown_name_is_a_usage_error_with_the_nearest_one() {
    let output = run(&["lab", "run", "daimd/tabel2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_of(&output).contains("is 'daimd/table2' meant?"), "{output:?}");
}

#[test]
fn a_directory_that_cannot_be_created_is_told_before_the_runs() {
    let scratch = Scratch::new();
    let below_a_file = scratch.file("file", b"").join("out");
    let output = run(&["lab", "run", "all", "--out", text(&below_a_file)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error_of(&output).contains(text(&below_a_file)), "{output:?}");
    assert!(output.stdout.is_empty());
}
