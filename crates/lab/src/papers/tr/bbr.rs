//! Beside BBR: what a session gets, how long a file takes, and whether the detectors still work (§1, §5.1, §6).
//!
//! # Claim
//!
//! A multipath session nearly starves beside TCP BBR, and takes longer than a TCP flow for a file of the same
//! size; TR works with BBR as well.
//!
//! # Topology
//!
//! ```text
//!              ┌── A, queue ──┐                        ┌── access A ──┐
//!   session ───┤              ├─── session   session ──┤              ├── L, queue ── session
//!              └── B, queue ──┘                        └── access B ──┘
//!   BBR 1 ──────── A                            BBR 1 and 2 ───────────────── L
//!   BBR 2 ──────── B
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | separate | A 50 Mbit/s, 20 ms one way; B 50 Mbit/s, 30 ms; a BBR flow on each | assumed |
//! | shared | L 100 Mbit/s; the paths 20 and 30 ms one way; a BBR flow on each | assumed |
//! | queues | 0.5, 1, 2 and 4 times what a link carries in 50 ms, drop-tail | assumed: the paper does not say |
//! | sessions | LIA; uncoupled Reno and CUBIC; coupled BBR beside them | paper for LIA, the others are ours |
//! | BBR | version 1 | paper |
//! | rates | over 60 s, after 10 s | assumed |
//! | file | 20 MB; both begin within 100 ms | assumed: the paper says of the same size |
//! | detectors | those of `tr/table2` on its five dumbbells with BBR flows and drop-tail, and on the same with a bottleneck for each side; 300 s | assumed |
//! | packets | 1500 B; every second one is acknowledged | assumed |
//!
//! # Deviations
//!
//! - The paper gives neither a network nor a number for what it says of BBR. "Nearly starves" is taken for a
//!   tenth of a BBR flow's rate, "works" for an answer in each case.
//! - A file that is not through after 100 s counts as 100 s.
//! - The quick form has two queues, LIA and coupled BBR, and two dumbbells, for a shorter time.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Traffic};
use fairpath_sim::SimError;

use super::dumbbell::{Case as Dumbbell, Ears, LISTENERS, Queue, ROWS};
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, bdp_packets, engine, ms};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("tr/bbr", include_str!("bbr.rs"), run).left_to_full(&["coupled BBR", "TR works", "TR tells"]);

/// The congestion control of the sessions: titles, and the names of the catalogue.
const SESSIONS: [(&str, &str); 4] = [
    ("LIA", "lia"),
    ("coupled BBR", "coupled_bbr"),
    ("uncoupled Reno", "uncoupled reno"),
    ("uncoupled CUBIC", "uncoupled cubic"),
];
/// The first ones are judged: the quick form has no others.
const JUDGED: usize = 2;
/// Mbit/s of a path's part, and one-way ms of the paths.
const MBPS: u64 = 50;
const ONE_WAY_MS: [u64; 2] = [20, 30];
/// The time whose packets are one queue.
const QUEUE_MS: u64 = 50;
const FILE: ByteCount = ByteCount::new(20_000_000);
/// When a file counts as through at the latest.
const LATEST: Duration = Duration::from_secs(100);
/// A smaller share of a BBR flow's rate counts as starving.
const STARVED: f64 = 0.1;
/// The index of TR in [`LISTENERS`].
const TR: usize = 0;

/// A session beside two BBR flows.
#[derive(Clone, Copy, Debug)]
struct Case {
    is_shared: bool,
    /// The queue in parts of what a link carries in [`QUEUE_MS`].
    queue: f64,
    session: (&'static str, &'static str),
}

impl Case {
    fn layout(&self) -> &'static str {
        if self.is_shared { "shared" } else { "separate" }
    }

    fn net(&self, seed: u64, warm_up: Duration, duration: Duration, traffic: Traffic) -> Net {
        let mut net = Net::new("beside BBR", seed, warm_up, duration);
        let narrow = |net: &mut Net, name: &str, rate: Bitrate, delay| {
            let packets = (bdp_packets(rate, ms(QUEUE_MS)) as f64 * self.queue).round() as usize;
            net.link(name, LinkConfig::new(rate).delay(delay).queue(QueueConfig::packets(packets)))
        };
        let shared = self.is_shared.then(|| narrow(&mut net, "L", Bitrate::from_mbps(2 * MBPS), Duration::ZERO));
        let paths = [("A", ONE_WAY_MS[0]), ("B", ONE_WAY_MS[1])].map(|(name, delay)| {
            let forward = match shared {
                Some(link) => vec![net.link(&format!("access {name}"), LinkConfig::pure_delay(ms(delay))), link],
                None => vec![narrow(&mut net, name, Bitrate::from_mbps(MBPS), ms(delay))],
            };
            let backward = vec![net.link(&format!("back {name}"), LinkConfig::pure_delay(ms(delay)))];
            PathRoute { forward, backward }
        });
        net.flow("session", engine(self.session.1), &paths);
        for path in &paths {
            net.flow("BBR", engine("bbr"), core::slice::from_ref(path));
        }
        for flow in &mut net.scenario.flows {
            flow.start_jitter = ms(100);
            flow.transport.ack_every = 2;
            flow.traffic = traffic;
        }
        net
    }

    /// The session's rate over a BBR flow's, and how much longer its file takes.
    fn run(&self, seed: u64, duration: Duration) -> Result<[f64; 2], SimError> {
        let net = self.net(seed, Duration::from_secs(10), duration, Traffic::Bulk);
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        let rate = outcome.mean_goodput("session").as_mbps_f64() / outcome.mean_goodput("BBR").as_mbps_f64();
        let net = self.net(seed, Duration::ZERO, LATEST, Traffic::Finite { size: FILE });
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        let mean = |class| {
            let times = || outcome.class(class).map(|flow| flow.completions.first().copied().unwrap_or(LATEST));
            times().map(|time| time.as_secs_f64()).sum::<f64>() / times().count() as f64
        };
        Ok([rate, mean("session") / mean("BBR")])
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let queues: &[f64] = context.pick(&[0.5, 4.0], &[0.5, 1.0, 2.0, 4.0]);
    let duration = Duration::from_secs(context.pick(20, 70));
    let sessions = &SESSIONS[..context.pick(JUDGED, SESSIONS.len())];
    let of = |is_shared| {
        let with = move |queue: f64| sessions.iter().map(move |session| Case { is_shared, queue, session: *session });
        queues.iter().copied().flat_map(with)
    };
    let cases: Vec<Case> = [false, true].into_iter().flat_map(of).collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 10)), |case, seed| case.run(seed, duration))?;
    let columns = [("rate", "of a BBR flow's"), ("time for a file", "of a BBR flow's")];
    let title = "What a session gets beside a BBR flow on each path, and how long 20 MB take it";
    let mut table = Table::new("bbr", title, &["bottleneck", "queue", "session"], &columns);
    for (case, runs) in cases.iter().zip(&seen) {
        let cells = [0, 1].map(|at| Cell::of(runs.iter().map(|run| run[at])));
        table.row([case.layout(), &case.queue.to_string(), case.session.0], cells);
    }
    let (detected, sides) = detected(context)?;
    let mut verdicts = verdicts(&table, queues);
    verdicts.extend(sides);
    Ok(Report { tables: vec![table, detected], verdicts, ..Report::default() })
}

fn verdicts(table: &Table, queues: &[f64]) -> Vec<Verdict> {
    let mut starves = Verdict::new("starves", "A session nearly starves beside BBR: a tenth of a BBR flow's rate.");
    let mut longer =
        Verdict::new("takes longer", "For a file of the same size a session takes longer than a BBR flow.");
    let mut remedy =
        Verdict::ours("coupled BBR", "With coupled BBR a session gets at least half of a BBR flow's rate.");
    for layout in ["separate", "shared"] {
        for queue in queues {
            let ours =
                |session: usize, column| table.estimate(&[layout, &queue.to_string(), SESSIONS[session].0], column);
            let what = format!("{layout}, queue of {queue}");
            starves = starves.at_most(&format!("{what}: LIA, rate / BBR's"), ours(0, "rate"), STARVED);
            longer = longer.at_least(&format!("{what}: LIA, time / BBR's"), ours(0, "time for a file"), 1.0);
            remedy = remedy.at_least(&format!("{what}: rate / BBR's"), ours(1, "rate"), 0.5);
        }
    }
    // A queue of no more than a bandwidth-delay product loses packets all the time: where two BBR flows share a link with
    // LIA it starves, at a hundredth of their rate. In a longer one LIA's window fills what BBR leaves.
    let reason = "BBR keeps up to one bandwidth-delay product in the queue, whatever is lost, so what LIA gets hangs on the \
                  queue's length, which the paper does not give: in a longer one LIA gets more than BBR.";
    vec![starves.because(reason), longer.because(reason), remedy.because(reason)]
}

/// For how much of the time the detectors say yes of BBR flows that share a bottleneck, and of such that do not.
fn detected(context: &Context) -> Result<(Table, [Verdict; 2]), Failure> {
    let duration = Duration::from_secs(context.pick(40, 300));
    let rows = &ROWS[..context.pick(2, ROWS.len())];
    let with = |separate| {
        rows.iter().map(move |row| Dumbbell { row: *row, queue: Queue::DropTail, tcp: "bbr", separate, duration })
    };
    let cases: Vec<Dumbbell> = [false, true].into_iter().flat_map(with).collect();
    let end = duration.as_secs_f64();
    let heard = context.sweep(&cases, &context.seeds(context.pick(2, 3)), |case, seed| {
        let mut ears = Ears::new(case, 4);
        case.run(seed, &mut ears)?;
        let pairs = ears.answers(duration);
        let of = |listener: usize| pairs.iter().map(|pair| pair[listener].seconds() / end).sum::<f64>();
        Ok(core::array::from_fn::<f64, { LISTENERS.len() }, _>(|listener| of(listener) / pairs.len() as f64))
    })?;
    let columns = LISTENERS.map(|one| (one.title, ""));
    let title = "Part of the time in which detectors say that two BBR flows share a bottleneck, without hold";
    let mut table = Table::new("detected", title, &["network", "bottleneck"], &columns);
    for (case, runs) in cases.iter().zip(&heard) {
        let cells = core::array::from_fn::<_, { LISTENERS.len() }, _>(|listener| {
            Cell::of(runs.iter().map(|shares| shares[listener]))
        });
        table.row([case.row.name, if case.separate { "separate" } else { "shared" }], cells);
    }
    let share = |row: &str, side: &str, listener: usize| table.estimate(&[row, side], LISTENERS[listener].title);
    let mut works = Verdict::new("TR works", "TR finds the shared bottleneck of BBR flows in each case.");
    for row in rows {
        let says = share(row.name, "shared", TR);
        works = works.at_least(&format!("{}: part of the time, TR", row.name), says, 0.01);
    }
    let mean = |side: &str, listener| Estimate::mean_of(rows.iter().map(|row| share(row.name, side, listener)));
    let tells = Verdict::ours("TR tells", "Of BBR flows TR says yes far more often where a bottleneck is shared.")
        .at_least("part of the time, shared − separate", mean("shared", TR) - mean("separate", TR), 0.1);
    let reason = "BBR flows do not fill the queue together by one packet in a round trip: their rates change by phases \
                  of a quarter, one flow after the other, so that there is no common build-up.";
    let verdicts = [works.because(reason), tells.because(reason)];
    Ok((table, verdicts))
}
