//! How long packets wait on links with deep queues, with what people get who choose nothing and with the option for short
//! queues.
//!
//! # Claim
//!
//! Hybrid CUBIC keeps queues that nobody else fills below 15 ms, and carries 0.95 of what coupled CUBIC does; where others
//! fill them it gets 0.8 to 1.25 of one CUBIC.
//!
//! # Topology
//!
//! ```text
//!          ┌── 20 Mbit/s, 25 ms ──┐                ┌── 20 Mbit/s, 20 ms, queue ── ours
//!   ours ──┤                      ├── ours   ours ─┤
//!          └── 40 Mbit/s, 10 ms ──┘                └── the same link, or another one like it
//!                                          others ──── on one of them, or on each
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links alone | 20 Mbit/s and 25 ms, 40 Mbit/s and 10 ms, each way; queues of 100, 400 and 1,500 ms, drop-tail | assumed |
//! | cellular links | five recordings, with 20 ms each way and a queue of 3,000 packets; each seed begins elsewhere in them | assumed |
//! | two cellular links | two of them at once, of two operators each | assumed |
//! | sixteen profiles | 20 MiB over the pairs of links of `scenarios/profiles`, once | assumed |
//! | rates and round trips | one link of 2 to 500 Mbit/s with a round trip of 5 to 600 ms and a queue of 400 ms | assumed |
//! | live streams | an encoder that follows its budget, over 10 Mbit/s and 20 ms, 6 Mbit/s and 30 ms each way | assumed |
//! | unruly links | 20 Mbit/s, 20 ms each way, a queue of 400 ms; the policer of 20 Mbit/s with 100 kB before a link of 100 | assumed |
//! | in company | two paths over one link or two, each of 20 Mbit/s, a round trip of 40 ms and a queue of 20, 50, 200 ms or 1 s | assumed |
//! | others | one flow of CUBIC, Reno or BBRv3, or three of CUBIC, on each link | assumed |
//! | inelastic traffic | a quarter, half and three quarters of the link at a steady rate; transfers of 100 kB for half of it | assumed |
//! | somebody who leaves | one CUBIC from 20 to 50 s | assumed |
//! | ours beside ours | two and four connections of one path, 2 s apart, in a queue of 400 ms | assumed |
//! | reference | one flow of CUBIC in our place, seed by seed | assumed |
//! | rates and waits | from 5 to 60 s alone, 20 to 100 s in company, 15 to 90 s beside ours, 20 to 80 s of live streams | assumed |
//! | the same over many rates | 30 s from 20 round trips on, 5 s at least; 5 s of it at 500 Mbit/s | assumed |
//! | longest waits | round trips of our packets above the shortest one of the path | assumed |
//! | theory | the mean wait of the first link in the deterministic model | assumed: `fairpath_theory::short_queue_wait` |
//! | configuration | that of live connections | assumed |
//!
//! # Deviations
//!
//! - The quick form has some rows of each table, and from 15 to 35 s of each.
//! - Recordings that are not beside this project, in `shared/traces`, are left out, and a note says so.

mod alone;
mod company;
mod live;
mod profiles;
mod seen;
mod span;

use super::cell::{CONTENDERS, Contender, JUDGED_AT, OTHERS};
use crate::{Cell as Number, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/short_queues", include_str!("short_queues.rs"), run)
    .left_to_full(&["cellular, short", "one of two, fair"]);

/// The default.
const TODAY: Contender = CONTENDERS[JUDGED_AT];
/// Those that keep queues short and are compared where the goal is theirs.
const BBR: Contender = OTHERS[7];
const BBR3: Contender = CONTENDERS[7];

/// The part of a packet that is payload: 1,448 of 1,500 bytes.
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

/// One table, its verdicts, and the recordings that it had to leave out.
struct Section {
    table: Table,
    verdicts: Vec<Verdict>,
    missing: Option<String>,
}

fn run(context: &Context) -> Result<Report, Failure> {
    let seeds = context.seeds(context.pick(3, 4));
    let all = [
        alone::steady,
        alone::cellular,
        company::greedy,
        company::leaving,
        company::inelastic,
        company::ours,
        alone::unruly,
        company::one_of_two,
        profiles::profiles,
        span::span,
        live::live,
    ];
    // The quick form is too short for what others do to a queue.
    let parts = context.pick([0, 1, 7, 9, 10].map(|at| all[at]).to_vec(), all.to_vec());
    let mut report = Report::default();
    for part in parts {
        let Section { table, verdicts, missing } = part(context, &seeds)?;
        if !table.rows.is_empty() {
            report.tables.push(table);
        }
        report.verdicts.extend(verdicts);
        report.missing.extend(missing);
    }
    Ok(report)
}

/// The numbers of those at a place among several, seed by seed.
fn of_runs<const COLUMNS: usize>(runs: &[Vec<[f64; COLUMNS]>], at: usize) -> [Number; COLUMNS] {
    core::array::from_fn(|column| Number::of(runs.iter().map(|run| run[at][column])))
}
