//! Some cells of the default over the real stack in virtual time: two paths beside a flow of others, in parts of what
//! one flow of CUBIC gets in their place; and what the engine itself says of the bottleneck.
//!
//! `cargo test --release -p fairpath-faults --test fair -- --ignored --nocapture` prints the whole of it.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_faults::Crowd;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::{Coupling, EngineConfig};
use rayon::prelude::*;

/// How often is looked at what an engine says.
const LOOK: Duration = Duration::from_millis(100);

/// A network, and who is there.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Whether both paths go over the first link.
    is_shared: bool,
    mbps: [u64; 2],
    queue_ms: u64,
    /// Without queues.
    round_trip_ms: u64,
    /// A flow over each link, or so many.
    rival: Option<&'static str>,
    rivals: usize,
}

/// What came of a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    mbps: f64,
    /// When both paths were first one group, after both were open, and for which part of the time they were.
    first: Option<Duration>,
    together: f64,
}

/// A flow that takes every loss for congestion, as those of today do.
fn flow(congestion: &str) -> EngineConfig {
    let mut engine = EngineConfig { congestion: congestion.into(), coupling: Coupling::Never, ..EngineConfig::live() };
    // Every one, which is what it is where nothing is said.
    engine.parameters.aimd.losses = Default::default();
    engine
}

impl Cell {
    fn name(&self) -> String {
        let Self { is_shared, mbps: [first, second], queue_ms, round_trip_ms, rival, rivals } = *self;
        let links = if is_shared { format!("one link of {first}") } else { format!("links of {first} and {second}") };
        let beside = match (rival, rivals) {
            (None, _) => "nobody".to_owned(),
            (Some(rival), 1) => rival.to_owned(),
            (Some(rival), count) => format!("{count} {rival}"),
        };
        format!("{links} Mbit/s, round trips of {round_trip_ms} ms, queues of {queue_ms} ms, beside {beside}")
    }

    /// What a connection over these of the paths gets.
    fn run(&self, engine: &EngineConfig, over: &[usize], seed: u64, [warm_up, measured]: [Duration; 2]) -> Got {
        let mut crowd = Crowd::new(seed);
        let queue = QueueConfig::sojourn(Duration::from_millis(self.queue_ms));
        let mut link = |at: usize| {
            let rate = Bitrate::from_mbps(self.mbps[at]);
            crowd.link(&format!("bottleneck {at}"), &LinkConfig::new(rate).queue(queue.clone()))
        };
        let first = link(0);
        let links = if self.is_shared { vec![first] } else { vec![first, link(1)] };
        let round_trip = Duration::from_millis(self.round_trip_ms);
        // Who begins first, and by how much, differs from seed to seed.
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

    /// What one flow of CUBIC gets in our place, or one on each of separate links, together.
    fn reference(&self, seed: u64, times: [Duration; 2]) -> f64 {
        let places: &[usize] = if self.is_shared { &[0] } else { &[0, 1] };
        places.iter().map(|place| self.run(&flow("cubic"), &[*place], seed, times).mbps).sum()
    }
}

/// As in the lab's `default/scene`.
const SHARED: Cell =
    Cell { is_shared: true, mbps: [20, 20], queue_ms: 100, round_trip_ms: 40, rival: Some("cubic"), rivals: 1 };
/// The one that `fairpath demo` shows over real sockets.
const DEMO: Cell = Cell { queue_ms: 20, round_trip_ms: 20, ..SHARED };
const SEPARATE: Cell = Cell { is_shared: false, ..SHARED };

const CELLS: [Cell; 13] = [
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

/// Of some seeds, each compared with the reference of the same seed: the mean ratio and how far the seeds lie apart,
/// and what the engine said.
fn ratios(cell: &Cell, seeds: &[u64], times: [Duration; 2]) -> (Vec<f64>, Vec<Got>) {
    let runs = seeds.par_iter().map(|seed| {
        let got = cell.run(&EngineConfig::live(), &[0, 1], *seed, times);
        (got.mbps / cell.reference(*seed, times), got)
    });
    runs.collect::<Vec<_>>().into_iter().unzip()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
#[ignore = "four minutes of processor time"]
fn all_cells_over_the_real_stack() {
    let times = [Duration::from_secs(20), Duration::from_secs(60)];
    let seeds: Vec<u64> = (1..=4).collect();
    for cell in CELLS {
        let (ratios, gots) = ratios(&cell, &seeds, times);
        let together = mean(&gots.iter().map(|got| got.together).collect::<Vec<_>>());
        let firsts: Vec<Option<f64>> = gots.iter().map(|got| got.first.map(|first| first.as_secs_f64())).collect();
        println!("{}: {:.2} {ratios:.2?}, together {together:.3}, first {firsts:.1?}", cell.name(), mean(&ratios));
    }
}

/// The goals of detection, where they are easily met: a link that is shared is found within 5 s, and two that are not
/// are one for a twentieth of the time at most.
#[test]
fn the_engine_finds_one_link_and_keeps_two_apart() {
    let times = [Duration::from_secs(5), Duration::from_secs(15)];
    let cells = [SHARED, SEPARATE].map(|cell| Cell { mbps: [10, 10], ..cell });
    let runs: Vec<(Cell, u64)> = cells.iter().flat_map(|cell| [1, 2].map(|seed| (*cell, seed))).collect();
    runs.into_par_iter().for_each(|(cell, seed)| {
        let got = cell.run(&EngineConfig::live(), &[0, 1], seed, times);
        let name = cell.name();
        if cell.is_shared {
            let first = got.first.unwrap_or(Duration::MAX);
            assert!(first <= Duration::from_secs(5), "{name}, seed {seed}: found after {first:?}");
        } else {
            assert!(got.together <= 0.05, "{name}, seed {seed}: one for {:.3} of the time", got.together);
        }
    });
}

/// Headers take a twentieth. An acknowledgement that left in a train of packets once made all of the train be sent again,
/// which took another tenth where a connection had one path.
#[test]
fn one_path_alone_carries_each_byte_once() {
    let mut crowd = Crowd::new(1);
    let link = LinkConfig::new(Bitrate::from_mbps(20)).queue(QueueConfig::sojourn(Duration::from_millis(50)));
    let link = crowd.link("link", &link);
    let alone = crowd.join(&EngineConfig::live(), &[(link, Duration::from_millis(20))]);
    crowd.run_for(Duration::from_secs(3));
    let begun = crowd.received(alone);
    crowd.run_for(Duration::from_secs(5));
    let part = (crowd.received(alone) - begun) as f64 * 8.0 / (5.0 * 20e6);
    assert!(part >= 0.94, "{part:.3} of the link's rate");
}

/// A path of the group that the watchdog left alone for a trial would take its share along.
#[test]
fn two_paths_have_what_one_flow_has_where_the_demo_shows_them() {
    let seeds: Vec<u64> = (1..=8).collect();
    let (ratios, _) = ratios(&DEMO, &seeds, [Duration::from_secs(5), Duration::from_secs(20)]);
    assert!((0.93..=1.15).contains(&mean(&ratios)), "{:.2} {ratios:.2?}", mean(&ratios));
}

/// A flow's part of the link are four packets, and the least windows of four paths are eight. To let a path have less than a
/// datagram, and pace it, was tried: over this stack the paths had 1.55 of one of them then, in place of 1.14, though in the
/// simulator less than before. With a single packet in flight nearly every loss waits for a probe timeout, whose packets no
/// window holds back: that is likely why, and was not taken apart. That the paths share is said, not found.
#[test]
fn four_paths_among_many_flows_have_what_one_of_them_alone_has() {
    let cell = Cell { mbps: [5, 5], queue_ms: 50, rivals: 10, ..SHARED };
    let times = [Duration::from_secs(10), Duration::from_secs(60)];
    let engine = EngineConfig { coupling: Coupling::Always, ..EngineConfig::live() };
    let runs = (1..=6u64).collect::<Vec<_>>().into_par_iter().map(|seed| {
        let [ours, one] = [&[0, 1, 2, 3][..], &[0]].map(|over| cell.run(&engine, over, seed, times).mbps);
        (ours, one)
    });
    let (ours, one): (Vec<f64>, Vec<f64>) = runs.unzip();
    let ratio = mean(&ours) / mean(&one);
    println!("{ratio:.2} of {one:.3?}: {ours:.3?}");
    assert!((0.67..=1.35).contains(&ratio), "{ratio:.2} of {one:.3?}: {ours:.3?}");
}

/// What a start takes of a queue that another flow has filled, the queue keeps for it. In the simulator, where all paths
/// open at once, two have 1.56 of one flow's share there (`fairpath lab run default/start`). What arrives is counted in
/// records of 64 kB, of which there are six to eight.
#[test]
fn behind_a_queue_of_a_second_that_another_has_filled_two_paths_begin_as_one_flow() {
    let first = |paths: usize, seed: u64| {
        let mut crowd = Crowd::new(seed);
        let queue = QueueConfig::sojourn(Duration::from_secs(1));
        let link = crowd.link("bottleneck", &LinkConfig::new(Bitrate::from_mbps(20)).queue(queue));
        let path = (link, Duration::from_millis(40));
        crowd.join(&flow("cubic"), &[path]);
        crowd.run_for(Duration::from_secs(10) + Duration::from_millis(173 * seed));
        let ours = crowd.join(&EngineConfig::live(), &vec![path; paths]);
        crowd.run_for(Duration::from_secs(10));
        crowd.received(ours) as f64
    };
    let runs = (1..=8u64).collect::<Vec<_>>().into_par_iter().map(|seed| (first(2, seed), first(1, seed)));
    let (both, one): (Vec<f64>, Vec<f64>) = runs.unzip();
    let ratio = mean(&both) / mean(&one);
    println!("{ratio:.2} of {one:.0?}: {both:.0?}");
    assert!((0.67..=1.5).contains(&ratio), "{ratio:.2} of {one:.0?}: {both:.0?}");
}
