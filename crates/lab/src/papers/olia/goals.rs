//! The three goals of LIA, in the fluid model (slide 6).
//!
//! # Claim
//!
//! LIA gets at least what TCP gets on the best path, is no more aggressive than a TCP on any path, and does
//! not fully balance congestion.
//!
//! # Topology
//!
//! ```text
//!   user ──┬── path 1, loses p1 ──►
//!          └── path 2, loses p2 ──►
//!   TCP ────── path 1 or 2 ───────► what a user is compared with
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | p1 | 0.0001, 0.001, 0.01 | assumed |
//! | p2 / p1 | 1, 1.5, 2, 4, 10 | assumed |
//! | round-trip times | path 1 100 ms; path 2 20 to 500 ms, or as path 1 for the third goal | assumed |
//! | least window | none: routes that are not worth using are not probed | assumed: so the model has it |
//!
//! # Deviations
//!
//! - Nothing is simulated: where rates settle is solved for, window by window.
//! - The losses are given, and do not depend on what is sent.

use core::time::Duration;

use fairpath_theory::FluidRule;

use super::algorithms::{Algorithm, BALIA, COUPLED, LIA, OLIA, UNCOUPLED};
use crate::fluid::{rates, tcp};
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/goals", include_str!("goals.rs"), run);

const ALGORITHMS: [Algorithm; 5] = [UNCOUPLED, LIA, BALIA, OLIA, COUPLED];
const LOSSES: [f64; 3] = [1e-4, 1e-3, 1e-2];
const RATIOS: [f64; 5] = [1.0, 1.5, 2.0, 4.0, 10.0];
const RTT: Duration = Duration::from_millis(100);
const OTHER_RTTS: [u64; 5] = [20, 50, 100, 200, 500];
/// The solver leaves an imbalance of this order.
const EXACT: f64 = 1e-3;

/// The worst that any two paths make of an algorithm, in parts of what TCP gets there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worst {
    /// The least rate in all, over that of TCP on the best path.
    pub(super) least_total: f64,
    /// The largest rate on a path, over that of TCP there.
    pub(super) most_on_a_path: f64,
    /// The largest rate in all, over that of TCP on the best path.
    pub(super) most_total: f64,
    /// The share of traffic on the path that loses twice as much, at equal round-trip times.
    pub(super) on_the_worse: f64,
}

impl Worst {
    /// The worst over all paths above; every field is NaN if any case does not settle.
    pub(super) fn of(rule: FluidRule) -> Self {
        let none = Self { least_total: f64::INFINITY, most_on_a_path: 0.0, most_total: 0.0, on_the_worse: 0.0 };
        let pairs = LOSSES.iter().flat_map(|loss| RATIOS.map(|ratio| (*loss, ratio)));
        let mut all = pairs.flat_map(|(loss, ratio)| OTHER_RTTS.map(|rtt| (loss, ratio, ms(rtt))));
        let worst = all.try_fold(none, |worst, (loss, ratio, rtt)| {
            let paths = [(loss, RTT), (loss * ratio, rtt)];
            let ours = rates(rule, &paths)?;
            let tcp = [tcp(paths[0])?, tcp(paths[1])?];
            let (total, best) = (ours[0] + ours[1], f64::max(tcp[0], tcp[1]));
            let on_the_worse = if rtt == RTT && ratio == 2.0 { ours[1] / total } else { 0.0 };
            Some(Self {
                least_total: worst.least_total.min(total / best),
                most_on_a_path: worst.most_on_a_path.max(ours[0] / tcp[0]).max(ours[1] / tcp[1]),
                most_total: worst.most_total.max(total / best),
                on_the_worse: worst.on_the_worse.max(on_the_worse),
            })
        });
        let unknown = f64::NAN;
        worst.unwrap_or(Self {
            least_total: unknown,
            most_on_a_path: unknown,
            most_total: unknown,
            on_the_worse: unknown,
        })
    }
}

fn run(_: &Context) -> Result<Report, Failure> {
    let columns =
        [("least in all", "TCP on the best path"), ("most on a path", "TCP there"), ("part on the worse path", "")];
    let title = "The worst over all paths; the part is that where path 2 loses twice as much, with equal round trips";
    let mut table = Table::new("goals", title, &["algorithm"], &columns);
    let worst = ALGORITHMS.map(|algorithm| Worst::of(algorithm.rule));
    for (algorithm, worst) in ALGORITHMS.iter().zip(&worst) {
        let cells = [worst.least_total, worst.most_on_a_path, worst.on_the_worse];
        table.row([algorithm.title], cells.map(|value| Cell::from(Estimate::from(value))));
    }
    let of = |algorithm: Algorithm| worst[ALGORITHMS.iter().position(|one| *one == algorithm).expect("it is one")];
    let verdicts =
        vec![
            Verdict::new("throughput", "First goal: LIA gets at least what TCP gets on the best path.").at_least(
                "least in all, LIA",
                of(LIA).least_total,
                1.0 - EXACT,
            ),
            Verdict::new("no_harm", "Second goal: LIA is no more aggressive than a TCP on any path.").at_most(
                "most on a path, LIA",
                of(LIA).most_on_a_path,
                1.0 + EXACT,
            ),
            Verdict::new("not_balanced", "Third goal: LIA does not fully meet it, it sends on a path that loses more.")
                .at_least("part on the path that loses twice as much, LIA", of(LIA).on_the_worse, 0.1),
            Verdict::ours("uncoupled_harms", "Without coupling a user gets far more than TCP on the best path.")
                .at_least("most in all, uncoupled", of(UNCOUPLED).most_total, 1.9),
        ];
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}
