//! The pairs of links of `scenarios/profiles/` as wires.

use std::path::Path;

use fairpath_core::ByteCount;
use fairpath_faults::Wire;
use fairpath_net::{LossConfig, QueueConfig, QueueLimit};
use fairpath_scenario::{Scenario, ScenarioFile};

/// The scenario of that name.
pub(crate) fn scenario(name: &str, seed: u64) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/profiles/{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = ScenarioFile::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    file.expand(Some(seed)).unwrap_or_else(|error| panic!("{error}"))
}

/// Its two links.
pub(crate) fn pair(name: &str) -> [Wire; 2] {
    let scenario = scenario(name, 1);
    let flow = &scenario.flows[0];
    let wire = |path: usize| {
        let link = &scenario.links[flow.paths[path].forward[0].0 as usize].config;
        let QueueConfig::DropTail(QueueLimit::Packets(packets)) = link.queue else { panic!("{:?}", link.queue) };
        let loss = match link.loss {
            LossConfig::None => 0.0,
            LossConfig::Random { probability } => probability,
            ref other => panic!("{other:?}"),
        };
        // A packet is 1,500 bytes there.
        let queue = ByteCount::new(packets as u64 * 1_500);
        Wire { rate: link.rate.mean().expect("a rate"), delay: link.delay, queue, loss, jitter: link.jitter }
    };
    [wire(0), wire(1)]
}
