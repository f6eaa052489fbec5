//! Live streams, whose encoder sends what its budget allows.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::Coupling;
use fairpath_net::QueueConfig;
use fairpath_scenario::{Live, Traffic};
use fairpath_sim::SimError;

use super::seen::wait_ms;
use super::{Section, TODAY, of_runs};
use crate::papers::default::cell::{Contender, HYBRID};
use crate::{Context, Failure, Net, Table, Verdict, ms};

const COLUMNS: [(&str, &str); 5] = [
    ("goodput", "Mbit/s"),
    ("wait on the first", "ms"),
    ("on the second", "ms"),
    ("99 % of packets take", "ms"),
    ("in time", "%"),
];

/// How long queues are, and who else sends over the first link.
const CASES: [(u64, Other); 5] = [
    (1_000, Other::Nobody),
    (200, Other::Nobody),
    (1_000, Other::Cubic),
    (200, Other::Cubic),
    (200, Other::ShortFlows),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Nobody,
    Cubic,
    /// Transfers that ask for half of the link.
    ShortFlows,
}

impl Other {
    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Cubic => "1 cubic",
            Self::ShortFlows => "50 % short flows",
        }
    }

    fn traffic(self) -> Option<Traffic> {
        match self {
            Self::Nobody => None,
            Self::Cubic => Some(Traffic::Bulk),
            // 100 kB every 160 ms are half of 10 Mbit/s.
            Self::ShortFlows => Some(Traffic::ShortFlows { size: ByteCount::new(100_000), mean_interval: ms(160) }),
        }
    }
}

pub(super) fn live(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let cases: Vec<(u64, Other)> = CASES.into_iter().take(context.pick(1, 5)).collect();
    let end = Duration::from_secs(context.pick(40, 80));
    let runs = context.sweep(&cases, seeds, |case, seed| {
        [TODAY, HYBRID].iter().map(|who| stream(who, *case, seed, end)).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "A live stream with a deadline of 300 ms, whose encoder sends what its budget allows";
    let mut table = Table::new("live", title, &["queues", "on the first link", "who"], &COLUMNS);
    let mut more =
        Verdict::ours("live, more", "Live streams have budgets that are no smaller than with coupled CUBIC.");
    let mut short =
        Verdict::ours("live, short", "Where nobody else sends, the mean wait of live streams is 15 ms at most.");
    for ((queue, other), runs) in cases.iter().zip(&runs) {
        let (queue, name) = (format!("{queue} ms"), other.name());
        for (at, who) in [TODAY, HYBRID].iter().enumerate() {
            table.row([&queue, name, who.title], of_runs::<5>(runs, at));
        }
        let of = |who: &Contender, column: usize| table.estimate(&[&queue, name, who.title], COLUMNS[column].0);
        let name = format!("{queue}, {name}");
        more = more.at_least(&name, of(&HYBRID, 0) / of(&TODAY, 0), 1.0);
        if *other == Other::Nobody {
            short = short.at_most(&format!("{name}, first"), of(&HYBRID, 1), 15.0);
            short = short.at_most(&format!("{name}, second"), of(&HYBRID, 2), 15.0);
        }
    }
    let reason = "Beside others windows are cut for their packets, too, and a budget rises slowly from each cut.";
    Ok(Section { table, verdicts: vec![more.because(reason), short], missing: None })
}

fn stream(who: &Contender, (queue, other): (u64, Other), seed: u64, end: Duration) -> Result<[f64; 5], SimError> {
    let mut net = Net::new("live", seed, ms(20_000), end);
    let queue = QueueConfig::sojourn(ms(queue));
    let first = net.path("first", Bitrate::from_mbps(10), ms(20), queue.clone());
    let second = net.path("second", Bitrate::from_mbps(6), ms(30), queue);
    let flow = net.live("ours", who.engine(Coupling::Auto), &[first.clone(), second]);
    (flow.traffic, flow.start_jitter) = (Traffic::Live(Live::default()), ms(500));
    if let Some(traffic) = other.traffic() {
        let flow = net.flow("other", crate::engine("cubic"), &[first]);
        (flow.traffic, flow.start_jitter) = (traffic, ms(1_000));
    }
    let mut outcome = fairpath_sim::run(&net.scenario, &mut ())?;
    let (first, second) = (wait_ms(&outcome, "first"), wait_ms(&outcome, "second"));
    let flow = &mut outcome.flows[0];
    flow.frame_delays.sort_unstable();
    let longest = flow.frame_delays.get(flow.frame_delays.len().saturating_sub(1) * 99 / 100).copied();
    let longest = longest.unwrap_or_default().as_secs_f64() * 1e3;
    let in_time = flow.live.and_then(|live| live.on_time()).unwrap_or(0.0);
    Ok([flow.goodput.as_mbps_f64(), first, second, longest, 100.0 * in_time])
}
