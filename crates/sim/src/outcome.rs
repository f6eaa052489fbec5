//! The outcome of a run.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::LinkStats;
use fairpath_scenario::{Flow, ScenarioLink, Traffic};

use crate::count::{FlowCount, LiveCount, PathCount};

/// The outcome of a flow since the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// The class it belongs to.
    pub class: String,
    /// Data delivered in order, without headers.
    pub delivered: ByteCount,
    /// The mean rate of `delivered`.
    pub goodput: Bitrate,
    /// Path by path.
    pub paths: Vec<PathOutcome>,
    /// How long each transfer that ended took, in order of their ends.
    pub completions: Vec<Duration>,
    /// How many transfers were begun.
    pub begun: u64,
    /// How long each frame took, from the camera to its last byte in order; or each packet of a live stream that was
    /// played.
    pub frame_delays: Vec<Duration>,
    /// Pieces that arrived more than once, be it that they were sent again or that a link duplicated them.
    pub duplicates: u64,
    /// How long a piece waited at the receiver for what comes before it, on average.
    pub out_of_order: Duration,
    /// The counters of a live stream; `None` for other traffic.
    pub live: Option<LiveCount>,
}

/// The outcome of a path of a flow since the end of the warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PathOutcome {
    /// The counters of the path.
    pub count: PathCount,
    /// New data that arrived on this path, without headers, over time; of a live stream all that arrived.
    pub goodput: Bitrate,
}

/// The outcome of a link since the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// The mean rate of its deliveries, with the copies that it made.
    pub rate: Bitrate,
    /// The delivery rate over the link's mean rate; `None` if it has no limit.
    pub utilisation: Option<f64>,
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped, for whatever cause.
    pub dropped: u64,
    /// The mean time a packet waited in the queue.
    pub mean_wait: Duration,
}

impl LinkOutcome {
    /// The share of the packets that were dropped.
    pub fn drop_share(&self) -> f64 {
        if self.offered == 0 { 0.0 } else { self.dropped as f64 / self.offered as f64 }
    }
}

/// The outcome of a run since the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcome {
    /// How long that was.
    pub measured: Duration,
    /// Flow by flow, as in the scenario.
    pub flows: Vec<FlowOutcome>,
    /// Link by link, as in the scenario.
    pub links: Vec<LinkOutcome>,
}

impl Outcome {
    pub(crate) fn new<'a>(
        measured: Duration,
        flows: impl Iterator<Item = (&'a Flow, (&'a FlowCount, &'a FlowCount))>,
        links: impl Iterator<Item = ((&'a ScenarioLink, LinkStats), &'a LinkStats)>,
    ) -> Self {
        Self {
            measured,
            flows: flows.map(|(flow, (before, after))| flow_outcome(flow, before, after, measured)).collect(),
            links: links.map(|((link, after), before)| link_outcome(link, before, &after, measured)).collect(),
        }
    }

    /// The flows of a class.
    pub fn class<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a FlowOutcome> {
        self.flows.iter().filter(move |flow| flow.class == class)
    }

    /// The mean goodput of the flows of a class; zero where it has none.
    pub fn mean_goodput(&self, class: &str) -> Bitrate {
        let (count, sum) =
            self.class(class).fold((0, 0), |(count, sum), flow| (count + 1, sum + flow.goodput.as_bps()));
        Bitrate::from_bps(sum.checked_div(count).unwrap_or(0))
    }

    /// The link of that name.
    pub fn link(&self, name: &str) -> Option<&LinkOutcome> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The flow of that name.
    pub fn flow(&self, name: &str) -> Option<&FlowOutcome> {
        self.flows.iter().find(|flow| flow.name == name)
    }
}

fn rate(bytes: ByteCount, time: Duration) -> Bitrate {
    bytes.per(time).unwrap_or(Bitrate::ZERO)
}

fn flow_outcome(flow: &Flow, before: &FlowCount, after: &FlowCount, measured: Duration) -> FlowOutcome {
    let delivered = after.delivered - before.delivered;
    let paths = after.paths.iter().zip(&before.paths).map(|(after, before)| {
        let count = after.since(before);
        PathOutcome { count, goodput: rate(count.delivered, measured) }
    });
    FlowOutcome {
        name: flow.name.clone(),
        class: flow.class.clone(),
        delivered,
        goodput: rate(delivered, measured),
        paths: paths.collect(),
        completions: after.completions[before.completions.len()..].to_vec(),
        begun: after.begun - before.begun,
        frame_delays: after.frame_delays[before.frame_delays.len()..].to_vec(),
        duplicates: after.duplicates - before.duplicates,
        out_of_order: on_average(after.waited - before.waited, delivered / flow.transport.payload()),
        live: matches!(flow.traffic, Traffic::Live(_)).then(|| after.live.since(&before.live)),
    }
}

fn link_outcome(link: &ScenarioLink, before: &LinkStats, after: &LinkStats, measured: Duration) -> LinkOutcome {
    let rate = rate(after.delivered.bytes - before.delivered.bytes, measured);
    let transmitted = |stats: &LinkStats| stats.delivered.packets + stats.in_flight.packets - stats.duplicated.packets;
    let sent = transmitted(after) - transmitted(before);
    let waited = after.queueing_delay_total - before.queueing_delay_total;
    let limit = link.config.rate.mean().filter(|limit| limit.as_bps() > 0);
    LinkOutcome {
        name: link.name.clone(),
        rate,
        utilisation: limit.map(|limit| rate.as_bps() as f64 / limit.as_bps() as f64),
        offered: after.offered.packets - before.offered.packets,
        dropped: after.dropped().packets - before.dropped().packets,
        mean_wait: on_average(waited, sent),
    }
}

/// The total wait over the count; zero if nothing was counted.
fn on_average(waited: Duration, count: u64) -> Duration {
    u32::try_from(count).ok().filter(|count| *count > 0).map_or(Duration::ZERO, |count| waited / count)
}

/// Jain's index of fairness: 1 where all are equal, 1/n where one has everything.
pub fn jain_index(values: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum, squares) =
        values.into_iter().fold((0.0, 0.0, 0.0), |(count, sum, squares), x| (count + 1.0, sum + x, squares + x * x));
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_the_share_for_one_of_many() {
        assert!((jain_index([2.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert!((jain_index([1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 2)² / (2 · (1 + 4))
        assert!((jain_index([1.0, 2.0]) - 0.9).abs() < 1e-12);
    }
}
