//! Table 1: two chains of three links, and what the trend line makes of some of their flows.

use core::time::Duration;

use fairpath_core::{Bitrate, DelaySample, PathId, Timestamp};
use fairpath_net::QueueConfig;
use fairpath_sbd::{BuildUp, Detector, Trendline, TrendlineConfig};
use fairpath_sim::{FlowIndex, Recorder, SimError};
use serde::{Deserialize, Serialize};

use super::model::slope_ms_per_s;
use super::network::{Network, Wire};
use crate::{bdp_packets, engine, ms};

/// How many flows there are, and how many of them are listened to.
const FLOWS: u32 = 30;
const WATCHED: u32 = 5;
/// The queue of the bottleneck, in time.
const QUEUE_MS: u64 = 100;
/// The time of slow start, which does not count.
pub(super) const WARM_UP: Duration = Duration::from_secs(20);

/// A row of the table: Mbit/s and one-way ms of L0, L1 and L2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) name: &'static str,
    pub(super) links: [(u64, u64); 3],
    pub(super) tcp: &'static str,
    /// Every so many packets one is acknowledged.
    pub(super) ack_every: u32,
}

pub(super) const CHAINS: [Chain; 2] = [
    Chain { name: "1, Reno", links: [(500, 20), (20, 20), (500, 50)], tcp: "reno", ack_every: 2 },
    Chain { name: "2, CUBIC", links: [(100, 50), (40, 20), (100, 50)], tcp: "cubic", ack_every: 2 },
];

impl Chain {
    /// The slopes of equation 15 in ms/s, with a full and with an empty queue.
    pub(super) fn slopes(&self) -> [f64; 2] {
        let share = self.links[1].0 as f64 * 1e6 / 8.0 / 1500.0 / f64::from(FLOWS);
        let base = self.links.iter().map(|(_, one_way)| 2 * one_way).sum::<u64>() as f64 / 1e3;
        [base + QUEUE_MS as f64 / 1e3, base].map(|delay| slope_ms_per_s(delay, share))
    }

    /// Runs it.
    pub(super) fn run(&self, duration: Duration, seed: u64) -> Result<Seen, SimError> {
        let wires: Vec<Wire> = ["L0", "L1", "L2"]
            .into_iter()
            .zip(self.links)
            .map(|(name, (mbps, one_way_ms))| {
                let packets = bdp_packets(Bitrate::from_mbps(mbps), ms(QUEUE_MS));
                Wire { name, mbps, one_way_ms, queue: QueueConfig::packets(packets) }
            })
            .collect();
        let mut network = Network::new(self.name, seed, duration, &wires);
        let route = network.route(&["L0", "L1", "L2"]);
        for _ in 0..FLOWS {
            network.flow(self.tcp, engine(self.tcp), core::slice::from_ref(&route));
        }
        network.net.scenario.flows.iter_mut().for_each(|flow| flow.transport.ack_every = self.ack_every);
        let mut watch = Watch { detector: Trendline::new(TrendlineConfig::default()), seen: Seen::default() };
        (0..WATCHED).for_each(|flow| watch.detector.on_path_opened(PathId::new(flow), Timestamp::ZERO));
        let outcome = fairpath_sim::run(&network.net.scenario, &mut watch)?;
        let episodes: u64 = outcome.flows.iter().map(|flow| flow.paths[0].count.episodes).sum();
        let episodes_in_100_s = episodes as f64 / f64::from(FLOWS) * 100.0 / duration.as_secs_f64();
        Ok(Seen { episodes_in_100_s, ..watch.seen })
    }
}

/// A sample of the first flow, and what became of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) at: f64,
    pub(super) raw_ms: f64,
    pub(super) smoothed_ms: f64,
    /// How many points the group that it belongs to has with it.
    pub(super) group_points: u32,
}

/// The record of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// The samples of the first flow.
    pub(super) samples: Vec<Sample>,
    /// The longest build-up of each round: the flow, and what it is like.
    pub(super) build_ups: Vec<(u32, BuildUp)>,
    /// How often a flow lost in 100 s, slow start included.
    pub(super) episodes_in_100_s: f64,
}

impl Seen {
    /// The slopes of all flows after the warm-up, from the lowest to the highest.
    pub(super) fn slopes(&self) -> Vec<f64> {
        let settled = self.build_ups.iter().filter(|(_, one)| one.begin.since(Timestamp::ZERO) >= WARM_UP);
        let mut slopes: Vec<f64> = settled.map(|(_, one)| one.slope_ms_per_s).collect();
        slopes.sort_by(f64::total_cmp);
        slopes
    }

    /// The slopes of the first flow in its build-ups without smoothing: regression lines through the
    /// samples as they were measured.
    pub(super) fn slopes_as_measured(&self) -> Vec<f64> {
        let settled = self.build_ups.iter().filter(|(_, one)| one.begin.since(Timestamp::ZERO) >= WARM_UP);
        let of_first = settled.filter(|(flow, _)| *flow == 0).map(|(_, one)| one);
        let mut slopes: Vec<f64> = of_first.map(|one| slope(inside(one, &self.samples))).collect();
        slopes.sort_by(f64::total_cmp);
        slopes
    }
}

/// The samples of a build-up.
pub(super) fn inside<'a>(build_up: &BuildUp, samples: &'a [Sample]) -> &'a [Sample] {
    // The time of a line's end is rounded to less than a microsecond.
    let [begin, end] = [build_up.begin, build_up.end].map(Timestamp::as_secs_f64);
    let at = |time: f64| samples.partition_point(|sample| sample.at < time);
    &samples[at(begin - 1e-6)..at(end + 1e-6)]
}

/// The slope of the regression line through samples, in ms/s.
fn slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let (at, delay) = samples.iter().fold((0.0, 0.0), |(at, delay), one| (at + one.at, delay + one.raw_ms));
    let (at, delay) = (at / count, delay / count);
    let moments = samples.iter().map(|one| (one.at - at, one.raw_ms - delay));
    let (tt, ts) = moments.fold((0.0, 0.0), |(tt, ts), (t, s)| (tt + t * t, ts + t * s));
    ts / tt
}

struct Watch {
    detector: Trendline,
    seen: Seen,
}

impl Recorder for Watch {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, _: PathId, rtt: Duration) {
        if flow.0 >= WATCHED {
            return;
        }
        let path = PathId::new(flow.0);
        self.detector.on_sample(path, &DelaySample { now, rtt, one_way: None });
        if let Some((smoothed_ms, group_points)) = self.detector.smoothed(path).filter(|_| flow.0 == 0) {
            let (at, raw_ms) = (now.as_secs_f64(), rtt.as_secs_f64() * 1e3);
            self.seen.samples.push(Sample { at, raw_ms, smoothed_ms, group_points });
        }
        self.detector.poll(now);
        for flow in 0..WATCHED {
            let newest = self.detector.build_up(PathId::new(flow)).map(|one| (flow, one));
            let known = self.seen.build_ups.iter().rev().take(WATCHED as usize);
            if let Some(newest) = newest.filter(|newest| !known.copied().any(|known| known == *newest)) {
                self.seen.build_ups.push(newest);
            }
        }
    }
}

/// The value below which this part of sorted values lies; NaN where there are none.
pub(super) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (part * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_the_slopes_of_its_equation() {
        // Chain 2: 40 Mbit/s for 30 flows are 111.1 packets in a second each; 240 and 340 ms.
        let [full, empty] = CHAINS[1].slopes();
        assert!((empty - 37.5).abs() < 0.01 && (full - 26.47).abs() < 0.01, "{full} {empty}");
    }

    #[test]
    fn a_straight_line_has_its_slope() {
        let sample = |n: u32| {
            let at = f64::from(n) / 10.0;
            Sample { at, raw_ms: 100.0 + 30.0 * at, smoothed_ms: 0.0, group_points: 1 }
        };
        let samples: Vec<Sample> = (0..10).map(sample).collect();
        assert!((slope(&samples) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_members() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5), 3.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1), 1.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
