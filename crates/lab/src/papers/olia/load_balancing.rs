//! Scenarios A and C as the paper has them: both with 10 and 30 users of two paths, LIA and OLIA
//! beside the fixed points and the optimum.

use core::time::Duration;

use super::algorithms::{Algorithm, BALIA, COUPLED, LIA, OLIA};
use super::two_routers::{Case, Layout, RTT, Seen};
use crate::{Axis, BarSeries, Cell, Context, Estimate, Failure, Figure, Source, Table};

/// The algorithms that are compared.
pub(super) const ALGORITHMS: [Algorithm; 4] = [LIA, OLIA, BALIA, COUPLED];
/// N1; N2 is 10.
pub(super) const USERS: [u32; 2] = [10, 30];

/// Published measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) users: u32,
    pub(super) algorithm: Algorithm,
    /// Mbit/s of a user with two paths, and of one with one, as the slides print them.
    pub(super) slides: Option<[f64; 2]>,
    /// The same in the draft that the slides are about.
    pub(super) draft: [f64; 2],
    /// The losses at router 1 and 2, there.
    pub(super) loss: [Option<f64>; 2],
}

/// A scenario, and what it calls its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Study {
    pub(super) layout: Layout,
    /// The users with two paths, and those with one.
    pub(super) users: [&'static str; 2],
    pub(super) routers: [&'static str; 2],
    pub(super) published: &'static [Published],
}

/// The runs of a scenario.
#[derive(Debug)]
pub(super) struct Runs {
    study: Study,
    cases: Vec<Case>,
    seen: Vec<Vec<Seen>>,
}

impl Study {
    /// Runs it.
    pub(super) fn run(self, context: &Context) -> Result<Runs, Failure> {
        let duration = Duration::from_secs(context.pick(60, 300));
        let case = |users: u32| ALGORITHMS.map(|algorithm| Case::testbed(self.layout, users, algorithm, duration));
        let cases: Vec<Case> = USERS.into_iter().flat_map(case).collect();
        let seen = context.sweep(&cases, &context.seeds(context.pick(2, 10)), Case::run)?;
        Ok(Runs { study: self, cases, seen })
    }

    fn published(&self, case: &Case) -> Option<&'static Published> {
        self.published.iter().find(|one| one.users == case.multipath_users && one.algorithm == case.algorithm)
    }
}

impl Runs {
    /// The rates of each user: the slides', the draft's, theory with equal round trips, and ours.
    pub(super) fn rates(&self) -> Table {
        let [multipath, single] = self.study.users;
        let columns = [(multipath, "Mbit/s"), ("of that on the shared path", "Mbit/s"), (single, "Mbit/s")];
        let title = "Rate of a user; in theory with a round-trip time of 150 ms on all paths";
        let mut table = Table::new("rates", title, &["N1/N2", "algorithm"], &columns);
        for (case, runs) in self.points() {
            let published = self.study.published(case);
            let theory = case.equilibrium([RTT; 3]).ok();
            let cell = |ours: fn(&Seen) -> f64, of: Option<usize>, theory| Cell {
                paper: of.and_then(|of| Some(published?.slides?[of])),
                elsewhere: of.and_then(|of| Some((Source::Draft, published?.draft[of]))),
                theory,
                ..Cell::of(runs.iter().map(ours))
            };
            let cells = [
                cell(Seen::multipath, Some(0), theory.map(|t| t.multipath())),
                cell(|seen| seen.path(1), None, theory.map(|t| t.paths[1])),
                cell(Seen::single, Some(1), theory.map(|t| t.single)),
            ];
            table.row([&ratio(case), case.algorithm.title], cells);
        }
        table
    }

    /// The losses, the round-trip times, and what theory makes of these.
    pub(super) fn conditions(&self) -> Table {
        let [first, second] = self.study.routers.map(|router| format!("loss at the {router}"));
        let single = self.study.users[1];
        let own_rtt = format!("{single}, rtt");
        let columns = [
            (first.as_str(), ""),
            (second.as_str(), ""),
            ("path 1, rtt", "ms"),
            ("path 2, rtt", "ms"),
            (own_rtt.as_str(), "ms"),
            (single, "Mbit/s"),
        ];
        let title = "Losses and round-trip times; rates in theory with these round-trip times";
        let mut table = Table::new("conditions", title, &["N1/N2", "algorithm"], &columns);
        for (case, runs) in self.points() {
            let published = self.study.published(case);
            let equal = case.equilibrium([RTT; 3]).ok();
            let of = |ours: &dyn Fn(&Seen) -> f64| Cell::of(runs.iter().map(ours));
            let rtt: [Cell; 3] = core::array::from_fn(|at| of(&|seen| seen.rtt_ms()[at]));
            let measured = case.equilibrium(rtt.each_ref().map(|cell| Duration::from_secs_f64(cell.mean() / 1e3))).ok();
            let loss = |router: usize| Cell {
                elsewhere: published.and_then(|p| Some((Source::Draft, p.loss[router]?))),
                theory: equal.map(|t| t.loss[router]),
                ..of(&|seen| seen.loss(router))
            };
            let single = Cell { theory: measured.map(|t| t.single), ..of(&Seen::single) };
            let [rtt_1, rtt_2, own_rtt] = rtt;
            table.row([&ratio(case), case.algorithm.title], [loss(0), loss(1), rtt_1, rtt_2, own_rtt, single]);
        }
        table
    }

    /// The rates as bars.
    pub(super) fn figure(&self, rates: &Table) -> Figure {
        let groups = USERS.map(|users| format!("{users}/10"));
        let names = groups.each_ref().map(String::as_str);
        let panel = |figure: Figure, users: &str| {
            let bars = ALGORITHMS.map(|one| {
                let value = |group: &String| rates.cell(&[group, one.title], users).cloned().unwrap_or_default();
                BarSeries::new(one.title, one.colour, groups.iter().map(value))
            });
            figure.bars(users, Axis::new("rate of a user", "Mbit/s"), &names, bars.to_vec())
        };
        let figure = Figure::new("rates", "Rates with N1/N2 users; diamonds are what the slides print");
        self.study.users.iter().fold(figure, |figure, users| panel(figure, users))
    }

    fn points(&self) -> impl Iterator<Item = (&Case, &Vec<Seen>)> {
        self.cases.iter().zip(&self.seen)
    }
}

fn ratio(case: &Case) -> String {
    format!("{}/{}", case.multipath_users, case.single_users)
}

/// Ours in a table of rates or conditions, for so many users and an algorithm.
pub(super) fn ours(table: &Table, users: u32, algorithm: Algorithm, column: &str) -> Estimate {
    table.estimate(&[&format!("{users}/10"), algorithm.title], column)
}

/// The theory of that cell; not a number where there is none.
pub(super) fn in_theory(table: &Table, users: u32, algorithm: Algorithm, column: &str) -> f64 {
    let cell = table.cell(&[&format!("{users}/10"), algorithm.title], column);
    cell.and_then(|cell| cell.theory).unwrap_or(f64::NAN)
}
