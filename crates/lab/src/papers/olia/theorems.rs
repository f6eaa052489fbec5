//! Three theorems on OLIA, in the fluid model (slide 16).
//!
//! # Claim
//!
//! OLIA meets the goals of LIA, is Pareto optimal, and where all paths of a user have similar round-trip
//! times balances the load as the optimal algorithm does.
//!
//! # Topology
//!
//! ```text
//!   goals:   those of olia/goals
//!   Pareto:  type 1, N1 users ──┬───────────────────────► server link, N1 · C1 ──►
//!                               └──► access point, N2 · C2 ──►┘
//!            type 2, N2 users ─────► access point ──►
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | goals | losses and round-trip times of `olia/goals` | assumed |
//! | N1, N2 | 10, 20 and 30; 10 | paper, but for the 20 |
//! | C1, C2 | 1 Mbit/s; 0.5, 1 and 1.5 Mbit/s | paper, but for 0.5 and 1.5 |
//! | round-trip times | 150 ms | assumed: that of the testbed |
//! | least window | none | assumed: the theorems are about what is not probed |
//!
//! # Deviations
//!
//! - Nothing is simulated: where rates settle is solved for. OLIA's second term, which moves windows between
//!   equally good paths, is not in the model.
//! - Pareto optimality is looked at in scenario A only: as all paths of type 1 cross the server link, type 2
//!   could have the whole access point without loss to type 1.

use fairpath_core::Bitrate;
use fairpath_theory::{FluidRule, Link, Network, Price, Route, User};

use super::algorithms::{Algorithm, BALIA, COUPLED, LIA, OLIA, PACKET, UNCOUPLED};
use super::goals::Worst;
use super::two_routers::RTT;
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/theorems", include_str!("theorems.rs"), run);

const ALGORITHMS: [Algorithm; 5] = [UNCOUPLED, LIA, BALIA, OLIA, COUPLED];
const TYPE_1: [u32; 3] = [10, 20, 30];
const TYPE_2: u32 = 10;
/// C2 in kbit/s; C1 is 1 Mbit/s.
const CAPACITIES: [u64; 3] = [500, 1000, 1500];
/// The solver leaves an imbalance of this order, and a route that is given up a millionth of a packet.
const EXACT: f64 = 1e-2;

/// The least rate of type 1 as a share of the server link, and of type 2 as a share of the access
/// point. Both are NaN if any case does not settle.
fn scenario_a(rule: FluidRule) -> [f64; 2] {
    let mut all = TYPE_1.iter().flat_map(|type_1| CAPACITIES.map(|capacity| (*type_1, capacity)));
    let worst = all.try_fold([f64::INFINITY; 2], |[one, two], (type_1, kbps)| {
        let capacity = Bitrate::from_kbps(kbps);
        let link =
            |users: u32, each: Bitrate| Link { capacity: each.scaled(f64::from(users)), price: Price::Saturated };
        let route = |links: &[usize]| Route { links: links.to_vec(), rtt: RTT };
        let network = Network {
            links: vec![link(type_1, Bitrate::from_mbps(1)), link(TYPE_2, capacity)],
            users: vec![
                User { count: type_1, rule, routes: vec![route(&[0]), route(&[1, 0])] },
                User { count: TYPE_2, rule: FluidRule::Reno, routes: vec![route(&[1])] },
            ],
            packet: PACKET,
            window_least: 0.0,
        };
        let settled = network.equilibrium().ok()?;
        let rate = |user: usize| settled.users[user].rate().as_mbps_f64();
        Some([one.min(rate(0)), two.min(rate(1) / capacity.as_mbps_f64())])
    });
    worst.unwrap_or([f64::NAN; 2])
}

fn run(_: &Context) -> Result<Report, Failure> {
    let columns = [
        ("least in all", "TCP on the best path"),
        ("most on a path", "TCP there"),
        ("type 1 in scenario A", "of its link"),
        ("type 2 in scenario A", "of its link"),
        ("part on the worse path", ""),
    ];
    let mut table = Table::new("theorems", "The worst over all networks", &["algorithm"], &columns);
    for algorithm in ALGORITHMS {
        let worst = Worst::of(algorithm.rule);
        let [type_1, type_2] = scenario_a(algorithm.rule);
        let cells = [worst.least_total, worst.most_on_a_path, type_1, type_2, worst.on_the_worse];
        table.row([algorithm.title], cells.map(|value| Cell::from(Estimate::from(value))));
    }
    let of = |algorithm: Algorithm, column: &str| table.estimate(&[algorithm.title], column);
    let verdicts = vec![
        Verdict::new("goals", "OLIA meets the first two goals of LIA.")
            .at_least("least in all, OLIA", of(OLIA, "least in all"), 1.0 - EXACT)
            .at_most("most on a path, OLIA", of(OLIA, "most on a path"), 1.0 + EXACT),
        Verdict::new("pareto", "OLIA is Pareto optimal: nobody could get more without loss to another.")
            .at_least("type 1, OLIA", of(OLIA, "type 1 in scenario A"), 1.0 - EXACT)
            .at_least("type 2, OLIA", of(OLIA, "type 2 in scenario A"), 1.0 - EXACT),
        Verdict::new("lia_is_not", "LIA is not: users of type 2 could get more without loss to type 1.")
            .at_least("type 1, LIA", of(LIA, "type 1 in scenario A"), 1.0 - EXACT)
            .at_most("type 2, LIA", of(LIA, "type 2 in scenario A"), 0.8),
        Verdict::new("balance", "With equal round trips OLIA balances the load as the optimal algorithm does.")
            .at_most("part on the path that loses twice as much, OLIA", of(OLIA, "part on the worse path"), EXACT)
            .at_most("the same, fully coupled", of(COUPLED, "part on the worse path"), EXACT),
    ];
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}
