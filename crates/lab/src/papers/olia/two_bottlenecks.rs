//! A user with a path over each of two bottlenecks, which others use as well, and its windows.

use core::time::Duration;

use fairpath_core::{Bitrate, Timestamp};
use fairpath_net::RedConfig;
use fairpath_scenario::Scenario;
use fairpath_sim::{Outcome, Recorder, SimError, View};
use serde::{Deserialize, Serialize};

use super::algorithms::{Algorithm, PACKET, TCP};
use crate::{Net, ms};

/// How often the windows are looked at.
const SAMPLE: Duration = Duration::from_millis(100);
/// The round-trip time without queues.
const BASE_RTT: Duration = Duration::from_millis(80);

/// TCP flows beside the user on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Others {
    pub(super) flows: u32,
    pub(super) start: Duration,
    /// `None`: with the run.
    pub(super) stop: Option<Duration>,
}

impl Others {
    /// The same number of flows all the time.
    pub(super) fn always(flows: u32) -> Self {
        Self { flows, start: Duration::ZERO, stop: None }
    }
}

/// The flows and the conditions of a run.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) algorithm: Algorithm,
    /// The capacity of each bottleneck.
    pub(super) capacity: Bitrate,
    /// On path 1 and on path 2.
    pub(super) others: [Vec<Others>; 2],
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
}

impl Case {
    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("two bottlenecks", seed, self.warm_up, self.duration);
        net.scenario.sample_every = SAMPLE;
        let queue = RedConfig::olia_testbed(PACKET);
        let paths = ["1", "2"].map(|name| net.path(name, self.capacity, BASE_RTT / 2, queue.clone().into()));
        net.flow("multipath", self.algorithm.tcp(), &paths).start_jitter = ms(500);
        for (path, others) in paths.iter().zip(&self.others) {
            for Others { flows, start, stop } in others {
                for _ in 0..*flows {
                    let flow = net.flow("tcp", TCP.tcp(), core::slice::from_ref(path));
                    (flow.start, flow.start_jitter, flow.stop) = (*start, ms(500), *stop);
                }
            }
        }
        net.scenario
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64) -> Result<Seen, SimError> {
        let mut watch = Watch::default();
        let outcome = fairpath_sim::run(&self.scenario(seed), &mut watch)?;
        let begin = self.warm_up.as_secs_f64();
        Ok(Seen { outcome, begin, windows: watch.windows, delivered: watch.delivered })
    }
}

#[derive(Debug, Default)]
struct Watch {
    windows: Vec<(f64, [f64; 2])>,
    delivered: Vec<(f64, [f64; 2])>,
}

impl Recorder for Watch {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        let mut windows = [0.0; 2];
        let mut delivered = [0.0; 2];
        for (_, path) in view.paths().filter(|(flow, _)| flow.0 == 0) {
            let at = path.path.get() as usize;
            windows[at] = path.window.as_f64() / PACKET.as_f64();
            delivered[at] = path.delivered.as_f64();
        }
        self.windows.push((now.as_secs_f64(), windows));
        self.delivered.push((now.as_secs_f64(), delivered));
    }
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    begin: f64,
    /// The windows of both paths: seconds, packets.
    windows: Vec<(f64, [f64; 2])>,
    /// The data that had arrived on both paths: seconds, bytes with headers.
    delivered: Vec<(f64, [f64; 2])>,
}

impl Seen {
    /// The window of a path over time: seconds, packets.
    pub(super) fn window(&self, path: usize) -> Vec<(f64, f64)> {
        self.windows.iter().map(|(at, windows)| (*at, windows[path])).collect()
    }

    /// The rate of a path between two times in seconds, headers included, in Mbit/s.
    pub(super) fn rate_between(&self, path: usize, from: f64, to: f64) -> f64 {
        let until = |second: f64| {
            let seen = self.delivered.partition_point(|(at, _)| *at <= second);
            seen.checked_sub(1).map_or(0.0, |last| self.delivered[last].1[path])
        };
        (until(to) - until(from)) * 8e-6 / (to - from)
    }

    /// The windows since the end of the warm-up.
    fn settled(&self) -> impl Iterator<Item = [f64; 2]> {
        self.windows.iter().filter(|(at, _)| *at > self.begin).map(|(_, windows)| *windows)
    }

    fn share(&self, holds: impl Fn([f64; 2]) -> bool) -> f64 {
        let (count, all) =
            self.settled().fold((0, 0), |(count, all), windows| (count + u64::from(holds(windows)), all + 1));
        if all == 0 { 0.0 } else { count as f64 / all as f64 }
    }

    /// The user's goodput on a path, in Mbit/s.
    pub(super) fn rate(&self, path: usize) -> f64 {
        self.outcome.flows[0].paths[path].goodput.as_mbps_f64()
    }

    /// The mean rate of the others, in Mbit/s.
    pub(super) fn others(&self) -> f64 {
        self.outcome.mean_goodput("tcp").as_mbps_f64()
    }

    /// The mean window of a path, in packets.
    pub(super) fn mean_window(&self, path: usize) -> f64 {
        let (count, sum) = self.settled().fold((0, 0.0), |(count, sum), windows| (count + 1, sum + windows[path]));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }

    /// The mean window of path 1 over that of path 2.
    pub(super) fn ratio(&self) -> f64 {
        self.mean_window(0) / self.mean_window(1)
    }

    /// The share of the time in which both windows are above two packets.
    pub(super) fn both_used(&self) -> f64 {
        self.share(|windows| windows.iter().all(|window| *window > 2.0))
    }

    /// The share of the time in which one path has at least 80 % of both windows.
    pub(super) fn one_sided(&self) -> f64 {
        self.share(|windows| favoured(windows).is_some())
    }

    /// How often in 100 s the traffic moves from one path to the other: from where one path has at
    /// least 80 % of both windows to where the other has.
    pub(super) fn flips(&self) -> f64 {
        let mut larger = None;
        let (mut flips, mut samples) = (0_u32, 0_u32);
        for windows in self.settled() {
            samples += 1;
            let Some(now) = favoured(windows) else { continue };
            flips += u32::from(larger.is_some_and(|before| before != now));
            larger = Some(now);
        }
        let seconds = f64::from(samples) * SAMPLE.as_secs_f64();
        if seconds == 0.0 { 0.0 } else { f64::from(flips) * 100.0 / seconds }
    }
}

/// The path that has at least 80 % of both windows.
fn favoured(windows: [f64; 2]) -> Option<usize> {
    let sum = windows[0] + windows[1];
    windows.iter().position(|window| *window >= 0.8 * sum)
}
