//! Pairs of unequal paths.
#![allow(dead_code)]

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Traffic};
use fairpath_sim::run;

use crate::common::{Net, ms};

/// A path: rate in Mbit/s, round trip in ms, queue in hundredths of the product of the two, share of packets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link(pub(crate) u64, pub(crate) u64, pub(crate) u64, pub(crate) f64);

/// Two paths, what the application sends, and what the receiver may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) links: [Link; 2],
    pub(crate) size: Option<u64>,
    pub(crate) buffer: Option<u64>,
    pub(crate) scheduler: &'static str,
    pub(crate) reinjection: bool,
}

impl Cell {
    /// The goodput over some of the paths, in Mbit/s.
    pub(crate) fn goodput(&self, over: &[usize], seed: u64) -> f64 {
        let mut net = Net::new(if self.size.is_some() { 300 } else { 120 }, seed);
        let routes: Vec<PathRoute> = over.iter().map(|at| route(&mut net, self.links[*at])).collect();
        let flow = net.flow("transfer", "lia", &routes);
        flow.as_live(EngineConfig { scheduler: self.scheduler.into(), ..EngineConfig::live() });
        flow.traffic = self.size.map_or(Traffic::Bulk, |size| Traffic::Finite { size: ByteCount::new(size) });
        flow.transport.receive_buffer = self.buffer.map(ByteCount::new);
        flow.transport.reinjection = self.reinjection;
        let outcome = run(&net.scenario, &mut ()).expect("it runs");
        let flow = &outcome.flows[0];
        let took = flow.completions.first().map_or(net.scenario.duration, |took| *took);
        flow.delivered.as_f64() * 8e-6 / took.as_secs_f64()
    }

    /// The bond in parts of its better path alone.
    pub(crate) fn ratio(&self, seed: u64) -> f64 {
        let alone = [0, 1].map(|path| self.goodput(&[path], seed));
        self.goodput(&[0, 1], seed) / alone[0].max(alone[1])
    }
}

/// A receive buffer that is less than the bandwidth-delay products of both paths together. The first window of the slow
/// path, which leaves before its round trip is known, then keeps the fast one back for once: `ratios_of_the_grid` shows
/// how much.
pub(crate) const SMALL: Option<u64> = Some(500_000);

pub(crate) fn route(net: &mut Net, Link(mbps, rtt, hundredths, loss): Link) -> PathRoute {
    let (rate, one_way) = (Bitrate::from_mbps(mbps), ms(rtt) / 2);
    let queue = QueueConfig::sojourn(ms(rtt) * hundredths as u32 / 100);
    let mut there = LinkConfig::new(rate).delay(one_way).queue(queue);
    if loss > 0.0 {
        there = there.loss(LossConfig::Random { probability: loss });
    }
    let there = net.link(there);
    let back = net.link(LinkConfig::pure_delay(one_way));
    PathRoute { forward: vec![there], backward: vec![back] }
}

/// Rates 1:1 to 1:20, round trips 1:1 to 1:10, queues of 0.5 to 12 bandwidth-delay products, buffers of 0.5 to 16 MB.
pub(crate) fn grid(size: Option<u64>, buffers: &[Option<u64>]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for slow_mbps in [40, 10, 2] {
        for slow_rtt in [40, 120, 400] {
            for queue in [50, 200, 1_200] {
                for &buffer in buffers {
                    let links = [Link(40, 40, queue, 0.0), Link(slow_mbps, slow_rtt, queue, 0.0)];
                    cells.push(Cell { links, size, buffer, scheduler: "arrival", reinjection: true });
                }
            }
        }
    }
    cells
}
