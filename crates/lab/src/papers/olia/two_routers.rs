//! Users with two paths beside users with one, over two routers: the networks of scenarios A and C.
//!
//! A rate counts whole packets, headers included, as the theory does.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::Parameters;
use fairpath_net::{LinkConfig, RedConfig};
use fairpath_scenario::{PathRoute, Scenario};
use fairpath_sim::{Outcome, PathOutcome, SimError};
use fairpath_theory::{Equilibrium, EquilibriumError, FluidRule, Link, Network, Price, Route, User};
use serde::{Deserialize, Serialize};

use super::algorithms::{Algorithm, PACKET, TCP};
use crate::Net;

/// The round-trip time with queues, in the theory.
pub(super) const RTT: Duration = Duration::from_millis(150);
/// The round-trip time without queues that makes it that with one.
const BASE_RTT: Duration = Duration::from_millis(120);
/// Flows start within this.
const START_JITTER: Duration = Duration::from_secs(2);

/// The links of the second path. The first path crosses router 1, and users with one path cross router
/// 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Scenario A: router 2, and then router 1 as well.
    Nested,
    /// Scenario C: router 2.
    Parallel,
}

/// The users and the conditions of a run.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) layout: Layout,
    pub(super) multipath_users: u32,
    pub(super) single_users: u32,
    /// For each user of router 1 and of router 2.
    pub(super) capacity: Bitrate,
    /// The algorithm of users with two paths; the others have Reno.
    pub(super) algorithm: Algorithm,
    /// The round-trip time while queues are empty: of the first path, of the second, and of the
    /// users with one.
    pub(super) base_rtt: [Duration; 3],
    /// The congestion-control parameters of users with two paths, and of those with one.
    pub(super) parameters: [Parameters; 2],
    pub(super) ack_every: u32,
    pub(super) queue: RedConfig,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
}

impl Case {
    /// As in the testbed: 1 Mbit/s for each user, 10 users with one path.
    pub(super) fn testbed(layout: Layout, multipath_users: u32, algorithm: Algorithm, duration: Duration) -> Self {
        Self {
            layout,
            multipath_users,
            single_users: 10,
            capacity: Bitrate::from_mbps(1),
            algorithm,
            base_rtt: [BASE_RTT; 3],
            parameters: [algorithm.parameters(), TCP.parameters()],
            ack_every: 1,
            queue: RedConfig::olia_testbed(PACKET),
            warm_up: Duration::from_secs(20),
            duration,
        }
    }

    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("two paths beside one", seed, self.warm_up, self.duration);
        let [one, two] = [("router 1", self.multipath_users), ("router 2", self.single_users)].map(|(name, users)| {
            net.link(name, LinkConfig::new(self.capacity.scaled(f64::from(users))).queue(self.queue.clone()))
        });
        let [back_1, back_2, back_single] = [("back 1", 0), ("back 2", 1), ("back of one", 2)]
            .map(|(name, at)| vec![net.link(name, LinkConfig::pure_delay(self.base_rtt[at]))]);
        let shared = match self.layout {
            Layout::Nested => vec![two, one],
            Layout::Parallel => vec![two],
        };
        let paths =
            [PathRoute { forward: vec![one], backward: back_1 }, PathRoute { forward: shared, backward: back_2 }];
        let single = PathRoute { forward: vec![two], backward: back_single };
        for _ in 0..self.multipath_users {
            net.flow("multipath", self.algorithm.with(self.parameters[0]), &paths);
        }
        for _ in 0..self.single_users {
            net.flow("single", TCP.with(self.parameters[1]), core::slice::from_ref(&single));
        }
        for flow in &mut net.scenario.flows {
            flow.transport.header = ByteCount::ZERO;
            flow.transport.ack_every = self.ack_every;
            flow.start_jitter = START_JITTER;
        }
        net.scenario
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64) -> Result<Seen, SimError> {
        fairpath_sim::run(&self.scenario(seed), &mut ()).map(|outcome| Seen { outcome })
    }

    /// Where it settles by the fluid model, with these round-trip times, queues included, where no
    /// window falls below one packet.
    pub(super) fn equilibrium(&self, rtt: [Duration; 3]) -> Result<Rates, EquilibriumError> {
        let link = |users: u32| Link { capacity: self.capacity.scaled(f64::from(users)), price: Price::Saturated };
        let shared = match self.layout {
            Layout::Nested => vec![1, 0],
            Layout::Parallel => vec![1],
        };
        let [first, second, single] = [vec![0], shared, vec![1]];
        let route = |links, rtt| Route { links, rtt };
        let network = Network {
            links: vec![link(self.multipath_users), link(self.single_users)],
            users: vec![
                User {
                    count: self.multipath_users,
                    rule: self.algorithm.rule,
                    routes: vec![route(first, rtt[0]), route(second, rtt[1])],
                },
                User { count: self.single_users, rule: FluidRule::Reno, routes: vec![route(single, rtt[2])] },
            ],
            packet: PACKET,
            window_least: 1.0,
        };
        network.equilibrium().map(|equilibrium| Rates::of(&equilibrium))
    }
}

/// The rates of a user, in Mbit/s, and the losses at the two routers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) paths: [f64; 2],
    pub(super) single: f64,
    pub(super) loss: [f64; 2],
}

impl Rates {
    fn of(equilibrium: &Equilibrium) -> Self {
        let routes = &equilibrium.users[0].routes;
        Self {
            paths: [routes[0].rate.as_mbps_f64(), routes[1].rate.as_mbps_f64()],
            single: equilibrium.users[1].rate().as_mbps_f64(),
            loss: [equilibrium.links[0].loss, equilibrium.links[1].loss],
        }
    }

    /// On both paths.
    pub(super) fn multipath(&self) -> f64 {
        self.paths[0] + self.paths[1]
    }
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
}

impl Seen {
    fn multipath_paths(&self, path: usize) -> impl Iterator<Item = &PathOutcome> {
        self.outcome.class("multipath").map(move |flow| &flow.paths[path])
    }

    /// The mean rate of users with two paths on one of them, in Mbit/s.
    pub(super) fn path(&self, path: usize) -> f64 {
        mean(self.multipath_paths(path).map(|path| path.goodput.as_mbps_f64()))
    }

    /// The mean rate of users with two paths, in Mbit/s.
    pub(super) fn multipath(&self) -> f64 {
        self.outcome.mean_goodput("multipath").as_mbps_f64()
    }

    /// The mean rate of users with one path, in Mbit/s.
    pub(super) fn single(&self) -> f64 {
        self.outcome.mean_goodput("single").as_mbps_f64()
    }

    /// The share of packets that router 1 or 2 dropped.
    pub(super) fn loss(&self, router: usize) -> f64 {
        self.outcome.links[router].drop_share()
    }

    /// The mean round-trip time of the first path, the second, and of users with one, in ms.
    pub(super) fn rtt_ms(&self) -> [f64; 3] {
        let of = |paths: &mut dyn Iterator<Item = &PathOutcome>| {
            let (count, sum) = paths.fold((0, 0.0), |(count, sum), path| {
                (count + path.count.rtt_samples, sum + path.count.rtt_sum.as_secs_f64() * 1e3)
            });
            if count == 0 { 0.0 } else { sum / count as f64 }
        };
        let single = &mut self.outcome.class("single").map(|flow| &flow.paths[0]);
        [of(&mut self.multipath_paths(0)), of(&mut self.multipath_paths(1)), of(single)]
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count == 0.0 { 0.0 } else { sum / count }
}
