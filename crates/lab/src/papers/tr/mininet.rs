//! Tables 3 and 4: the cases of topologies 1 and 2.

use core::time::Duration;

use fairpath_engine::Alone;

use super::sessions::{Case, Others, queues, wire};

const TO_N5: [&[&str]; 2] = [&["L0", "L1", "L2"], &["L13", "L7", "L2"]];
const TO_N11: [&[&str]; 2] = [&["L0", "L1", "L2", "L3", "L11", "L18"], &["L13", "L7", "L2", "L10", "L17", "L18"]];

/// The default of Mininet's hosts, which are Linux.
const TCP: &str = "cubic";

/// A link's Mbit/s and one-way ms.
type Link = (u64, u64);

/// A row of Table 3; L2 is the narrowest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topology1 {
    pub(super) name: &'static str,
    /// L0, L1, L2, L13, L7.
    pub(super) links: [Link; 5],
    /// The links that have a queue of `queue` packets; the others have ten times that.
    pub(super) narrow: &'static [&'static str],
    pub(super) queue: usize,
    /// Via n1 and via n2.
    pub(super) flows: [u32; 2],
}

/// A row of Table 4.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topology2 {
    pub(super) name: &'static str,
    /// L0, L1, L2, L3, L11, L13, L7, L10, L17, L18.
    pub(super) links: [Link; 10],
    pub(super) narrow: &'static [&'static str],
    pub(super) queue: usize,
    /// f0 and f1 from n0 via n1 and n2, f2 from n1 to n7, f3 from n7 to n8.
    pub(super) flows: [u32; 4],
}

impl Topology1 {
    pub(super) fn case(&self, duration: Duration) -> Case {
        let (short, long) = queues(self.queue);
        let packets = |name| if self.narrow.contains(&name) { short } else { long };
        let names = ["L0", "L1", "L2", "L13", "L7"];
        let wires = names.into_iter().zip(self.links).map(|(name, (mbps, ms))| wire(name, mbps, ms, packets(name)));
        let others = [0, 1].map(|path| Others { count: self.flows[path], over: TO_N5[path], path: Some(path) });
        let (wires, others) = (wires.collect(), others.to_vec());
        Case { name: self.name, wires, others, paths: TO_N5, tcp: TCP, alone: Alone::Reno, duration }
    }
}

impl Topology2 {
    pub(super) fn case(&self, duration: Duration) -> Case {
        let (short, long) = queues(self.queue);
        let packets = |name| if self.narrow.contains(&name) { short } else { long };
        let names = ["L0", "L1", "L2", "L3", "L11", "L13", "L7", "L10", "L17", "L18"];
        let mut wires: Vec<_> =
            names.into_iter().zip(self.links).map(|(name, (mbps, ms))| wire(name, mbps, ms, packets(name))).collect();
        // From n7 to n8 there are two ways of two links; the one over n10 is taken, whose links are
        // L11 to n10 and then L17 the other way round.
        let (mbps, one_way_ms) = self.links[8];
        wires.push(wire("L17 reversed", mbps, one_way_ms, packets("L17")));
        let [f0, f1, f2, f3] = self.flows;
        let others = vec![
            Others { count: f0, over: TO_N11[0], path: Some(0) },
            Others { count: f1, over: TO_N11[1], path: Some(1) },
            Others { count: f2, over: &["L1", "L2", "L3"], path: None },
            Others { count: f3, over: &["L11", "L17 reversed"], path: None },
        ];
        Case { name: self.name, wires, others, paths: TO_N11, tcp: TCP, alone: Alone::Reno, duration }
    }
}

pub(super) const TABLE_3: [Topology1; 4] = [
    Topology1 {
        name: "E1",
        links: [(500, 10), (500, 10), (200, 10), (500, 20), (500, 20)],
        narrow: &["L2"],
        queue: 200,
        flows: [20, 30],
    },
    Topology1 {
        name: "E2",
        links: [(500, 10), (500, 10), (200, 50), (500, 20), (500, 20)],
        narrow: &["L2"],
        queue: 200,
        flows: [50, 50],
    },
    Topology1 {
        name: "E3",
        links: [(500, 10), (500, 10), (300, 40), (500, 10), (500, 20)],
        narrow: &["L2"],
        queue: 1000,
        flows: [60, 70],
    },
    Topology1 {
        name: "E4",
        links: [(800, 10), (800, 30), (400, 20), (800, 10), (800, 20)],
        narrow: &["L2"],
        queue: 800,
        flows: [60, 160],
    },
];

/// The links of E2, E3 and E4 of Table 4, which differ only in L0 and L2.
const fn wide(l0_ms: u64, l2: Link) -> [Link; 10] {
    let (near, far) = ((500, 10), (500, 30));
    [(500, l0_ms), near, l2, near, near, (500, 20), near, near, far, near]
}

pub(super) const TABLE_4: [Topology2; 5] = [
    Topology2 {
        name: "E1",
        links: [
            (500, 10),
            (500, 10),
            (100, 10),
            (100, 10),
            (100, 10),
            (500, 20),
            (500, 10),
            (100, 10),
            (100, 30),
            (100, 10),
        ],
        narrow: &["L2"],
        queue: 500,
        flows: [20, 40, 10, 5],
    },
    Topology2 { name: "E2", links: wide(10, (200, 10)), narrow: &["L2"], queue: 800, flows: [30, 40, 10, 10] },
    Topology2 { name: "E3", links: wide(30, (200, 40)), narrow: &["L2"], queue: 1500, flows: [30, 40, 10, 10] },
    Topology2 { name: "E4", links: wide(30, (400, 40)), narrow: &["L2"], queue: 1500, flows: [20, 120, 50, 100] },
    Topology2 {
        name: "E5",
        links: [
            (800, 30),
            (800, 10),
            (800, 40),
            (800, 10),
            (800, 10),
            (800, 20),
            (800, 10),
            (800, 10),
            (800, 100),
            (300, 10),
        ],
        narrow: &["L18"],
        queue: 1000,
        flows: [50, 100, 50, 50],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ms;

    /// Both ways, over all links of a path.
    fn base_rtt_ms(case: &Case, path: usize) -> u64 {
        let delay = |name| case.wires.iter().find(|wire| wire.name == name).map_or(0, |wire| wire.one_way_ms);
        2 * case.paths[path].iter().map(|name| delay(*name)).sum::<u64>()
    }

    #[test]
    fn the_paths_have_the_delays_of_their_links() {
        // Table 3 E1: 2 · (10 + 10 + 10) and 2 · (20 + 20 + 10).
        let case = TABLE_3[0].case(ms(1000));
        assert_eq!([0, 1].map(|path| base_rtt_ms(&case, path)), [60, 100]);
        // Table 4 E5: 2 · (30 + 10 + 40 + 10 + 10 + 10) and 2 · (20 + 10 + 40 + 10 + 100 + 10).
        let case = TABLE_4[4].case(ms(1000));
        assert_eq!([0, 1].map(|path| base_rtt_ms(&case, path)), [220, 380]);
    }
}
