//! A good and a congested path: the windows over time (slide 24).
//!
//! # Claim
//!
//! Where the second path is congested, OLIA uses only the first one, while LIA sends on both.
//!
//! # Topology
//!
//! ```text
//!                       ┌── 1, 10 Mbit/s, RED ──┐
//!   multipath (M) ──────┤                       ├── M
//!                       └── 2, 10 Mbit/s, RED ──┘
//!   5 TCP flows ─────────── 1 ──────────────────── T
//!   10 TCP flows ────────── 2 ──────────────────── T
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | capacity | 10 Mbit/s each | paper (CoNEXT 2012, from memory) |
//! | others | 5 TCP flows on path 1, 10 on path 2 | paper (CoNEXT 2012, from memory) |
//! | round-trip time | 80 ms and the queues | assumed |
//! | queues | RED as in `olia/scenario_a` | assumed |
//! | least window | 1 packet | paper |
//! | duration | 120 s, measured from 20 s on; windows every 100 ms | assumed |
//!
//! # Deviations
//!
//! - The slide shows curves and no numbers.

use super::algorithms::{LIA, OLIA};
use super::traces;
use crate::{Context, Experiment, Failure, Report, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/asymmetric", include_str!("asymmetric.rs"), run);

fn run(context: &Context) -> Result<Report, Failure> {
    let runs = traces::run(context, [5, 10])?;
    let table = traces::table(&runs);
    let ours = |algorithm, column| traces::ours(&table, algorithm, column);
    let verdicts = vec![
        Verdict::new("olia_leaves_path_2", "OLIA sends clearly less on the congested path than LIA does.").at_most(
            "path 2, OLIA / LIA",
            ours(OLIA, "path 2") / ours(LIA, "path 2"),
            0.6,
        ),
        Verdict::new("olia_only_probes", "What OLIA sends there is little more than it takes to probe the path.")
            .at_most("window 2, OLIA [packets]", ours(OLIA, "window 2"), 2.0)
            .because(
                "For two thirds of the time the window is at most 2 packets, which is what probing takes. For the rest \
                 it is up to 10: which path is the best is judged by two intervals between losses, which scatter, so \
                 that now and then path 2 looks better, and α moves windows to it.",
            ),
        Verdict::ours("nothing_is_lost", "In all, OLIA gets what LIA gets.").within(
            "path 1 + path 2, OLIA / LIA",
            (ours(OLIA, "path 1") + ours(OLIA, "path 2")) / (ours(LIA, "path 1") + ours(LIA, "path 2")),
            1.0,
            0.1,
        ),
    ];
    let figures = vec![traces::figure("Windows on a good and a congested path, first seed", &runs)];
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}
