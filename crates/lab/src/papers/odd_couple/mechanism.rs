//! How loss-based congestion control and min-RTT scheduling starve a path (slides 6 and 7).
//!
//! # Claim
//!
//! Both paths ramp up, then they are used in turns, and then one starves: it is left alone for a round-trip time that is
//! never updated, and the other one cannot exceed that because of the send buffer.
//!
//! # Topology
//!
//! ```text
//!            ┌── 30 Mbit/s, 3,000 packets ──┐
//!   sender ──┤                              ├── receiver
//!            └── 30 Mbit/s, 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates, queues | 30 Mbit/s and 3,000 packets each | paper |
//! | send buffer | 4 MB, of which 2,520 kB are payload by Linux's accounting | paper, but for the accounting |
//! | round-trip times | 100 ms each; in the table of the condition also 100 and 150, 200 or 300 ms | paper, but for the unequal ones |
//! | congestion control, scheduling | NewReno, uncoupled; min-RTT | paper |
//! | jitter | none; in the table of the condition also 0.05 and 1 ms | assumed |
//! | duration | 120 s; the last minute is the third phase | assumed |
//!
//! # Deviations
//!
//! - The pictures of the slides are drawn again; numbers are not printed in them, so none are compared.
//! - The condition for a lock, a stale time above S/C, follows from the slides and is not printed there: S is the
//!   payload that the send buffer holds, C what one path carries, and S/C the longest round trip that the busy path
//!   can reach.

use super::couple::{Couple, ONE_PATH};
use super::trace::{Seen, Trace};
use crate::{Axis, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/mechanism", include_str!("mechanism.rs"), run);

/// 0.63 of 4 MB, in kB.
const SEND_KB: u64 = 2_520;

/// Payload of the send buffer in kB, round-trip times in ms, and jitter in µs.
type Point = (u64, &'static [u64], u64);

const QUICK: [Point; 3] = [(700, &[100, 100], 1_000), (700, &[100, 200], 0), (SEND_KB, &[100, 100], 50)];

const FULL: [Point; 13] = [
    (700, &[100, 100], 0),
    (700, &[100, 100], 1_000),
    (700, &[100, 150], 1_000),
    (700, &[100, 200], 0),
    (700, &[100, 200], 1_000),
    (700, &[100, 300], 1_000),
    (2_000, &[100, 100], 0),
    (2_000, &[100, 100], 1_000),
    (2_000, &[100, 150], 1_000),
    (2_000, &[100, 200], 1_000),
    (2_000, &[100, 300], 1_000),
    (SEND_KB, &[100, 200], 1_000),
    (SEND_KB, &[100, 100], 50),
];

/// A share below this counts as nothing: it is a packet that a probe timeout sends.
const NOTHING: f64 = 0.001;

fn run(context: &Context) -> Result<Report, Failure> {
    let couple = Couple::plain(SEND_KB);
    let seeds = context.seeds(context.pick(2, 5));
    let phases = context.sweep(&[couple], &seeds, |couple, seed| Ok(Trace::of(couple, seed)?.seen(couple)))?.concat();
    let points = context.pick(QUICK.to_vec(), FULL.to_vec());
    let couples: Vec<Couple> = points
        .iter()
        .map(|(send_kb, base, jitter_us)| Couple { base, jitter_us: *jitter_us, ..Couple::plain(*send_kb) })
        .collect();
    let seen = context.sweep(&couples, &seeds, |couple, seed| Ok(Trace::of(couple, seed)?.seen(couple)))?;
    let condition = condition_table(&couples, &seen);
    let mut verdicts = phase_verdicts(&phases, couple.buffer_ms());
    verdicts.extend(condition_verdicts(&couples, &seen));
    let trace = context.sweep(&[couple], &seeds[..1], Trace::of)?.remove(0).remove(0);
    Ok(Report {
        tables: vec![phase_table(&phases, couple.buffer_ms()), condition],
        figures: vec![figure(&trace)],
        verdicts,
        ..Report::default()
    })
}

fn of(seen: &[Seen], what: impl Fn(&Seen) -> f64) -> Estimate {
    Estimate::of(seen.iter().map(what)).unwrap_or_else(Estimate::unknown)
}

fn phase_table(seen: &[Seen], buffer_ms: f64) -> Table {
    let mut table = Table::new("phases", "A send buffer of 4 MB", &["phase"], &[("value", "")]);
    table.row(["1: the smaller share in flight when the buffer is first full"], [of(seen, |seen| seen.ramped).into()]);
    table.row(["2: how often the paths took turns"], [of(seen, |seen| seen.turns).into()]);
    table.row(["3: what the starved path carries, in parts of both"], [of(seen, |seen| seen.share).into()]);
    table.row(["3: its round-trip time, in ms"], [of(seen, |seen| seen.stale_ms).into()]);
    table.row(["3: by how much that changes in a minute, in ms"], [of(seen, |seen| seen.stale_change_ms).into()]);
    let busy = Cell::from(of(seen, |seen| seen.busy_ms)).theory(buffer_ms);
    table.row(["3: the round-trip time of the busy path, in ms"], [busy]);
    let rate = Cell::from(of(seen, |seen| seen.busy_mbps)).theory(ONE_PATH);
    table.row(["3: what that carries, in Mbit/s"], [rate]);
    table
}

fn phase_verdicts(seen: &[Seen], buffer_ms: f64) -> Vec<Verdict> {
    vec![
        Verdict::new("1: both ramp up", "In slow start both paths are used.").at_least(
            "the smaller share in flight when the buffer is first full",
            of(seen, |seen| seen.ramped),
            0.2,
        ),
        Verdict::new("2: in turns", "The paths are used alternately.").at_least(
            "turns",
            of(seen, |seen| seen.turns),
            1.0,
        ),
        Verdict::new("one fills its queue", "One path has the whole buffer in its queue, and is full.")
            .within("its round-trip time, in parts of S/C", of(seen, |seen| seen.busy_ms) / buffer_ms, 1.0, 0.05)
            .at_least("what it carries, in parts of one path", of(seen, |seen| seen.busy_mbps) / ONE_PATH, 0.98),
        Verdict::new(
            "the other idles",
            "Its round-trip time is never updated, and is no lower than that of the busy one.",
        )
        .at_most("by how much it changes in a minute, in ms", of(seen, |seen| seen.stale_change_ms), 0.0)
        .at_least("stale, in parts of the busy one's", of(seen, |seen| seen.stale_ms / seen.busy_ms), 0.995),
        Verdict::new("3: starvation", "Then one path starves. (Without any jitter: see below for a little.)").at_most(
            "what it carries, in parts of both",
            of(seen, |seen| seen.share),
            NOTHING,
        ),
    ]
}

fn named(couple: &Couple) -> [String; 3] {
    let base = couple.base.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
    [format!("{} kB", couple.send_kb), format!("{base} ms"), format!("{} ms", couple.jitter_us as f64 / 1e3)]
}

fn condition_table(couples: &[Couple], seen: &[Vec<Seen>]) -> Table {
    let mut table = Table::new(
        "condition",
        "When the paths lock: the stale round-trip time against S/C",
        &["send buffer", "round trips", "jitter"],
        &[("S/C", "ms"), ("stale round-trip time", "ms"), ("share of the path that carries less", ""), ("turns", "")],
    );
    for (couple, seen) in couples.iter().zip(seen) {
        let cells = [
            Cell { theory: Some(couple.buffer_ms()), ..Cell::EMPTY },
            of(seen, |seen| seen.stale_ms).into(),
            of(seen, |seen| seen.share).into(),
            of(seen, |seen| seen.turns).into(),
        ];
        table.push(&named(couple).each_ref().map(String::as_str), &cells);
    }
    table
}

fn condition_verdicts(couples: &[Couple], seen: &[Vec<Seen>]) -> Vec<Verdict> {
    let mut locks = Verdict::ours(
        "only above S/C",
        "A path that carries nothing for a minute has a stale round-trip time of S/C or more.",
    );
    let mut equal = Verdict::ours(
        "equal",
        "With equal round trips and a little jitter, from 0.05 ms on, the paths alternate and do not lock.",
    );
    let mut unequal =
        Verdict::ours("unequal", "Where the base round trip of a path is above S/C it gets nothing, noise or not.");
    for (couple, seen) in couples.iter().zip(seen) {
        let (what, share) = (named(couple).join(", "), of(seen, |seen| seen.share));
        let locked: Vec<f64> = seen.iter().filter(|seen| seen.share <= NOTHING).map(|seen| seen.stale_ms).collect();
        if let Some(stale) = Estimate::of(locked) {
            // The data in flight on the busy path varies by a few packets.
            locks = locks.at_least(&format!("{what}: stale, in parts of S/C"), stale / couple.buffer_ms(), 0.98);
        }
        if couple.base[0] == couple.base[1] && couple.jitter_us > 0 {
            equal = equal.at_least(&format!("{what}: share"), share.clone(), 0.1);
        }
        if couple.base[1] as f64 > couple.buffer_ms() {
            unequal = unequal.at_most(&format!("{what}: share"), share, NOTHING);
        }
    }
    vec![locks, equal, unequal]
}

/// The pictures of the slides: what each path has of the send buffer, its sequence numbers, and its round-trip time.
fn figure(trace: &Trace) -> Figure {
    let line = |path: usize, of: fn(&super::trace::Moment) -> [f64; 2]| {
        let points = trace.0.iter().step_by(10).map(|moment| (moment.at, of(moment)[path])).collect();
        Series::new(["subflow 1", "subflow 2"][path], ["reno", "lia"][path], points)
    };
    let both = |of: fn(&super::trace::Moment) -> [f64; 2]| vec![line(0, of), line(1, of)];
    let time = || Axis::new("time", "s");
    Figure::new("slides_6_and_7", "A send buffer of 4 MB")
        .lines("Send buffer: payload in flight", time(), Axis::new("in flight", "kB"), both(|moment| moment.in_flight))
        .lines("Sequence numbers", time(), Axis::new("arrived", "MB"), both(|moment| moment.arrived))
        .lines("Round-trip times", time(), Axis::new("smoothed round-trip time", "ms"), both(|moment| moment.smoothed))
}
