//! `fairpath detect` as a person runs it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Scratch, error_of, run, text};
use serde_json::{Value, json};

/// A minute of round trips over a queue of up to 60 ms. It fills in 2 to 3 s and drains at once, again
/// and again. `base_ms` is the round trip without it; `seed` draws the periods.
fn trace(base_ms: f64, seed: u64) -> String {
    let mut table = "time_s,rtt_ms\n".to_owned();
    let (mut begin, mut period, mut state) = (0, 0, seed);
    for at in (0..60_000u64).step_by(20) {
        if at >= begin + period {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (begin, period) = (at, 2000 + (state >> 33) % 1000);
        }
        let full = ((at - begin) as f64 / period as f64).sqrt();
        table += &format!("{:.3},{:.3}\n", at as f64 / 1e3, base_ms + 60.0 * full);
    }
    table
}

/// Two traces of one queue, the first packed, and one of another.
fn traces(scratch: &Scratch) -> [String; 3] {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(trace(50.0, 1 << 40).as_bytes()).unwrap();
    let files = [
        scratch.file("a.csv.gz", &packed.finish().unwrap()),
        scratch.file("b.csv", trace(80.0, 1 << 40).as_bytes()),
        scratch.file("c.csv", trace(50.0, 7 << 50).as_bytes()),
    ];
    files.map(|file| text(&file).to_owned())
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn those_that_share_are_one_group_by_their_given_names() {
    let scratch = Scratch::new();
    let [a, b, c] = traces(&scratch);
    let found = answer(&run(&["detect", &a, &c, &b, "--json"]));
    assert_eq!(found["groups"], json!([[a, b], [c]]));
    let pair = |one: &str, other: &str| {
        let pairs = found["pairs"].as_array().unwrap();
        pairs.iter().find(|pair| pair["names"] == json!([one, other])).unwrap().clone()
    };
    let (shared, separate) = (pair(&a, &b), pair(&a, &c));
    assert_eq!((&shared["shared"], &separate["shared"]), (&json!(true), &json!(false)));
    assert!(shared["confidence"].as_f64().unwrap() > 0.9, "{shared}");
    assert!(separate["confidence"].as_f64().unwrap() < 0.5, "{separate}");
    // The detector needs some seconds.
    let since = shared["since_s"].as_f64().unwrap();
    assert!((2.0..20.0).contains(&since), "{shared}");
    assert_eq!(shared["evidence"][0]["begin_s"].as_f64(), Some(since));
    assert_eq!(separate["since_s"], Value::Null);
}

#[test]
fn a_person_gets_a_table_and_a_sentence_and_the_picture_that_was_asked_for() {
    let scratch = Scratch::new();
    let [a, b, c] = traces(&scratch);
    let picture = scratch.0.join("delays.svg");
    let output = run(&["detect", &a, &b, &c, "--picture", text(&picture)]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(&format!("{a} and {b} share a bottleneck.")), "{shown}");
    assert!(shown.contains("separate") && shown.contains("confidence"), "{shown}");
    let svg = fs::read_to_string(&picture).unwrap();
    // The colour of the first group, in bands and in lines.
    assert!(svg.ends_with("</svg>\n") && svg.contains("b.csv") && svg.contains("stroke=\"#D55E00\""));
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "nothing half-written: {left:?}");
    let output = run(&["detect", &a, &b, "--picture", "/nowhere/delays.svg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error_of(&output).contains("cannot write /nowhere/delays.svg"));
}

#[test]
fn another_detector_gives_its_own_answer() {
    let scratch = Scratch::new();
    let [a, b, c] = traces(&scratch);
    let found = answer(&run(&["detect", &a, &b, "--detector", "never", "--json"]));
    assert_eq!(found["groups"], json!([[a], [b]]));
    let found = answer(&run(&["detect", &a, &c, "--detector", "always", "--hold", "5s", "--json"]));
    assert_eq!(found["groups"], json!([[a, c]]));
}

#[test]
fn bad_lines_are_told_by_their_number_and_skipped() {
    let scratch = Scratch::new();
    let [a, b, _] = traces(&scratch);
    let whole = fs::read_to_string(&b).unwrap();
    fs::write(&b, whole.replacen("\n0.040,", "\n0.040,?", 1)).unwrap();
    let output = run(&["detect", &a, &b, "--json"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // The header, 0, 0.020 and then 0.040: line 4.
    assert!(told.contains("b.csv: line 4: '?") && told.contains("is not a number; the line is skipped"), "{told}");
    let found = answer(&output);
    assert_eq!(found["groups"], json!([[a, b]]));
    assert_eq!(found["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_judged_gets_one_error_that_says_why() {
    let scratch = Scratch::new();
    let [a, b, _] = traces(&scratch);
    let bad = |name: &str, content: &str| text(&scratch.file(name, content.as_bytes())).to_owned();
    let broken = bad("broken.csv", "time_s,rtt_ms\n1,20\n2,x\n3,y\n");
    let later = bad("later.csv", "time_s,rtt_ms\n1000,20\n1001,21\n");
    let nothing = bad("nothing.csv", "");
    let columns = bad("columns.csv", "time_s,bytes\n1,20\n");
    for (args, code, words) in [
        (vec![&a, &broken], 2, "broken.csv: line 3: 'x' is not a number (2 bad lines, 1 good ones)"),
        (vec![&a, &nothing], 2, "nothing.csv: is empty"),
        (vec![&a, &columns], 2, "columns.csv: line 1: no column is called rtt, srtt,"),
        (vec![&a], 2, "a.csv.gz is the only series of round-trip times; two are needed"),
        (vec![&b, &later], 2, "no two series were measured at the same time"),
        (vec![&a, &"nowhere.csv".to_owned()], 1, "cannot read the trace nowhere.csv"),
    ] {
        let args: Vec<&str> = ["detect"].into_iter().chain(args.into_iter().map(String::as_str)).collect();
        let output = run(&args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(error_of(&output).contains(words), "{output:?}");
    }
    assert_eq!(run(&["detect", &a, &b, "--detector", "guess"]).status.code(), Some(2));
}

#[test]
fn a_trace_of_a_simulated_run_has_a_series_for_each_path() {
    let scratch = Scratch::new();
    let link = |name: &str| format!("[[link]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"5Mbit/s\"\n");
    let flow = "[[flow]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\npaths = 2\n";
    let scenario = format!("duration = \"10s\"\n{}{}{flow}", link("one"), link("two"));
    let scenario = scratch.file("two.toml", scenario.as_bytes());
    let out = scratch.0.join("out");
    assert!(run(&["sim", text(&scenario), "--out", text(&out)]).status.success());
    let file = out.join("paths.ndjson");
    let file = text(&file);
    let found = answer(&run(&["detect", file, "--json"]));
    let names: Vec<&Value> = found["series"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!(format!("{file}:up/path0")), &json!(format!("{file}:up/path1"))]);
}

/// Pairs of senders of another simulator (ns-3). They are not part of this project; where they lie
/// beside it, they are read.
#[test]
fn traces_of_another_simulator_are_told_apart() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/rtt-traces");
    if !folder.is_dir() {
        println!("skipped: the traces are not beside this project, in shared/rtt-traces");
        return;
    }
    let file =
        |kind: &str, number: u32, side: &str| -> PathBuf { folder.join(format!("{kind}-{number:02}-{side}.csv.gz")) };
    for number in 0..4 {
        for kind in ["shared", "separate"] {
            let [a, b] = ["a", "b"].map(|side| file(kind, number, side));
            let (a, b) = (text(&a), text(&b));
            let found = answer(&run(&["detect", a, b, "--json"]));
            let expected = if kind == "shared" { json!([[a, b]]) } else { json!([[a], [b]]) };
            assert_eq!(found["groups"], expected, "{}", found["pairs"]);
        }
    }
}

#[test]
fn what_is_no_text_is_quoted_by_its_beginning() {
    let scratch = Scratch::new();
    let [a, b, _] = traces(&scratch);
    let binary = [trace(50.0, 3).into_bytes(), vec![0xff; 1 << 19], vec![0x1b; 1 << 18]].concat();
    let binary = scratch.file("binary.csv", &binary);
    let output = run(&["detect", &a, &b, text(&binary)]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("is not text") && said.len() < 1_000, "{} bytes", said.len());
}
