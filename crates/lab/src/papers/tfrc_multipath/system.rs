//! The paper's live-streaming application over simulated paths: rates by what is measured of them, blocks with repair of
//! a code of which any so many packets do, and no packet sent again.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{Jitter, JitterDistribution, LinkConfig, LossConfig, Network, Offered, RouteId};
use fairpath_rate::{Bound, DelayWindow, Delays, LossIntervals, PacketRate, PathModel, Plan};
use serde::{Deserialize, Serialize};

use crate::ms;

/// The share of packets that are lost, and the mean round-trip time in ms.
pub(super) const PATHS: [(f64, u64); 3] = [(0.10, 20), (0.02, 100), (0.01, 300)];

/// The paper's deadline, held against round-trip times.
pub(super) const DEADLINE: Duration = Duration::from_millis(300);

/// Rates are set anew so often, or once in a round trip.
const SOLVE_EVERY: Duration = Duration::from_millis(100);

/// Round-trip times of so long count.
const DELAYS_FOR: Duration = Duration::from_secs(5);

/// How many packets a block has, repair included. The paper does not say; a longer one would need less repair.
const BLOCK: u64 = 100;

/// By which rule rates are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Those of coupled TCP.
    Coupled,
    /// The optimum.
    Best,
    /// All that is friendly on the first path, and nothing elsewhere.
    First,
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The rule before and after the switch.
    pub(super) rules: [Rule; 2],
    pub(super) switch: Duration,
    pub(super) end: Duration,
    /// Share for probing, and margin of repair.
    pub(super) probing: f64,
    pub(super) margin: f64,
}

/// The counts of one second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Second {
    /// Packets that were sent on each path.
    pub(super) sent: [f64; 3],
    /// Packets of data that reached the player in time, of blocks that ended in it.
    pub(super) played: f64,
    /// Packets of repair.
    pub(super) repair: f64,
    /// Blocks that ended in it, and those of them of which too much was missing.
    pub(super) blocks: f64,
    pub(super) failed: f64,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    path: usize,
    at: Timestamp,
    block: u64,
    is_data: bool,
}

impl fairpath_net::Packet for Packet {}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    data: u64,
    came: u64,
    data_came: u64,
    ended: Timestamp,
}

#[derive(Debug)]
struct Path {
    route: RouteId,
    losses: LossIntervals,
    delays: DelayWindow,
    rate: f64,
    /// The packets that it may send and has not sent.
    credit: f64,
}

impl Run {
    /// Second by second.
    pub(super) fn seconds(&self, seed: u64) -> Vec<Second> {
        let mut system = System::new(*self, seed);
        while system.step() {}
        system.seconds
    }
}

struct System {
    run: Run,
    network: Network<Packet>,
    paths: Vec<Path>,
    now: Timestamp,
    solve_at: Timestamp,
    repair: f64,
    /// Blocks that may still get something, the number of the first of them, and how many packets the last has.
    blocks: VecDeque<Block>,
    first: u64,
    filled: u64,
    seconds: Vec<Second>,
}

impl System {
    fn new(run: Run, seed: u64) -> Self {
        let mut network = Network::new(seed);
        let path = |(at, (loss, rtt)): (usize, &(f64, u64))| {
            let jitter = Jitter::new(JitterDistribution::Exponential, ms(*rtt)).overtaking();
            let config = LinkConfig::pure_delay(Duration::ZERO).jitter(jitter);
            let config = config.loss(LossConfig::Random { probability: *loss });
            let link = network.add_link(&format!("path {at}"), &config).expect("a link that can be meant");
            let route = network.add_route(&[link]).expect("it is there");
            Path { route, losses: known(*loss), delays: DelayWindow::new(DELAYS_FOR), rate: 0.0, credit: 0.0 }
        };
        let paths = PATHS.iter().enumerate().map(path).collect();
        Self {
            run,
            network,
            paths,
            now: Timestamp::ZERO,
            solve_at: Timestamp::ZERO,
            repair: 0.0,
            blocks: VecDeque::new(),
            first: 0,
            filled: BLOCK,
            seconds: vec![Second::default(); run.end.as_secs() as usize],
        }
    }

    /// Sends a packet, if the run is not over.
    fn step(&mut self) -> bool {
        self.hear();
        if self.now >= self.solve_at {
            self.solve();
        }
        let Some(second) = self.seconds.get_mut((self.now.as_nanos() / 1_000_000_000) as usize) else { return false };
        if self.filled == BLOCK {
            let data = (BLOCK as f64 * (1.0 - self.repair)).floor() as u64;
            self.blocks.push_back(Block { data, ..Block::default() });
            self.filled = 0;
        }
        let total: f64 = self.paths.iter().map(|path| path.rate).sum();
        for path in &mut self.paths {
            path.credit += path.rate / total;
        }
        let most = (0..self.paths.len()).max_by(|a, b| self.paths[*a].credit.total_cmp(&self.paths[*b].credit));
        let at = most.expect("there are paths");
        self.paths[at].credit -= 1.0;
        let block = self.blocks.back_mut().expect("one is open");
        let is_data = self.filled < block.data;
        self.filled += 1;
        block.ended = self.now;
        second.sent[at] += 1.0;
        second.repair += f64::from(u8::from(!is_data));
        let packet = Packet { path: at, at: self.now, block: self.first + self.blocks.len() as u64 - 1, is_data };
        let path = &mut self.paths[at];
        match self.network.send(self.now, path.route, packet, ByteCount::new(1_500)) {
            Offered::Queued => path.losses.on_received(),
            // Losses are independent: each is an event of its own.
            Offered::Dropped(..) => path.losses.on_lost(self.now, Duration::ZERO),
        }
        self.now = self.now + Duration::from_secs_f64(1.0 / total);
        true
    }

    /// Takes in arrivals until now, and closes the blocks that have ended.
    fn hear(&mut self) {
        while let Some(delivery) = self.network.poll(self.now) {
            let Packet { path, at, block, is_data } = delivery.packet;
            let took = delivery.at.since(at);
            self.paths[path].delays.on_sample(delivery.at, took);
            let open = block.checked_sub(self.first).and_then(|at| self.blocks.get_mut(at as usize));
            if let Some(block) = open.filter(|_| took <= DEADLINE) {
                block.came += 1;
                block.data_came += u64::from(is_data);
            }
        }
        while self.blocks.len() > 1 && self.blocks[0].ended + DEADLINE < self.now {
            let block = self.blocks.pop_front().expect("there are two");
            self.first += 1;
            let Some(second) = self.seconds.get_mut((block.ended.as_nanos() / 1_000_000_000) as usize) else {
                continue;
            };
            let is_whole = block.came >= block.data;
            second.played += if is_whole { block.data } else { block.data_came } as f64;
            second.blocks += 1.0;
            second.failed += f64::from(u8::from(!is_whole));
        }
    }

    fn solve(&mut self) {
        let Run { rules, switch, probing, margin, .. } = self.run;
        let rule = rules[usize::from(self.now.since(Timestamp::ZERO) >= switch)];
        let model = |(path, (_, rtt)): (&Path, &(f64, u64))| {
            PathModel::new(path.losses.rate(), path.delays.delays().unwrap_or(Delays::exponential(ms(*rtt))))
        };
        let models: Vec<PathModel> = self.paths.iter().zip(&PATHS).map(model).collect();
        let best = |models: &[PathModel], probing| {
            Plan::best_with(models, DEADLINE, &Bound::Cantelli, probing, margin).expect("each path loses something")
        };
        let plan = match rule {
            Rule::Coupled => Plan::coupled(&models, DEADLINE, &Bound::Cantelli, margin),
            Rule::Best => best(&models, probing),
            Rule::First => best(&models[..1], 0.0),
        };
        self.repair = plan.repair.share;
        for (at, path) in self.paths.iter_mut().enumerate() {
            let rate = plan.rates.get(at).copied().map_or(0.0, PacketRate::per_second);
            let rtt = models[at].delays.mean.as_secs_f64();
            // No more than twice as much in a round trip, from a packet in one on.
            let grown = path.rate.max(1.0 / rtt) * libm::exp2(SOLVE_EVERY.as_secs_f64() / rtt);
            path.rate = rate.min(grown);
        }
        let quickest = models.iter().map(|model| model.delays.mean).min().unwrap_or_default();
        self.solve_at = self.now + quickest.max(SOLVE_EVERY);
    }
}

/// The loss history of a path when the stream begins: at the share that it does lose.
fn known(loss: f64) -> LossIntervals {
    let mut losses = LossIntervals::new();
    let every = (1.0 / loss).round() as u64;
    // All of it before the stream begins: a loss that is older than the newest event is none of its own.
    for at in 1..=9 {
        (1..every).for_each(|_| losses.on_received());
        losses.on_lost(Timestamp::from_nanos(at), Duration::ZERO);
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let (switch, end) = (Duration::from_secs(20), Duration::from_secs(40));
        Run { rules: [Rule::Coupled, Rule::Best], switch, end, probing: 0.05, margin: 0.144 }
    }

    #[test]
    fn every_packet_is_data_or_repair_and_no_more_is_played_than_was_sent() {
        let seconds = run().seconds(1);
        assert_eq!(seconds.len(), 40);
        // At first round-trip times are known from a few samples; what is in the last blocks is not known.
        let (data, played) = seconds[5..38].iter().fold((0.0, 0.0), |(data, played), one| {
            (data + one.sent.iter().sum::<f64>() - one.repair, played + one.played)
        });
        // A block counts where it ends, so that one may be of a second that is left out.
        assert!(played <= data + BLOCK as f64 && played > 0.95 * data, "{played} of {data}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let shown = |seed| format!("{:?}", run().seconds(seed));
        assert_eq!(shown(3), shown(3));
        assert_ne!(shown(3), shown(4));
    }
}
