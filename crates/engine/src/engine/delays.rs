//! Which delays the detector hears: those that say what the network does, and not what the application does.

use core::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};

use super::Engine;
use crate::path::Path;
use crate::without::Without;

/// For so long after a one-way delay the next one is waited for.
const ONE_WAY_FRESH: Duration = Duration::from_secs(2);

impl Engine {
    /// A packet took so long there and back, of which the peer says that it waited `ack_delay`.
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

    /// A datagram that came to the peer at `at` took `delay`, less a constant that is the same for all
    /// paths and times. `at` is in our time but for a constant, not after `now`, and does not go
    /// backwards. While hosts report these, they and not the round-trip times go to the detector.
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

    /// Whether anything is made of delays: the detector has a use for them.
    pub fn observes(&self) -> bool {
        self.observes
    }
}

/// A live stream is never all that a path is allowed, and what it sends on each path follows its rates and its pictures:
/// nothing of it would count. See `live` for why all of it may.
fn tells_of_the_network(path: &Path, is_live: bool, without: Without, now: Timestamp) -> bool {
    is_live || if without.steady_rates { path.is_network_limited(now) } else { path.tells_of_the_network(now) }
}
