//! A weak third modem, and two operators of cellular networks.
//!
//! # Claim
//!
//! A weak modem that joins two good ones takes nothing from a stream; and two operators bring more of it in time than
//! the better one.
//!
//! # Topology
//!
//! ```text
//!            ┌── 10 Mbit/s, 40 ms ─────┐               ┌── operator 1 ──┐
//!   sender ──┼── 8 Mbit/s, 60 ms ──────┼── player    ──┤                ├── player
//!            └── 1 Mbit/s, 400 ms, 5 % ┘               └── operator 2 ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | good modems | 10 Mbit/s and 40 ms, 8 Mbit/s and 60 ms, 0.1 % lost each, queues of 200 ms | assumed |
//! | the weak one | 1 Mbit/s, 400 ms, 5 % lost | assumed |
//! | the stream | 3 Mbit/s, or an encoder that follows its budget | assumed |
//! | deadline | 300 ms | assumed |
//! | operators | pairs of uplinks of AT&T, T-Mobile and Verizon, as recorded for Mahimahi, 40 ms there and back, queues of 300 kB | assumed |
//! | the stream over them | 1 Mbit/s | assumed |
//! | begin of the recordings | seed n: 13 n s after that of the first, 29 n s after that of the second | assumed |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found | assumed: our default |
//! | duration | 60 s, of which the first 10 are left out | assumed |
//!
//! # Deviations
//!
//! - Where the traces are not beside this project, in `shared/traces`, their table has no numbers.
//! - The ways back of the operators have no limit to their rate.
//! - The quick form has the weak modem only, for 20 s.

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::Bitrate;
use fairpath_net::{LinkConfig, LossConfig, MahimahiTrace, QueueConfig, Rate};

use super::live::{Case, Policy, Seen};
use crate::papers::cellular::{OPERATORS, PAIRS, beginning, folder, recorded};
use crate::{Cell, Context, Effort, Estimate, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tfrc_multipath/modems", include_str!("modems.rs"), run);

const DEADLINE: Duration = Duration::from_millis(300);

/// The least share of its goodput that a stream must keep beside a weak modem.
const AT_MOST: f64 = 0.98;

fn modem(mbps: u64, rtt: u64, loss: f64) -> [LinkConfig; 2] {
    let link = LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(rtt / 2)).jitter(ms(5));
    let link = link.queue(QueueConfig::sojourn(ms(200))).loss(LossConfig::Random { probability: loss });
    [link, LinkConfig::pure_delay(ms(rtt / 2))]
}

fn run(context: &Context) -> Result<Report, Failure> {
    let (weak, mut verdicts) = weak(context)?;
    let (mut tables, mut missing) = (vec![weak], Vec::new());
    if context.effort() == Effort::Full {
        match recorded(&folder(), "up") {
            Ok(traces) => {
                let (table, verdict) = operators(context, &traces)?;
                tables.push(table);
                verdicts.extend(verdict);
            }
            Err(error) => missing.push(format!("{error}: what two operators bring is not known.")),
        }
    }
    Ok(Report { tables, verdicts, missing, ..Report::default() })
}

/// Two good modems, and the same with a weak one.
fn weak(context: &Context) -> Result<(Table, Vec<Verdict>), Failure> {
    let good = vec![modem(10, 40, 0.001), modem(8, 60, 0.001)];
    let with = [good.clone(), vec![modem(1, 400, 0.05)]].concat();
    let [warm_up, duration] = context.pick([5, 20], [10, 60]).map(Duration::from_secs);
    let steady = Some(Bitrate::from_mbps(3));
    let case = |paths: &Vec<[LinkConfig; 2]>, rate| Case {
        paths: paths.clone(),
        policy: Policy::Best,
        rate,
        deadline: DEADLINE,
        warm_up,
        duration,
    };
    let cases = [case(&good, steady), case(&with, steady), case(&good, None), case(&with, None)];
    let seen = context.sweep(&cases, &context.seeds(4), Case::run)?;
    let mut table = Table::new(
        "weak",
        "Two good modems alone and with a weak third one",
        &["encoder", "modems"],
        &[("in time", "%"), ("budget", "Mbit/s"), ("goodput", "Mbit/s"), ("99 % take", "ms")],
    );
    let heads =
        [["3 Mbit/s", "two"], ["3 Mbit/s", "three"], ["follows its budget", "two"], ["follows its budget", "three"]];
    for (heads, runs) in heads.into_iter().zip(&seen) {
        let of = |of: &dyn Fn(&Seen) -> f64| Cell::of(runs.iter().map(of));
        let cells = [
            of(&|seen| 100.0 * seen.on_time),
            of(&|seen| seen.budget),
            of(&|seen| seen.goodput),
            of(&|seen| seen.slowest),
        ];
        table.row(heads, cells);
    }
    let ratio = |encoder: &str, column: &str| -> Estimate {
        table.estimate(&[encoder, "three"], column) / table.estimate(&[encoder, "two"], column)
    };
    let verdict =
        |name: &str, encoder: &str, claim: &str| {
            Verdict::ours(name, claim)
                .at_least("in time, in parts of two", ratio(encoder, "in time"), AT_MOST)
                .at_least("budget, in parts of two", ratio(encoder, "budget"), AT_MOST)
        };
    let verdicts = vec![
        verdict("no harm", "3 Mbit/s", "A weak modem takes at most 2 % of what is in time and of the budget."),
        verdict("no harm at the budget", "follows its budget", "The same where the encoder follows its budget."),
    ];
    Ok((table, verdicts))
}

const POLICIES: [Policy; 6] =
    [Policy::Best, Policy::Alone(0), Policy::Alone(1), Policy::Equal, Policy::Coupled, Policy::Redundant];

/// The same with recordings that begin elsewhere: nothing else in them is drawn.
fn from_elsewhere(case: &Case, seed: u64) -> Case {
    let mut case = case.clone();
    for (at, [there, _]) in case.paths.iter_mut().enumerate() {
        if let Rate::Mahimahi(trace) = &there.rate {
            there.rate = beginning(trace, at, seed);
        }
    }
    case
}

/// Two operators together, and each alone.
fn operators(context: &Context, traces: &[Arc<MahimahiTrace>]) -> Result<(Table, Vec<Verdict>), Failure> {
    let path = |at: usize| {
        let link = LinkConfig::new(Rate::Mahimahi(traces[at].clone()))
            .delay(ms(20))
            .queue(QueueConfig::bytes(fairpath_core::ByteCount::new(300_000)));
        [link, LinkConfig::pure_delay(ms(20))]
    };
    let [warm_up, duration] = [10, 60].map(Duration::from_secs);
    let case = |pair: &[usize; 2], policy| Case {
        paths: pair.iter().map(|at| path(*at)).collect(),
        policy,
        rate: Some(Bitrate::from_mbps(1)),
        deadline: DEADLINE,
        warm_up,
        duration,
    };
    let cases: Vec<Case> = PAIRS.iter().flat_map(|pair| POLICIES.map(|policy| case(pair, policy))).collect();
    let seen = context.sweep(&cases, &context.seeds(8), |case, seed| from_elsewhere(case, seed).run(seed))?;
    let columns = POLICIES.map(|policy| (policy.name(), "%"));
    let mut table = Table::new(
        "operators",
        "The share of packets in time over the uplinks of two operators, 1 Mbit/s with 300 ms",
        &["operators"],
        &columns,
    );
    let mut verdict =
        Verdict::ours("two operators", "Over two operators no less is in time than over the better one alone.");
    for (pair, runs) in PAIRS.iter().zip(seen.chunks(POLICIES.len())) {
        let name = pair.map(|at| OPERATORS[at].0).join(" and ");
        let share = |at: usize| Cell::of(runs[at].iter().map(|seen| 100.0 * seen.on_time));
        table.row([&name], core::array::from_fn::<_, { POLICIES.len() }, _>(share));
        let single = Estimate::largest([share(1).estimate(), share(2).estimate()]);
        verdict = verdict.at_least(&format!("{name}, above the better one, in %"), share(0).estimate() - single, -0.5);
    }
    Ok((table, vec![verdict]))
}
