//! A grid of unequal paths: what each scheduler makes of both.
//!
//! # Claim
//!
//! `arrival` has 95 % of the sum of both paths wherever buffers hold twice what both paths do, and completes transfers no later than the
//! best other scheduler does in nine cells of ten.
//!
//! # Topology
//!
//! ```text
//!            ┌── 20 Mbit/s, 30 ms ────────────┐
//!   sender ──┤                                ├── receiver
//!            └── 20 Mbit/s / n, 30 ms · m ────┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | better path | 20 Mbit/s, 30 ms | assumed |
//! | rates | 1 : 1, 1 : 4, 1 : 20 | assumed |
//! | round trips | 1 : 1, 1 : 3, 1 : 10 | assumed |
//! | queues | 0.5, 2 and 12 BDP of each path, drop-tail | assumed |
//! | random loss | 0, 0.5 and 2 % on both paths | assumed |
//! | send and receive buffers | 0.5, 2 and 16 MB each, of payload | assumed |
//! | use | goodput from 20 to 50 s, in parts of the sum of each path alone with the same buffers | assumed |
//! | completion | of 64 kB, 1 MB and 20 MB; of 400, 400 and 20 seeds the one that 95 of 100 are not slower than | assumed |
//! | configuration | that of live connections, but for the scheduler | assumed |
//!
//! # Deviations
//!
//! - The quick form has six of the 243 cells, and no transfers of 20 MB.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use fairpath_sim::SimError;
use serde::{Deserialize, Serialize};

use crate::table::Source;
use crate::{Cell as Number, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("odd_couple/heterogeneity", include_str!("heterogeneity.rs"), run);

/// The better path: Mbit/s, and ms.
const BETTER: (u64, u64) = (20, 30);

/// Ours comes last.
const SCHEDULERS: [&str; 5] = ["min_rtt", "blest", "ecf", "stms", "arrival"];
const STMS: usize = 3;
const OURS: usize = SCHEDULERS.len() - 1;

/// The sizes in kB, with the number of seeds. A 95th percentile takes hundreds of transfers, and short
/// ones take little time. With only a hundred, and losses, the best of the four other schedulers seems
/// better than it is.
const SIZES: [(u64, u32); 3] = [(64, 400), (1_000, 400), (20_000, 20)];

/// A transfer that takes longer is given up, and counts as so long.
const PATIENCE: Duration = Duration::from_secs(300);

/// The tolerances of the sum and of no slower: a packet more or less makes that much difference.
const OF_THE_SUM: f64 = 0.95;
const NO_SLOWER: f64 = 1.01;
/// In so many of the cells.
const OF_THE_CELLS: f64 = 0.9;

/// Two paths: the second has a `slower`-th of the rate of the first and `longer` times its round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    slower: u64,
    longer: u64,
    /// In BDP of each path.
    queue: f64,
    /// In percent.
    loss: f64,
    buffer_kb: u64,
}

const QUICK: [Cell; 6] = [
    Cell { slower: 1, longer: 1, queue: 2.0, loss: 0.0, buffer_kb: 2_000 },
    Cell { slower: 4, longer: 3, queue: 2.0, loss: 0.0, buffer_kb: 2_000 },
    Cell { slower: 20, longer: 10, queue: 0.5, loss: 0.0, buffer_kb: 2_000 },
    Cell { slower: 4, longer: 10, queue: 12.0, loss: 0.0, buffer_kb: 500 },
    Cell { slower: 1, longer: 10, queue: 2.0, loss: 0.5, buffer_kb: 16_000 },
    Cell { slower: 20, longer: 3, queue: 12.0, loss: 0.0, buffer_kb: 500 },
];

fn full() -> Vec<Cell> {
    let mut cells = Vec::new();
    for slower in [1, 4, 20] {
        for longer in [1, 3, 10] {
            for queue in [0.5, 2.0, 12.0] {
                for loss in [0.0, 0.5, 2.0] {
                    cells.extend([500, 2_000, 16_000].map(|buffer_kb| Cell { slower, longer, queue, loss, buffer_kb }));
                }
            }
        }
    }
    cells
}

impl Cell {
    /// Rate and round trip of each path.
    fn paths(&self) -> [(Bitrate, Duration); 2] {
        let rate = Bitrate::from_mbps(BETTER.0);
        [(rate, ms(BETTER.1)), (Bitrate::from_bps(rate.as_bps() / self.slower), ms(BETTER.1 * self.longer))]
    }

    /// The bytes that both paths hold without queues.
    fn holds(&self) -> ByteCount {
        self.paths().into_iter().map(|(rate, round_trip)| rate * round_trip).sum()
    }

    /// Whether the buffers are large enough to have the sum.
    fn is_ample(&self) -> bool {
        ByteCount::from_kilobytes(self.buffer_kb) >= self.holds() * 2
    }

    fn name(&self) -> String {
        let Self { slower, longer, queue, loss, buffer_kb } = self;
        format!("1:{slower}, 1:{longer}, {queue} BDP, {loss} %, {buffer_kb} kB")
    }

    /// A connection over some of the paths.
    fn scenario(&self, over: &[usize], scheduler: &str, seed: u64) -> Scenario {
        let mut net = Net::new("two unequal paths", seed, Duration::ZERO, PATIENCE);
        let path = |at: &usize| {
            let (rate, round_trip) = self.paths()[*at];
            let loss = match self.loss {
                0.0 => LossConfig::None,
                percent => LossConfig::Random { probability: percent / 100.0 },
            };
            let queue = QueueConfig::sojourn(round_trip.mul_f64(self.queue));
            let there = LinkConfig::new(rate).delay(round_trip / 2).queue(queue).loss(loss);
            let there = net.link(&format!("path {at}"), there);
            let back = net.link(&format!("path {at} back"), LinkConfig::pure_delay(round_trip / 2));
            PathRoute { forward: vec![there], backward: vec![back] }
        };
        let paths: Vec<_> = over.iter().map(path).collect();
        let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
        let flow = net.live("transfer", engine, &paths);
        let buffer = Some(ByteCount::from_kilobytes(self.buffer_kb));
        (flow.transport.send_buffer, flow.transport.receive_buffer) = (buffer, buffer);
        flow.transport.reinjection = true;
        flow.start_jitter = ms(100);
        net.scenario
    }

    /// Goodput in Mbit/s, and how long data waits for what comes before it, in ms.
    fn bulk(&self, over: &[usize], scheduler: &str, seed: u64) -> Result<(f64, f64), SimError> {
        let mut scenario = self.scenario(over, scheduler, seed);
        (scenario.warm_up, scenario.duration) = (Duration::from_secs(20), Duration::from_secs(50));
        let outcome = fairpath_sim::run(&scenario, &mut ())?;
        let flow = &outcome.flows[0];
        Ok((flow.goodput.as_mbps_f64(), flow.out_of_order.as_secs_f64() * 1e3))
    }

    /// How long a transfer takes, in seconds.
    fn completion(&self, scheduler: &str, size_kb: u64, seed: u64) -> Result<f64, SimError> {
        let mut scenario = self.scenario(&[0, 1], scheduler, seed);
        scenario.flows[0].traffic = Traffic::Finite { size: ByteCount::from_kilobytes(size_kb) };
        let outcome = fairpath_sim::run(&scenario, &mut ())?;
        Ok(outcome.flows[0].completions.first().copied().unwrap_or(PATIENCE).as_secs_f64())
    }
}

/// The results of each scheduler in a cell.
#[derive(Clone, Debug)]
struct Seen {
    /// Goodput in parts of the sum of both paths, and of the better one.
    of_the_sum: [f64; SCHEDULERS.len()],
    of_the_better: [f64; SCHEDULERS.len()],
    /// How long data waits for what comes before it, in ms.
    out_of_order: [f64; SCHEDULERS.len()],
    /// The time that 95 of 100 transfers of each size do not exceed, in seconds.
    completions: Vec<[f64; SCHEDULERS.len()]>,
}

impl Seen {
    /// Ours in parts of the best other one, in the time that a transfer takes.
    fn beside_the_best(&self, size: usize) -> f64 {
        let (ours, others) = (self.completions[size][OURS], &self.completions[size][..OURS]);
        ours / others.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The value that 95 of 100 are not above.
fn slowest(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * 95).div_ceil(100) - 1]
}

/// A flow of a minute over each path alone, in Mbit/s, and with each scheduler over both, with what data waits in ms.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bulk {
    alone: [f64; 2],
    both: Vec<(f64, f64)>,
}

/// How long transfers of one size took, run by run and then by scheduler.
type Transfers = Vec<Vec<f64>>;

impl Seen {
    /// The runs of one cell, and its transfers by size.
    fn new(bulk: &[Bulk], transfers: &[&Transfers]) -> Self {
        let each = |of: fn(&Bulk, usize) -> f64| {
            let mean = |scheduler: usize| bulk.iter().map(|one| of(one, scheduler)).sum::<f64>() / bulk.len() as f64;
            core::array::from_fn(mean)
        };
        let completion = |runs: &Transfers, of: usize| slowest(runs.iter().map(|run| run[of]).collect());
        Self {
            of_the_sum: each(|one, of| one.both[of].0 / (one.alone[0] + one.alone[1])),
            of_the_better: each(|one, of| one.both[of].0 / one.alone[0].max(one.alone[1])),
            out_of_order: each(|one, of| one.both[of].1),
            completions: transfers.iter().map(|runs| core::array::from_fn(|of| completion(runs, of))).collect(),
        }
    }
}

fn look(context: &Context, cells: &[Cell], sizes: &[(u64, u32)]) -> Result<Vec<Seen>, Failure> {
    let bulk = context.sweep(cells, &context.seeds(context.pick(1, 2)), |cell, seed| {
        let alone = [cell.bulk(&[0], "min_rtt", seed)?.0, cell.bulk(&[1], "min_rtt", seed)?.0];
        let over_both = |scheduler: &&str| cell.bulk(&[0, 1], scheduler, seed);
        Ok(Bulk { alone, both: SCHEDULERS.iter().map(over_both).collect::<Result<_, _>>()? })
    })?;
    let of_size = |(kb, seeds): &(u64, u32)| {
        context.sweep(cells, &context.seeds(context.pick(2, *seeds)), |cell, seed| {
            SCHEDULERS.iter().map(|scheduler| cell.completion(scheduler, *kb, seed)).collect::<Result<Vec<f64>, _>>()
        })
    };
    let transfers = sizes.iter().map(of_size).collect::<Result<Vec<Vec<Transfers>>, _>>()?;
    let of_cell = |(at, bulk): (usize, &Vec<Bulk>)| {
        let transfers: Vec<&Transfers> = transfers.iter().map(|cells| &cells[at]).collect();
        Seen::new(bulk, &transfers)
    };
    Ok(bulk.iter().enumerate().map(of_cell).collect())
}

fn run(context: &Context) -> Result<Report, Failure> {
    let cells = context.pick(QUICK.to_vec(), full());
    let sizes = &SIZES[..context.pick(2, 3)];
    let seen = look(context, &cells, sizes)?;
    let sizes: &[u64] = &sizes.iter().map(|(kb, _)| *kb).collect::<Vec<_>>();
    let tables = vec![
        goals(&cells, &seen, sizes),
        gains(&cells, &seen),
        by_value(&cells, &seen),
        each_cell(&cells, &seen, sizes),
    ];
    let verdicts = verdicts(&cells, &seen, sizes);
    Ok(Report { tables, verdicts, ..Report::default() })
}

/// The means of each scheduler over all cells.
fn goals(cells: &[Cell], seen: &[Seen], sizes: &[u64]) -> Table {
    let kb = |size: &u64| format!("{size} kB");
    let names: Vec<String> = sizes.iter().map(kb).collect();
    let mut columns = vec![("use of the sum", ""), ("with ample buffers", ""), ("out of order", "ms")];
    columns.extend(names.iter().map(|name| (name.as_str(), "s")));
    let mut table = Table::new("schedulers", "Each scheduler on the mean of all cells", &["scheduler"], &columns);
    for (at, scheduler) in SCHEDULERS.iter().enumerate() {
        let pairs = || cells.iter().zip(seen);
        let mut numbers = vec![
            Number::of(seen.iter().map(|seen| seen.of_the_sum[at])),
            Number::of(pairs().filter(|(cell, _)| cell.is_ample()).map(|(_, seen)| seen.of_the_sum[at])),
            Number::of(seen.iter().map(|seen| seen.out_of_order[at])),
        ];
        numbers.extend((0..sizes.len()).map(|size| Number::of(seen.iter().map(|seen| seen.completions[size][at]))));
        table.push(&[scheduler], &numbers);
    }
    table
}

/// Where, which cells that is, and what STMS's authors have of min-RTT's goodput there.
type Published = (&'static str, fn(&Cell) -> bool, f64);

/// Goodput above min-RTT's, where STMS's authors saw so much of it [STMS].
fn gains(cells: &[Cell], seen: &[Seen]) -> Table {
    let columns = [("stms", "of min_rtt"), ("arrival", "of min_rtt")];
    let mut table = Table::new("gains", "Goodput beside min-RTT's", &["where"], &columns);
    let rows: [Published; 2] = [
        ("queues of 0.5 BDP", |cell| cell.queue < 1.0, 1.30),
        ("buffers of 500 kB", |cell| cell.buffer_kb == 500, 1.15),
    ];
    for (title, is_there, published) in rows {
        let here = || cells.iter().zip(seen).filter(|(cell, _)| is_there(cell)).map(|(_, seen)| &seen.of_the_sum);
        let beside = |at: usize| Number::of(here().map(|of_the_sum| of_the_sum[at] / of_the_sum[0]));
        table.row([title], [beside(STMS).elsewhere(Source::Memory, published), beside(OURS)]);
    }
    table
}

/// A dimension of the grid: what it is called, and the value that a cell has in it.
type Dimension = (&'static str, fn(&Cell) -> String);

const DIMENSIONS: [Dimension; 5] = [
    ("rates", |cell| format!("1:{}", cell.slower)),
    ("round trips", |cell| format!("1:{}", cell.longer)),
    ("queues", |cell| format!("{} BDP", cell.queue)),
    ("loss", |cell| format!("{} %", cell.loss)),
    ("buffers", |cell| format!("{} kB", cell.buffer_kb)),
];

/// Ours beside min-RTT for each value of each dimension, over all cells that have it.
fn by_value(cells: &[Cell], seen: &[Seen]) -> Table {
    let columns = [("min_rtt", "of the sum"), ("arrival", "of the sum"), ("least of arrival", "of the sum")];
    let title = "Use of the sum of both paths, by each value";
    let mut table = Table::new("values", title, &["dimension", "value"], &columns);
    for (name, value) in DIMENSIONS {
        let mut values: Vec<String> = Vec::new();
        for cell in cells {
            if !values.contains(&value(cell)) {
                values.push(value(cell));
            }
        }
        for one in values {
            let of = |at: usize| {
                let here = cells.iter().zip(seen).filter(|(cell, _)| value(cell) == one);
                here.map(move |(_, seen)| seen.of_the_sum[at]).collect::<Vec<f64>>()
            };
            let least = of(OURS).into_iter().fold(f64::INFINITY, f64::min);
            table.row([name, &one], [Number::of(of(0)), Number::of(of(OURS)), Number::of([least])]);
        }
    }
    table
}

/// Every cell: what ours has of the sum and of the better path, and of the best other scheduler.
fn each_cell(cells: &[Cell], seen: &[Seen], sizes: &[u64]) -> Table {
    let names: Vec<String> = sizes.iter().map(|size| format!("{size} kB")).collect();
    let mut columns = vec![
        ("arrival", "of the sum"),
        ("best other", "of the sum"),
        ("beside the better path", "of its goodput"),
        ("out of order", "ms"),
    ];
    columns.extend(names.iter().map(|name| (name.as_str(), "of the best other")));
    let heads = ["rates, round trips, queues, loss, buffers"];
    let mut table = Table::new("cells", "Cell by cell", &heads, &columns);
    for (cell, seen) in cells.iter().zip(seen) {
        let others = seen.of_the_sum[..OURS].iter().copied().fold(0.0, f64::max);
        let mut numbers = vec![seen.of_the_sum[OURS], others, seen.of_the_better[OURS], seen.out_of_order[OURS]];
        numbers.extend((0..sizes.len()).map(|size| seen.beside_the_best(size)));
        let numbers: Vec<Number> = numbers.into_iter().map(|number| Number::of([number])).collect();
        table.push(&[&cell.name()], &numbers);
    }
    table
}

/// The part of the cells in which something is so. The grid is all there is: nothing of it is estimated.
fn share(cells: impl Iterator<Item = bool>) -> Estimate {
    let (so, count) = cells.fold((0_u32, 0_u32), |(so, count), is| (so + u32::from(is), count + 1));
    Estimate::from(f64::from(so) / f64::from(count.max(1)))
}

/// No bond is slower than this part of its better path.
const NO_HARM: f64 = 0.97;

fn verdicts(cells: &[Cell], seen: &[Seen], sizes: &[u64]) -> Vec<Verdict> {
    let ample = || cells.iter().zip(seen).filter(|(cell, _)| cell.is_ample());
    let sum = "With buffers of twice what both paths hold, `arrival` has 0.95 of the sum of both in every cell.";
    let sum = Verdict::ours("the sum", sum).at_least(
        "part of the cells with 0.95 of it",
        share(ample().map(|(_, seen)| seen.of_the_sum[OURS] >= OF_THE_SUM)),
        1.0,
    );
    let harm = "No bond is slower than its better path.";
    let harm = Verdict::ours("never slower", harm).at_least(
        "part of the cells with 0.97 of the better path",
        share(seen.iter().map(|seen| seen.of_the_better[OURS] >= NO_HARM)),
        1.0,
    );
    let mut soon = Verdict::ours(
        "soon",
        "With `arrival` transfers complete no later than with the best other scheduler, in nine cells of ten.",
    );
    for (size, kb) in sizes.iter().enumerate() {
        let is_soon = seen.iter().map(|seen| seen.beside_the_best(size) <= NO_SLOWER);
        soon = soon.at_least(&format!("{kb} kB, part of the cells"), share(is_soon), OF_THE_CELLS);
    }
    let hindsight = "The best of four others is chosen afterwards, cell by cell: among few seeds it seems better than any one of \
                     them is.";
    vec![sum, harm, soon.because(hindsight)]
}
