//! Figure 1 from the simulator: rates, goodput and repair over time, and what the two fitted numbers do.
//!
//! # Claim
//!
//! Where a stream goes over from MPTCP's rates to the best ones at 250 s, its goodput goes from 133 to 173 packets/s and
//! its repair from 40 to 22 %, at the same total rate.
//!
//! # Topology
//!
//! ```text
//!            ┌── loses 10 %, 20 ms ───┐
//!   sender ──┼── loses  2 %, 100 ms ──┼── player, 300 ms
//!            └── loses  1 %, 300 ms ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths | loss rates of 10, 2 and 1 %, independent; round-trip times exponential around 20, 100 and 300 ms | paper |
//! | deadline | 300 ms, held against round-trip times | paper |
//! | what is measured | losses by the mean of the last eight intervals, round-trip times over 5 s | assumed: RFC 5348's weights |
//! | rates | set anew every 100 ms, by the formulas of `tfrc_multipath/fig1`; at most twice as much in a round trip | assumed |
//! | repair | blocks of 100 packets, of which any so many do as there are of data | assumed: the paper has no block length |
//! | share for probing | 6.75 % | assumed: fitted to the paper's two shares of repair |
//! | margin of repair | 0.144 | assumed: fitted likewise |
//! | switch and end | 250 s and 500 s; the first 20 s after each beginning are left out | paper; assumed |
//! | our stream | 1,316 B in each packet, LIA, coupled where a shared bottleneck is found, an encoder that follows its budget | assumed |
//!
//! # Deviations
//!
//! - The whole round-trip time is on the way there, and the way back takes none: only so is one distribution both what is
//!   measured and what the deadline is held against.
//! - What a stream knows at the beginning of its paths' losses is what they are.
//! - Our stream sends again what is lost while there is time, has windows, and takes each packet that is overtaken for
//!   what it is only after a while: its numbers are no reproduction.
//! - The quick form has 40 s of each phase.

use core::time::Duration;

use fairpath_net::{Jitter, JitterDistribution, LinkConfig, LossConfig, Rate};
use fairpath_rate::{Bound, Delays, MARGIN, PROBING, PathModel, Plan};

use super::live::{Case, Policy};
use super::system::{DEADLINE, PATHS, Rule, Run, Second};
use crate::{Axis, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("tfrc_multipath/simulated", include_str!("simulated.rs"), run).left_to_full(&[
        "MPTCP's rates",
        "a gain of 30 %",
        "our stream gains as much",
        "our stream is no worse than path 1",
    ]);

/// The paper's rates of MPTCP and its goodputs, in packets in a second; its shares of repair in percent.
const MPTCP: [f64; 3] = [88.2, 88.2, 47.1];
const GOODPUT: [f64; 2] = [133.0, 173.0];
const REPAIR: [f64; 2] = [40.0, 22.0];

/// The start-up time of a phase, in seconds.
const BEGINS: usize = 20;

/// A point of the figure is the mean of so many seconds.
const SMOOTH: usize = 5;

const PHASES: [&str; 2] = ["before, MPTCP's rates", "after, the optimum"];
const COLUMNS: [(&str, &str); 7] = [
    ("path 1", "1/s"),
    ("path 2", "1/s"),
    ("path 3", "1/s"),
    ("total", "1/s"),
    ("goodput", "1/s"),
    ("repair", "%"),
    ("blocks not whole", "%"),
];

fn phase(seconds: &[Second]) -> [f64; 7] {
    let count = seconds.len() as f64;
    let mean = |of: &dyn Fn(&Second) -> f64| seconds.iter().map(of).sum::<f64>() / count;
    let [a, b, c] = [0, 1, 2].map(|path| mean(&|second| second.sent[path]));
    let total = a + b + c;
    let failed = mean(&|second| second.failed) / mean(&|second| second.blocks);
    [a, b, c, total, mean(&|second| second.played), 100.0 * mean(&|second| second.repair) / total, 100.0 * failed]
}

/// The means of both phases, run by run.
fn phases(run: &Run, seconds: &[Second]) -> [[f64; 7]; 2] {
    let switch = run.switch.as_secs() as usize;
    // The outcome of the last blocks is not known yet.
    [phase(&seconds[BEGINS..switch]), phase(&seconds[switch + BEGINS..seconds.len() - 2])]
}

fn plans() -> [Plan; 3] {
    let paths = PATHS.map(|(loss, rtt)| PathModel::new(loss, Delays::exponential(ms(rtt))));
    let best = |paths: &[PathModel], probing| {
        Plan::best_with(paths, DEADLINE, &Bound::Cantelli, probing, MARGIN).expect("each path loses something")
    };
    [Plan::coupled(&paths, DEADLINE, &Bound::Cantelli, MARGIN), best(&paths, PROBING), best(&paths[..1], 0.0)]
}

fn cells(runs: &[[f64; 7]], plan: &Plan, paper: Option<([Option<f64>; 3], usize)>) -> Vec<Cell> {
    let rates: Vec<f64> = plan.rates.iter().map(|rate| rate.per_second()).collect();
    let rate = |path: usize| rates.get(path).copied().unwrap_or(0.0);
    let theory = [rate(0), rate(1), rate(2), rates.iter().sum(), plan.goodput.per_second(), 100.0 * plan.repair.share];
    let printed = |column: usize| {
        let (rates, at) = paper?;
        match column {
            0..=2 => rates[column],
            4 => Some(GOODPUT[at]),
            5 => Some(REPAIR[at]),
            _ => None,
        }
    };
    let cell = |column: usize| {
        let cell = Cell::of(runs.iter().map(|run| run[column]));
        let cell = theory.get(column).map_or(cell.clone(), |theory| cell.theory(*theory));
        printed(column).map_or(cell.clone(), |paper| cell.paper(paper))
    };
    (0..COLUMNS.len()).map(cell).collect()
}

fn run(context: &Context) -> Result<Report, Failure> {
    let (switch, end) = context.pick((60, 120), (250, 500));
    let [switch, end] = [switch, end].map(Duration::from_secs);
    let figure_1 = Run { rules: [Rule::Coupled, Rule::Best], switch, end, probing: PROBING, margin: MARGIN };
    let alone = Run { rules: [Rule::First; 2], ..figure_1 };
    let seeds = context.seeds(context.pick(4, 20));
    let seen = context.sweep(&[figure_1, alone], &seeds, |run, seed| Ok(run.seconds(seed)))?;
    let mut table = Table::new(
        "phases",
        "Before and after the switch, in packets in a second; the two margins are fitted to the paper's repair",
        &["phase"],
        &COLUMNS,
    );
    let [coupled, best, first] = plans();
    let of = |at: usize| -> Vec<[f64; 7]> { seen[0].iter().map(|run| phases(&figure_1, run)[at]).collect() };
    table.push(&[PHASES[0]], &cells(&of(0), &coupled, Some((MPTCP.map(Some), 0))));
    table.push(&[PHASES[1]], &cells(&of(1), &best, Some(([None; 3], 1))));
    let alone: Vec<[f64; 7]> = seen[1].iter().map(|run| phases(&alone, run)[1]).collect();
    table.push(&["path 1 alone"], &cells(&alone, &first, None));
    let margins = margins(context, &figure_1)?;
    let stream = stream(context)?;
    let verdicts = verdicts(&table, &margins, &stream);
    let figures = vec![figure(&seen[0][0])];
    Ok(Report { tables: vec![table, margins, stream], figures, verdicts, ..Report::default() })
}

/// Rates, goodput and repair of the first seed.
fn figure(seconds: &[Second]) -> Figure {
    let line = |of: &dyn Fn(&Second) -> f64| -> Vec<(f64, f64)> {
        let mean = |chunk: &[Second]| chunk.iter().map(of).sum::<f64>() / chunk.len() as f64;
        let chunks = seconds[..seconds.len() - 2].chunks(SMOOTH).enumerate();
        chunks.map(|(at, chunk)| ((SMOOTH * at) as f64, mean(chunk))).collect()
    };
    let sent = |second: &Second| second.sent.iter().sum::<f64>();
    let x = || Axis::new("time", "s");
    let rates = ["lia", "olia", "balia"]
        .iter()
        .enumerate()
        .map(|(path, colour)| Series::new(&format!("path {}", path + 1), colour, line(&|second| second.sent[path])));
    let rates = rates.chain([Series::new("total", "theory", line(&sent))]).collect();
    let goodput = vec![Series::new("goodput", "theory", line(&|second| second.played))];
    let repair = line(&|second| 100.0 * second.repair / sent(second));
    Figure::new("figure1", "MPTCP's rates up to the middle, and then those of the optimum")
        .lines("rates", x(), Axis::new("sent", "packets/s"), rates)
        .lines("goodput", x(), Axis::new("played in time", "packets/s"), goodput)
        .lines("repair", x(), Axis::new("share of repair", "%"), vec![Series::new("repair", "daimd", repair)])
}

/// The results with other margins. This is a calibration, and no evidence.
fn margins(context: &Context, figure_1: &Run) -> Result<Table, Failure> {
    let fitted = [(PROBING, MARGIN)];
    let others = [(0.02, MARGIN), (0.10, MARGIN), (0.15, MARGIN), (PROBING, 0.0), (PROBING, MARGIN / 2.0)];
    let others = others.into_iter().chain([(PROBING, 2.0 * MARGIN), (PROBING, 3.0 * MARGIN)]);
    let points: Vec<(f64, f64)> = fitted.into_iter().chain(others).collect();
    let runs: Vec<Run> =
        points.iter().map(|(probing, margin)| Run { probing: *probing, margin: *margin, ..*figure_1 }).collect();
    let seeds = context.seeds(context.pick(2, 5));
    let seen = context.sweep(&runs, &seeds, |run, seed| Ok(phases(run, &run.seconds(seed))))?;
    let mut table = Table::new(
        "margins",
        "A calibration: goodput by the share for probing and the margin of repair, and how many blocks are not whole",
        &["probing", "margin"],
        &[
            ("before", "1/s"),
            ("after", "1/s"),
            ("gain", ""),
            ("repair before", "%"),
            ("repair after", "%"),
            ("not whole before", "%"),
            ("not whole after", "%"),
        ],
    );
    for ((probing, margin), runs) in points.iter().zip(&seen) {
        let of = |at: usize, column: usize| Cell::of(runs.iter().map(|run| run[at][column]));
        let gain = Cell::of(runs.iter().map(|run| run[1][4] / run[0][4]));
        let heads = [format!("{:.2} %", 100.0 * probing), format!("{margin:.3}")];
        table.row([&heads[0], &heads[1]], [of(0, 4), of(1, 4), gain, of(0, 5), of(1, 5), of(0, 6), of(1, 6)]);
    }
    Ok(table)
}

const POLICIES: [Policy; 6] =
    [Policy::Coupled, Policy::BestAsOne, Policy::Best, Policy::Alone(0), Policy::Equal, Policy::Redundant];

/// Our stream on the same paths.
fn stream(context: &Context) -> Result<Table, Failure> {
    let path = |(loss, rtt): (f64, u64)| {
        let there = LinkConfig::new(Rate::Unlimited)
            .jitter(Jitter::new(JitterDistribution::Exponential, ms(rtt)).overtaking())
            .loss(LossConfig::Random { probability: loss });
        [there, LinkConfig::pure_delay(Duration::ZERO)]
    };
    let [warm_up, duration] = context.pick([5, 20], [20, 170]).map(Duration::from_secs);
    let paths: Vec<_> = PATHS.into_iter().map(path).collect();
    let case = |policy| Case { paths: paths.clone(), policy, rate: None, deadline: DEADLINE, warm_up, duration };
    let seen = context.sweep(&POLICIES.map(case), &context.seeds(context.pick(2, 10)), Case::run)?;
    let mut table = Table::new(
        "stream",
        "Our stream on these paths, with windows, and what is lost sent again: an encoder that follows its budget",
        &["rates"],
        &[("goodput", "1/s"), ("in time", "%"), ("beside data", "%"), ("budget", "1/s")],
    );
    // 1,316 B in a packet.
    let packets = |mbps: f64| mbps * 1e6 / 8.0 / 1_316.0;
    for (policy, runs) in POLICIES.iter().zip(&seen) {
        let of = |of: &dyn Fn(&super::live::Seen) -> f64| Cell::of(runs.iter().map(of));
        let cells = [
            of(&|seen| packets(seen.goodput)),
            of(&|seen| 100.0 * seen.on_time),
            of(&|seen| 100.0 * seen.beside),
            of(&|seen| packets(seen.budget)),
        ];
        table.row([policy.name()], cells);
    }
    Ok(table)
}

fn verdicts(table: &Table, margins: &Table, stream: &Table) -> Vec<Verdict> {
    let of = |row: &str, column: &str| table.estimate(&[row], column);
    let [before, after] = PHASES;
    let fitted = margins.estimate(&["6.75 %", "0.144"], "gain");
    let ours = |policy: Policy| -> Estimate { stream.estimate(&[policy.name()], "goodput") };
    // With the paths' own numbers all this comes out to a percent, in `tfrc_multipath/fig1`.
    let noisy = "The share of losses is known from eight intervals, to about a third, and rates and repair follow what is \
                 known: the mean of a root is less than the root of the mean.";
    vec![
        // Losses of eight intervals are known to a third, rates to a sixth, and their mean over minutes to some percent.
        Verdict::new("MPTCP's rates", "MPTCP sends 88.2, 88.2 and 47.1 packets in a second.")
            .within("path 1", of(before, "path 1"), MPTCP[0], 0.05)
            .within("path 2", of(before, "path 2"), MPTCP[1], 0.05)
            .within("path 3", of(before, "path 3"), MPTCP[2], 0.05)
            .because(noisy),
        Verdict::new("total", "The total rate stays the same.")
            .within("after / before", of(after, "total") / of(before, "total"), 1.0, 0.05)
            .because(noisy),
        Verdict::new("goodput, fitted", "Goodput goes from 133 to 173 packets in a second. (Two margins are fitted.)")
            .within("before", of(before, "goodput"), GOODPUT[0], 0.05)
            .within("after", of(after, "goodput"), GOODPUT[1], 0.05)
            .because(noisy),
        Verdict::new("repair, fitted", "Repair goes from 40 to 22 %. (Two margins are fitted.)")
            .within("before", of(before, "repair"), REPAIR[0], 0.05)
            .within("after", of(after, "repair"), REPAIR[1], 0.06)
            .because(noisy),
        Verdict::new("a gain of 30 %", "Goodput is 30 % more.").within("gain", fitted, 1.30, 0.05).because(noisy),
        Verdict::new("better than a single path", "The optimum has more goodput than any single path.")
            .at_least(
                "the optimum's, in parts of path 1 alone",
                of(after, "goodput") / of("path 1 alone", "goodput"),
                1.0,
            )
            .because(
                "Path 1 alone may carry as much as all paths together, and more of it comes in time, so that what goes elsewhere \
                 is for probing only.",
            ),
        Verdict::ours(
            "our stream gains as much",
            "Under one budget for all paths, as equation 1 has it, our stream has 30 % more goodput than with MPTCP's rates.",
        )
        .at_least("gain", ours(Policy::BestAsOne) / ours(Policy::Coupled), 1.30)
            .because(
                "Windows are the limit: of a path that loses a tenth they let out two to four packets in a round trip, and two \
                 of them lost in a row are known to be after a probe timeout only.",
            ),
        Verdict::ours(
            "our stream is no worse than path 1",
            "With a TCP's share for each path, as these share no bottleneck, our stream has no less goodput than on path 1 alone.",
        )
            .at_least("in parts of path 1 alone", ours(Policy::Best) / ours(Policy::Alone(0)), 1.0)
            .because(
                "Copies that measure the other paths are taken from what the windows let out, and what leaves on the second \
                 path cannot be sent again in time, so that it needs repair.",
            ),
        Verdict::ours(
            "one budget is less than path 1",
            "Under one budget for all paths our stream has less goodput than on path 1 alone.",
        )
        .at_most("in parts of path 1 alone", ours(Policy::BestAsOne) / ours(Policy::Alone(0)), 1.0),
    ]
}
