//! Table 2: the two sides of a dumbbell, offline. Flows of one kind run, and detectors listen to
//! pairs of them, one from each side.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, DelaySample, Lost, PathId, Timestamp};
use fairpath_net::{QueueConfig, QueueLimit, RedConfig};
use fairpath_sbd::{Concordance, Detector, Persistence, Summary, SummaryConfig, Trendline, TrendlineConfig};
use fairpath_sim::{FlowIndex, Recorder, SimError};
use serde::{Deserialize, Serialize};

use super::network::{Network, Wire};
use crate::{bdp_packets, engine, ms};

/// The probability of a drop where the average reaches the upper threshold.
const RED_PROBABILITY: f64 = 0.02;

/// A row of the table: links in Mbit/s and one-way ms, RED's thresholds and limit in ms of queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    l1: (u64, u64),
    l2: (u64, u64),
    l3: (u64, u64),
    l7: (u64, u64),
    l10: (u64, u64),
    red: [u64; 3],
    flows_each: u32,
}

pub(super) const ROWS: [Row; 5] = [
    Row {
        name: "E1",
        l1: (500, 25),
        l2: (40, 20),
        l3: (500, 20),
        l7: (500, 50),
        l10: (500, 50),
        red: [100, 120, 140],
        flows_each: 15,
    },
    Row {
        name: "E2",
        l1: (500, 25),
        l2: (60, 20),
        l3: (500, 30),
        l7: (500, 50),
        l10: (500, 50),
        red: [100, 120, 140],
        flows_each: 15,
    },
    Row {
        name: "E3",
        l1: (500, 10),
        l2: (90, 20),
        l3: (500, 10),
        l7: (500, 20),
        l10: (500, 20),
        red: [100, 140, 200],
        flows_each: 30,
    },
    Row {
        name: "E4",
        l1: (500, 10),
        l2: (120, 20),
        l3: (500, 10),
        l7: (500, 50),
        l10: (500, 50),
        red: [100, 200, 220],
        flows_each: 30,
    },
    Row {
        name: "E5",
        l1: (500, 10),
        l2: (120, 20),
        l3: (500, 10),
        l7: (500, 30),
        l10: (500, 10),
        red: [100, 120, 150],
        flows_each: 30,
    },
];

impl Row {
    /// A network that is none of the table's, by its number: what is chosen is chosen on these.
    pub(super) fn training(number: usize) -> Self {
        let of = |levels: &[u64], stride: usize| levels[number / stride % levels.len()];
        Self {
            name: "training",
            l1: (500, of(&[5, 15, 30], 1)),
            l2: (of(&[20, 30, 50, 75, 100, 150], 1), of(&[10, 20, 40], 2)),
            l3: (500, of(&[10, 40, 20], 2)),
            l7: (500, of(&[20, 60, 40], 3)),
            l10: (500, of(&[60, 10, 30], 1)),
            red: [100, 120, 140],
            flows_each: of(&[8, 12, 20, 40], 1) as u32,
        }
    }
}

/// The bottleneck's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    DropTail,
    Red,
}

/// A row of the table with a queue and a congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) row: Row,
    pub(super) queue: Queue,
    pub(super) tcp: &'static str,
    /// Whether the two sides have a bottleneck each, like the one that is shared otherwise.
    pub(super) separate: bool,
    pub(super) duration: Duration,
}

/// The paper's numbers 1 to 4.
pub(super) const COMBINATIONS: [(Queue, &str); 4] =
    [(Queue::DropTail, "cubic"), (Queue::DropTail, "reno"), (Queue::Red, "cubic"), (Queue::Red, "reno")];

impl Case {
    /// A row with each of the four combinations.
    pub(super) fn all(row: Row, duration: Duration) -> [Self; 4] {
        COMBINATIONS.map(|(queue, tcp)| Self { row, queue, tcp, separate: false, duration })
    }

    pub(super) fn queue_name(&self) -> &'static str {
        match self.queue {
            Queue::DropTail => "drop-tail",
            Queue::Red => "RED",
        }
    }

    /// The queue and the congestion control.
    pub(super) fn combination(&self) -> String {
        format!("{}, {}", self.queue_name(), self.tcp.to_uppercase())
    }

    /// How many flows go from n1 to n7; as many, numbered behind them, go from n2 to n8.
    pub(super) fn flows_each(&self) -> u32 {
        self.row.flows_each
    }

    fn network(&self, seed: u64) -> Network {
        let Row { l1, l2, l3, l7, l10, red, flows_each, .. } = self.row;
        let rate = Bitrate::from_mbps(l2.0);
        let [min, max, limit] = red.map(|millis| QueueLimit::Packets(bdp_packets(rate, ms(millis))));
        let bottleneck = match self.queue {
            Queue::DropTail => QueueConfig::packets(bdp_packets(rate, ms(100))),
            Queue::Red => RedConfig::classic(min, max, RED_PROBABILITY).limit(limit).into(),
        };
        let wire = |name, (mbps, one_way_ms)| {
            let queue = QueueConfig::packets(bdp_packets(Bitrate::from_mbps(mbps), ms(100)));
            Wire { name, mbps, one_way_ms, queue }
        };
        let wires = [
            wire("L1", l1),
            Wire { queue: bottleneck.clone(), ..wire("L2", l2) },
            Wire { queue: bottleneck, ..wire("L2 of n2", l2) },
            wire("L3", l3),
            wire("L7", l7),
            wire("L10", l10),
        ];
        let mut network = Network::new(self.row.name, seed, self.duration, &wires);
        let second = if self.separate { "L2 of n2" } else { "L2" };
        for (class, over) in [("n1-n7", ["L1", "L2", "L3"]), ("n2-n8", ["L7", second, "L10"])] {
            let route = network.route(&over);
            for _ in 0..flows_each {
                network.flow(class, engine(self.tcp), core::slice::from_ref(&route));
            }
        }
        network
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        fairpath_sim::run(&self.network(seed).net.scenario, recorder).map(drop)
    }
}

/// A detector and the names it goes by here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    pub(super) title: &'static str,
    pub(super) colour: &'static str,
    /// One without memory of earlier answers: what it decides from one time to the next.
    pub(super) make: fn() -> Box<dyn Detector>,
}

/// The detectors that listen: the paper's two, a later variant of SSC by its authors, and ours.
pub(super) const LISTENERS: [Listener; 4] = [
    Listener {
        title: "TR",
        colour: "lia",
        make: || Box::new(Trendline::new(TrendlineConfig { hold: Duration::ZERO, ..TrendlineConfig::default() })),
    },
    Listener { title: "SSC", colour: "daimd", make: || Box::new(Summary::new(SummaryConfig::rfc8382())) },
    Listener {
        title: "SSC variant",
        colour: "olia",
        make: || {
            let persistence = Persistence::Latest;
            Box::new(Summary::new(SummaryConfig { persistence, ..SummaryConfig::author_variant() }))
        },
    },
    Listener { title: "concordance", colour: "balia", make: || Box::<Concordance>::default() },
];

/// Listens to pairs of flows.
#[derive(Debug)]
pub(super) struct Ears {
    pairs: Vec<Pair>,
    /// The pair of each flow, and which of the two it is.
    members: Vec<Option<(usize, PathId)>>,
}

#[derive(Debug)]
struct Pair {
    opened: [bool; 2],
    detectors: Vec<(Box<dyn Detector>, Answers)>,
}

/// When a detector said that a pair shares a bottleneck.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    /// From and to, in seconds.
    pub(super) yes: Vec<(f64, f64)>,
    since: Option<f64>,
}

impl Answers {
    /// The first time; `None`: never.
    pub(super) fn first(&self) -> Option<f64> {
        self.yes.first().map(|(from, _)| *from)
    }

    /// How long in all.
    pub(super) fn seconds(&self) -> f64 {
        self.yes.iter().map(|(from, to)| to - from).sum()
    }

    fn hear(&mut self, now: f64, together: bool) {
        match (together, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.yes.push((since, now));
                self.since = None;
            }
            _ => {}
        }
    }
}

impl Ears {
    /// [`LISTENERS`] listen to the first `pairs` flows of each side.
    pub(super) fn new(case: &Case, pairs: u32) -> Self {
        Self::of(case, pairs, &|| LISTENERS.iter().map(|one| (one.make)()).collect())
    }

    /// These detectors do.
    pub(super) fn of(case: &Case, pairs: u32, make: &dyn Fn() -> Vec<Box<dyn Detector>>) -> Self {
        let flows = case.flows_each();
        let member = |flow: u32| {
            let (pair, side) = (flow % flows, flow / flows);
            (pair < pairs).then(|| (pair as usize, PathId::new(side)))
        };
        let detectors = || make().into_iter().map(|one| (one, Answers::default())).collect();
        let pairs = (0..pairs).map(|_| Pair { opened: [false; 2], detectors: detectors() });
        Self { pairs: pairs.collect(), members: (0..2 * flows).map(member).collect() }
    }

    /// For each pair what each detector said until `end`.
    pub(super) fn answers(self, end: Duration) -> Vec<Vec<Answers>> {
        let ended = |(_, mut answers): (_, Answers)| {
            answers.hear(end.as_secs_f64(), false);
            answers
        };
        self.pairs.into_iter().map(|pair| pair.detectors.into_iter().map(ended).collect()).collect()
    }

    fn member(&mut self, flow: FlowIndex) -> Option<(&mut Pair, PathId)> {
        let (pair, path) = self.members.get(flow.0 as usize).copied().flatten()?;
        Some((&mut self.pairs[pair], path))
    }
}

impl Recorder for Ears {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, _: PathId, rtt: Duration) {
        let Some((pair, path)) = self.member(flow) else { return };
        let is_first = !core::mem::replace(&mut pair.opened[path.get() as usize], true);
        for (detector, answers) in &mut pair.detectors {
            if is_first {
                detector.on_path_opened(path, now);
            }
            detector.on_sample(path, &DelaySample { now, rtt, one_way: None });
            if let Some(groups) = detector.poll(now) {
                answers.hear(now.as_secs_f64(), groups.together(PathId::new(0), PathId::new(1)));
            }
        }
    }

    fn on_lost(&mut self, now: Timestamp, flow: FlowIndex, _: PathId) {
        let Some((pair, path)) = self.member(flow) else { return };
        for (detector, _) in &mut pair.detectors {
            detector.on_loss(path, &Lost { now, bytes: ByteCount::new(1500) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_holds_until_something_else_is_said() {
        let mut answers = Answers::default();
        for (second, together) in [(1.0, false), (5.0, true), (6.0, true), (10.0, false), (20.0, true)] {
            answers.hear(second, together);
        }
        answers.hear(30.0, false);
        assert_eq!(answers.yes, [(5.0, 10.0), (20.0, 30.0)]);
        assert_eq!((answers.first(), answers.seconds()), (Some(5.0), 15.0));
    }

    #[test]
    fn a_pair_is_one_flow_of_each_side() {
        let case = Case::all(ROWS[0], ms(1000))[0];
        let ears = Ears::new(&case, 2);
        let members = |pair| ears.members.iter().flatten().filter(move |(of, _)| *of == pair).count();
        assert_eq!((ears.members.len(), members(0), members(1)), (30, 2, 2));
        assert_eq!(ears.members[16], Some((1, PathId::new(1))));
    }
}
