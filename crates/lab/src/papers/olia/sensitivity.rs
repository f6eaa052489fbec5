//! What of the model decides how scenarios A and C come out.
//!
//! # Claim
//!
//! OLIA leaves users with one path more than LIA does, whatever is assumed where the paper says
//! nothing.
//!
//! # Topology
//!
//! ```text
//!   A: type 1, 10 users ──┬─────────────────────────────► server link, 10 Mbit/s ──► server
//!                         └──► access point, 10 Mbit/s ──►┘
//!      type 2, 10 users ─────► access point ──► another server
//!
//!   C: multipath, 10 users ──┬──► access point 1, 10 Mbit/s ──►
//!                            └──► access point 2, 10 Mbit/s ──►
//!      single path, 10 users ───► access point 2 ──►
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | all but one | those of `olia/scenario_a` and `olia/scenario_c`, N1 = N2 = 10 | paper and assumed, see there |
//! | equal round trips | in A path 2 is 30 ms shorter, which makes up for its second queue | assumed |
//! | shorter round trips | 70 ms and the queues | assumed |
//! | RED forgets slowly | weight 0.002, the one first published | assumed |
//! | windows of QUIC | never below 2 packets | assumed: RFC 9002 |
//! | every second packet is acknowledged | after 25 ms at the latest | assumed |
//! | the slides' metric | the best path has the largest l²/rtt, elsewhere l/rtt² | paper (slide 14) |
//! | the kernel's slow start | takes back what α takes from a window at its threshold, as in Linux | assumed: the paper measured a kernel |
//! | first term only | OLIA's growth without α | assumed |
//!
//! # Deviations
//!
//! - The paper does not vary these.

use core::time::Duration;

use fairpath_engine::{Olia, Parameters, PathMetric};
use fairpath_net::RedConfig;

use super::algorithms::{Algorithm, LIA, OLIA, OLIA_WITHOUT_ALPHA, PACKET};
use super::two_routers::{Case, Layout, Seen};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("olia/sensitivity", include_str!("sensitivity.rs"), run);

/// Something that is different from scenarios A and C, and what makes it so.
type Variant = (&'static str, fn(Case) -> Case);

/// With LIA and with OLIA.
const OF_BOTH: [Variant; 6] = [
    ("as in A and C", |case| case),
    ("equal round trips", with_equal_round_trips),
    ("shorter round trips", |case| Case { base_rtt: [ms(70); 3], ..case }),
    ("RED forgets slowly", |case| Case { queue: RedConfig::olia_testbed(PACKET).weight(0.002), ..case }),
    ("windows of QUIC", |case| Case { parameters: [Parameters::default(); 2], ..case }),
    ("every second packet is acknowledged", |case| Case { ack_every: 2, ..case }),
];
const SLIDES_METRIC: Variant = ("the slides' metric", |case| {
    let [multipath, single] = case.parameters;
    let olia = Olia { metric: PathMetric::LSqOverRtt, ..multipath.olia };
    Case { parameters: [Parameters { olia, ..multipath }, single], ..case }
});
const KERNEL: Variant = ("the kernel's slow start", |case| {
    let [multipath, single] = case.parameters;
    let olia = Olia { keeps_threshold: true, ..multipath.olia };
    Case { parameters: [Parameters { olia, ..multipath }, single], ..case }
});
const KERNEL_EQUAL: Variant =
    ("the kernel's slow start, equal round trips", |case| with_equal_round_trips((KERNEL.1)(case)));
const FIRST_TERM: Variant = ("first term only", |case| case);

fn with_equal_round_trips(case: Case) -> Case {
    let [first, second, single] = case.base_rtt;
    match case.layout {
        Layout::Nested => Case { base_rtt: [first, second - ms(30), single], ..case },
        Layout::Parallel => case,
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(40, 300));
    let mut compared: Vec<(Variant, Algorithm)> = Vec::new();
    for variant in OF_BOTH {
        compared.extend([(variant, LIA), (variant, OLIA)]);
    }
    compared.extend([(SLIDES_METRIC, OLIA), (KERNEL, OLIA), (KERNEL_EQUAL, OLIA), (FIRST_TERM, OLIA_WITHOUT_ALPHA)]);
    let points = compared.iter().flat_map(|((name, change), algorithm)| {
        [Layout::Nested, Layout::Parallel]
            .map(|layout| (*name, change(Case::testbed(layout, 10, *algorithm, duration))))
    });
    let points: Vec<(&str, Case)> = points.collect();
    let seeds = context.seeds(context.pick(2, 5));
    let seen = context.sweep(&points, &seeds, |(_, case), seed| case.run(seed))?;
    let columns =
        [("A, type 1", "Mbit/s"), ("A, type 2", "Mbit/s"), ("C, multipath", "Mbit/s"), ("C, single path", "Mbit/s")];
    let mut table = Table::new("variants", "Rates, where one thing is different", &["variant", "algorithm"], &columns);
    for (((name, _), algorithm), runs) in compared.iter().zip(seen.chunks(2)) {
        let of = |layout: usize, ours: fn(&Seen) -> f64| Cell::of(runs[layout].iter().map(ours));
        let cells = [of(0, Seen::multipath), of(0, Seen::single), of(1, Seen::multipath), of(1, Seen::single)];
        table.row([name, algorithm.title], cells);
    }
    let verdicts = [("olia_harms_less_in_a", "A, type 2"), ("olia_harms_less_in_c", "C, single path")]
        .map(|(name, column)| verdict(&table, name, column));
    let verdicts = [verdicts.to_vec(), vec![kernel(&table)]].concat();
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}

/// The effect of the kernel's slow start.
fn kernel(table: &Table) -> Verdict {
    let ours = |variant: Variant| table.estimate(&[variant.0, OLIA.title], "A, type 2");
    Verdict::ours("the_kernel_takes_more", "With the kernel's slow start OLIA leaves users of type 2 less.")
        .at_most("A, type 2, the kernel's − ours", ours(KERNEL) - ours(OF_BOTH[0]), 0.0)
        .at_most("A, type 2, equal round trips, the kernel's − ours", ours(KERNEL_EQUAL) - ours(OF_BOTH[1]), 0.0)
}

fn verdict(table: &Table, name: &str, column: &str) -> Verdict {
    let claim = format!("{column}: OLIA leaves users with one path clearly more than LIA does, whatever is assumed.");
    OF_BOTH.iter().fold(Verdict::ours(name, &claim), |verdict, (variant, _)| {
        let ours = |one: Algorithm| table.estimate(&[variant, one.title], column);
        verdict.at_least(&format!("{variant}, OLIA − LIA"), ours(OLIA) - ours(LIA), 0.05)
    })
}
