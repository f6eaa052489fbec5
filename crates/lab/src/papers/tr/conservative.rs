//! What coupling costs where no bottleneck is shared: equations 2 and 3.
//!
//! # Claim
//!
//! Coupled, a session gets no more than one flow on the best path; were each path on its own, it would get
//! the sum of what flows get on all paths.
//!
//! # Topology
//!
//! ```text
//!   session ──┬── path 1, loses p1 ──►
//!             └── path 2, loses p2 ──►
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | coupled | LIA | paper |
//! | uncoupled | Reno on each path | paper |
//! | p1 | 0.001 | assumed |
//! | p2 / p1, round-trip times | see the table | assumed |
//!
//! # Deviations
//!
//! - Nothing is simulated: where rates settle is solved for, at losses that are given.

use core::time::Duration;

use fairpath_theory::FluidRule;

use crate::fluid::{rates, tcp};
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/conservative", include_str!("conservative.rs"), run);

const LOSS: f64 = 1e-3;
/// Losses of path 2 in parts of those of path 1, and the round-trip times in ms.
const PATHS: [(f64, [u64; 2]); 6] =
    [(1.0, [100, 100]), (2.0, [100, 100]), (4.0, [100, 100]), (1.0, [100, 50]), (1.0, [50, 200]), (4.0, [100, 40])];
/// The solver leaves an imbalance of this order.
const EXACT: f64 = 1e-2;

fn run(_: &Context) -> Result<Report, Failure> {
    let columns = [("best path", "Mbit/s"), ("sum of both", "Mbit/s"), ("LIA", "Mbit/s"), ("uncoupled", "Mbit/s")];
    let title = "Rates of a TCP on the best path and on both, and of a session on both";
    let mut table = Table::new("conservative", title, &["p2 / p1", "round trips [ms]"], &columns);
    let mut coupled = Verdict::new("eq_2", "Coupled, a session gets what one flow gets on the best path.");
    let mut sum = Verdict::new("eq_3", "Uncoupled, it gets the sum of what flows get on both.");
    for (ratio, round_trips) in PATHS {
        let rtts = round_trips.map(Duration::from_millis);
        let paths = [(LOSS, rtts[0]), (ratio * LOSS, rtts[1])];
        let alone = paths.map(|path| tcp(path).unwrap_or(f64::NAN));
        let session = |rule| rates(rule, &paths).map_or(f64::NAN, |rates| rates.iter().sum());
        let (best, both) = (f64::max(alone[0], alone[1]), alone[0] + alone[1]);
        let (lia, uncoupled): (f64, f64) = (session(FluidRule::Lia), session(FluidRule::Reno));
        let [one, two] = round_trips;
        let heads = [ratio.to_string(), format!("{one}, {two}")];
        let cells = [best, both, lia, uncoupled].map(|value| Cell::from(Estimate::from(value)));
        table.push(&heads.each_ref().map(String::as_str), &cells);
        let what = format!("p2 / p1 {ratio}, {one} and {two} ms");
        coupled = coupled.within(&format!("{what}, LIA / best path"), lia / best, 1.0, EXACT);
        sum = sum.within(&format!("{what}, uncoupled / sum of both"), uncoupled / both, 1.0, EXACT);
    }
    Ok(Report { tables: vec![table], verdicts: vec![coupled, sum], ..Report::default() })
}
