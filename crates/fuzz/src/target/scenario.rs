//! Scenario files, read and expanded.

use fairpath_net::Network;
use fairpath_scenario::{Scenario, ScenarioError, ScenarioFile};

use super::{Seed, Target};
use crate::said;

pub(crate) static TARGET: Target = Target {
    name: "scenario",
    about: "scenario files: links, routes, flows and changes",
    check,
    seeds,
    words: &[
        "duration = \"1s\"\n",
        "[[link]]\n",
        "[[flow]]\n",
        "[[change]]\n",
        "[defaults.link]\n",
        "[topology.fat_tree]\nk = 2\n",
        "[topology.dumbbell]\n",
        "from = \"a\"\n",
        "to = \"b\"\n",
        "name = \"x{i}\"\n",
        "count = ",
        "paths = ",
        "via = [",
        "rate = \"1Mbit/s\"\n",
        "rate = { steps = [[\"0s\", \"1bit/s\"]] }\n",
        "trace = \"a.csv\"\n",
        "queue = { red = { min = \"1ms\" } }\n",
        "queue = \"1 bdp\"\n",
        "back = {",
        "matrix = \"permutation\"\n",
        "\"unlimited\"",
        "99999999999999999999",
        "1e400",
        "\u{202e}",
    ],
    also: &["scenarios"],
};

/// The limits of the format: on flows, and on links on all their paths together.
const FLOWS_MAX: usize = 100_000;
const HOPS_MAX: usize = 20_000_000;

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let found = expanded(&text);
    match &found {
        Ok(scenario) => {
            holds_together(scenario);
            let again = expanded(&text).expect("it could be read before");
            assert_eq!(shown(&again), shown(scenario), "the same file gives the same scenario");
        }
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines + 1).contains(&error.line), "{error}");
            let line = text.lines().nth(error.line - 1).unwrap_or_default();
            assert!((1..=line.chars().count() + 2).contains(&error.column), "{error}");
            assert!(said::words(error, 4_000).starts_with("x.toml:"), "{error}");
        }
    }
}

/// Reads a file that may name other files, some of which are there.
fn expanded(text: &str) -> Result<Scenario, ScenarioError> {
    let read = |path: &str| match path.len() % 4 {
        0 => Err("there is no such file".to_owned()),
        1 => Ok("time_s,rate_mbps\n0,5\n3,1\n".to_owned()),
        2 => Ok("1\n2\n2\n".to_owned()),
        _ => Ok(path.to_owned()),
    };
    ScenarioFile::parse_with(text, "x.toml", &read).and_then(|file| file.expand(None))
}

/// A scenario in words, unless it is a large one.
fn shown(scenario: &Scenario) -> Option<String> {
    (scenario.links.len() + scenario.flows.len() < 100).then(|| format!("{scenario:?}"))
}

fn holds_together(scenario: &Scenario) {
    assert!((1..=FLOWS_MAX).contains(&scenario.flows.len()));
    let mut hops = 0;
    for flow in &scenario.flows {
        assert!(!flow.paths.is_empty());
        for way in flow.paths.iter().flat_map(|path| [&path.forward, &path.backward]) {
            assert!(!way.is_empty() && way.iter().all(|link| (link.0 as usize) < scenario.links.len()));
            hops += way.len();
        }
        assert!(flow.start < scenario.duration && flow.stop.is_none_or(|stop| stop > flow.start));
    }
    assert!(hops <= 2 * HOPS_MAX);
    let mut network: Network<u64> = Network::new(scenario.seed);
    for link in &scenario.links {
        assert!(network.add_link(&link.name, &link.config).is_ok(), "{}", link.name);
    }
    assert!(scenario.changes.is_sorted_by_key(|change| change.at));
}

fn seeds() -> Vec<Seed> {
    let two_links = "duration = \"10s\"\n\n[[link]]\nname = \"wifi\"\nfrom = \"server\"\nto = \"phone\"\nrate = \"30Mbit/s\"\n\
        delay = \"10ms\"\n\n[[link]]\nname = \"lte\"\nfrom = \"server\"\nto = \"phone\"\nrate = \"20Mbit/s\"\ndelay = \"30ms\"\n\n\
        [[flow]]\nname = \"download\"\nfrom = \"server\"\nto = \"phone\"\npaths = 2\n";
    let traces = "duration = \"10s\"\nlink = [{ from = \"a\", to = \"b\", trace = \"walks.csv\" }]\n\
        flow = [{ name = \"bulk\", from = \"a\", to = \"b\" }]\n";
    vec![
        Seed::new("two_links", two_links),
        Seed::new("traces", traces),
        Seed::new("misspelt", two_links.replace("delay", "dealy")),
        Seed::new("not_toml", &two_links[..two_links.len() - 3]),
    ]
}
