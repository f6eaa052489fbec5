//! Scenario C: users with a second path through an access point that others need.
//!
//! # Claim
//!
//! With LIA users with two paths take more from users with one than an optimal algorithm would; with
//! OLIA they take less.
//!
//! # Topology
//!
//! ```text
//!   multipath, N1 users ──┬──► access point 1, N1 · C1 ──►
//!                         └──► access point 2, N2 · C2 ──►
//!   single path, N2 users ───► access point 2, N2 · C2 ──►
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | N1, N2 | 10 and 10, 30 and 10 | paper (CoNEXT 2012) |
//! | C1, C2 | 1 Mbit/s | paper (CoNEXT 2012) |
//! | round-trip time | 120 ms and the queues | assumed: with one queue it is the paper's 150 ms |
//! | queues | RED: for each 10 Mbit/s, probability 0 up to 25 packets, 0.1 at 50, 1 at 100 | paper (the testbed of CoNEXT 2012) |
//! | weight of RED | 0.01 | assumed |
//! | packets | 1500 B, all of it counted, each acknowledged | assumed: so theory counts |
//! | least window | 1 packet | paper: probing costs one packet per round trip |
//! | duration | 300 s, measured from 20 s on | assumed; the paper has 120 s |
//!
//! # Deviations
//!
//! - The slides do not show this scenario; its numbers are those of the measurements they report on
//!   (draft-khalili-mptcp-performance-issues).
//! - The paper runs the TCP of Linux 3.0 on a testbed; here the sender is RFC 9002's.

use fairpath_core::Bitrate;
use fairpath_theory::{ScenarioC, probing_rate};

use super::algorithms::{Algorithm, BALIA, LIA, OLIA, PACKET};
use super::load_balancing::{Published, Study, USERS, ours};
use super::two_routers::{Layout, RTT};
use crate::{Cell, Context, Experiment, Failure, Report, Source, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/scenario_c", include_str!("scenario_c.rs"), run);

const STUDY: Study = Study {
    layout: Layout::Parallel,
    users: ["multipath", "single path"],
    routers: ["access point 1", "access point 2"],
    published: &[
        published(10, LIA, [1.30, 0.68]),
        published(30, LIA, [1.19, 0.38]),
        published(10, OLIA, [1.11, 0.88]),
        published(30, OLIA, [1.10, 0.72]),
    ],
};

const fn published(users: u32, algorithm: Algorithm, draft: [f64; 2]) -> Published {
    Published { users, algorithm, slides: None, draft, loss: [None; 2] }
}

/// The draft's rates of a user with two paths and of one with one, with probing.
const DRAFT_OPTIMUM: [[f64; 2]; 2] = [[1.04, 0.94], [1.04, 0.8]];

fn run(context: &Context) -> Result<Report, Failure> {
    let runs = STUDY.run(context)?;
    let (rates, conditions, optimum) = (runs.rates(), runs.conditions(), optimum());
    let verdicts = verdicts(&rates, &optimum);
    let figures = vec![runs.figure(&rates)];
    let notes = vec![
        "No single rate of probing gives all of the draft's optima: 1.04 is that of 40 kbit/s, 0.94 of 60 kbit/s and \
         0.8 of 67 kbit/s."
            .to_owned(),
    ];
    Ok(Report { tables: vec![rates, optimum, conditions], figures, verdicts, notes, ..Report::default() })
}

/// Users' rates under an optimal algorithm that sends a packet per round trip on every path.
fn optimum() -> Table {
    let columns = [
        ("single path without probing", "Mbit/s"),
        ("multipath with probing", "Mbit/s"),
        ("single path with probing", "Mbit/s"),
    ];
    let title = "The optimum; in theory with one packet of 1500 B per 150 ms on the second path";
    let mut table = Table::new("optimum", title, &["N1/N2"], &columns);
    for (users, [multipath, single]) in USERS.into_iter().zip(DRAFT_OPTIMUM) {
        let capacity = Bitrate::from_mbps(1);
        let scenario = ScenarioC {
            multipath_users: users,
            single_users: 10,
            multipath_capacity: capacity,
            single_capacity: capacity,
        };
        let (free, probed) = (scenario.optimum(Bitrate::ZERO), scenario.optimum(probing_rate(RTT, PACKET)));
        let cell = |theory: Bitrate, draft| Cell::EMPTY.theory(theory.as_mbps_f64()).elsewhere(Source::Draft, draft);
        let cells = [cell(free.single, 1.0), cell(probed.multipath, multipath), cell(probed.single, single)];
        table.row([&format!("{users}/10")], cells);
    }
    table
}

fn verdicts(rates: &Table, optimum: &Table) -> Vec<Verdict> {
    let single = |users, algorithm| ours(rates, users, algorithm, "single path");
    let multipath = |users, algorithm| ours(rates, users, algorithm, "multipath");
    let best = |users: u32| {
        let cell = optimum.cell(&[&format!("{users}/10")], "single path with probing");
        cell.and_then(|cell| cell.theory).unwrap_or(f64::NAN)
    };
    vec![
        Verdict::new("lia_takes_too_much", "LIA divides the capacity about as the fixed point says.")
            .within("multipath, 10/10, LIA", multipath(10, LIA), 1.296, 0.06)
            .within("single path, 10/10, LIA", single(10, LIA), 0.704, 0.12)
            .within("multipath, 30/10, LIA", multipath(30, LIA), 1.172, 0.06)
            .within("single path, 30/10, LIA", single(30, LIA), 0.485, 0.12),
        Verdict::new("olia_takes_less", "OLIA leaves users with one path clearly more than LIA does.")
            .at_least("single path, 10/10, OLIA − LIA", single(10, OLIA) - single(10, LIA), 0.05)
            .at_least("single path, 30/10, OLIA − LIA", single(30, OLIA) - single(30, LIA), 0.05),
        Verdict::new("olia_is_nearly_optimal", "OLIA is close to the optimum with probing.")
            .at_least("single path, 10/10, OLIA − optimum", single(10, OLIA) - best(10), -0.06)
            .at_least("single path, 30/10, OLIA − optimum", single(30, OLIA) - best(30), -0.10)
            .because(
                "The second path loses two to three times as many packets as the first, which the two intervals between losses \
                 that OLIA judges by often do not show, so that α moves windows to the worse path.",
            ),
        Verdict::ours("balia_is_between", "BALIA, which is younger than the paper, is between the two.")
            .at_least("single path, 10/10, BALIA − LIA", single(10, BALIA) - single(10, LIA), 0.0)
            .at_most("single path, 10/10, BALIA − OLIA", single(10, BALIA) - single(10, OLIA), 0.0)
            .at_least("single path, 30/10, BALIA − LIA", single(30, BALIA) - single(30, LIA), 0.0)
            .at_most("single path, 30/10, BALIA − OLIA", single(30, BALIA) - single(30, OLIA), 0.0),
    ]
}
