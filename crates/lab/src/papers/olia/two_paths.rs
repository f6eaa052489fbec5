//! Two paths and a neighbour: load balancing is not only about fairness (slide 4).
//!
//! # Claim
//!
//! Without coupling a user with two paths gets 0.6 and 0.4 of a link and leaves a neighbour 0.6; an
//! optimal algorithm gets the same on one path and leaves the neighbour everything.
//!
//! # Topology
//!
//! ```text
//!   user with two paths ──┬─── x1 ───────────► link 1, C1 ──►
//!                         └─── x2 ──► link 2 ─► link 1
//!   neighbour ─────────────── y ───► link 2, C2 ──►
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | C1, C2 | 1, here 25 Mbit/s | paper; the unit is assumed |
//! | users | 5 with two paths, 5 neighbours | assumed, see the deviations |
//! | round-trip time | 150 ms on all paths, of which 30 ms for each queue | assumed: that of the testbed |
//! | queues | RED: probability 0 up to 25 packets, 0.1 at 50, 1 at 100 | assumed: that of the testbed |
//! | packets | 1500 B, all of it counted, each acknowledged | assumed: so theory counts |
//! | duration | 300 s, measured from 30 s on | assumed |
//!
//! # Deviations
//!
//! - The slide is a calculation for one user and one neighbour, and is judged by the fluid model; what packets
//!   do is a claim of ours. A single flow cannot fill a link
//!   behind these queues, so there are five of each.

use core::time::Duration;

use fairpath_core::Bitrate;

use super::algorithms::{Algorithm, BALIA, COUPLED, LIA, OLIA, OLIA_WITHOUT_ALPHA, UNCOUPLED};
use super::two_routers::{Case, Layout, RTT, Rates, Seen};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/two_paths", include_str!("two_paths.rs"), run)
    .left_to_full(&["coupled_in_packets", "olia_in_packets", "lia_is_in_between"]);

const ALGORITHMS: [Algorithm; 6] = [UNCOUPLED, LIA, BALIA, OLIA, OLIA_WITHOUT_ALPHA, COUPLED];
/// The number of users of each kind.
const USERS: u32 = 5;
/// For each user, in Mbit/s.
const CAPACITY: u64 = 5;

fn run(context: &Context) -> Result<Report, Failure> {
    let seconds = context.pick(60, 300);
    let cases = ALGORITHMS.map(|algorithm| Case {
        single_users: USERS,
        capacity: Bitrate::from_mbps(CAPACITY),
        base_rtt: [ms(120), ms(90), ms(120)],
        warm_up: Duration::from_secs(seconds / 10),
        ..Case::testbed(Layout::Nested, USERS, algorithm, Duration::from_secs(seconds))
    });
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 10)), Case::run)?;
    let columns = [("x1", "C"), ("x2", "C"), ("x1 + x2", "C"), ("y", "C")];
    let title = "Rates in units of the capacity; in theory with equal round trips";
    let mut table = Table::new("rates", title, &["algorithm"], &columns);
    for (case, runs) in cases.iter().zip(&seen) {
        let printed = printed(case.algorithm);
        let theory = case.equilibrium([RTT; 3]).ok();
        let cell = |at: usize, ours: &dyn Fn(&Seen) -> f64, theirs: fn(&Rates) -> f64| Cell {
            paper: printed.map(|printed| printed[at]),
            theory: theory.map(|theory| theirs(&theory) / CAPACITY as f64),
            ..Cell::of(runs.iter().map(|seen| ours(seen) / CAPACITY as f64))
        };
        let cells = [
            cell(0, &|seen| seen.path(0), |theory| theory.paths[0]),
            cell(1, &|seen| seen.path(1), |theory| theory.paths[1]),
            cell(2, &Seen::multipath, Rates::multipath),
            cell(3, &Seen::single, |theory| theory.single),
        ];
        table.row([case.algorithm.title], cells);
    }
    let verdicts = verdicts(&table);
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}

/// The slide's numbers for x1, x2, their sum, and y.
fn printed(algorithm: Algorithm) -> Option<[f64; 4]> {
    match algorithm {
        UNCOUPLED => Some([0.6, 0.4, 1.0, 0.6]),
        COUPLED => Some([1.0, 0.0, 1.0, 1.0]),
        _ => None,
    }
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let rate = |algorithm: Algorithm, column| table.estimate(&[algorithm.title], column);
    // The slide calculates; so what it says is compared with a calculation.
    let fluid = |algorithm: Algorithm, column| {
        table.cell(&[algorithm.title], column).and_then(|cell| cell.theory).unwrap_or(f64::NAN)
    };
    let mut gains = Verdict::ours("nothing_is_gained", "The user with two paths gets the same with every algorithm.");
    for algorithm in ALGORITHMS {
        gains = gains.within(&format!("x1 + x2, {}", algorithm.title), rate(algorithm, "x1 + x2"), 1.0, 0.05);
    }
    vec![
        Verdict::new("uncoupled_takes_much", "Without coupling the neighbour gets 0.6.")
            .within("x1, uncoupled, in theory", fluid(UNCOUPLED, "x1"), 0.6, 0.1)
            .within("x2, uncoupled, in theory", fluid(UNCOUPLED, "x2"), 0.4, 0.1)
            .within("y, uncoupled, in theory", fluid(UNCOUPLED, "y"), 0.6, 0.1),
        Verdict::new("coupled_takes_nothing", "With the optimal algorithm the neighbour gets everything.")
            .at_least("x1, fully coupled, in theory", fluid(COUPLED, "x1"), 0.95)
            .at_least("y, fully coupled, in theory", fluid(COUPLED, "y"), 0.9)
            .because("a window of one packet is left on path 2, which probes it."),
        gains,
        Verdict::ours("uncoupled_in_packets", "Packets do the same without coupling.")
            .within("x1, uncoupled", rate(UNCOUPLED, "x1"), 0.6, 0.1)
            .within("x2, uncoupled", rate(UNCOUPLED, "x2"), 0.4, 0.1)
            .within("y, uncoupled", rate(UNCOUPLED, "y"), 0.6, 0.1),
        Verdict::ours("coupled_in_packets", "In packets the optimal algorithm leaves the neighbour nearly everything.")
            .at_least("y, fully coupled", rate(COUPLED, "y"), 0.9)
            .because(
                "The losses of path 2 are twice those of path 1, but they come one by one: each moves half of both \
                 windows, so that the traffic flips, and path 2 carries some of it at any time.",
            ),
        Verdict::ours("olia_in_packets", "In packets OLIA leaves the neighbour nearly as much.")
            .at_least("y, OLIA", rate(OLIA, "y"), 0.9)
            .because(
                "Which path is the best is judged by two intervals between losses. Their lengths scatter by as much as \
                 they are long, so path 2 often looks better, and α then moves windows to it; without α the neighbour \
                 gets more.",
            ),
        Verdict::ours(
            "lia_is_in_between",
            "With LIA the neighbour gets more than without coupling, less than with OLIA.",
        )
        .at_least("y, LIA − uncoupled", rate(LIA, "y") - rate(UNCOUPLED, "y"), 0.0)
        .at_most("y, LIA − OLIA", rate(LIA, "y") - rate(OLIA, "y"), 0.0),
    ]
}
