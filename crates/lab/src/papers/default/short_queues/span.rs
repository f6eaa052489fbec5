//! From slow links to fast ones, and from near peers to far ones.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::Coupling;
use fairpath_net::QueueConfig;
use fairpath_sim::SimError;

use super::seen::{wait_ms, watched};
use super::{PAYLOAD, Section, TODAY, of_runs};
use crate::papers::default::cell::{Contender, HYBRID};
use crate::{Context, Failure, Net, Table, Verdict, ms};

const RATES_MBPS: [u64; 4] = [2, 20, 100, 500];
const ROUND_TRIPS_MS: [u64; 4] = [5, 40, 150, 600];
const COLUMNS: [(&str, &str); 4] = [
    ("coupled CUBIC", "of the link"),
    ("hybrid CUBIC", "of the link"),
    ("mean wait, hybrid CUBIC", "ms"),
    ("95 % wait less than", "ms"),
];

/// A start takes so many round trips at most, and so long at least.
const WARM_UP_ROUNDS: u32 = 20;
const WARM_UP: Duration = Duration::from_secs(5);

/// A packet of 1,500 bytes takes 6 ms on a link of 2 Mbit/s: there a queue of 15 ms is hardly more than two packets.
const SHORT_MS: f64 = 15.0;

/// A link, in Mbit/s and ms.
#[derive(Clone, Copy, Debug)]
struct Link {
    mbps: u64,
    rtt_ms: u64,
}

impl Link {
    /// The part of it that a contender gets when it has started, the mean wait, and that of all but 5 % of packets.
    fn run(self, who: &Contender, seed: u64, measured: Duration) -> Result<[f64; 3], SimError> {
        let from = WARM_UP.max(WARM_UP_ROUNDS * ms(self.rtt_ms));
        let mut net = Net::new("span", seed, from, from + measured);
        let (rate, half) = (Bitrate::from_mbps(self.mbps), Duration::from_micros(500 * self.rtt_ms));
        let path = net.path("link", rate, half, QueueConfig::sojourn(ms(400)));
        net.live("ours", who.engine(Coupling::Auto), &[path]).start_jitter = ms(500);
        let (outcome, p95) = watched(&net.scenario)?;
        let part = outcome.mean_goodput("ours").as_mbps_f64() / (self.mbps as f64 * PAYLOAD);
        Ok([part, wait_ms(&outcome, "link"), p95])
    }

    /// Faster links take longer to simulate, and no longer to settle.
    fn measured(self, context: &Context) -> Duration {
        Duration::from_secs(if self.mbps >= 500 { 5 } else { context.pick(10, 30) })
    }
}

pub(super) fn span(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let link = |mbps, rtt_ms| Link { mbps, rtt_ms };
    let all = RATES_MBPS.iter().flat_map(|mbps| ROUND_TRIPS_MS.iter().map(|rtt| link(*mbps, *rtt))).collect();
    let links = context.pick(vec![link(2, 150), link(20, 5)], all);
    let runs = context.sweep(&links, seeds, |link, seed| {
        let one = |who: &Contender| link.run(who, seed, link.measured(context));
        [TODAY, HYBRID].iter().map(one).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "One link that nobody else uses, with a queue of 400 ms: where short queues end";
    let mut table = Table::new("span", title, &["rate", "round trip"], &COLUMNS);
    let mut fast =
        Verdict::ours("span, fast", "From 2 to 500 Mbit/s and 5 to 600 ms it carries 0.95 of coupled CUBIC.");
    let mut short = Verdict::ours("span, short", "There the mean wait is 15 ms at most.");
    for (link, runs) in links.iter().zip(&runs) {
        let (rate, rtt) = (format!("{} Mbit/s", link.mbps), format!("{} ms", link.rtt_ms));
        let [today, ..] = of_runs::<3>(runs, 0);
        let [hybrid, wait, p95] = of_runs::<3>(runs, 1);
        table.row([&rate, &rtt], [today, hybrid, wait, p95]);
        let of = |column: usize| table.estimate(&[&rate, &rtt], COLUMNS[column].0);
        let name = format!("{rate}, {rtt}");
        fast = fast.at_least(&name, of(1) / of(0), 0.95);
        short = short.at_most(&name, of(2), SHORT_MS);
    }
    let fast = fast.because(
        "At 500 Mbit/s and 600 ms coupled CUBIC is above the rate of the link: what came out of order before is handed out then.",
    );
    let short = short
        .because("What a round trip brings is known a round trip later, and few packets of a slow link are 15 ms.");
    Ok(Section { table, verdicts: vec![fast, short], missing: None })
}
