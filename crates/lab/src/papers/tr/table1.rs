//! Table 1 and figure 3: the slopes of build-ups with thirty flows.
//!
//! # Claim
//!
//! With many flows the round-trip time grows linearly while the queue builds up, with the slope
//! n/(C d) of equation 15, both for Reno and for CUBIC.
//!
//! # Topology
//!
//! ```text
//!   flow 1  ──┐
//!     ...     ├── L0 ─── L1, bottleneck ─── L2 ───
//!   flow 30 ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | chain 1 | 500, 20, 500 Mbit/s; one way 20, 20, 50 ms; 30 Reno flows | paper |
//! | chain 2 | 100, 40, 100 Mbit/s; one way 50, 20, 50 ms; 30 CUBIC flows | paper |
//! | queues | 100 ms, drop-tail | assumed: as in Table 2 |
//! | detector | TR with α = 0.1; the longest build-up of each round of 5 s | paper, but for α |
//! | flows listened to | 5 | assumed |
//! | start | within 1 s of each other | assumed |
//! | duration | 300 s, of which the first 20 s do not count | assumed |
//! | packets | 1500 B; every second one is acknowledged, or every one | assumed: ns-3 and Linux do the former |
//!
//! # Deviations
//!
//! - The paper shows curves and no numbers; the slopes stand beside equation 15.

use core::time::Duration;

use super::chains::{CHAINS, Chain, Seen, WARM_UP, quantile};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/table1", include_str!("table1.rs"), run);

/// The packets that are acknowledged: one of this many.
const ACKNOWLEDGED: [(&str, u32); 2] = [("every second", 2), ("every", 1)];
/// The figure shows this much, in seconds.
const SHOWN: f64 = 20.0;
/// A regression over the smoothed delay is this much flatter than the model's flattest line at most:
/// the filter lags behind by about nine samples, which are half a second here.
const FLATTER: f64 = 0.85;

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(120, 300));
    let chains: Vec<Chain> =
        CHAINS.iter().flat_map(|chain| ACKNOWLEDGED.map(|(_, ack_every)| Chain { ack_every, ..*chain })).collect();
    let seen = context.sweep(&chains, &context.seeds(context.pick(2, 5)), |chain, seed| chain.run(duration, seed))?;
    let columns = [
        ("slope, 10 %", "ms/s"),
        ("slope, median", "ms/s"),
        ("slope, 90 %", "ms/s"),
        ("slope as measured", "ms/s"),
        ("eq. 15, full queue", "ms/s"),
        ("eq. 15, empty queue", "ms/s"),
        ("losses of a flow", "in 100 s"),
    ];
    let title = "Slopes of the longest build-ups of all rounds; those of the first flow as measured, without smoothing; \
                 what equation 15 says for Reno; and how often a flow loses";
    let mut table = Table::new("slopes", title, &["chain", "acknowledged"], &columns);
    for (at, (chain, runs)) in chains.iter().zip(&seen).enumerate() {
        let of = |part| Cell::of(runs.iter().map(|run| quantile(&run.slopes(), part)));
        let raw = Cell::of(runs.iter().map(|run| quantile(&run.slopes_as_measured(), 0.5)));
        let theory = |slope| Cell::EMPTY.theory(slope);
        let [full, empty] = chain.slopes();
        let losses = Cell::of(runs.iter().map(|run| run.episodes_in_100_s));
        let (acknowledged, _) = ACKNOWLEDGED[at % ACKNOWLEDGED.len()];
        table.row([chain.name, acknowledged], [of(0.1), of(0.5), of(0.9), raw, theory(full), theory(empty), losses]);
    }
    let figures = vec![figure(&seen)];
    Ok(Report { verdicts: verdicts(&table), tables: vec![table], figures, ..Report::default() })
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let mut reno = Verdict::new("reno", "With Reno the slopes are those of equation 15.");
    let mut cubic = Verdict::new("cubic", "The same holds for CUBIC.");
    for (acknowledged, _) in ACKNOWLEDGED {
        let median = |chain: usize| table.estimate(&[CHAINS[chain].name, acknowledged], "slope, median");
        let [[full, empty], [cubic_full, cubic_empty]] = CHAINS.map(|chain| chain.slopes());
        let what = format!("median slope in ms/s, {acknowledged} packet acknowledged");
        reno = reno.between(&what, median(0), FLATTER * full, empty);
        cubic = cubic.between(&what, median(1), FLATTER * cubic_full, cubic_empty);
    }
    // With 36 to 39 losses in 100 s and a round trip of 0.27 s a tenth of the flows stand still at any time. Where
    // acknowledgements come for two packets, these are sent in pairs, which find the queue full sooner.
    let reason = "the model has all flows grow all the time from an empty queue to a full one, and here a flow that lost does \
                  not grow for a round trip, and drop-tail hits too few at once to empty the queue.";
    vec![reno.because(reason), cubic.because(reason)]
}

fn figure(seen: &[Vec<Seen>]) -> Figure {
    let title = "Round-trip times of one of thirty flows, and the longest build-up of each 5 s";
    CHAINS.iter().zip(seen.iter().step_by(ACKNOWLEDGED.len())).fold(
        Figure::new("fig3", title),
        |figure, (chain, runs)| {
            let Some(run) = runs.first() else { return figure };
            let begin = WARM_UP.as_secs_f64();
            let is_shown = |at: f64| (begin..begin + SHOWN).contains(&at);
            let raw = run.samples.iter().filter(|sample| is_shown(sample.at)).map(|sample| (sample.at, sample.raw_ms));
            let of_first = run.build_ups.iter().filter(|(flow, _)| *flow == 0).map(|(_, one)| one);
            let ends = of_first.flat_map(|one| {
                [(one.begin.as_secs_f64(), one.begin_delay_ms), (one.end.as_secs_f64(), one.end_delay_ms())]
            });
            let ends = ends.filter(|(at, _)| is_shown(*at)).collect();
            let series = Series::new("measured", chain.tcp, raw.collect()).marked("ends of the regression line", ends);
            figure.lines(chain.name, Axis::new("time", "s"), Axis::new("round-trip time", "ms"), vec![series])
        },
    )
}
