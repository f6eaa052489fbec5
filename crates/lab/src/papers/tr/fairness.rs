//! What Tables 3 and 4 have in common: Jain's index of a session and a TCP flow, and when the
//! shared bottleneck was found.

use super::sessions::{COUPLED, Case, OURS, SESSIONS, SSC, Seen, TR, UNCOUPLED};
use crate::{Axis, Cell, Estimate, Figure, Series, Table, Verdict};

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
            indices[TR].paper = Some(*tr);
            indices[SSC].paper = Some(*ssc);
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

/// An index is as printed where it is no further off than this: the printed ones of two sessions that hardly
/// differ are that far apart (Table 4, E1 and E2).
const TOLERANCE: f64 = 0.02;

/// The claims that both tables support, row by row.
pub(super) fn verdicts([jain, ratio, first]: &[Table; 3], why: &Reasons<'_>) -> Vec<Verdict> {
    let [mut fair, mut fair_ssc, mut fairer, mut sooner] = [
        Verdict::new("TR is fair", "A session with LIA-TR is as fair as printed: Jain's index within 0.02."),
        Verdict::new("SSC is fair", "A session with LIA-SSC is as fair as printed: Jain's index within 0.02."),
        Verdict::new("TR is fairer", "LIA-TR is fairer than LIA-SSC where the printed indices say so."),
        Verdict::new("TR is first", "TR finds the shared bottleneck before SSC."),
    ];
    for ((heads, indices), (_, found)) in jain.rows.iter().zip(&first.rows) {
        let name = &heads[0];
        let off = |at: usize| indices[at].estimate() - indices[at].paper.unwrap_or(f64::NAN);
        fair = fair.between(&format!("{name}, index, ours − printed"), off(TR), -TOLERANCE, TOLERANCE);
        fair_ssc = fair_ssc.between(&format!("{name}, index, ours − printed"), off(SSC), -TOLERANCE, TOLERANCE);
        if indices[TR].paper > indices[SSC].paper {
            let gain = indices[TR].estimate() - indices[SSC].estimate();
            fairer = fairer.at_least(&format!("{name}, index, LIA-TR − LIA-SSC"), gain, 0.0);
        }
        let lead = found[TR].estimate() - found[SSC].estimate();
        sooner = sooner.at_most(&format!("{name}, first yes in s, TR − SSC"), lead, 0.0);
    }
    let mut verdicts = vec![fair.because(why.fair), fair_ssc.because(why.fair)];
    // The quick form has one row, in which the printed indices may say nothing.
    verdicts.extend((!fairer.checks.is_empty()).then(|| fairer.because(why.fairer)));
    verdicts.push(sooner.because(why.first));
    verdicts.extend(our_claims(jain, ratio, first, why));
    verdicts
}

fn our_claims(jain: &Table, ratio: &Table, first: &Table, why: &Reasons<'_>) -> [Verdict; 3] {
    let mean = |at: usize| Estimate::mean_of(jain.rows.iter().map(|(_, cells)| cells[at].estimate()));
    let most = Estimate::largest(ratio.rows.iter().map(|(_, cells)| cells[TR].estimate()));
    let mut ours = Verdict::ours("ours", "Ours finds the shared bottleneck no later than SSC, and is no less fair.");
    for (heads, found) in &first.rows {
        let lead = found[OURS].estimate() - found[SSC].estimate();
        ours = ours.at_most(&format!("{}, first yes in s, ours − SSC", heads[0]), lead, 0.0);
    }
    [
        Verdict::ours("detection pays", "A session with LIA-TR is fairer than an uncoupled one.")
            .at_least("mean of Jain's index, LIA-TR − uncoupled", mean(TR) - mean(UNCOUPLED), 0.0)
            .because(why.fairer),
        Verdict::ours("no harm", "A session with LIA-TR takes no more than twice a TCP flow's rate.").at_most(
            "most of all cases, in parts of a TCP flow's rate",
            most,
            2.0,
        ),
        ours.at_least("mean of Jain's index, ours − LIA-SSC", mean(OURS) - mean(SSC), -0.005).because(why.ours),
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
