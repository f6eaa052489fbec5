//! Two equally good paths: the windows over time (slide 23).
//!
//! # Claim
//!
//! Where both paths are equally good, OLIA uses both, and does not flip traffic between them.
//!
//! # Topology
//!
//! ```text
//!                       ┌── 1, 10 Mbit/s, RED ──┐
//!   multipath (M) ──────┤                       ├── M
//!                       └── 2, 10 Mbit/s, RED ──┘
//!   5 TCP flows ─────────── 1 ──────────────────── T
//!   5 TCP flows ─────────── 2 ──────────────────── T
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | capacity | 10 Mbit/s each; 40 Mbit/s where said | paper (CoNEXT 2012, from memory) |
//! | others | 5 TCP flows on each path | paper (CoNEXT 2012, from memory) |
//! | round-trip time | 80 ms and the queues | assumed |
//! | queues | RED as in `olia/scenario_a` | assumed |
//! | least window | 1 packet | paper |
//! | duration | 120 s, measured from 20 s on; windows every 100 ms | assumed |
//!
//! # Deviations
//!
//! - The slide shows curves and no numbers. How steady they are is measured in our own way: a flip is
//!   a move from where one path has at least 80 % of both windows to where the other has.

use fairpath_core::Bitrate;

use super::algorithms::{COUPLED, OLIA};
use super::traces;
use super::two_bottlenecks::Case;
use crate::{Context, Experiment, Failure, Report, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/symmetric", include_str!("symmetric.rs"), run);

fn run(context: &Context) -> Result<Report, Failure> {
    let others = [5, 5];
    let runs = traces::run(context, others)?;
    let mut table = traces::table(&runs);
    let larger = [traces::case(OLIA, Bitrate::from_mbps(40), others)];
    let larger = context.sweep(&larger, &context.seeds(context.pick(2, 10)), Case::run)?;
    table.row(["OLIA, 40 Mbit/s"], traces::cells(&larger[0]));
    let ours = |algorithm, column| traces::ours(&table, algorithm, column);
    let flips = ours(OLIA, "flips in 100 s") / ours(COUPLED, "flips in 100 s");
    let verdicts = vec![
        Verdict::new("olia_uses_both", "OLIA uses both paths alike.")
            .between("window 1 / window 2, OLIA", ours(OLIA, "window 1 / window 2"), 0.8, 1.25)
            .at_least("both above 2 packets, OLIA", ours(OLIA, "both above 2 packets"), 0.9)
            .because(
                "The windows are 8 packets on average, so two losses in a row leave 2 or fewer. With 40 Mbit/s instead \
                 of 10 the windows are four times as large, and above 2 packets nearly all the time.",
            ),
        Verdict::new("olia_is_not_flappy", "OLIA flips traffic between the paths far less than fully coupled does.")
            .at_most("flips, OLIA / fully coupled", flips, 0.5),
    ];
    let figures = vec![traces::figure("Windows on two equally good paths, first seed", &runs)];
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}
