//! The delays that go to the detector: those that tell of the network, and not of the application.

use core::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};

use super::Engine;
use crate::path::Path;
use crate::without::Without;

/// How long after a one-way delay round-trip times are not used.
const ONE_WAY_FRESH: Duration = Duration::from_secs(2);

impl Engine {
    /// A packet was acknowledged after `rtt`, of which the peer reports `ack_delay` as its own
    /// delay.
    #[inline]
    pub(super) fn on_round_trip(&mut self, path: PathId, rtt: Duration, ack_delay: Duration, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        state.rtt.on_sample(now, rtt, ack_delay);
        if self.observes
            && self.one_way_at.is_none_or(|at| now.since(at) > ONE_WAY_FRESH)
            && tells_of_the_network(state, self.is_live, self.without, now)
        {
            state.told_at = now;
            self.detector.on_sample(path, &DelaySample { now, rtt, one_way: None });
        }
    }

    /// A datagram that reached the peer at `at` took `delay`, less a constant that is the same for
    /// all paths and times. `at` is in this end's time but for a constant, not after `now`, and
    /// does not go backwards. While hosts report these, the detector gets them in place of
    /// round-trip times.
    pub fn on_one_way_delay(&mut self, path: PathId, delay: Duration, at: Timestamp, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        state.one_way.on_sample(now, delay);
        self.one_way_at = Some(now);
        let rtt = state.rtt.get().map_or(Duration::ZERO, |rtt| rtt.latest);
        if tells_of_the_network(state, self.is_live, self.without, now) {
            state.told_at = now;
            let sample = DelaySample { now: at, rtt, one_way: Some(delay) };
            // The pictures of a live stream fill the queues of all its paths at once.
            match !self.is_live && state.is_network_limited(now) {
                true => self.detector.on_saturated_sample(path, &sample),
                false => self.detector.on_sample(path, &sample),
            }
        }
        self.poll(now);
    }

    /// Whether the detector uses delays.
    pub fn observes(&self) -> bool {
        self.observes
    }
}

/// A live stream never uses all that a path is allowed, and its rate on each path follows its rates
/// and its pictures. By the usual rule none of its delays would count; `live` says why all of them
/// do.
fn tells_of_the_network(path: &Path, is_live: bool, without: Without, now: Timestamp) -> bool {
    is_live || if without.steady_rates { path.is_network_limited(now) } else { path.tells_of_the_network(now) }
}
