//! Files with parameters: each combination of values is a scenario, and every mistake has its place.

use fairpath_core::Bitrate;
use fairpath_scenario::{ParameterValue, Scenario, ScenarioFile, Sweep};

const GOOD: &str = r#"title = "${load} flows"
duration = "10s"

[[link]]
name = "wire"
from = "a"
to = "b"
rate = "${rate}Mbit/s"
delay = "${delay}"

[[flow]]
name = "f"
from = "a"
to = "b"
count = "${load}"
transport = { ecn = "${ecn}" }

[sweep]
load = [1, 0x2]
rate = [10.5]
delay = ["5ms", "50ms"]
ecn = true
"#;

fn no_files(_: &str) -> Result<String, String> {
    Err("no files can be read here".to_owned())
}

fn sweep(text: &str, fixed: &[(&str, &str)]) -> Result<Sweep, String> {
    let fixed: Vec<_> = fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sweep::parse_with(text, "x.toml", &fixed, &no_files).map_err(|error| error.to_string())
}

fn scenarios(sweep: &Sweep) -> Vec<Scenario> {
    (0..sweep.points()).map(|point| sweep.file(point, &no_files).unwrap().expand(None).unwrap()).collect()
}

fn message(text: &str) -> String {
    sweep(text, &[]).map_or_else(|error| error, |_| "no error".to_owned())
}

#[test]
fn each_combination_is_a_scenario_in_the_order_of_the_file() {
    let sweep = sweep(GOOD, &[]).unwrap();
    let names: Vec<&str> = sweep.parameters().map(|(name, _)| name).collect();
    assert_eq!(names, ["load", "rate", "delay", "ecn"]);
    assert_eq!(sweep.said(1), "load = 1, rate = 10.5, delay = \"50ms\", ecn = true");
    let scenarios = scenarios(&sweep);
    let seen: Vec<(usize, u128)> =
        scenarios.iter().map(|one| (one.flows.len(), one.links[0].config.delay.as_millis())).collect();
    assert_eq!(seen, [(1, 5), (1, 50), (2, 5), (2, 50)]);
    for scenario in &scenarios {
        assert_eq!(scenario.links[0].config.rate.mean(), Some(Bitrate::from_kbps(10_500)));
        assert_eq!(scenario.title, format!("{} flows", scenario.flows.len()));
        assert!(scenario.flows[0].transport.ecn);
    }
}

#[test]
fn a_value_can_be_fixed_from_outside_with_or_without_quotes() {
    let fixed = sweep(GOOD, &[("load", "3"), ("delay", "7ms"), ("ecn", "false")]).unwrap();
    let one = scenarios(&fixed);
    assert_eq!((one.len(), one[0].flows.len(), one[0].links[0].config.delay.as_millis()), (1, 3, 7));
    assert!(!one[0].flows[0].transport.ecn);
    let load = fixed.values(0)[0];
    assert_eq!((load, load.number()), (&ParameterValue::Number("3".to_owned()), Some(3.0)));
    // Where all values are texts, what looks like a number is one too.
    let text = "duration = \"9s\"\nlink = [{ from = \"a\", to = \"${n}\", rate = \"1Mbit/s\" }]\n\
        flow = [{ name = \"f\", from = \"a\", to = \"${n}\" }]\nsweep = { n = [\"b\"] }\n";
    assert_eq!(scenarios(&sweep(text, &[("n", "7")]).unwrap())[0].links[0].to, "7");
    for (set, said) in [
        (&[("laod", "1")][..], "there is no parameter \"laod\" (is \"load\" meant?); known are load, rate, delay, ecn"),
        (&[("load", "1"), ("load", "2")], "the parameter \"load\" is set twice; set it once"),
        (&[("load", "${rate}")], "\"${rate}\" has \"${\" in it, and the values of parameters cannot have parameters"),
    ] {
        let error = sweep(GOOD, set).unwrap_err();
        assert!(error.starts_with(&format!("x.toml:18:1: sweep: {said}")), "{error}");
    }
    let error = sweep(GOOD, &[("load", "many")]).unwrap_err();
    let values = "(with load = \"many\", rate = 10.5, delay = \"5ms\", ecn = true)";
    let expected = format!("x.toml:15:9: flow.count: \"many\" is not a whole number from 1 to 100000 {values}");
    assert_eq!(error, expected);
}

#[test]
fn one_scenario_cannot_be_read_from_several() {
    let error = ScenarioFile::parse(GOOD, "x.toml").unwrap_err().to_string();
    let expected = "x.toml:18:1: sweep: the file describes 4 scenarios, one for each combination of load, delay, \
        and one is wanted here; choose a value for each";
    assert_eq!(error, expected);
    let one = GOOD.replace("[1, 0x2]", "[1]").replace("[\"5ms\", \"50ms\"]", "\"5ms\"");
    assert_eq!(ScenarioFile::parse(&one, "x.toml").unwrap().expand(None).unwrap().flows.len(), 1);
}

#[test]
fn every_mistake_is_named_with_its_place_and_with_what_would_be_right() {
    assert_eq!(message(GOOD), "no error");
    for (part, instead, expected) in MISTAKES {
        assert_eq!(GOOD.matches(part).count(), 1, "{part:?} is in the file once");
        assert_eq!(message(&GOOD.replace(part, instead)), *expected, "{instead:?}");
    }
}

/// A part of the good file, what stands there instead, and the message.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "name = \"wire\"",
        "name = \"${wire}\"",
        "x.toml:5:8: link.name: there is no parameter \"wire\"; known are load, rate, delay, ecn",
    ),
    (
        "\"${rate}Mbit/s\"",
        "{ steps = [[\"0s\", \"${rtae}Mbit/s\"]] }",
        "x.toml:8:26: link.rate.steps: there is no parameter \"rtae\" (is \"rate\" meant?); known are load, rate, delay, ecn",
    ),
    (
        "\"${rate}Mbit/s\"",
        "\"${rateMbit/s\"",
        "x.toml:8:8: link.rate: \"${\" in \"${rateMbit/s\" is never closed; write a parameter like \"${load}\"",
    ),
    (
        "\"${rate}Mbit/s\"",
        "\"1Mbit/s\"",
        "x.toml:20:1: sweep.rate: nothing uses this parameter; write \"${rate}\" where its values should stand, or leave it out",
    ),
    (
        "\"${rate}Mbit/s\"",
        "\"${rate}Mbps\"",
        "x.toml:8:8: link.rate: \"Mbps\" in \"10.5Mbps\" is no unit of a rate; the units are bit/s, kbit/s, Mbit/s, Gbit/s, as in \"30Mbit/s\" (with load = 1, rate = 10.5, delay = \"5ms\", ecn = true)",
    ),
    // Found with the last of the values only, and told with them.
    (
        "[\"5ms\", \"50ms\"]",
        "[\"5ms\", \"50\"]",
        "x.toml:9:9: link.delay: \"50\" has no unit; write a time like \"20ms\" (with load = 1, rate = 10.5, delay = \"50\", ecn = true)",
    ),
    (
        "load = [1, 0x2]",
        "load = [1, 200000]",
        "x.toml:15:9: flow.count: 200000 is out of range; it must be from 1 to 100000 (with load = 200000, rate = 10.5, delay = \"5ms\", ecn = true)",
    ),
    (
        "load = [1, 0x2]",
        "load = []",
        "x.toml:19:8: sweep.load: the list is empty; give at least one value, like [1, 2, 4]",
    ),
    ("load = [1, 0x2]", "load = [1, [2]]", "x.toml:19:12: sweep.load: a list is not a text, a number, true or false"),
    (
        "load = [1, 0x2]",
        "load = { from = 1 }",
        "x.toml:19:8: sweep.load: a table is not a text, a number, true or false",
    ),
    (
        "load = [1, 0x2]",
        "load = 1979-05-27",
        "x.toml:19:8: sweep.load: 1979-05-27 is not a text, a number, true or false",
    ),
    (
        "load = [1, 0x2]",
        "load = [2, 0x2]",
        "x.toml:19:12: sweep.load: the value 2 is there already; give each value once",
    ),
    (
        "ecn = true",
        "ecn = \"${load}\"",
        "x.toml:22:7: sweep.ecn: \"${load}\" has \"${\" in it, and the values of parameters cannot have parameters; write it out",
    ),
    (
        "ecn = true",
        "\"e c n\" = true",
        "x.toml:22:1: sweep: \"e c n\" is no name of a parameter; write one like load, of letters, digits, - and _, with a letter first",
    ),
    (
        "[sweep]\nload = [1, 0x2]\nrate = [10.5]\ndelay = [\"5ms\", \"50ms\"]\necn = true\n",
        "",
        "x.toml:1:9: title: there is no parameter \"load\"; the file has no [sweep] that names parameters",
    ),
    (
        "[sweep]\nload = [1, 0x2]\nrate = [10.5]\ndelay = [\"5ms\", \"50ms\"]\necn = true\n",
        "[[sweep]]\nload = 1\n",
        "x.toml:18:1: sweep: a list is not a table of parameters, like { load = [1, 2, 4] }",
    ),
];

#[test]
fn no_more_is_read_than_can_be_meant() {
    let many = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
    let lists = format!("load = [{}]\nrate = [{}]", many(101), many(100));
    let text = GOOD.replace("load = [1, 0x2]\nrate = [10.5]", &lists);
    let said = message(&text);
    assert!(said.contains("there are 20200 combinations of values; at most 10000 fit"), "{said}");
    let said = message(&GOOD.replace("[1, 0x2]", &format!("[{}]", many(10_001))));
    assert!(said.contains("sweep.load: there are 10001 combinations"), "{said}");
    // Ten thousand uses of a value of ten thousand letters.
    let list = "\"${ends}\", ".repeat(10_000);
    let text = format!("duration = \"9s\"\nlink = [{list}]\nsweep = {{ ends = \"{}\" }}", "x".repeat(10_000));
    let said = message(&text);
    assert!(said.contains("with the values in their places the file has more than 16777216 bytes"), "{said}");
    let said = message(&GOOD.replace("[10.5]", &format!("\"{}\"", "7".repeat(1 << 20))));
    assert!(said.len() < 1_000, "{} bytes", said.len());
}
