//! The drive test: pairs of cellular links as they were recorded, each with a deep queue.
//!
//! The paper's has 51 Mbit/s where the two links have 30 each [Luebben2019, slide 1]; its recordings are not published.
//! Those used here are of others, and are not part of the repository: without them the tests say so and pass.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairpath_core::{PathId, Timestamp};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, MahimahiTrace, QueueConfig};
use fairpath_scenario::{PathRoute, Remedies};
use fairpath_sim::{FlowIndex, Recorder, run};

use crate::common::{Net, ms};

pub(crate) const OPERATORS: [&str; 3] = ["ATT-LTE-driving-2016", "Verizon-LTE-short", "TMobile-LTE-short"];

pub(crate) const PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// In seconds.
pub(crate) const DURATION: u64 = 60;

pub(crate) const NONE: Remedies = Remedies { bloat_clamp: None, probe: false, penalty: false };

/// A recording; `None` where there is none.
pub(crate) fn recorded(operator: usize, direction: &str) -> Option<MahimahiTrace> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let path: PathBuf = folder.join(format!("{}.{direction}", OPERATORS[operator]));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: there is no recording {}", path.display());
        return None;
    };
    Some(MahimahiTrace::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The sender: the congestion control (`auto` for our default), the scheduler and the remedies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender(pub(crate) &'static str, pub(crate) &'static str, pub(crate) Remedies);

/// The round-trip times of a run, in ms.
#[derive(Default)]
pub(crate) struct RoundTrips(Vec<f64>);

impl Recorder for RoundTrips {
    fn on_rtt(&mut self, _: Timestamp, _: FlowIndex, _: PathId, rtt: Duration) {
        self.0.push(rtt.as_secs_f64() * 1e3);
    }
}

impl RoundTrips {
    /// The 95th percentile.
    pub(crate) fn slowest(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0[self.0.len() * 95 / 100]
    }
}

/// The goodput in Mbit/s, and the 95th percentile of the round-trip times in ms.
pub(crate) fn drive(traces: &[MahimahiTrace], Sender(congestion, scheduler, remedies): Sender) -> (f64, f64) {
    let mut net = Net::new(DURATION, 1);
    net.scenario.sample_every = ms(0);
    let routes: Vec<PathRoute> = traces
        .iter()
        .map(|trace| {
            let there = LinkConfig::new(trace.clone()).delay(ms(25)).queue(QueueConfig::packets(3_000));
            PathRoute { forward: vec![net.link(there)], backward: vec![net.link(LinkConfig::pure_delay(ms(25)))] }
        })
        .collect();
    let flow = net.flow("transfer", "lia", &routes);
    let plain = match congestion {
        "auto" => EngineConfig::live(),
        name => EngineConfig { congestion: name.into(), coupling: Coupling::Never, ..EngineConfig::default() },
    };
    flow.engine = EngineConfig { scheduler: scheduler.into(), ..plain };
    flow.remedies = remedies;
    // 4 MB of memory, of which 0.63 are payload by Linux's accounting.
    flow.transport.send_buffer = Some(fairpath_core::ByteCount::from_kilobytes(2_520));
    let mut round_trips = RoundTrips::default();
    let outcome = run(&net.scenario, &mut round_trips).expect("it runs");
    (outcome.flows[0].goodput.as_mbps_f64(), round_trips.slowest())
}

pub(crate) fn traces(pair: [usize; 2], direction: &str) -> Option<[MahimahiTrace; 2]> {
    let [a, b] = pair.map(|operator| recorded(operator, direction));
    Some([a?, b?])
}
