//! What of the model decides how scenario A comes out.
//!
//! # Claim
//!
//! OLIA leaves users of type 2 more than LIA does, whatever was assumed where the paper says
//! nothing.
//!
//! # Topology
//!
//! ```text
//!   type 1, N1 users ──┬─────────────────────────────► server link, N1 · C1 ──► server
//!                      └──► access point, N2 · C2 ──►┘
//!   type 2, N2 users ─────► access point, N2 · C2 ──► another server
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | all but one | those of `olia/scenario_a`, N1 = N2 = 10 | paper and assumed, see there |
//! | equal round trips | path 2 is 30 ms shorter, which makes up for its second queue | assumed |
//! | shorter round trips | 70 ms and the queues | assumed |
//! | RED forgets slowly | weight 0.002, the one first published | assumed |
//! | windows of QUIC | never below 2 packets | assumed: RFC 9002 |
//! | every second packet is acknowledged | after 25 ms at the latest | assumed |
//!
//! # Deviations
//!
//! - Not the paper's.

use core::time::Duration;

use fairpath_cc::equilibrium::FluidRule;
use fairpath_cc::{AimdConfig, Epsilon, Olia, Parameters, PathMetric};
use fairpath_net::RedConfig;

use super::algorithms::{Algorithm, LIA, OLIA, PACKET};
use super::two_routers::{Case, Layout, Seen};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/sensitivity", include_str!("sensitivity.rs"), run);

/// OLIA's first term, which is the family's at ε = 0 where round-trip times are equal.
const WITHOUT_ALPHA: Algorithm =
    Algorithm { title: "OLIA without α", colour: "epsilon", engine: "epsilon", rule: FluidRule::Olia };

/// Something that is different from scenarios A and C.
type Change = fn(Case) -> Case;

const SAME: &str = "as in scenarios A and C";
const VARIANTS: [(&str, &[Algorithm], Change); 8] = [
    (SAME, &[LIA, OLIA], |case| case),
    ("equal round trips", &[LIA, OLIA], |case| with_path_2_shorter(case)),
    ("shorter round trips", &[LIA, OLIA], |case| Case { base_rtt: [ms(70); 3], ..case }),
    ("RED forgets slowly", &[LIA, OLIA], |case| Case { queue: RedConfig::olia_testbed(PACKET).weight(0.002), ..case }),
    ("windows of QUIC", &[LIA, OLIA], |case| Case { parameters: [Parameters::default(); 2], ..case }),
    ("every second packet is acknowledged", &[LIA, OLIA], |case| Case { ack_every: 2, ..case }),
    ("the slides' metric", &[OLIA], |case| of_multipath(case, |p| p.olia = Olia { metric: PathMetric::LSqOverRtt })),
    ("its first term only", &[WITHOUT_ALPHA], |case| {
        of_multipath(case, |parameters| {
            parameters.epsilon = Epsilon { epsilon: 0.0 };
            parameters.aimd = AimdConfig { min_ssthresh_datagrams: 1, ..parameters.aimd };
        })
    }),
];

fn with_path_2_shorter(case: Case) -> Case {
    let [first, second, single] = case.base_rtt;
    let queues = if case.layout == Layout::Nested { ms(30) } else { ms(0) };
    Case { base_rtt: [first, second - queues, single], ..case }
}

fn of_multipath(case: Case, change: fn(&mut Parameters)) -> Case {
    let [mut multipath, single] = case.parameters;
    change(&mut multipath);
    Case { parameters: [multipath, single], ..case }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(60, 300));
    let mut points = Vec::new();
    for (name, compared, change) in VARIANTS {
        for algorithm in compared {
            let case = |layout| change(Case::testbed(layout, 10, *algorithm, duration));
            points.extend([(name, case(Layout::Nested)), (name, case(Layout::Parallel))]);
        }
    }
    let seeds = context.seeds(context.pick(1, 5));
    let seen = context.sweep(&points, &seeds, |(_, case), seed| case.run(seed))?;
    let columns =
        [("A, type 1", "Mbit/s"), ("A, type 2", "Mbit/s"), ("C, multipath", "Mbit/s"), ("C, single path", "Mbit/s")];
    let mut table = Table::new("variants", "Rates, where one thing is different", &["variant", "algorithm"], &columns);
    for (points, runs) in points.chunks(2).zip(seen.chunks(2)) {
        let (name, case) = &points[0];
        let of = |layout: usize, ours: fn(&Seen) -> f64| Cell::of(runs[layout].iter().map(ours));
        let cells = [of(0, Seen::multipath), of(0, Seen::single), of(1, Seen::multipath), of(1, Seen::single)];
        table.row([name, case.algorithm.title], cells);
    }
    let mean =
        |name, algorithm: Algorithm, column| table.cell(&[name, algorithm.title], column).map_or(f64::NAN, Cell::mean);
    let mut verdict = Verdict::new("olia_harms_less", "OLIA leaves users of type 2 clearly more than LIA does.");
    for (name, compared, _) in VARIANTS.iter().filter(|(_, compared, _)| compared.contains(&LIA)) {
        let _ = compared;
        verdict = verdict.at_least(
            &format!("{name}, OLIA − LIA"),
            mean(name, OLIA, "A, type 2") - mean(name, LIA, "A, type 2"),
            0.05,
        );
    }
    Ok(Report { tables: vec![table], verdicts: vec![verdict], ..Report::default() })
}
