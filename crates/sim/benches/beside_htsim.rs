//! How fast the simulator is beside htsim, on the same networks in the same minutes:
//! `HTSIM_DUMBBELL=… cargo bench -p fairpath-sim --bench beside_htsim`. A number after `--` is the
//! number of pairs of runs.
//!
//! `HTSIM_DUMBBELL` names a program over htsim that takes the numbers of such a network as options
//! (`peer_options`) and prints how many packets its bottleneck passed on, `bn_pkts=…`. The two are
//! compared by processor time. They take turns, so that both of a pair meet the same machine, and
//! the median of the pairs' ratios counts.

#![allow(clippy::disallowed_methods, reason = "a benchmark runs another program")]

use core::time::Duration;
use std::error::Error;
use std::process::Command;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, QueueConfig, Rate};
use fairpath_scenario::{Flow, LinkIndex, PathRoute, Scenario, ScenarioLink, Traffic, Transport};
use fairpath_sim::Simulation;
use nix::sys::resource::{UsageWho, getrusage};

/// Where the other program is.
const PEER: &str = "HTSIM_DUMBBELL";

/// Pairs of runs, unless the command line says otherwise.
const PAIRS: usize = 7;

const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(100);

/// Reno flows over one bottleneck. What comes back takes the delay and nothing else: so it is in htsim's model.
struct Dumbbell {
    name: &'static str,
    flows: u32,
    mbps: u64,
    /// Whether each flow has an access link with a queue before the bottleneck.
    feeders: bool,
    seconds: u64,
}

const DUMBBELLS: [Dumbbell; 4] = [
    Dumbbell { name: "30 flows over 40 Mbit/s", flows: 30, mbps: 40, feeders: false, seconds: 300 },
    Dumbbell { name: "the same, with feeders", flows: 30, mbps: 40, feeders: true, seconds: 300 },
    Dumbbell { name: "250 flows over 400 Mbit/s, feeders", flows: 250, mbps: 400, feeders: true, seconds: 30 },
    Dumbbell { name: "30 flows over 1 Gbit/s, feeders", flows: 30, mbps: 1_000, feeders: true, seconds: 30 },
];

impl Dumbbell {
    fn scenario(&self) -> Scenario {
        let mut links = Vec::new();
        let mut link = |name: String, config: LinkConfig| {
            links.push(ScenarioLink { name, from: String::new(), to: String::new(), config });
            LinkIndex(links.len() as u32 - 1)
        };
        let bottleneck = LinkConfig::new(Bitrate::from_mbps(self.mbps)).delay(DELAY).queue(QueueConfig::sojourn(QUEUE));
        let there = link("there".into(), bottleneck);
        let back = link("back".into(), LinkConfig::new(Rate::Unlimited).delay(DELAY));
        // As the other program has them: ten times the bottleneck, 1 Gbit/s at least.
        let access = LinkConfig::new(Bitrate::from_mbps((10 * self.mbps).max(1_000)));
        let access = access.queue(QueueConfig::packets(10_000));
        let flow = |at: u32| {
            let feeder = self.feeders.then(|| link(format!("feeder {at}"), access.clone()));
            Flow {
                name: format!("flow {at}"),
                class: "bulk".into(),
                paths: vec![PathRoute { forward: feeder.into_iter().chain([there]).collect(), backward: vec![back] }],
                terms: Vec::new(),
                engine: EngineConfig { congestion: "reno".into(), ..EngineConfig::default() },
                transport: Transport { header: ByteCount::ZERO, ..Transport::default() },
                remedies: fairpath_scenario::Remedies::default(),
                traffic: Traffic::Bulk,
                start: Duration::ZERO,
                start_jitter: Duration::from_secs(1),
                stop: None,
            }
        };
        let flows = (0..self.flows).map(flow).collect();
        Scenario {
            title: self.name.into(),
            seed: 1,
            duration: Duration::from_secs(self.seconds),
            warm_up: Duration::ZERO,
            sample_every: Duration::ZERO,
            links,
            flows,
            changes: Vec::new(),
        }
    }

    fn peer_options(&self) -> Vec<String> {
        let feeders = u32::from(self.feeders);
        let (delay, queue) = (DELAY.as_millis(), QUEUE.as_millis());
        let options = format!(
            "-n {} -mbps {} -delay {delay} -q {queue} -sim {} -feeder {feeders}",
            self.flows, self.mbps, self.seconds
        );
        options.split(' ').map(str::to_owned).collect()
    }

    /// Nanoseconds of processor time for a packet that the bottleneck passes on.
    fn run(&self) -> Result<f64, Box<dyn Error>> {
        let before = processor_time(UsageWho::RUSAGE_SELF)?;
        let mut simulation = Simulation::new(&self.scenario())?;
        simulation.run(&mut ())?;
        let took = processor_time(UsageWho::RUSAGE_SELF)? - before;
        let outcome = simulation.outcome();
        let there = outcome.link("there").ok_or("the bottleneck is gone")?;
        Ok(per_packet(took, there.offered - there.dropped))
    }

    /// The same of the other program.
    fn run_peer(&self, program: &str) -> Result<f64, Box<dyn Error>> {
        let before = processor_time(UsageWho::RUSAGE_CHILDREN)?;
        let output = Command::new(program).args(self.peer_options()).output()?;
        let took = processor_time(UsageWho::RUSAGE_CHILDREN)? - before;
        let said = String::from_utf8_lossy(&output.stdout);
        let packets = said.split_whitespace().find_map(|word| word.strip_prefix("bn_pkts="));
        Ok(per_packet(took, packets.ok_or("it says nothing of bn_pkts")?.parse()?))
    }
}

fn per_packet(took: Duration, packets: u64) -> f64 {
    took.as_secs_f64() * 1e9 / packets as f64
}

fn processor_time(of: UsageWho) -> Result<Duration, Box<dyn Error>> {
    let usage = getrusage(of)?;
    let times = [usage.user_time(), usage.system_time()];
    let micros: i64 = times.iter().map(|time| time.tv_sec() * 1_000_000 + time.tv_usec()).sum();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let pairs = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(PAIRS).max(1);
    let peer = std::env::var(PEER).ok().filter(|program| !program.is_empty());
    if peer.is_none() {
        println!(
            "htsim: skipped, {PEER} names no program; htsim is at https://github.com/Broadcom/csg-htsim, \
             and what the program must do stands at the head of benches/beside_htsim.rs"
        );
    }
    for dumbbell in &DUMBBELLS {
        let mut runs = Vec::new();
        for _ in 0..pairs {
            let peers = peer.as_deref().map(|program| dumbbell.run_peer(program)).transpose()?;
            runs.push((dumbbell.run()?, peers.unwrap_or(f64::NAN)));
        }
        let ours = median(runs.iter().map(|(ours, _)| *ours));
        let name = dumbbell.name;
        match peer {
            None => println!("{name:36} {ours:6.0} ns of processor time for a packet"),
            Some(_) => println!(
                "{name:36} {ours:6.0} ns of processor time for a packet, htsim {:4.0} ns, ratio {:.2}",
                median(runs.iter().map(|(_, peers)| *peers)),
                median(runs.iter().map(|(ours, peers)| ours / peers)),
            ),
        }
    }
    Ok(())
}
