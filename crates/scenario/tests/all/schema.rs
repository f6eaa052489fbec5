//! The format as it is documented: the schema, the reference and the examples agree with the reader.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fairpath_engine::EngineConfig;
use fairpath_scenario::{Scenario, Sweep, schema};
use proptest::prelude::*;
use regex::Regex;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap_or_default()
}

/// `now` is what stands in the document `name`; with UPDATE_DOCS it is written there.
fn assert_written(name: &str, now: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join("docs").join(name), now).unwrap();
    }
    assert!(
        document(name) == now,
        "docs/{name} is not what the keys say: run with UPDATE_DOCS=1 and look at the change"
    );
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_keys() {
    assert_written("reference/scenario.schema.json", &schema::json());
}

/// Every table of keys stands in the documentation, between two marks.
#[test]
fn the_reference_in_the_documentation_is_that_of_the_keys() {
    let mut text = document("reference/scenario.md");
    for (name, table) in schema::reference() {
        let mark = format!("<!-- keys: {name} -->\n");
        let start = text.find(&mark).unwrap_or_else(|| panic!("the keys of {name} are not in the reference"));
        let start = start + mark.len();
        let end = start + text[start..].find("<!-- end -->").expect("the end of the keys");
        text.replace_range(start..end, &table);
    }
    assert_written("reference/scenario.md", &text);
    assert_eq!(text.matches("<!-- keys: ").count(), schema::reference().len(), "a mark is for no table");
}

/// The links of the reference to its tables lead somewhere.
#[test]
fn every_table_that_the_reference_names_has_a_place_in_it() {
    let text = document("reference/scenario.md");
    for link in text.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        let heading = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let is_heading = text.lines().any(|line| line.starts_with('#') && heading(line) == link);
        let is_anchor = text.contains(&format!("<a id=\"{link}\"></a>"));
        assert!(is_heading || is_anchor, "#{link} leads nowhere");
    }
}

/// Every complete scenario of the documentation and of `scenarios/`, by name.
fn scenarios() -> Vec<(String, String)> {
    let text = document("reference/scenario.md");
    let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut all: Vec<(String, String)> = blocks
        .enumerate()
        .map(|(number, block)| (format!("example {number} of scenario.md"), block.to_owned()))
        .collect();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("scenarios")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    all.extend(files.iter().map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())));
    assert!(all.len() > 15);
    all
}

/// The guide states the default in three places, none of which is generated from the code.
#[test]
fn what_the_book_calls_the_default_is_what_people_get() {
    let live = EngineConfig::live();
    for page in ["concepts.md", "default.md"] {
        let says = format!("`{}`, the default over real networks", live.congestion);
        assert!(document(page).contains(&says), "docs/{page} does not say: {says}");
    }
    let says = format!("`{}`, the default over real networks", live.scheduler);
    assert!(document("concepts.md").contains(&says), "docs/concepts.md does not say: {says}");
    let is_it = |(_, text): &(String, String)| text.contains("\"as by default over real networks\"");
    let (name, text) = scenarios().into_iter().find(is_it).expect("an example in scenario.md");
    let mut engine = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"))[0].flows[0].engine.clone();
    engine.parameters.bbr.seed = live.parameters.bbr.seed;
    assert_eq!(engine, live, "{name}: what people get, but for the draws");
}

fn read(path: &str) -> Result<String, String> {
    Ok(if path.ends_with(".csv") { "time_s,rate_mbps\n0,5\n" } else { "1\n2\n" }.to_owned())
}

/// The scenarios that a file describes, one for each combination of its parameters.
fn parse(text: &str) -> Result<Vec<Scenario>, String> {
    let sweep = Sweep::parse_with(text, "x.toml", &[], &read).map_err(|error| error.to_string())?;
    let scenario = |point| sweep.file(point, &read)?.expand(None);
    (0..sweep.points()).map(scenario).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[test]
fn the_examples_in_the_documentation_are_scenarios() {
    for (name, text) in scenarios() {
        let expanded = parse(&text);
        assert!(expanded.is_ok(), "{name}: {}", expanded.unwrap_err());
    }
}

/// Files that together have every key.
const EVERYTHING: &[&str] = &[
    r#"
        title = "everything"
        seed = 18446744073709551615
        duration = "60s"
        warm_up = "1s"
        sample_every = "1s"
        [defaults.link]
        rate = "unlimited"
        delay = "1ms"
        queue = "unlimited"
        loss = 0
        jitter = "0ms"
        policer = { rate = "1Mbit/s", burst = "10kB" }
        reorder = { share = 0, by = "1ms" }
        duplicate = 0.5
        corrupt = "1/3"
        overhead = "38B"
        [defaults.flow]
        preset = "fairpath"
        congestion = "reno"
        coupling = "always"
        detector = "trendline"
        hold = "10s"
        dips = true
        remedies = { bloat_clamp = "off" }
        scheduler = "min_rtt"
        traffic = "bulk"
        start = "0s"
        start_jitter = "1s"
        stop = "50s"
        transport = { packet = "9000B", header = "0B", ack = "40B", ack_every = 2, ack_delay_max = "0ms" }
        parameters = { initial_window = 10, hystart = true, losses = "by_queue" }
        [[link]]
        name = "one"
        from = "a"
        to = "b"
        one_way = true
        rate = { steps = [["0s", "1Mbit/s"], ["1s", "0bit/s"]], repeat = "2s" }
        delay = "1ms"
        queue = { drop_tail = "2 bdp" }
        loss = { gilbert_elliott = { good_to_bad = 0.1, bad_to_good = "1/3", loss_in_good = 0, loss_in_bad = 1 } }
        jitter = { distribution = "exponential", scale = "1ms", overtake = true }
        reorder = { share = "1%", by = "1ms" }
        duplicate = "1%"
        corrupt = "1%"
        overhead = "0B"
        [[link]]
        from = "a"
        to = "b"
        trace = { mahimahi = "x" }
        queue = { red = { min = "1kB", max = "2kB", max_probability = 0.1, gentle = false, limit = "1MB" } }
        [link.back]
        trace = { csv = "x.csv", repeat = "9s" }
        policer = { rate = "1Mbit/s", burst = "10kB" }
        delay = "1ms"
        reorder = { share = 0.5, by = "1s" }
        duplicate = 0
        corrupt = 0
        queue = { red = { points = [["1 packet", 0], ["2 packets", "5%"]], weight = 0.5, spacing = "uniform" } }
        loss = "1%"
        jitter = "1ms"
        overhead = "1B"
        [[link]]
        name = "three"
        from = "a"
        to = "b"
        rate = "1Mbit/s"
        queue = { codel = { target = "1ms", interval = "2ms", limit = "1s" } }
        policer = { rate = "1Mbit/s", burst = "10kB" }
        [link.back]
        rate = "1kbit/s"
        queue = { fq_codel = { target = "1ms", interval = "2ms", limit = "1s", queues = 8, quantum = "300B" } }
        [[flow]]
        name = "f"
        from = "a"
        to = "b"
        count = 2
        first = 3
        via = [["one"], ["three"]]
        back_via = [["a-b"], ["three"]]
        preset = "fairpath"
        congestion = "lia"
        coupling = "never"
        detector = "trendline"
        hold = "10s"
        dips = true
        remedies = { bloat_clamp = 1.5, probe = true, penalty = true }
        scheduler = "round_robin"
        start = "2s"
        start_jitter = "0s"
        stop = "3s"
        [flow.transport]
        send_buffer = "1MB"
        receive_buffer = "unlimited"
        reinjection = true
        ecn = true
        pacing = false
        [flow.parameters]
        min_window = 1
        min_ssthresh = 2
        alone = "cubic"
        epsilon = 0.5
        cubic = { fast_convergence = false }
        olia = { metric = "l^2/rtt", keeps_threshold = true }
        coupled = { constants = "scalable" }
        ewtcp = { increase = 0.5 }
        wvegas = { backlog_total = 20, slow_start_backlog = 2, backlog_least = 1, drain_at = "never" }
        daimd = { full = 0.7, rearmed = 0.5, window_least = 15, hold_rtts = 2, backoff = 0.5, base = "10s", queue = "seen" }
        coupled_bbr = { cruise = "best_path" }
        concordance = { settle = "2s", noise = "1ms", join = 0.9, stay = 0.4 }
        trendline = { alpha = 0.2, round = "2s", error_max = 0.3, hold = "10s" }
        wavelet = { interval = "2s", threshold = 0.5, correlation_min = 0.6 }
        [flow.parameters.ssc]
        interval = "500ms"
        loss = 0.05
        split_oscillation = 0.2
        split_variability = 0.2
        split_skewness = 0.2
        split_loss = 0.2
        [[flow]]
        name = "g"
        from = "a"
        to = "b"
        paths = 2
        traffic = { size = "1B" }
        [[flow]]
        name = "h"
        from = "a"
        to = "b"
        subflows = 2
        traffic = { constant = "1Mbit/s" }
        [[flow]]
        name = "i"
        from = "a"
        to = "b"
        traffic = { unresponsive = "1Mbit/s" }
        [[flow]]
        name = "j"
        from = "a"
        to = "b"
        traffic = { short_flows = { size = "1B", mean_interval = "1s" } }
        [[flow]]
        name = "k"
        from = "a"
        to = "b"
        traffic = { on_off = { on = "1s", off = "1s", distribution = "fixed" } }
        [[flow]]
        name = "l"
        from = "a"
        to = "b"
        traffic = { media = { rate = "1Mbit/s", frames_per_second = 1, key_frame_every = 1, key_frame_ratio = 1 } }
        [[flow]]
        name = "m"
        from = "a"
        to = "b"
        traffic = { live = { rate = "1Mbit/s", packet = "1kB", deadline = "1s", repair = false, copies = true, sharing = "equal" } }
        [[change]]
        at = "1s"
        link = ["three", "one"]
        up = true
        [[change]]
        at = "1s"
        link = "three"
        direction = "back"
        rate = "unlimited"
        [[change]]
        at = "2s"
        link = "three"
        drop = "none"
        [[change]]
        at = "3s"
        link = "three"
        drop = { larger = "1200B" }
        [[change]]
        at = "4s"
        link = "three"
        drop = { share = "1%" }
        [[change]]
        at = "5s"
        link = "three"
        drop = { every = 10 }
        [[change]]
        at = "6s"
        link = "three"
        drop = { next = 1 }
    "#,
    r#"
        duration = "1s"
        defaults = { link = { trace = "x.csv" } }
        [topology.dumbbell]
        pairs = 2
        [topology.dumbbell.bottleneck]
        rate = "1Mbit/s"
        delay = "1ms"
        queue = "1ms"
        loss = 0.5
        jitter = { scale = "1ms" }
        policer = { rate = "1Mbit/s", burst = "10kB" }
        reorder = { share = 1, by = "1h" }
        duplicate = 1
        corrupt = 1
        overhead = "1B"
        back = { rate = "2Mbit/s" }
        [topology.dumbbell.access]
        trace = "x"
        [[flow]]
        name = "f"
        matrix = "random"
        share = 0.5
        [[flow]]
        name = "g"
        matrix = "permutation"
        share = "rest"
    "#,
    r#"
        duration = "1s"
        topology = { parallel = { count = 2, link = { rate = "1Mbit/s" } } }
        flow = [{ name = "f", from = "client", to = "server", paths = 2, weights = [3, 1], costs = [0, 5], caps = ["unlimited", "5Mbit/s"], quotas = ["unlimited", "20MB"] }]
    "#,
    r#"
        duration = "1s"
        topology = { chain = { hops = 2, link = { rate = "1Mbit/s" } } }
        flow = [{ name = "f", from = "n0", to = "n2" }]
    "#,
    r#"
        duration = "1s"
        topology = { fat_tree = { k = 2, link = { rate = "1Mbit/s" } } }
        flow = [{ name = "f", from = "h0", to = "h1" }]
    "#,
    r#"
        duration = "1s"
        topology = { oversubscribed_fat_tree = { k = 2, ratio = 3, link = { rate = "1Mbit/s" } } }
        flow = [{ name = "f", from = "h0", to = "h5" }]
    "#,
    // A parameter for each kind of value.
    r#"
        title = "Over ${ends}"
        seed = "${whole}"
        duration = "${time}"
        [[link]]
        from = "a"
        to = "${ends}"
        one_way = "${flag}"
        rate = "${whole}Mbit/s"
        queue = { red = { min = "${room}", max = "9 packets", weight = "${number}" } }
        loss = "${number}"
        overhead = "${size}"
        corrupt = "${whole}0%"
        [[link]]
        from = "${ends}"
        to = "a"
        one_way = true
        rate = "1Mbit/s"
        [[flow]]
        name = "f"
        from = "a"
        to = "${ends}"
        via = [["a-${ends}"]]
        back_via = ["${ends}-a"]
        congestion = "${word}"
        transport = { ecn = "${flag}" }
        traffic = { media = { rate = "${whole} Mbit/s", key_frame_ratio = "${whole}" } }
        parameters = { epsilon = "${number}", min_window = "${whole}" }
        [sweep]
        whole = [1, 2]
        time = ["1s", "2s"]
        ends = "b"
        flag = [true]
        room = "3 packets"
        number = [0.5, 1]
        size = "1B"
        word = ["reno", "bbr3"]
    "#,
];

/// The reader refuses a key that it knows but does not read, so here it reads every key there is.
#[test]
fn every_key_of_the_schema_is_read_and_every_scenario_keeps_the_schema() {
    let schema: Value = serde_json::from_str(&schema::json()).unwrap();
    let mut seen = BTreeSet::new();
    let all = EVERYTHING.iter().map(|text| ("everything".to_owned(), (*text).to_owned())).chain(scenarios());
    for (name, text) in all {
        let expanded = parse(&text);
        assert!(expanded.is_ok(), "{name}: {}", expanded.unwrap_err());
        let value: Value = toml::from_str(&text).unwrap();
        if let Err(error) = Checker::new(&schema).check("file", &schema, &value, &mut seen) {
            panic!("{name}: {error}");
        }
    }
    for (table, definition) in schema["$defs"].as_object().unwrap().iter().chain([(&"file".to_owned(), &schema)]) {
        for key in definition["properties"].as_object().into_iter().flat_map(|keys| keys.keys()) {
            assert!(seen.contains(&(table.clone(), key.clone())), "{key} of {table} is in no test");
        }
    }
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_reader() {
    let schema: Value = serde_json::from_str(&schema::json()).unwrap();
    let good = EVERYTHING[0];
    for (part, instead) in [
        ("seed = ", "sede = "),
        ("duration = \"60s\"", ""),
        ("duration = \"60s\"", "duration = 60"),
        ("rate = \"1Mbit/s\"", "rate = \"1Mbps\""),
        ("loss = \"1%\"", "loss = \"1 %%\""),
        ("loss = 0\n", "loss = 2\n"),
        ("queue = \"unlimited\"", "queue = \"limited\""),
        ("drop_tail", "droptail"),
        ("{ drop_tail = \"2 bdp\" }", "{}"),
        ("count = 2", "count = 0"),
        ("coupling = \"never\"", "coupling = \"ever\""),
        ("one_way = true", "one_way = 1"),
        ("key_frame_ratio = 1", "key_frame_ratio = 0"),
        ("distribution = \"fixed\"", "distribution = \"odd\""),
        ("via = [[\"one\"], [\"three\"]]", "via = 5"),
        ("name = \"three\"", "name = \"\""),
        ("good_to_bad = 0.1, ", ""),
        ("distribution = \"exponential\"", "distribution = \"gamma\""),
        ("scale = \"1ms\"", "scale = 1"),
        ("overtake = true", "overtake = 1"),
        ("reorder = { share = \"1%\", by = \"1ms\" }", "reorder = { share = \"1%\" }"),
        ("duplicate = 0.5", "duplicate = 1.5"),
        ("corrupt = \"1/3\"", "corrupt = true"),
        ("drop = \"none\"", "drop = \"some\""),
        ("every = 10", "every = 0"),
        ("every = 10", "every = \"${n\""),
        ("every = 10", "every = \"n}\""),
    ] {
        assert!(good.contains(part), "{part:?}");
        let bad = good.replacen(part, instead, 1);
        assert!(parse(&bad).is_err(), "the reader takes {instead:?}");
        let value: Value = toml::from_str(&bad).unwrap();
        let checked = Checker::new(&schema).check("file", &schema, &value, &mut BTreeSet::new());
        assert!(checked.is_err(), "the schema takes {instead:?}");
    }
}

#[test]
fn what_the_schema_refuses_of_a_sweep_is_refused_by_the_reader() {
    let schema: Value = serde_json::from_str(&schema::json()).unwrap();
    let good = EVERYTHING[EVERYTHING.len() - 1];
    for (part, instead) in [
        ("whole = [1, 2]", "whole = []"),
        ("whole = [1, 2]", "whole = [[1]]"),
        ("whole = [1, 2]", "whole = { one = 1 }"),
        ("whole = [1, 2]", "whole = [1, 2]\n\"a b\" = 1"),
        ("whole = [1, 2]", "whole = [1, 2]\n1st = 1"),
        ("[sweep]", "[[sweep]]"),
        ("min_window = \"${whole}\"", "min_window = \"${whole\""),
        ("min_window = \"${whole}\"", "min_window = \"${whole}0\""),
        ("ecn = \"${flag}\"", "ecn = \"not ${flag}\""),
    ] {
        assert!(good.contains(part), "{part:?}");
        let bad = good.replacen(part, instead, 1);
        assert!(parse(&bad).is_err(), "the reader takes {instead:?}");
        let value: Value = toml::from_str(&bad).unwrap();
        let checked = Checker::new(&schema).check("file", &schema, &value, &mut BTreeSet::new());
        assert!(checked.is_err(), "the schema takes {instead:?}");
    }
}

/// Holds values against a schema. Only the keywords that our schema uses are known; another one
/// fails, so that nothing in it goes unchecked.
struct Checker<'s> {
    root: &'s Value,
}

type Seen = BTreeSet<(String, String)>;

impl<'s> Checker<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root }
    }

    /// Whether `value` keeps `schema`, the definition `name`; notes which keys of which definitions
    /// it has.
    fn check(&self, name: &str, schema: &Value, value: &Value, seen: &mut Seen) -> Result<(), String> {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            let number = value.as_f64();
            let kept = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" => true,
                "$ref" => {
                    let pointer = rule.as_str().unwrap().strip_prefix('#').expect("a local reference");
                    let definition = pointer.rsplit('/').next().unwrap();
                    self.check(definition, self.root.pointer(pointer).expect("a definition"), value, seen)?;
                    true
                }
                "anyOf" => rule.as_array().unwrap().iter().any(|one| {
                    let mut also = seen.clone();
                    let kept = self.check(name, one, value, &mut also).is_ok();
                    if kept {
                        *seen = also;
                    }
                    kept
                }),
                "type" => match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    other => return Err(format!("the test does not know the type {other}")),
                },
                "enum" => rule.as_array().unwrap().contains(value),
                "pattern" => {
                    value.as_str().is_some_and(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text))
                }
                "propertyNames" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(key, _)| self.check(name, rule, &Value::from(key.as_str()), seen).is_ok()),
                "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
                "minLength" => value.as_str().is_some_and(|text| !text.is_empty()),
                "minimum" => number >= rule.as_f64(),
                "maximum" => number <= rule.as_f64(),
                "exclusiveMinimum" => number > rule.as_f64(),
                "minProperties" => value.as_object().is_some_and(|table| table.len() as u64 >= rule.as_u64().unwrap()),
                "maxProperties" => value.as_object().is_some_and(|table| table.len() as u64 <= rule.as_u64().unwrap()),
                "required" => rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
                "additionalProperties" if rule.is_object() => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(_, inner)| self.check(name, rule, inner, seen).is_ok()),
                "additionalProperties" => {
                    let known = |key: &String| schema["properties"].get(key).is_some();
                    value.as_object().is_none_or(|table| table.keys().all(known))
                }
                "items" => {
                    for element in value.as_array().into_iter().flatten() {
                        self.check(name, rule, element, seen)?;
                    }
                    true
                }
                "properties" => {
                    for (key, inner) in rule.as_object().unwrap() {
                        if let Some(field) = value.get(key) {
                            seen.insert((name.to_owned(), key.clone()));
                            self.check(name, inner, field, seen).map_err(|error| format!("{key}: {error}"))?;
                        }
                    }
                    true
                }
                other => return Err(format!("the test does not know the keyword {other}")),
            };
            if !kept {
                return Err(format!("{value} breaks {keyword} {rule}"));
            }
        }
        Ok(())
    }
}

proptest! {
    /// A unit or a word that is wrong is refused by both, a right one by neither.
    #[test]
    fn the_patterns_of_the_schema_are_those_of_the_reader(text in "[0-9]{1,3}(\\.[0-9]{0,2})? ?(B|kB|KB|ms|m|s|Mbit/s|mbit/s|packets|bdp|%|)|unlimited|none") {
        let schema: Value = serde_json::from_str(&schema::json()).unwrap();
        let matches = |definition: &str| {
            Checker::new(&schema).check("", &schema["$defs"][definition], &Value::from(text.clone()), &mut Seen::new()).is_ok()
        };
        let takes = |key: &str| {
            let values = if key == "rate" { String::new() } else { "rate = \"1Mbit/s\"\n".to_owned() };
            let file = format!(
                "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n{values}{key} = {text:?}\n\
                 [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
            );
            // A number that is too large is written right.
            Sweep::parse_with(&file, "x.toml", &[], &read).map_or_else(|error| error.to_string().contains("out of range"), |_| true)
        };
        prop_assert_eq!(matches("time"), takes("delay"));
        prop_assert_eq!(matches("size"), takes("overhead"));
        prop_assert_eq!(matches("room"), takes("queue"));
    }
}
