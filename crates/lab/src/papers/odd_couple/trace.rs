//! The state of the two paths of the couple over time.

use fairpath_core::Timestamp;
use fairpath_scenario::Scenario;
use fairpath_sim::{Recorder, SimError, Simulation, View};
use serde::{Deserialize, Serialize};

use super::couple::Couple;
use crate::ms;

/// A path that holds so much of what is in flight has the buffer for itself.
const HOLDS: f64 = 0.8;

/// A path that carries less of its mean in a second is silent.
const SILENT: f64 = 0.01;

/// A moment, path by path.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Moment {
    /// In seconds.
    pub(super) at: f64,
    /// Payload in flight, in kB.
    pub(super) in_flight: [f64; 2],
    /// The smoothed round-trip time, in ms.
    pub(super) smoothed: [f64; 2],
    /// The data that has arrived since the beginning, in MB on the wire.
    pub(super) arrived: [f64; 2],
}

/// All of them, a hundredth of a second apart.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Trace(pub(super) Vec<Moment>);

impl Recorder for Trace {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        let mut moment = Moment { at: now.as_secs_f64(), ..Moment::default() };
        for (_, path) in view.paths() {
            let at = path.path.get() as usize;
            moment.in_flight[at] = path.in_flight.as_f64() * 1_448.0 / 1_500.0 / 1e3;
            moment.smoothed[at] = path.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs_f64() * 1e3);
            moment.arrived[at] = path.delivered.as_f64() / 1e6;
        }
        self.0.push(moment);
    }
}

impl Trace {
    /// A run of a couple.
    pub(super) fn of(couple: &Couple, seed: u64) -> Result<Self, SimError> {
        Ok(Self::with_goodput(couple, seed)?.0)
    }

    /// The same with the goodput, in Mbit/s.
    pub(super) fn with_goodput(couple: &Couple, seed: u64) -> Result<(Self, f64), SimError> {
        Self::of_scenario(couple.scenario(seed))
    }

    /// A run of any scenario, whose first flow has one path or two.
    pub(super) fn of_scenario(mut scenario: Scenario) -> Result<(Self, f64), SimError> {
        scenario.sample_every = ms(10);
        let (mut trace, mut simulation) = (Self::default(), Simulation::new(&scenario)?);
        simulation.run(&mut trace)?;
        Ok((trace, simulation.outcome().flows[0].goodput.as_mbps_f64()))
    }

    /// From so many seconds on.
    fn since(&self, seconds: f64) -> &[Moment] {
        &self.0[self.0.partition_point(|moment| moment.at < seconds)..]
    }

    /// The measures of the mechanism in this trace.
    pub(super) fn seen(&self, couple: &Couple) -> Seen {
        let full = |moment: &&Moment| moment.in_flight.iter().sum::<f64>() >= 0.95 * couple.send_kb as f64;
        let at_first = self.0.iter().find(full).map_or([0.0, 1.0], |moment| moment.in_flight);
        let end = self.since(self.0.last().map_or(0.0, |last| (last.at - 60.0).max(last.at / 2.0)));
        let (first, last) = (end.first().copied().unwrap_or_default(), end.last().copied().unwrap_or_default());
        let carried = [0, 1].map(|path| last.arrived[path] - first.arrived[path]);
        let idle = usize::from(carried[1] < carried[0]);
        let times = |path: usize| end.iter().map(move |moment| moment.smoothed[path]);
        let (least, most) = (times(idle).fold(f64::INFINITY, f64::min), times(idle).fold(0.0, f64::max));
        Seen {
            ramped: at_first[0].min(at_first[1]) / (at_first[0] + at_first[1]),
            turns: self.turns(),
            share: carried[idle] / (carried[0] + carried[1]),
            busy_mbps: carried[1 - idle] * 8.0 / (last.at - first.at) * 1_448.0 / 1_500.0,
            stale_ms: last.smoothed[idle],
            stale_change_ms: most - least,
            busy_ms: times(1 - idle).sum::<f64>() / end.len() as f64,
        }
    }

    /// The rate of a path over time, in Mbit/s on the wire, over so many seconds each.
    pub(super) fn rates(&self, path: usize, seconds: f64) -> Vec<(f64, f64)> {
        let step = ((seconds * 100.0) as usize).max(1);
        let moments: Vec<&Moment> = self.0.iter().step_by(step).collect();
        let rate = |pair: &[&Moment]| (pair[1].arrived[path] - pair[0].arrived[path]) * 8.0 / (pair[1].at - pair[0].at);
        moments.windows(2).map(|pair| (pair[1].at, rate(pair))).collect()
    }

    /// When paths carry nothing, from so many seconds on.
    pub(super) fn silence(&self, since: f64) -> Silence {
        let moments: Vec<&Moment> = self.since(since).iter().step_by(100).collect();
        let (mut silent, mut round_trips) = (0_u32, Vec::new());
        for path in 0..2 {
            let carried: Vec<f64> =
                moments.windows(2).map(|pair| pair[1].arrived[path] - pair[0].arrived[path]).collect();
            let mean = carried.iter().sum::<f64>() / carried.len().max(1) as f64;
            for (carried, pair) in carried.iter().zip(moments.windows(2)) {
                if *carried < SILENT * mean {
                    silent += 1;
                    round_trips.push(pair[1].smoothed[path]);
                }
            }
        }
        let seconds = moments.len().saturating_sub(1).max(1) as f64;
        Silence {
            share: f64::from(silent) / seconds,
            round_trip_ms: round_trips.iter().sum::<f64>() / round_trips.len().max(1) as f64,
            turns_in_a_minute: self.turns() * 60.0 / self.0.last().map_or(60.0, |last| last.at),
        }
    }

    /// How often the path that has the buffer for itself was another than before.
    fn turns(&self) -> f64 {
        let holder = |moment: &Moment| {
            let all = moment.in_flight[0] + moment.in_flight[1];
            (0..2).find(|path| moment.in_flight[*path] > HOLDS * all)
        };
        let mut holders: Vec<usize> = self.0.iter().filter_map(holder).collect();
        holders.dedup();
        holders.len().saturating_sub(1) as f64
    }
}

/// The signs of the mechanism. Those of an idle and of a busy path are of the last minute, or of the last half of a
/// shorter run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    /// The smaller share in flight of a path when the buffer was full for the first time.
    pub(super) ramped: f64,
    /// How often the paths took turns.
    pub(super) turns: f64,
    /// The share of the path that carried less.
    pub(super) share: f64,
    /// The payload rate of the other path, in Mbit/s.
    pub(super) busy_mbps: f64,
    /// The smoothed round-trip time that the path that carried less had at the end.
    pub(super) stale_ms: f64,
    /// By how much that changed.
    pub(super) stale_change_ms: f64,
    /// The mean of that of the other one.
    pub(super) busy_ms: f64,
}

/// When paths carry nothing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Silence {
    /// In which part of the time one of them does: of two, both may.
    pub(super) share: f64,
    /// The mean of its smoothed round-trip time then; 0 where it never does.
    pub(super) round_trip_ms: f64,
    /// How often the path that has the buffer for itself is another than before.
    pub(super) turns_in_a_minute: f64,
}
