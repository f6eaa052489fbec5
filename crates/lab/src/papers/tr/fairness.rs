//! Shared by Tables 3 and 4: Jain's index of a session and a TCP flow, and when the shared bottleneck
//! was found.

use super::sessions::{ALONE, COUPLED, Case, OURS, SESSIONS, SSC, Seen, TR, TR_WITHOUT_HOLD, UNCOUPLED};
use crate::{Axis, Cell, Context, Estimate, Failure, Figure, Series, Table, Verdict};

/// The paper's indices of a case: LIA-SSC and LIA-TR.
pub(super) type Printed = (&'static str, f64, f64);

/// All sessions, in the order of their columns.
const ORDER: [usize; SESSIONS.len()] = [TR, SSC, OURS, COUPLED, UNCOUPLED, TR_WITHOUT_HOLD];

/// The sessions that detect.
const DETECTING: [usize; 4] = [TR, SSC, OURS, TR_WITHOUT_HOLD];

/// The cases with each of what uncoupled paths may follow, in this order, and what was seen of each.
pub(super) struct Runs {
    cases: Vec<Case>,
    pub(super) seen: Vec<Vec<Seen>>,
}

impl Runs {
    pub(super) fn of(context: &Context, cases: &[Case], seeds: u32) -> Result<Self, Failure> {
        let with = |alone| cases.iter().map(move |case| Case { alone, ..case.clone() });
        let cases: Vec<Case> = ALONE.iter().flat_map(|(_, alone)| with(*alone)).collect();
        let seen = context.sweep(&cases, &context.seeds(seeds), Case::run)?;
        Ok(Self { cases, seen })
    }

    /// Jain's index, rates in parts of a TCP flow's, and when it was found.
    pub(super) fn tables(&self, printed: &[Printed]) -> [Table; 3] {
        let heads = ["experiment", "uncoupled"];
        let make =
            |name, title: &str, unit| Table::new(name, title, &heads, &SESSIONS.map(|session| (session.title, unit)));
        let end = self.cases.first().map_or(0.0, |case| case.duration.as_secs_f64());
        let mut jain = make("jain", "Jain's index of a session and a TCP flow (eq. 19)", "");
        let mut ratio = make("ratio", "The rate of a session in parts of a TCP flow's", "");
        let title = format!("When the shared bottleneck is found; {end} s stands for never");
        let mut first = Table::new("first", &title, &heads, &DETECTING.map(|at| (SESSIONS[at].title, "s")));
        for (case, runs) in self.cases.iter().zip(&self.seen) {
            let alone = ALONE.iter().find(|(_, alone)| *alone == case.alone).map_or("", |(name, _)| name);
            let of = |value: &dyn Fn(&Seen, usize) -> f64| {
                ORDER.map(|session| Cell::of(runs.iter().map(|run| value(run, session))))
            };
            let mut indices = of(&Seen::jain);
            if let Some((_, ssc, tr)) = printed.iter().find(|(name, ..)| *name == case.name) {
                indices[TR].paper = Some(*tr);
                indices[SSC].paper = Some(*ssc);
            }
            jain.row([case.name, alone], indices);
            ratio.row([case.name, alone], of(&Seen::ratio));
            let found = DETECTING.map(|session| Cell::of(runs.iter().map(|run| run.first(session))));
            first.row([case.name, alone], found);
        }
        [jain, ratio, first]
    }
}

/// Why claims do not hold, where they do not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons<'a> {
    pub(super) fair: &'a str,
    pub(super) fairer: &'a str,
    pub(super) first: &'a str,
    pub(super) pays: &'a str,
    pub(super) ours: &'a str,
}

/// An index is as printed where it is no further off than this: the printed ones of two sessions that hardly
/// differ are that far apart (Table 4, E1 and E2).
const TOLERANCE: f64 = 0.02;

/// The claims that both tables support, row by row, for each of what uncoupled paths may follow.
pub(super) fn verdicts(tables: &[Table; 3], why: &Reasons<'_>) -> Vec<Verdict> {
    ALONE.iter().flat_map(|(alone, _)| verdicts_with(alone, tables, why)).collect()
}

fn verdicts_with(alone: &str, [jain, ratio, first]: &[Table; 3], why: &Reasons<'_>) -> Vec<Verdict> {
    let named = |name: &str| format!("{name} ({alone})");
    let claim = |claim: &str| format!("{claim} Uncoupled, its paths follow {alone}.");
    let paper = |name, text| Verdict::new(&named(name), &claim(text));
    let ours = |name, text| Verdict::ours(&named(name), &claim(text));
    let [mut fair, mut fair_ssc, mut fairer, mut sooner] = [
        paper("TR is fair", "A session with LIA-TR is as fair as printed: Jain's index within 0.02."),
        paper("SSC is fair", "A session with LIA-SSC is as fair as printed: Jain's index within 0.02."),
        paper("TR is fairer", "LIA-TR is fairer than LIA-SSC where the printed indices say so."),
        paper("TR is first", "TR finds the shared bottleneck before SSC."),
    ];
    let [mut pays, mut no_harm, mut concordance] = [
        ours("detection pays", "A session with LIA-TR is fairer than an uncoupled one."),
        ours("no harm", "A session with LIA-TR takes no more than twice a TCP flow's rate."),
        ours("ours", "Ours finds the shared bottleneck no later than SSC, and is no less fair by more than 0.02."),
    ];
    let rows = jain.rows.iter().zip(&ratio.rows).zip(&first.rows);
    for (((heads, indices), (_, ratios)), (_, found)) in rows.filter(|(((heads, _), _), _)| heads[1] == alone) {
        let name = &heads[0];
        let off = |at: usize| indices[at].estimate() - indices[at].paper.unwrap_or(f64::NAN);
        let index = |one: usize, other: usize| indices[one].estimate() - indices[other].estimate();
        let found = |session: usize| {
            let column = DETECTING.iter().position(|one| *one == session);
            column.map_or_else(Estimate::unknown, |column| found[column].estimate())
        };
        fair = fair.between(&format!("{name}, index, ours − printed"), off(TR), -TOLERANCE, TOLERANCE);
        fair_ssc = fair_ssc.between(&format!("{name}, index, ours − printed"), off(SSC), -TOLERANCE, TOLERANCE);
        if indices[TR].paper > indices[SSC].paper {
            fairer = fairer.at_least(&format!("{name}, index, LIA-TR − LIA-SSC"), index(TR, SSC), 0.0);
        }
        sooner = sooner.at_most(&format!("{name}, first yes in s, TR − SSC"), found(TR) - found(SSC), 0.0);
        pays = pays.at_least(&format!("{name}, index, LIA-TR − uncoupled"), index(TR, UNCOUPLED), 0.0);
        no_harm = no_harm.at_most(&format!("{name}, in parts of a TCP flow's rate"), ratios[TR].estimate(), 2.0);
        concordance = concordance
            .at_most(&format!("{name}, first yes in s, ours − SSC"), found(OURS) - found(SSC), 0.0)
            .at_least(&format!("{name}, index, ours − LIA-SSC"), index(OURS, SSC), -TOLERANCE);
    }
    let mut verdicts = vec![fair.because(why.fair), fair_ssc.because(why.fair)];
    // The quick form has one row, in which the printed indices may say nothing.
    verdicts.extend((!fairer.checks.is_empty()).then(|| fairer.because(why.fairer)));
    verdicts.extend([sooner.because(why.first), pays.because(why.pays), no_harm, concordance.because(why.ours)]);
    verdicts
}

/// Rates over time of the sessions of the paper's figures 8 and 9, and of a TCP flow of each path.
pub(super) fn rates(name: &str, title: &str, run: &Seen) -> Figure {
    let panels = [SSC, TR, OURS, UNCOUPLED];
    panels.into_iter().fold(Figure::new(name, title), |figure, session| {
        let one = SESSIONS[session];
        let series = vec![
            Series::new("tcp1-1", "reno", run.tcp_rates(0, 1)),
            Series::new("tcp2-1", "olia", run.tcp_rates(1, 1)),
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
