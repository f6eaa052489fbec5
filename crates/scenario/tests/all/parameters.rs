//! Parameters of algorithms reach the engine, and every mistake is answered like any other.

use core::time::Duration;

use fairpath_engine::{Alone, BaseRtt, CoupledConstants, Cruise, EngineConfig, LongestQueue, Olia, PathMetric};
use fairpath_scenario::{ScenarioFile, schema};

fn file(defaults: &str, parameters: &str) -> String {
    format!(
        "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\n[[flow]]\nname = \"f\"\n\
         from = \"a\"\nto = \"b\"\nparameters = {{ {parameters} }}\n\
         [defaults.flow]\nparameters = {{ {defaults} }}\n"
    )
}

fn engine(defaults: &str, parameters: &str) -> Result<EngineConfig, String> {
    let parsed = ScenarioFile::parse(&file(defaults, parameters), "x.toml");
    let scenario = parsed.and_then(|file| file.expand(None)).map_err(|error| error.to_string())?;
    let mut engine = scenario.flows[0].engine.clone();
    // Drawn for each flow.
    engine.parameters.bbr.seed = 0;
    Ok(engine)
}

#[test]
fn nothing_said_is_the_published_values() {
    assert_eq!(engine("", "").unwrap(), EngineConfig::default());
}

/// The reference's values for keys that are not given are the values that hold.
#[test]
fn the_defaults_of_the_reference_are_those_of_the_algorithms() {
    let tables = ["cubic", "olia", "coupled", "wvegas", "daimd", "coupled_bbr", "concordance", "wavelet"];
    let mut seen = 0;
    for (name, table) in schema::reference().into_iter().filter(|(name, _)| tables.contains(name)) {
        for row in table.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
            let (key, usual) = (cells[0].trim_matches('`'), cells[2].trim_matches('`'));
            let set = format!("{name} = {{ {key} = {usual} }}");
            assert_eq!(engine("", &set).as_ref(), Ok(&EngineConfig::default()), "{set}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn what_is_said_reaches_the_engine() {
    let set = "alone = \"cubic\", cubic = { fast_convergence = false }, olia = { metric = \"l^2/rtt\", keeps_threshold = true }, \
        coupled = { constants = \"scalable\" }, ewtcp = { increase = 0.25 }, \
        wvegas = { backlog_total = 20, drain_at = \"never\" }, \
        daimd = { full = 0.7, window_least = 15, hold_rtts = 2, base = \"10s\", queue = \"seen\" }, \
        coupled_bbr = { cruise = \"best_path\" }, concordance = { noise = \"2ms\", join = 0.9 }, \
        trendline = { alpha = 0.3, hold = \"10s\" }, ssc = { loss = 0.05 }, wavelet = { correlation_min = 0.6 }";
    let mut expected = EngineConfig::default();
    expected.parameters.alone = Alone::Cubic;
    expected.parameters.cubic.fast_convergence = false;
    expected.parameters.olia = Olia { metric: PathMetric::LSqOverRtt, keeps_threshold: true };
    expected.parameters.coupled.constants = CoupledConstants::Scalable;
    expected.parameters.ewtcp.increase = Some(0.25);
    expected.parameters.wvegas.backlog_total = 20.0;
    expected.parameters.wvegas.drain_at = f64::INFINITY;
    let daimd = &mut expected.parameters.daimd;
    (daimd.full, daimd.window_least, daimd.hold_rtts) = (0.7, 15.0, 2.0);
    (daimd.base, daimd.queue) = (BaseRtt::TenSeconds, LongestQueue::Seen);
    expected.parameters.cruise = Cruise::BestPath;
    (expected.detection.concordance.noise_ms, expected.detection.concordance.join) = (2.0, 0.9);
    expected.detection.trendline.alpha = Some(0.3);
    expected.detection.trendline.hold = Some(Duration::from_secs(10));
    expected.detection.summary.loss = Some(0.05);
    expected.detection.wavelet.correlation_min = 0.6;
    assert_eq!(engine("", set).unwrap(), expected);
    assert_eq!(engine(set, "").unwrap(), expected);
}

#[test]
fn a_flow_replaces_single_values_of_the_defaults() {
    let both = engine("daimd = { full = 0.7, backoff = 0.5 }, min_window = 1", "daimd = { full = 0.8 }").unwrap();
    let daimd = both.parameters.daimd;
    assert_eq!((daimd.full, daimd.backoff, both.parameters.aimd.min_window_datagrams), (0.8, 0.5, 1));
}

#[test]
fn every_mistake_is_named_with_its_place_and_with_what_would_be_right() {
    for (set, said) in [
        (
            "daimd = { ful = 0.7 }",
            "26: flow.parameters.daimd.ful: no such key (is \"full\" meant?); the keys here are full, rearmed, \
             window_least, hold_rtts, backoff, base, queue",
        ),
        (
            "daimd = { full = 1.5 }",
            "33: flow.parameters.daimd.full: 1.5 is out of range; it must be above 0 and up to 1",
        ),
        ("daimd = { rearmed = 0.9 }", "36: flow.parameters.daimd.rearmed: rearmed = 0.9 is not below full = 0.9"),
        ("daimd = { full = 0.5 }", "33: flow.parameters.daimd.rearmed: rearmed = 0.5 is not below full = 0.5"),
        (
            "olia = { metric = \"l/rtt\" }",
            "34: flow.parameters.olia.metric: there is no metric \"l/rtt\" (is \"l/rtt^2\" meant?); known are l/rtt^2, l^2/rtt",
        ),
        (
            "wvegas = { drain_at = 1 }",
            "38: flow.parameters.wvegas.drain_at: 1 is out of range; it must be above 1 and up to 1000",
        ),
        (
            "trendline = { round = \"1ns\" }",
            "38: flow.parameters.trendline.round: \"1ns\" is out of range; it must be at least 10ms",
        ),
        ("concordance = { join = 0.4 }", "39: flow.parameters.concordance.stay: stay = 0.5 is not at most join = 0.4"),
    ] {
        assert_eq!(engine("", set).unwrap_err(), format!("x.toml:10:{said}"), "{set}");
    }
}
