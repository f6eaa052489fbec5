//! BBR beside Reno on one queue (slide 11).
//!
//! # Claim
//!
//! BBR has other known issues: fairness.
//!
//! # Topology
//!
//! ```text
//!   BBRv1 ──┐
//!           ├── 30 Mbit/s, a queue of 0.5 to 12 BDP ──► receivers
//!   Reno  ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rate | 30 Mbit/s | paper |
//! | round-trip time | 100 ms, so that a BDP is 250 packets | paper |
//! | queue | 0.5, 1, 3 and 12 BDP; 3,000 packets are 12 | assumed, but for the last |
//! | who | one BBRv1 and one NewReno; two NewReno for comparison | assumed |
//! | duration | 120 s, measured from 20 s on | assumed |
//!
//! # Deviations
//!
//! - The slides name the issue and no numbers: these are ours.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_net::QueueConfig;
use fairpath_sim::SimError;

use crate::{Cell, Context, Experiment, Failure, Net, Report, Table, Verdict, engine, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/fairness", include_str!("fairness.rs"), run);

/// 30 Mbit/s · 100 ms in packets of 1,500 B.
const BDP: usize = 250;

/// The queue in tenths of a BDP.
const QUEUES: [usize; 4] = [5, 10, 30, 120];

/// The rival of the Reno flow, and the queue in tenths of a BDP.
#[derive(Clone, Copy, Debug)]
struct Duel {
    rival: &'static str,
    queue: usize,
}

impl Duel {
    /// The rates of the rival and of Reno, in Mbit/s.
    fn run(&self, seed: u64) -> Result<[f64; 2], SimError> {
        let mut net = Net::new("one queue", seed, Duration::from_secs(20), Duration::from_secs(120));
        let queue = QueueConfig::packets(BDP * self.queue / 10);
        let path = net.path("queue", Bitrate::from_mbps(30), ms(50), queue);
        for congestion in [self.rival, "reno"] {
            net.flow(congestion, engine(congestion), core::slice::from_ref(&path)).start_jitter = ms(1_000);
        }
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        Ok([0, 1].map(|flow| outcome.flows[flow].goodput.as_mbps_f64()))
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let queues = context.pick(vec![QUEUES[0]], QUEUES.to_vec());
    let duels: Vec<Duel> =
        queues.iter().flat_map(|queue| ["bbr", "reno"].map(|rival| Duel { rival, queue: *queue })).collect();
    let seen = context.sweep(&duels, &context.seeds(context.pick(2, 5)), Duel::run)?;
    let columns = [("BBRv1", "Mbit/s"), ("Reno beside it", "Mbit/s"), ("BBRv1 / Reno", ""), ("Reno / Reno", "")];
    let mut table = Table::new("shares", "One queue of 30 Mbit/s", &["queue"], &columns);
    let mut unfair = Verdict::new("unfair", "BBR takes more than its share beside Reno where the queue is shallow.");
    for (queue, runs) in queues.iter().zip(seen.chunks(2)) {
        let name = format!("{} BDP", *queue as f64 / 10.0);
        let of = |duel: usize, who: usize| Cell::of(runs[duel].iter().map(|pair| pair[who]));
        let ratio = |duel: usize| Cell::of(runs[duel].iter().map(|pair| pair[0] / pair[1]));
        table.row([&name], [of(0, 0), of(0, 1), ratio(0), ratio(1)]);
        if *queue <= 10 {
            unfair = unfair.at_least(&format!("{name}: BBRv1 / Reno"), ratio(0).estimate(), 1.5);
        }
    }
    Ok(Report { tables: vec![table], verdicts: vec![unfair], ..Report::default() })
}
