//! Transfers over links that reorder.
#![allow(dead_code)]

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{Impairments, LinkConfig, QueueConfig, Reorder};
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use fairpath_sim::{Outcome, Simulation};

use crate::common::{Net, ms};

/// Runs it; every packet must be accounted for, and data delivered once and in order.
pub(crate) fn checked(scenario: &Scenario) -> Outcome {
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run(&mut ()).unwrap();
    simulation.check().unwrap();
    simulation.outcome()
}

pub(crate) fn reordering(share: f64, by: Duration) -> Impairments {
    Impairments { reorder: (share > 0.0).then_some(Reorder { share, by }), ..Impairments::default() }
}

/// How long 8 MB take over paths of 100 Mbit/s together and 40 ms there and back, where a share of
/// the packets is held back.
pub(crate) fn eight_megabytes(congestion: &str, paths: u64, impairments: Impairments) -> (Duration, Outcome) {
    let mut net = Net::new(300, 1);
    let paths: Vec<PathRoute> = (0..paths)
        .map(|_| {
            let rate = Bitrate::from_mbps(100 / paths);
            let config = LinkConfig::new(rate).delay(ms(20)).queue(QueueConfig::sojourn(ms(40)));
            let there = net.link(config.impairments(impairments));
            let back = net.link(LinkConfig::pure_delay(ms(20)));
            PathRoute { forward: vec![there], backward: vec![back] }
        })
        .collect();
    net.flow("download", congestion, &paths).traffic = Traffic::Finite { size: ByteCount::new(8_000_000) };
    let outcome = checked(&net.scenario);
    let took = outcome.flows[0].completions.first().copied().unwrap_or(Duration::MAX);
    (took, outcome)
}
