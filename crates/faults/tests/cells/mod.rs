//! Networks shared with other flows, over the real stack in virtual time.
//!
//! The results are the rate of two paths relative to one flow of CUBIC in their place, and the
//! engine's verdict on the bottleneck.
#![allow(dead_code)]

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_faults::Crowd;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::{Coupling, EngineConfig};
use rayon::prelude::*;

/// How often is looked at what an engine says.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// A network with its flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Whether both paths go over the first link.
    pub(crate) is_shared: bool,
    pub(crate) mbps: [u64; 2],
    pub(crate) queue_ms: u64,
    /// Without queues.
    pub(crate) round_trip_ms: u64,
    /// A flow over each link, or so many.
    pub(crate) rival: Option<&'static str>,
    pub(crate) rivals: usize,
}

/// The outcome of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Got {
    pub(crate) mbps: f64,
    /// When both paths were first one group, after both were open, and for which part of the time they were.
    pub(crate) first: Option<Duration>,
    pub(crate) together: f64,
}

/// A flow that takes every loss for congestion, as those of today do.
pub(crate) fn flow(congestion: &str) -> EngineConfig {
    let mut engine = EngineConfig { congestion: congestion.into(), coupling: Coupling::Never, ..EngineConfig::live() };
    // Every one, which is what it is where nothing is said.
    engine.parameters.aimd.losses = Default::default();
    engine
}

impl Cell {
    pub(crate) fn name(&self) -> String {
        let Self { is_shared, mbps: [first, second], queue_ms, round_trip_ms, rival, rivals } = *self;
        let links = if is_shared { format!("one link of {first}") } else { format!("links of {first} and {second}") };
        let beside = match (rival, rivals) {
            (None, _) => "nobody".to_owned(),
            (Some(rival), 1) => rival.to_owned(),
            (Some(rival), count) => format!("{count} {rival}"),
        };
        format!("{links} Mbit/s, round trips of {round_trip_ms} ms, queues of {queue_ms} ms, beside {beside}")
    }

    /// The outcome of a connection over these paths.
    pub(crate) fn run(
        &self,
        engine: &EngineConfig,
        over: &[usize],
        seed: u64,
        [warm_up, measured]: [Duration; 2],
    ) -> Got {
        let mut crowd = Crowd::new(seed);
        let queue = QueueConfig::sojourn(Duration::from_millis(self.queue_ms));
        let mut link = |at: usize| {
            let rate = Bitrate::from_mbps(self.mbps[at]);
            crowd.link(&format!("bottleneck {at}"), &LinkConfig::new(rate).queue(queue.clone()))
        };
        let first = link(0);
        let links = if self.is_shared { vec![first] } else { vec![first, link(1)] };
        let round_trip = Duration::from_millis(self.round_trip_ms);
        // The order of starts, and their distance, differ from seed to seed.
        let pause = Duration::from_millis(173 * (seed % 5));
        let rivals = |crowd: &mut Crowd| {
            let rival = self.rival.map(flow);
            let all = rival.iter().flat_map(|rival| core::iter::repeat_n(rival, self.rivals));
            all.for_each(|rival| links.iter().for_each(|link| _ = crowd.join(rival, &[(*link, round_trip)])));
        };
        if seed.is_multiple_of(2) {
            rivals(&mut crowd);
            crowd.run_for(pause);
        }
        let paths: Vec<_> = over.iter().map(|path| (links[path % links.len()], round_trip)).collect();
        let ours = crowd.join(engine, &paths);
        if !seed.is_multiple_of(2) {
            crowd.run_for(pause);
            rivals(&mut crowd);
        }
        let (mut said, mut opened, mut samples) = (Got::default(), None, 0u32);
        let mut before = 0;
        while crowd.elapsed() < warm_up + measured {
            crowd.run_for(LOOK);
            if crowd.elapsed() <= warm_up {
                before = crowd.received(ours);
            }
            if opened.is_none() && crowd.paths(ours) == over.len() {
                opened = Some(crowd.elapsed());
            }
            if let Some(opened) = opened {
                let is_together = crowd.is_together(ours);
                samples += 1;
                said.together += f64::from(u8::from(is_together));
                said.first = said.first.or(is_together.then(|| crowd.elapsed() - opened));
            }
        }
        assert_eq!(crowd.violation(), None, "{}, seed {seed}", self.name());
        said.together /= f64::from(samples.max(1));
        said.mbps = (crowd.received(ours) - before) as f64 * 8e-6 / measured.as_secs_f64();
        said
    }

    /// The rate of one CUBIC flow in the connection's place, or the sum of one on each separate
    /// link.
    pub(crate) fn reference(&self, seed: u64, times: [Duration; 2]) -> f64 {
        let places: &[usize] = if self.is_shared { &[0] } else { &[0, 1] };
        places.iter().map(|place| self.run(&flow("cubic"), &[*place], seed, times).mbps).sum()
    }
}

/// As in the lab's `default/scene`.
pub(crate) const SHARED: Cell =
    Cell { is_shared: true, mbps: [20, 20], queue_ms: 100, round_trip_ms: 40, rival: Some("cubic"), rivals: 1 };
/// The one that `fairpath demo` shows over real sockets.
pub(crate) const DEMO: Cell = Cell { queue_ms: 20, round_trip_ms: 20, ..SHARED };
pub(crate) const SEPARATE: Cell = Cell { is_shared: false, ..SHARED };

pub(crate) const CELLS: [Cell; 13] = [
    DEMO,
    Cell { queue_ms: 25, rival: Some("reno"), ..SHARED },
    Cell { rival: Some("reno"), ..SHARED },
    Cell { queue_ms: 400, rival: Some("reno"), ..SHARED },
    Cell { queue_ms: 25, ..SHARED },
    SHARED,
    Cell { queue_ms: 400, ..SHARED },
    Cell { queue_ms: 25, rival: Some("bbr3"), ..SHARED },
    Cell { rival: Some("bbr3"), ..SHARED },
    Cell { rival: None, ..SHARED },
    SEPARATE,
    Cell { rival: None, ..SEPARATE },
    Cell { mbps: [20, 5], ..SEPARATE },
];

/// The ratios to the reference of the same seed, over these seeds, and the outcomes of the
/// connection.
pub(crate) fn ratios(cell: &Cell, seeds: &[u64], times: [Duration; 2]) -> (Vec<f64>, Vec<Got>) {
    let runs = seeds.par_iter().map(|seed| {
        let got = cell.run(&EngineConfig::live(), &[0, 1], *seed, times);
        (got.mbps / cell.reference(*seed, times), got)
    });
    runs.collect::<Vec<_>>().into_iter().unzip()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
