//! How long packets of the first flow wait, packet by packet.

use core::time::Duration;

use fairpath_core::{PathId, PathMap, Timestamp};
use fairpath_scenario::Scenario;
use fairpath_sim::{FlowIndex, Outcome, Recorder, SimError};

/// Runs a scenario; with it, the wait in ms that 95 % of the packets of its first flow do not exceed on the worse path.
pub(super) fn watched(scenario: &Scenario) -> Result<(Outcome, f64), SimError> {
    let mut waits = Waits { from: Timestamp::ZERO + scenario.warm_up, paths: PathMap::new() };
    let outcome = fairpath_sim::run(scenario, &mut waits)?;
    Ok((outcome, waits.p95_ms()))
}

/// The mean wait on a link, in ms.
pub(super) fn wait_ms(outcome: &Outcome, link: &str) -> f64 {
    outcome.link(link).map_or(0.0, |link| link.mean_wait.as_secs_f64() * 1e3)
}

/// Round-trip times of each path, and the least of all of them: what is longer is waited.
#[derive(Clone, Debug, Default)]
struct Waits {
    from: Timestamp,
    paths: PathMap<(Duration, Vec<Duration>)>,
}

impl Recorder for Waits {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        if flow != FlowIndex(0) {
            return;
        }
        if !self.paths.contains(path) {
            self.paths.insert(path, (rtt, Vec::new()));
        }
        if let Some((least, all)) = self.paths.get_mut(path) {
            *least = (*least).min(rtt);
            if now >= self.from {
                all.push(rtt);
            }
        }
    }
}

impl Waits {
    fn p95_ms(mut self) -> f64 {
        let of = |(least, all): &mut (Duration, Vec<Duration>)| {
            if all.is_empty() {
                return 0.0;
            }
            let at = (all.len() - 1) * 95 / 100;
            let (_, rtt, _) = all.select_nth_unstable(at);
            rtt.saturating_sub(*least).as_secs_f64() * 1e3
        };
        self.paths.iter_mut().map(|(_, path)| of(path)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ms;

    #[test]
    fn waits_are_what_is_above_the_least_and_those_of_the_warm_up_do_not_count() {
        let mut waits = Waits { from: Timestamp::ZERO + ms(1_000), paths: PathMap::new() };
        let mut hear = |now, flow, path, rtt| {
            waits.on_rtt(Timestamp::ZERO + ms(now), FlowIndex(flow), PathId::new(path), ms(rtt));
        };
        hear(10, 0, 0, 40);
        hear(20, 0, 0, 900);
        for rtt in 1..=100 {
            hear(2_000, 0, 0, 50 + rtt);
            hear(2_000, 0, 1, 20);
            hear(2_000, 1, 0, 5_000);
        }
        // The 95th of 51 to 150 ms is 145.
        assert_eq!(waits.p95_ms(), 105.0);
    }
}
