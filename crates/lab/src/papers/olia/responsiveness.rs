//! How soon free capacity is found, and given back.
//!
//! # Claim
//!
//! The optimal algorithm is not responsive, it fails to detect free capacity; OLIA is as responsive
//! as LIA.
//!
//! # Topology
//!
//! ```text
//!                       ┌── 1, 10 Mbit/s, RED ──┐
//!   multipath (M) ──────┤                       ├── M
//!                       └── 2, 10 Mbit/s, RED ──┘
//!   5 or no TCP flows ───── 1 ──────────────────── T
//!   10 TCP flows ────────── 2, but for some time ── T
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | network | that of `olia/asymmetric` | assumed |
//! | TCP flows on path 1 | 5, or none: then the window there is large | assumed |
//! | TCP flows on path 2 | stop at 100 s, others start at 500 s | assumed |
//! | the same with 40 Mbit/s | 40 flows on path 2, none on path 1; the window there then has a way of 2 to 300 packets | assumed |
//! | duration | 600 s | assumed |
//! | rates | over 2 s, every 100 ms | assumed |
//! | time up | until path 2 carries 0.8 of its rate for the user | assumed |
//! | time down | until it carries nine tenths of the way to the mean rate of the last 40 s | assumed |
//!
//! # Deviations
//!
//! - The slides claim it (5 and 16) and show nothing but the windows of slides 23 and 24.
//! - "Fully coupled" has TCP's constants, as the others have. Kelly's and Voice's own, a hundredth of a
//!   packet for each acknowledged one and an eighth of all windows for a lost one, stand beside it.
//! - The quick form leaves out 40 Mbit/s, BALIA and uncoupled TCP.

use core::time::Duration;

use fairpath_core::Bitrate;
use serde::{Deserialize, Serialize};

use super::algorithms::{Algorithm, BALIA, COUPLED, KELLY_VOICE, LIA, OLIA, UNCOUPLED};
use super::two_bottlenecks::{Case, Others, Seen};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("olia/responsiveness", include_str!("responsiveness.rs"), run);

const ALGORITHMS: [Algorithm; 6] = [LIA, OLIA, COUPLED, KELLY_VOICE, BALIA, UNCOUPLED];
/// The first ones are judged: the quick form has no others.
const JUDGED: usize = 4;
/// Rates are taken over so long, in seconds.
const SPAN: f64 = 2.0;
/// This part of path 2 is all that is free, but for a margin.
const ALL: f64 = 0.8;

/// When the others on path 2 leave, when they come back, and when the run ends, in seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Phases {
    leave: f64,
    back: f64,
    end: f64,
    /// At the end of each phase the rates have settled for so long.
    settled: f64,
}

/// The company on path 1, and how fast both paths are.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    /// TCP flows on path 1.
    others: u32,
    /// The rate of each path, in Mbit/s; there are as many TCP flows on path 2 before and after.
    mbps: u32,
}

const SETTINGS: [Setting; 3] = [
    Setting { name: "shared", others: 5, mbps: 10 },
    Setting { name: "own", others: 0, mbps: 10 },
    Setting { name: "own, 40 Mbit/s", others: 0, mbps: 40 },
];

fn run(context: &Context) -> Result<Report, Failure> {
    let phases = context.pick(
        Phases { leave: 40.0, back: 100.0, end: 130.0, settled: 20.0 },
        Phases { leave: 100.0, back: 500.0, end: 600.0, settled: 40.0 },
    );
    let algorithms = &ALGORITHMS[..context.pick(JUDGED, ALGORITHMS.len())];
    let settings = &SETTINGS[..context.pick(2, SETTINGS.len())];
    let of_setting = |setting: &Setting| algorithms.iter().map(|one| (*one, *setting)).collect::<Vec<_>>();
    let points: Vec<(Algorithm, Setting)> = settings.iter().flat_map(of_setting).collect();
    let one = |(algorithm, setting): &(Algorithm, Setting), seed| {
        let all = ALL * f64::from(setting.mbps);
        case(*algorithm, *setting, phases).run(seed).map(|seen| Times { seen, phases, all })
    };
    let runs = context.sweep(&points, &context.seeds(context.pick(3, 10)), one)?;
    let settings: Vec<_> = settings.iter().map(|one| one.name).zip(runs.chunks(algorithms.len())).collect();
    let table = table(&settings, phases);
    let verdicts = verdicts(&table, &settings.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let figures = vec![figure(&settings)];
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}

fn case(algorithm: Algorithm, setting: Setting, phases: Phases) -> Case {
    let seconds = Duration::from_secs_f64;
    let come_and_go = vec![
        Others { flows: setting.mbps, start: Duration::ZERO, stop: Some(seconds(phases.leave)) },
        Others { flows: setting.mbps, start: seconds(phases.back), stop: None },
    ];
    Case {
        algorithm,
        capacity: Bitrate::from_mbps(u64::from(setting.mbps)),
        others: [vec![Others::always(setting.others)], come_and_go],
        warm_up: Duration::ZERO,
        duration: seconds(phases.end),
    }
}

/// A run and when things happened in it. Rates are in Mbit/s, times in seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Times {
    seen: Seen,
    phases: Phases,
    /// All that is free on path 2.
    all: f64,
}

impl Times {
    /// The rate on path 2, over the last part of a phase.
    fn settled(&self, end: f64) -> f64 {
        self.seen.rate_between(1, end - self.phases.settled, end)
    }

    /// The rate on path 2 over time.
    fn rates(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
        let steps = ((to - from) * 10.0) as u32;
        (0..steps).map(move |step| {
            let at = from + f64::from(step) / 10.0;
            (at, self.seen.rate_between(1, at - SPAN / 2.0, at + SPAN / 2.0))
        })
    }

    /// How long after the others left all was taken; `None`: not while they were away.
    fn up(&self) -> Option<f64> {
        let Phases { leave, back, .. } = self.phases;
        let (at, _) = self.rates(leave, back - SPAN).find(|(_, rate)| *rate >= self.all)?;
        Some(at - leave)
    }

    /// How long after the others came back the rate had gone nine tenths of the way to where it
    /// settles; `None` where there was little to give back.
    fn down(&self) -> Option<f64> {
        let Phases { back, end, .. } = self.phases;
        let (before, after) = (self.settled(back), self.settled(end));
        let (at, _) = self.rates(back, end - SPAN).find(|(_, rate)| *rate <= before - 0.9 * (before - after))?;
        (before >= self.all / 2.0).then_some(at - back)
    }
}

fn table(settings: &[(&str, &[Vec<Times>])], phases: Phases) -> Table {
    let away = phases.back - phases.leave;
    let columns = [
        ("path 2 shared", "Mbit/s"),
        ("path 2 free", "Mbit/s"),
        ("path 2 shared again", "Mbit/s"),
        ("time up", "s"),
        ("time down", "s"),
    ];
    let title = format!("Rates on path 2, and the times to change them; {away} s stands for more");
    let mut table = Table::new("times", &title, &["path 1", "algorithm"], &columns);
    for (name, runs) in settings {
        for (algorithm, runs) in ALGORITHMS.iter().zip(*runs) {
            let of = |ours: &dyn Fn(&Times) -> f64| Cell::of(runs.iter().map(ours));
            let cells = [
                of(&|run| run.settled(phases.leave)),
                of(&|run| run.settled(phases.back)),
                of(&|run| run.settled(phases.end)),
                of(&|run| run.up().unwrap_or(away)),
                Cell::of(runs.iter().filter_map(Times::down)),
            ];
            table.row([name, algorithm.title], cells);
        }
    }
    table
}

fn figure(settings: &[(&str, &[Vec<Times>])]) -> Figure {
    let title = "Others leave path 2 and come back; mean over seeds";
    settings.iter().fold(Figure::new("rates", title), |figure, (name, runs)| {
        let line = |(algorithm, runs): (&Algorithm, &Vec<Times>)| {
            let all: Vec<Vec<(f64, f64)>> =
                runs.iter().map(|run| run.rates(run.phases.leave - 20.0, run.phases.end - SPAN).collect()).collect();
            let mean = |step: usize| all.iter().map(|run| run[step].1).sum::<f64>() / all.len() as f64;
            let points = (0..all[0].len()).map(|step| (all[0][step].0, mean(step))).collect();
            Series::new(algorithm.title, algorithm.colour, points)
        };
        let series = ALGORITHMS.iter().zip(*runs).map(line).collect();
        let (x, y) = (Axis::new("time", "s"), Axis::new("rate on path 2", "Mbit/s"));
        figure.lines(&format!("path 1 {name}"), x, y, series)
    })
}

const KELLY_VOICE_REASON: &str = "From one packet at a hundredth for each acknowledged one a window takes half a minute to \
    fill the path, and on a path 1 of its own OLIA takes path 2 still later than that (see `olia_is_responsive`).";

fn verdicts(table: &Table, settings: &[&str]) -> Vec<Verdict> {
    let ours = |path_1: &str, algorithm: Algorithm, column: &str| table.estimate(&[path_1, algorithm.title], column);
    let mut verdicts = [
        Verdict::new("olia_is_responsive", "OLIA takes free capacity about as soon as LIA does."),
        Verdict::new("olia_gives_back", "OLIA gives capacity back about as soon as LIA does."),
        Verdict::ours(
            "coupled_is_slow",
            "With TCP's constants the fully coupled algorithm takes much longer than LIA and OLIA.",
        ),
    ];
    let mut kelly_voice = Verdict::new(
        "kelly_voice_is_slow",
        "The optimal algorithm with its own constants takes much longer than OLIA.",
    );
    for name in settings {
        let own = ours(name, KELLY_VOICE, "time up") / ours(name, OLIA, "time up");
        kelly_voice = kelly_voice.at_least(&format!("time up, path 1 {name}, Kelly and Voice / OLIA"), own, 2.0);
        let ratio = |one, other, column| ours(name, one, column) / ours(name, other, column);
        let [responsive, gives_back, slow] = verdicts;
        verdicts = [
            responsive.at_most(&format!("time up, path 1 {name}, OLIA / LIA"), ratio(OLIA, LIA, "time up"), 1.5),
            // The ratio is NaN if little was taken: there is nothing to give back, and no time for it.
            match ratio(OLIA, LIA, "time down") {
                none if none.mean.is_nan() => gives_back,
                ratio => gives_back.at_most(&format!("time down, path 1 {name}, OLIA / LIA"), ratio, 1.5),
            },
            slow.at_least(&format!("time up, path 1 {name}, coupled / LIA"), ratio(COUPLED, LIA, "time up"), 2.0)
                .at_least(&format!("time up, path 1 {name}, coupled / OLIA"), ratio(COUPLED, OLIA, "time up"), 2.0),
        ];
    }
    let [responsive, gives_back, slow] = verdicts;
    vec![
        responsive.because(
            "With a large window on path 1, path 2 is the best only when it has delivered more since its last loss than path 1 \
             does between two, which takes minutes at the growth of the first term alone, w2/(w1 + w2)² for each packet.",
        ),
        gives_back,
        slow.because(
            "Each loss on path 1 takes half of both windows from that path, so path 2 soon has a good part of the \
             growth; it is not kept, though: the rate settles lower than with the others.",
        ),
        kelly_voice.because(KELLY_VOICE_REASON),
    ]
}
