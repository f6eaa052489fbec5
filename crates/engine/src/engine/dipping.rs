//! When which path of an engine gives way for a moment, and what that leaves of its window.

use core::time::Duration;

use fairpath_core::{Bytes, PathId, Timestamp};

use super::Engine;
use crate::dips::Dips;
use crate::path::Path;

/// Below this confidence a pair of paths surely has separate bottlenecks.
const SURELY_SEPARATE: f64 = 0.05;

impl Engine {
    /// Begins a dip where one is due and may say something.
    pub(super) fn update_dips(&mut self, now: Timestamp) {
        let Self { dips: Some(dips), detector, paths, .. } = self else { return };
        dips.update(now, || {
            let in_doubt = detector.verdicts().iter().any(|pair| pair.confidence > SURELY_SEPARATE);
            let usable = paths.iter().filter(|(_, path)| in_doubt && path.usable);
            let round_trip = |path: &Path| path.rtt.get().map_or(Duration::ZERO, |rtt| rtt.smoothed);
            // What is sent on at a steady rate is heard while it is, and a dip would end that.
            let may_dip = |path: &Path| !path.steadiness.is_steady(now);
            usable.map(|(id, path)| (id, may_dip(path).then(|| round_trip(path)))).collect()
        });
    }
}

/// What a path may have in flight of its `window`.
pub(super) fn less_dip(dips: &Option<Dips>, path: PathId, window: Bytes, max_datagram: Bytes, now: Timestamp) -> Bytes {
    dips.as_ref().map_or(window, |dips| dips.cap(path, window, max_datagram, now))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fairpath_core::CongestionSignal;

    use super::*;
    use crate::config::EngineConfig;
    use crate::engine::tests::{MTU, ms, path};

    /// Two paths of an engine that dips, each with a packet every so many milliseconds for a while. How many of the
    /// acknowledgements after the fifth second said something of the network, and how many nothing.
    fn heard(seconds: u64, gap_ms: u64, full: bool) -> [usize; 2] {
        let mut engine = EngineConfig::live().build().unwrap().unpaced();
        let (mut sent, mut due) = ([0u64; 2], [VecDeque::new(), VecDeque::new()]);
        let mut heard = [0; 2];
        for id in 0..2 {
            engine.on_path_opened(path(id as u32), MTU, ms(0));
            engine.set_usable(path(id as u32), true);
        }
        for at in 0..seconds * 1000 {
            for id in 0..2 {
                let name = path(id as u32);
                while due[id].front().is_some_and(|(when, _)| *when <= at) {
                    let (_, number) = due[id].pop_front().unwrap();
                    engine.on_ack(name, number, ms(at));
                    engine.on_ack_end(name, Duration::ZERO, ms(at));
                    let tells = engine.paths.get(name).unwrap().tells_of_the_network(ms(at));
                    heard[usize::from(!tells)] += usize::from(at > 5000);
                }
                if full && at == 500 {
                    // Slow start ends.
                    engine.on_congestion(name, CongestionSignal::Loss, ms(at), false, ms(at));
                }
                let has_room =
                    |engine: &Engine| engine.verdict(name, ms(at)).window >= MTU * (due[id].len() as u64 + 1);
                let mut room = if full { has_room(&engine) } else { at % gap_ms == 0 };
                while room {
                    // A link that lets one pass in a gap, and then 45 ms.
                    let after = due[id].back().map_or(at + 45, |(last, _)| (at + 45).max(last + gap_ms));
                    engine.on_sent(name, sent[id], MTU, ms(at));
                    due[id].push_back((after, sent[id]));
                    sent[id] += 1;
                    room = full && engine.verdict(name, ms(at)).window >= MTU * (due[id].len() as u64 + 1);
                }
            }
        }
        heard
    }

    #[test]
    fn the_end_of_a_dip_is_no_lack_of_data() {
        // An acknowledgement in 10 ms: what a dip leaves of the window is not used up before the next one comes.
        let [heard, left_out] = heard(30, 10, true);
        assert!(heard > 2000 && left_out == 0, "{heard} heard, {left_out} left out");
    }

    #[test]
    fn a_path_that_is_sent_on_at_a_steady_rate_is_not_made_to_dip() {
        // Nine of the ten packets of a window are in flight, and a dip would leave room for seven.
        let [heard, left_out] = heard(30, 5, false);
        assert!(heard > 2000 && left_out == 0, "{heard} heard, {left_out} left out");
    }
}
