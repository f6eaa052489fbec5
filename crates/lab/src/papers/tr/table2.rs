//! Table 2 and figure 7: when the detectors say that two flows share a bottleneck.
//!
//! # Claim
//!
//! TR and SSC both find the shared bottleneck in most cases; TR is the first in 13 of 16, its
//! answers are sparser, and SSC fails with Reno and drop-tail in E3.
//!
//! # Topology
//!
//! ```text
//!   n1 ── L1 ──┐             ┌── L3 ─── n7
//!              n3 ── L2 ── n5
//!   n2 ── L7 ──┘             └── L10 ── n8
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links, queues and flows | Table 2; 15 or 30 flows on each side, all CUBIC or all Reno | paper |
//! | RED | drops up to 2 % at the upper threshold, then all; weight 0.002 | assumed: ns-3's values |
//! | start | within 1 s of each other | assumed |
//! | duration | 300 s | paper |
//! | pairs listened to | 4: one flow of each side | assumed: the paper has one |
//! | TR | α = 0.1, newest round-trip time, without hold | paper, but for α |
//! | SSC | RFC 8382, without hold, on round-trip times | assumed: the paper does not say which SSC |
//! | SSC variant | that of a later program of the paper's authors, without hold | assumed |
//! | packets | 1500 B; every second one is acknowledged | assumed |
//!
//! # Deviations
//!
//! - Which 16 of the 20 runs the paper shows is lost; all 20 are counted.
//! - The quick form has E1 and E3 and drop-tail only, for a shorter time.

use core::time::Duration;

use fairpath_sim::SimError;

use super::dumbbell::{Answers, Case, Ears, LISTENERS, Queue, ROWS};
use crate::{Axis, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("tr/table2", include_str!("table2.rs"), run).left_to_full(&["TR is sparse"]);

/// For each pair what each listener said.
type Heard = Vec<Vec<Answers>>;

fn run(context: &Context) -> Result<Report, Failure> {
    let rows = context.pick(vec![ROWS[0], ROWS[2]], ROWS.to_vec());
    let duration = Duration::from_secs(context.pick(60, 300));
    let all = rows.iter().flat_map(|row| Case::all(*row, duration));
    let cases: Vec<Case> = all.filter(|case| context.pick(case.queue == Queue::DropTail, true)).collect();
    let listen = |case: &Case, seed| -> Result<Heard, SimError> {
        let mut ears = Ears::new(case, 4);
        case.run(seed, &mut ears)?;
        Ok(ears.answers(case.duration))
    };
    let heard = context.sweep(&cases, &context.seeds(context.pick(2, 3)), listen)?;
    let told = Told::of(&heard, duration.as_secs_f64());
    let [first, share] = tables(&cases, &told, duration.as_secs_f64());
    let verdicts = verdicts(&cases, &told);
    let figures = rows.iter().map(|row| figure(row.name, &cases, &heard)).collect();
    Ok(Report { tables: vec![first, share], figures, verdicts, ..Report::default() })
}

/// The answers of the listeners: by case, by listener and by seed, each the mean over the pairs.
struct Told {
    /// When the first yes came, in seconds.
    first: Vec<[Vec<f64>; LISTENERS.len()]>,
    /// For how much of the time it was yes, in per cent.
    share: Vec<[Vec<f64>; LISTENERS.len()]>,
}

impl Told {
    fn of(heard: &[Vec<Heard>], end: f64) -> Self {
        let by = |value: &dyn Fn(&Answers) -> f64| {
            let mean = |pairs: &Heard, listener: usize| {
                pairs.iter().map(|pair| value(&pair[listener])).sum::<f64>() / pairs.len() as f64
            };
            let seeds = |runs: &Vec<Heard>| {
                core::array::from_fn(|listener| runs.iter().map(|pairs| mean(pairs, listener)).collect())
            };
            heard.iter().map(seeds).collect()
        };
        Self {
            first: by(&|answers| answers.first().unwrap_or(end)),
            share: by(&|answers| 100.0 * answers.seconds() / end),
        }
    }

    /// In which part of the cases something is true, with each seed.
    fn part(&self, holds: impl Fn(usize, usize) -> bool) -> Estimate {
        let cases = self.first.len();
        let part = |seed: usize| (0..cases).filter(|case| holds(*case, seed)).count() as f64 / cases as f64;
        Cell::of((0..self.first[0][0].len()).map(part)).estimate()
    }

    /// For how much of the time a listener says yes, over all cases.
    fn mean_share(&self, listener: usize) -> Estimate {
        Estimate::mean_of(self.share.iter().map(|case| Cell::of(case[listener].iter().copied()).estimate()))
    }
}

/// When the first yes comes, and for how much of the time it is yes.
fn tables(cases: &[Case], told: &Told, end: f64) -> [Table; 2] {
    let make = |name, title: &str, unit| {
        let columns = LISTENERS.map(|one| (one.title, unit));
        Table::new(name, title, &["experiment", "queue", "flows"], &columns)
    };
    let title = format!("When the first yes comes; {end} s stands for never");
    let mut first = make("first", &title, "s");
    let mut share = make("share", "For how much of the time it is yes", "%");
    for ((case, firsts), shares) in cases.iter().zip(&told.first).zip(&told.share) {
        let heads = [case.row.name, case.queue_name(), case.tcp];
        let cells = |told: &[Vec<f64>; LISTENERS.len()]| told.each_ref().map(|seeds| Cell::of(seeds.iter().copied()));
        first.row(heads, cells(firsts));
        share.row(heads, cells(shares));
    }
    [first, share]
}

fn verdicts(cases: &[Case], told: &Told) -> Vec<Verdict> {
    let [tr, ssc, variant, ours] = [0, 1, 2, 3];
    let is_weak_case = |case: &&Case| case.row.name == "E3" && case.queue == Queue::DropTail && case.tcp == "reno";
    let weak = cases.iter().position(|case| is_weak_case(&case));
    let shares = |listener: usize| {
        weak.map_or_else(Estimate::unknown, |case| Cell::of(told.share[case][listener].iter().copied()).estimate())
    };
    let mean = |listener| told.mean_share(listener);
    let found = |listener: usize| told.part(|case, seed| told.share[case][listener][seed] > 0.0);
    let sooner =
        |one: usize, other: usize| told.part(|case, seed| told.first[case][one][seed] < told.first[case][other][seed]);
    vec![
        Verdict::new("both find it", "TR and SSC find the shared bottleneck in most cases.")
            .at_least("part of the cases in which TR says yes", found(tr), 0.9)
            .at_least("part of the cases in which SSC says yes", found(ssc), 0.9),
        Verdict::new("TR is first", "TR is the first in 13 of 16 cases, give or take a tenth.")
            .within("part of the cases, TR before SSC", sooner(tr, ssc), 13.0 / 16.0, 0.1)
            .within("part of the cases, TR before the variant", sooner(tr, variant), 13.0 / 16.0, 0.1)
            .because(
                "a round of TR says yes less often than not, so its first yes is spread over the first rounds; SSC has \
                 a fixed time to wait, 21 s and the variant 17.5 s, and then says yes at once.",
            ),
        Verdict::new("TR is sparse", "The answers of TR are sparser than those of SSC.").at_least(
            "share of the time, SSC − TR, in per cent",
            mean(ssc) - mean(tr),
            0.0,
        ),
        Verdict::new("SSC fails", "SSC fails with Reno and drop-tail in E3.")
            .at_most("share of the time in per cent, SSC", shares(ssc), 1.0)
            .at_most("share of the time in per cent, the variant", shares(variant), 1.0)
            .because(
                "RFC 8382 with its own thresholds does not fail there; the paper may have run its authors' later program, whose \
                 SSC is weaker than any published one.",
            ),
        Verdict::ours("ours", "Ours says yes for more of the time than TR, and in every case.")
            .at_least("part of the cases in which ours says yes", found(ours), 1.0)
            .at_least("share of the time, ours − TR, in per cent", mean(ours) - mean(tr), 0.0),
    ]
}

/// The answers about the first pair as square waves: up is yes.
fn figure(name: &str, cases: &[Case], heard: &[Vec<Heard>]) -> Figure {
    let title =
        format!("{name}: when the detectors say that the first pair of the first seed shares a bottleneck (up is yes)");
    let own = cases.iter().zip(heard).filter(|(case, _)| case.row.name == name);
    own.fold(Figure::new(&format!("fig7_{}", name.to_lowercase()), &title), |figure, (case, runs)| {
        let end = case.duration.as_secs_f64();
        let wave = |(at, listener): (usize, &super::dumbbell::Listener)| {
            let base = (LISTENERS.len() - at) as f64;
            let mut points = vec![(0.0, base)];
            for (from, to) in &runs[0][0][at].yes {
                points.extend([(*from, base), (*from, base + 0.7), (*to, base + 0.7), (*to, base)]);
            }
            points.push((end, base));
            Series::new(listener.title, listener.colour, points)
        };
        let series = LISTENERS.iter().enumerate().map(wave).collect();
        figure.lines(&case.combination(), Axis::new("time", "s"), Axis::new("detector", ""), series)
    })
}
