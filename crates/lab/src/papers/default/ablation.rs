//! The ablation of the default: everything is run again without one mechanism after the other.
//!
//! # Claim
//!
//! Each mechanism makes some network better by 5 % at least, and none worse by more.
//!
//! # Topology
//!
//! ```text
//!          ┌── A ──┐          ┌── path 1 ──┐                        ┌── 20 Mbit/s ──┐
//!   ours ──┤       ├── ours   ┤            ├── 20 Mbit/s     ours ──┤               ├── ours
//!          └── B ──┘          └── path 2 ──┘                        └── 20 Mbit/s ──┘
//!                             competitor ──── the same             competitors ──── each of them
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | profiles | the sixteen of `odd_couple/profiles`, 20 MiB; the time it takes | assumed |
//! | beside others | 20 Mbit/s, round trip of 40 ms, drop-tail queues of 20, 50 and 200 ms, one CUBIC on each link | assumed |
//! | policed | a policer of 20 Mbit/s that lets 100 kB pass at once, before a link of 100; four CUBIC flows | assumed |
//! | unfairness | the rate of ours over that of one competitor of each link, or its inverse where that is more | assumed |
//! | faults | two links of 20 Mbit/s and 20 ms each way, of which one changes after a second; 10 MB; the time it takes | assumed |
//! | light | an application that sends a steady fifth of links of 20 Mbit/s on both paths in turn, one CUBIC on each | assumed |
//! | alike | two links alike that nobody else uses, and one of them; 1 and the part of the time for which it is judged wrong | assumed |
//! | without | one mechanism is switched off, or is what published evaluations have | assumed |
//!
//! # Deviations
//!
//! - A cell is the cost without a mechanism in parts of the cost with it, seed by seed: above 1 the mechanism helps.
//! - Of so many rows one in twenty differs by chance; a verdict names the row that speaks most clearly.
//! - The quick form has three seeds, two profiles, one queue beside others, and 15 s in place of 60.
//! - Steady rates are taken out only where an application sends at one: elsewhere they are asked nothing.
//! - What the policy of paths does, and acknowledgements, are not those of the product here. The ablation over the real
//!   stack is a bench: `cargo bench -p fairpath-faults --bench tables -- ablation`.

mod networks;

use fairpath_engine::{Coupling, Losses, SlowStart};
use fairpath_scenario::Flow;
use fairpath_sim::SimError;

use self::networks::{KINDS, Network, networks};
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/ablation", include_str!("ablation.rs"), run);

/// Something that can be taken out of the default.
struct Mechanism {
    name: &'static str,
    take_out: fn(&mut Flow),
    /// The kind of networks in which alone it does something; `None`: any.
    only: Option<&'static str>,
    /// Why no network of the tables needs it, or one is better without; empty where that is not so.
    why_not: &'static str,
}

const MECHANISMS: &[Mechanism] = &[
    Mechanism { name: "coupling", take_out: |flow| flow.engine.coupling = Coupling::Never, only: None, why_not: "" },
    Mechanism {
        name: "arrival",
        take_out: |flow| flow.engine.scheduler = "min_rtt".into(),
        only: None,
        why_not: "Nothing bounds here what is in flight: what min-RTT starves behind a small send buffer is in odd_couple/buffers.",
    },
    Mechanism {
        name: "losses by queue",
        take_out: |flow| flow.engine.parameters.aimd.losses = Losses::Congestion,
        only: None,
        why_not: "",
    },
    Mechanism {
        name: "trials for policers",
        take_out: |flow| flow.engine.parameters.aimd.losses = Losses::ByQueueAlone,
        only: None,
        why_not: "",
    },
    Mechanism {
        name: "HyStart++",
        take_out: |flow| flow.engine.parameters.aimd.slow_start = SlowStart::Standard,
        only: None,
        why_not: "It spares the queue a burst at the start; what the burst loses is repaired within the transfer.",
    },
    Mechanism {
        name: "dips",
        take_out: |flow| flow.engine.dips = false,
        only: None,
        why_not: "Beside others on separate links what a path gives up for a dip goes to them: that is its price.",
    },
    Mechanism {
        name: "steady rates",
        take_out: |flow| flow.engine.without.steady_rates = true,
        only: Some("light"),
        why_not: "Beside CUBIC losses keep windows full, so that paths are heard anyway: the table of detection shows it where \
                  others send only short transfers.",
    },
    Mechanism { name: "reinjection", take_out: |flow| flow.transport.reinjection = false, only: None, why_not: "" },
    Mechanism {
        name: "pacing",
        take_out: |flow| flow.transport.pacing = Some(false),
        only: None,
        why_not: "The queues here hold the bursts that are sent without it.",
    },
];

/// A difference that a person would notice.
const NOTICED: f64 = 0.05;

/// The column of the cost with everything.
const WITH_ALL: &str = "with all";

fn run(context: &Context) -> Result<Report, Failure> {
    let networks = networks(context);
    let seeds = context.seeds(context.pick(3, 8));
    let costs = context.sweep(&networks, &seeds, |network, seed| {
        let all = network.cost(seed, |_| {})?;
        let without = MECHANISMS.iter().map(|one| match one.only {
            Some(kind) if kind != network.kind() => Ok(1.0),
            _ => network.cost(seed, one.take_out).map(|cost| cost / all),
        });
        Ok((all, without.collect::<Result<Vec<f64>, SimError>>()?))
    })?;
    let mut columns = vec![(WITH_ALL, "")];
    columns.extend(MECHANISMS.iter().map(|one| (one.name, "")));
    let mut tables = Vec::new();
    for kind in KINDS {
        let mut table = Table::new(kind.name, kind.title, &["network"], &columns);
        for (network, runs) in networks.iter().zip(&costs).filter(|(network, _)| network.kind() == kind.name) {
            let mut cells = vec![Cell::of(runs.iter().map(|(all, _)| *all))];
            cells.extend((0..MECHANISMS.len()).map(|at| Cell::of(runs.iter().map(|(_, without)| without[at]))));
            table.push(&[&network.name()], &cells);
        }
        tables.push(table);
    }
    tables.push(summary(&networks, &costs));
    let verdicts = MECHANISMS.iter().flat_map(|one| judge(one, &tables)).collect();
    Ok(Report { tables, verdicts, ..Report::default() })
}

/// The cost with everything, and in parts of it the cost without each mechanism.
type Run = (f64, Vec<f64>);

/// The mean of each kind of network, mechanism by mechanism.
fn summary(networks: &[Network], costs: &[Vec<Run>]) -> Table {
    let columns = KINDS.map(|kind| (kind.name, ""));
    let title = "The mean over all networks of a kind: the cost without in parts of that with";
    let mut table = Table::new("summary", title, &["mechanism"], &columns);
    for (at, one) in MECHANISMS.iter().enumerate() {
        let mean = |kind: &str| {
            let of_kind = networks.iter().zip(costs).filter(|(network, _)| network.kind() == kind);
            let means = of_kind.filter_map(|(_, runs)| Estimate::of(runs.iter().map(|(_, without)| without[at])));
            Cell::from(Estimate::mean_of(means))
        };
        table.push(&[one.name], &KINDS.map(|kind| mean(kind.name)));
    }
    table
}

/// Whether it brings something, and whether it costs something.
fn judge(one: &Mechanism, tables: &[Table]) -> [Verdict; 2] {
    let of = |table: &Table| -> Vec<(String, Estimate)> {
        let row = |heads: &Vec<String>| {
            let name = format!("{}, {}: without / with", table.name, heads[0]);
            (name, table.estimate(&[&heads[0]], one.name))
        };
        table.rows.iter().map(|(heads, _)| row(heads)).collect()
    };
    let rows: Vec<(String, Estimate)> = tables.iter().take(KINDS.len()).flat_map(of).collect();
    let half = |estimate: &Estimate| estimate.half_width.unwrap_or(0.0);
    let low = |row: &&(String, Estimate)| row.1.mean - half(&row.1);
    let high = |row: &&(String, Estimate)| row.1.mean + half(&row.1);
    let mut helps =
        Verdict::ours(&format!("{} helps", one.name), &format!("Without {} some network is worse by 5 %.", one.name));
    let mut harms =
        Verdict::ours(&format!("{} does no harm", one.name), &format!("Without {} none is better by 5 %.", one.name));
    if let Some((name, estimate)) = rows.iter().max_by(|one, other| low(one).total_cmp(&low(other))) {
        helps = helps.at_least(name, estimate.clone(), 1.0 + NOTICED);
    }
    if let Some((name, estimate)) = rows.iter().min_by(|one, other| high(one).total_cmp(&high(other))) {
        harms = harms.at_least(name, estimate.clone(), 1.0 - NOTICED);
    }
    if !one.why_not.is_empty() {
        helps = helps.because(one.why_not);
    }
    [helps, harms]
}
