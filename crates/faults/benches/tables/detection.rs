//! The detection table: the engine's verdicts on two paths, over the real stack in virtual time.
//!
//! The networks are drawn as in the lab's `tr/grid`. The measures are recall, precision, the time
//! together on shared and on separate paths, false verdicts, and the time to the first correct one.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_faults::Crowd;
use fairpath_net::{CoDelConfig, LinkConfig, LinkId, QueueConfig, QueueLimit, RedConfig};
use fairpath_quic_core::{Coupling, EngineConfig};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// How often is looked at what an engine says, and applications have more to send.
const LOOK: Duration = Duration::from_millis(20);

/// When the connection begins: after the others.
const BEGIN: Duration = Duration::from_secs(5);

/// For how long it is watched.
const TIME: Duration = Duration::from_secs(120);

/// The size of a transfer of light load, in bytes.
const SHORT: u64 = 100_000;

/// Greedy flows on a bottleneck. With none there are transfers of [`SHORT`] that offer 0.3 of it, and the connection
/// sends 0.2 of it on each path.
const LOADS: [usize; 5] = [0, 1, 3, 8, 16];
const CROSS: [&str; 3] = ["reno", "cubic", "bbr"];
const QUEUES: [&str; 3] = ["drop-tail", "RED", "CoDel"];

struct Draw(ChaCha12Rng);

impl Draw {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn seconds(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_secs_f64(self.log_between(low, high))
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// The factors of a network; the rest is drawn from the seed.
#[derive(Clone, Copy, Debug)]
struct Factors {
    seed: u64,
    is_shared: bool,
    load: usize,
    cross: &'static str,
    queue: &'static str,
}

impl Factors {
    /// Every 90 runs have all combinations.
    fn of(seed: u64) -> Self {
        let at = seed as usize / 2;
        Self {
            seed,
            is_shared: seed.is_multiple_of(2),
            load: LOADS[at % LOADS.len()],
            cross: CROSS[at / LOADS.len() % CROSS.len()],
            queue: QUEUES[at / LOADS.len() / CROSS.len() % QUEUES.len()],
        }
    }
}

/// Short transfers one after the other on one connection, begun at random.
struct Transfers {
    member: usize,
    mean_interval: f64,
    next: f64,
}

/// The outcome of a network.
#[derive(Clone, Copy, Debug)]
struct Got {
    factors: Factors,
    /// The part of the time from the beginning of the connection on in which its paths were together.
    together: f64,
    first: Option<f64>,
    /// How often they came to be together.
    verdicts: u32,
    seconds: f64,
}

/// A flow that takes every loss for congestion, as those of today do.
fn flow(congestion: &str) -> EngineConfig {
    let mut engine = EngineConfig { congestion: congestion.into(), coupling: Coupling::Never, ..EngineConfig::live() };
    engine.parameters.aimd.losses = Default::default();
    engine
}

fn queue(name: &str, room: Duration) -> QueueConfig {
    let part = |part: f64| QueueLimit::Sojourn(room.mul_f64(part));
    match name {
        "RED" => RedConfig::gentle(part(0.25), part(0.75), 0.1).limit(part(2.0)).into(),
        "CoDel" => CoDelConfig { limit: part(2.0), ..CoDelConfig::default() }.into(),
        _ => QueueConfig::sojourn(room),
    }
}

fn run(factors: Factors, mut engine: EngineConfig) -> Got {
    let Factors { seed, is_shared, load, cross, queue: discipline } = factors;
    let mut draw = Draw(ChaCha12Rng::seed_from_u64(seed));
    let mut crowd = Crowd::new(seed);
    let links: Vec<(LinkId, f64)> = (0..if is_shared { 1 } else { 2 })
        .map(|at| {
            let (rate, room) = (draw.log_between(10e6, 40e6), draw.seconds(0.04, 0.16));
            let config = LinkConfig::new(Bitrate::from_bps(rate as u64)).queue(queue(discipline, room));
            (crowd.link(&format!("bottleneck {at}"), &config), rate)
        })
        .collect();
    // Those of light load send what comes, the others all they may, from a time before the connection on.
    let mut begins: Vec<(f64, LinkId, Duration)> = Vec::new();
    let mut transfers: Vec<Transfers> = Vec::new();
    for (link, rate) in &links {
        for _ in 0..load.max(1) {
            let round_trip = draw.seconds(0.02, 0.2);
            if load > 0 {
                begins.push((draw.unit() * BEGIN.as_secs_f64(), *link, round_trip));
                continue;
            }
            let member = crowd.join_silent(&flow(cross), &[(*link, round_trip)]);
            let mean_interval = SHORT as f64 * 8.0 / (0.3 * rate);
            transfers.push(Transfers { member, mean_interval, next: 1.0 });
        }
    }
    begins.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (begin, link, round_trip) in begins {
        crowd.run_for(Duration::from_secs_f64(begin).saturating_sub(crowd.elapsed()));
        crowd.join(&flow(cross), &[(link, round_trip)]);
    }
    let mut pass = |crowd: &mut Crowd, draw: &mut Draw| {
        for one in &mut transfers {
            while one.next <= crowd.elapsed().as_secs_f64() {
                crowd.send(one.member, SHORT);
                one.next += draw.exponential(one.mean_interval);
            }
        }
        crowd.run_for(LOOK);
    };
    while crowd.elapsed() < BEGIN {
        pass(&mut crowd, &mut draw);
    }
    let shortest = draw.seconds(0.02, 0.05);
    let ratio = 1.0 + (draw.unit() * 5.0).floor();
    let paths = [(links[0].0, shortest), (links[links.len() - 1].0, shortest.mul_f64(ratio))];
    let begun = crowd.elapsed();
    let ours = if load == 0 {
        engine.scheduler = "round_robin".into();
        crowd.join_silent(&engine, &paths)
    } else {
        crowd.join(&engine, &paths)
    };
    let least = links.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min) / if is_shared { 2.0 } else { 1.0 };
    let (mut got, mut was_together, mut looks) =
        (Got { factors, together: 0.0, first: None, verdicts: 0, seconds: TIME.as_secs_f64() }, false, 0u32);
    while crowd.elapsed() < begun + TIME {
        if load == 0 {
            crowd.send(ours, (2.0 * 0.2 * least / 8.0 * LOOK.as_secs_f64()) as u64);
        }
        pass(&mut crowd, &mut draw);
        let is_together = crowd.is_together(ours);
        looks += 1;
        got.together += f64::from(u8::from(is_together));
        if is_together && !was_together {
            got.verdicts += 1;
            got.first = got.first.or(Some((crowd.elapsed() - begun).as_secs_f64()));
        }
        was_together = is_together;
    }
    assert_eq!(crowd.violation(), None, "{factors:?}");
    got.together /= f64::from(looks);
    got
}

/// A mean and the half of its 95 % interval.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

/// The engine's verdicts over all networks.
#[derive(Debug)]
struct Summary {
    runs: usize,
    recall: (f64, f64),
    precision: f64,
    shared: (f64, f64),
    separate: (f64, f64),
    /// In an hour.
    false_verdicts: f64,
    first_median: f64,
}

impl Summary {
    fn of<'a>(gots: impl Iterator<Item = &'a Got>) -> Self {
        let gots: Vec<&Got> = gots.collect();
        let of = |is_shared: bool| gots.iter().filter(move |got| got.factors.is_shared == is_shared);
        let together = |is_shared: bool| mean(&of(is_shared).map(|got| got.together).collect::<Vec<_>>());
        let found: Vec<f64> = of(true).map(|got| f64::from(u8::from(got.first.is_some()))).collect();
        let wrongly = of(false).filter(|got| got.verdicts > 0).count() as f64;
        let mut firsts: Vec<f64> = of(true).map(|got| got.first.unwrap_or(f64::INFINITY)).collect();
        firsts.sort_by(f64::total_cmp);
        let alarms = of(false).map(|got| f64::from(got.verdicts)).sum::<f64>();
        Self {
            runs: gots.len(),
            recall: mean(&found),
            precision: found.iter().sum::<f64>() / (found.iter().sum::<f64>() + wrongly),
            shared: together(true),
            separate: together(false),
            false_verdicts: alarms / of(false).map(|got| got.seconds / 3600.0).sum::<f64>(),
            first_median: firsts[firsts.len() / 2],
        }
    }

    fn print(&self, name: &str) {
        let Self { runs, recall, precision, shared, separate, false_verdicts, first_median } = self;
        println!(
            "| {name} | {runs} | {:.3} ± {:.3} | {precision:.3} | {:.3} ± {:.3} | {:.4} ± {:.4} | {false_verdicts:.1} | {first_median:.1} s |",
            recall.0, recall.1, shared.0, shared.1, separate.0, separate.1
        );
    }
}

/// The lines of a file of figures: what people see, and the goals.
fn figures(all: &Summary, light: &Summary, deaf: &Summary) -> serde_json::Value {
    let Summary { runs, recall, precision, shared, separate, false_verdicts, first_median } = all;
    let found = |of: &Summary, what: &str| serde_json::json!({ "what": what, "unit": "", "value": of.recall.0, "half_width": of.recall.1 });
    serde_json::json!([
        { "what": "networks", "unit": "", "value": runs },
        { "what": "part of the shared bottlenecks that are found", "unit": "", "value": recall.0, "half_width": recall.1,
          "goal": { "at_least": FOUND } },
        { "what": "part of what is found that is right", "unit": "", "value": precision, "goal": { "at_least": FOUND } },
        { "what": "part of the time together, shared", "unit": "", "value": shared.0, "half_width": shared.1 },
        { "what": "part of the time together, separate", "unit": "", "value": separate.0, "half_width": separate.1,
          "goal": { "at_most": WRONG } },
        { "what": "false verdicts in an hour", "unit": "", "value": false_verdicts },
        { "what": "time until a bottleneck is found, median", "unit": "s", "value": first_median,
          "goal": { "at_most": SOON_S } },
        found(light, "found where applications do not fill their paths"),
        found(deaf, "the same, if steady rates are not listened to"),
    ])
}

/// The goals: the part that is found, the part of the time that paths may wrongly be together, and the time to find.
const FOUND: f64 = 0.95;
const WRONG: f64 = 0.05;
const SOON_S: f64 = 10.0;

/// `FAIRPATH_DETECTION_JSON=FILE` writes the figures over all networks there, too.
pub(crate) fn table() {
    let engine = EngineConfig::live();
    let gots: Vec<Got> =
        (0..180).collect::<Vec<u64>>().into_par_iter().map(|seed| run(Factors::of(seed), engine.clone())).collect();
    // Where an application does not fill its paths, steady rates are all that the detector hears.
    let light_loads: Vec<Factors> = gots.iter().map(|got| got.factors).filter(|factors| factors.load == 0).collect();
    let mut without = engine;
    without.without.steady_rates = true;
    let deaf: Vec<Got> = light_loads.into_par_iter().map(|factors| run(factors, without.clone())).collect();
    println!(
        "| networks | runs | found | precision | together, shared | together, separate | false verdicts | first |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let all = Summary::of(gots.iter());
    all.print("all");
    let of_load = |load: usize| Summary::of(gots.iter().filter(|got| got.factors.load == load));
    for load in LOADS {
        let name = if load == 0 { "light load".into() } else { format!("{load} flows") };
        of_load(load).print(&name);
    }
    let deaf = Summary::of(deaf.iter());
    deaf.print("light load, without steady rates");
    for cross in CROSS {
        Summary::of(gots.iter().filter(|got| got.factors.cross == cross)).print(&format!("beside {cross}"));
    }
    for queue in QUEUES {
        Summary::of(gots.iter().filter(|got| got.factors.queue == queue)).print(queue);
    }
    gots.iter().filter(|got| got.factors.is_shared != got.first.is_some()).for_each(|got| println!("{got:?}"));
    if let Some(file) = std::env::var_os("FAIRPATH_DETECTION_JSON") {
        let text = serde_json::to_string_pretty(&figures(&all, &of_load(0), &deaf)).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    assert!(all.recall.0 + all.recall.1 >= FOUND && all.precision >= FOUND, "{all:?}");
    assert!(all.separate.0 - all.separate.1 <= WRONG && all.first_median <= SOON_S, "{all:?}");
}
