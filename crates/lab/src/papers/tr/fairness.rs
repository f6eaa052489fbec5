//! What Tables 3 and 4 have in common: Jain's index of a session and a TCP flow, and when the
//! shared bottleneck was found.

use super::sessions::{COUPLED, Case, OURS, SESSIONS, SSC, Seen, TR, UNCOUPLED};
use crate::{Axis, Cell, Figure, Series, Table, Verdict};

/// The paper's indices of a case: LIA-SSC and LIA-TR.
pub(super) type Printed = (&'static str, f64, f64);

/// Jain's index, rates in parts of a TCP flow's, and when it was found.
pub(super) fn tables(cases: &[Case], seen: &[Vec<Seen>], printed: &[Printed]) -> [Table; 3] {
    let make = |name, title: &str, unit| {
        Table::new(name, title, &["experiment"], &SESSIONS.map(|session| (session.title, unit)))
    };
    let end = cases.first().map_or(0.0, |case| case.duration.as_secs_f64());
    let mut jain = make("jain", "Jain's index of a session and a TCP flow (eq. 19)", "");
    let mut ratio = make("ratio", "The rate of a session in parts of a TCP flow's", "");
    let title = format!("When the shared bottleneck is found; {end} s stands for never");
    let mut first = Table::new("first", &title, &["experiment"], &[TR, SSC, OURS].map(|at| (SESSIONS[at].title, "s")));
    for (case, runs) in cases.iter().zip(seen) {
        let of = |value: &dyn Fn(&Seen, usize) -> f64| {
            [TR, SSC, OURS, COUPLED, UNCOUPLED].map(|session| Cell::of(runs.iter().map(|run| value(run, session))))
        };
        let mut indices = of(&Seen::jain);
        if let Some((_, ssc, tr)) = printed.iter().find(|(name, ..)| *name == case.name) {
            indices[TR] = indices[TR].paper(*tr);
            indices[SSC] = indices[SSC].paper(*ssc);
        }
        jain.row([case.name], indices);
        ratio.row([case.name], of(&Seen::ratio));
        let found = [TR, SSC, OURS].map(|session| Cell::of(runs.iter().map(|run| run.first(session))));
        first.row([case.name], found);
    }
    [jain, ratio, first]
}

/// Why claims do not hold, where they do not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons<'a> {
    pub(super) fair: &'a str,
    pub(super) fairer: &'a str,
    pub(super) first: &'a str,
    pub(super) ours: &'a str,
}

/// The claims that both tables support.
pub(super) fn verdicts([jain, ratio, first]: &[Table; 3], tr_fairer: f64, why: &Reasons<'_>) -> Vec<Verdict> {
    let mean = |at: usize| jain.rows.iter().map(|(_, cells)| cells[at].mean()).sum::<f64>() / jain.rows.len() as f64;
    let printed = |at: usize| {
        let numbers = jain.rows.iter().filter_map(|(_, cells)| cells[at].paper);
        numbers.sum::<f64>() / jain.rows.len() as f64
    };
    let part = |table: &Table, holds: &dyn Fn(&[Cell]) -> bool| {
        table.rows.iter().filter(|(_, cells)| holds(cells)).count() as f64 / table.rows.len() as f64
    };
    let higher = part(jain, &|cells| cells[TR].mean() > cells[SSC].mean());
    let sooner = part(first, &|cells| cells[TR].mean() < cells[SSC].mean());
    let ours_in_time = part(first, &|cells| cells[OURS].mean() <= cells[SSC].mean());
    let most = ratio.rows.iter().map(|(_, cells)| cells[TR].mean()).fold(0.0, f64::max);
    vec![
        Verdict::new("TR is fair", "A session with LIA-TR is about as fair as printed.")
            .at_least("mean of Jain's index, LIA-TR − printed", mean(TR) - printed(TR), -0.02)
            .because(why.fair),
        Verdict::new("TR is fairer", "LIA-TR is fairer than LIA-SSC in as many cases as printed.")
            .at_least("part of the cases", higher, tr_fairer)
            .because(why.fairer),
        Verdict::new("TR is first", "TR finds the shared bottleneck before SSC.")
            .at_least("part of the cases", sooner, 1.0)
            .because(why.first),
        Verdict::new("detection pays", "A session with LIA-TR is fairer than an uncoupled one.")
            .at_least("mean of Jain's index, LIA-TR − uncoupled", mean(TR) - mean(UNCOUPLED), 0.0)
            .because(why.fairer),
        Verdict::new("no harm", "A session with LIA-TR takes no more than twice a TCP flow's rate.").at_most(
            "most of all cases, in parts of a TCP flow's rate",
            most,
            2.0,
        ),
        Verdict::new("ours", "Ours finds the shared bottleneck no later than SSC, and is no less fair.")
            .at_least("part of the cases, found no later", ours_in_time, 1.0)
            .at_least("mean of Jain's index, ours − LIA-SSC", mean(OURS) - mean(SSC), -0.005)
            .because(why.ours),
    ]
}

/// Rates over time of the sessions of the paper's figures 8 and 9, and of a TCP flow of each path.
pub(super) fn rates(name: &str, title: &str, run: &Seen) -> Figure {
    let panels = [SSC, TR, OURS, UNCOUPLED];
    panels.into_iter().fold(Figure::new(name, title), |figure, session| {
        let one = SESSIONS[session];
        let series = vec![
            Series::new("tcp1-1", "reno", run.rates(5, 1)),
            Series::new("tcp2-1", "olia", run.rates(6, 1)),
            Series::new(one.title, one.colour, run.rates(session, 1)),
        ];
        let title = match run.found(session) {
            Some(found) => format!("{}, found at {found:.1} s", one.title),
            None if session == UNCOUPLED => one.title.to_owned(),
            None => format!("{}, not found", one.title),
        };
        figure.lines(&title, Axis::new("time", "s"), Axis::new("rate", "Mbit/s"), series)
    })
}
