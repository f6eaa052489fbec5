//! Where remedies act: after acknowledgements, and as hosts ask.

use core::time::Duration;

use fairpath_cc::Phase;
use fairpath_core::{Bytes, PathId, Timestamp};

use super::Engine;
use crate::remedies::{AtWork, Holder, Remedies, sends_again};

impl Engine {
    /// The same with remedies.
    pub fn with_remedies(self, remedies: Remedies) -> Self {
        Self { remedies: AtWork::new(remedies), ..self }
    }

    /// The window of a path after an acknowledgement, which the clamp may find too large.
    #[inline]
    pub(super) fn clamp(&mut self, path: PathId, now: Timestamp) {
        let Some(clamp) = self.remedies.as_mut().and_then(|remedies| remedies.clamp.as_mut()) else { return };
        let Some(rtt) = self.paths.get(path).and_then(|state| state.rtt.get()) else { return };
        if let Some(window) = clamp.on_ack(path, &rtt, self.controller.window(path), now) {
            self.controller.clamp(path, window);
        }
    }

    /// When the first path is to be probed; `None` where none is, or nothing is in flight on any path: what rests
    /// needs no times.
    #[inline]
    pub fn probe_at(&self) -> Option<Timestamp> {
        self.remedies.as_ref()?;
        self.next_probe().map(|(at, _)| at)
    }

    /// A path that is to be probed by now: something small that will be acknowledged is to leave on it, whatever its
    /// window. The host says so with [`Engine::on_probed`].
    pub fn probe_due(&self, now: Timestamp) -> Option<PathId> {
        self.next_probe().filter(|(at, _)| *at <= now).map(|(_, path)| path)
    }

    fn next_probe(&self) -> Option<(Timestamp, PathId)> {
        let probes = self.remedies.as_ref()?.probes.as_ref()?;
        if self.paths.values().all(|state| state.in_flight() == Bytes::ZERO) {
            return None;
        }
        let usable = self.paths.iter().filter(|(_, state)| state.usable);
        usable.filter_map(|(path, state)| Some((probes.next(path, state.rtt.get()?.min), path))).min()
    }

    /// A probe left on the path.
    pub fn on_probed(&mut self, path: PathId, now: Timestamp) {
        if let Some(probes) = self.remedies.as_mut().and_then(|remedies| remedies.probes.as_mut()) {
            probes.on_probed(path, now);
        }
    }

    /// A full receive window keeps new data back although `free` has room, and the oldest data is in flight on
    /// `holder`. Whether that data is to be sent again on `free`. Where this remedy is off nothing happens.
    pub fn penalise(&mut self, free: PathId, holder: PathId, now: Timestamp) -> bool {
        let Some(own) = self.smoothed_of(free) else { return false };
        let Some(smoothed) = self.smoothed_of(holder) else { return false };
        let Some(state) = self.paths.get(holder) else { return false };
        let mut seen = Holder {
            smoothed,
            window: self.controller.window(holder),
            max_datagram: state.max_datagram,
            recovers: self.controller.state(holder).is_some_and(|state| state.phase == Phase::Recovery),
        };
        let Some(penalty) = self.remedies.as_mut().and_then(|remedies| remedies.penalty.as_mut()) else { return false };
        if penalty.is_due(free, own, &seen, now) {
            self.controller.penalise(holder);
            seen.window = self.controller.window(holder);
        }
        sends_again(own, &seen)
    }

    fn smoothed_of(&self, path: PathId) -> Option<Duration> {
        Some(self.rtt(path)?.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{MTU, ms, path, warm_up};
    use super::*;
    use crate::config::{Coupling, EngineConfig};

    fn engine(remedies: Remedies) -> Engine {
        let config =
            EngineConfig { congestion: "reno".into(), coupling: Coupling::Never, remedies, ..EngineConfig::default() };
        let mut engine = config.build().unwrap().unpaced();
        for id in [0, 1] {
            engine.on_path_opened(path(id), MTU, Timestamp::ZERO);
            engine.set_usable(path(id), true);
        }
        engine
    }

    fn window(engine: &Engine, id: u32) -> Bytes {
        engine.verdict(path(id), Timestamp::ZERO).window
    }

    #[test]
    fn the_clamp_takes_of_the_window_what_makes_the_queue() {
        let mut engine = engine(Remedies { bloat_clamp: Some(1.5), ..Remedies::default() });
        warm_up(&mut engine, 0, 100);
        // Of ten datagrams, 12,000 bytes.
        let three_quarters = Bytes::new(9_000);
        // Smoothed: 7/8 · 100 + 1/8 · 900 = 200 ms. 1.5 · 100 / 200 of the window remains, with what slow start adds
        // of a datagram that was the window's no limit: none.
        engine.on_sent(path(0), 1, MTU, ms(1_000));
        engine.on_ack(path(0), 1, ms(1_900));
        engine.on_ack_end(path(0), Duration::ZERO, ms(1_900));
        assert_eq!(window(&engine, 0), three_quarters);
        // Not again within the smoothed round-trip time.
        engine.on_sent(path(0), 2, MTU, ms(1_950));
        engine.on_ack(path(0), 2, ms(2_050));
        engine.on_ack_end(path(0), Duration::ZERO, ms(2_050));
        assert_eq!(window(&engine, 0), three_quarters);
    }

    #[test]
    fn a_path_that_rests_is_probed_once_in_its_least_round_trip_time_while_another_works() {
        let mut engine = engine(Remedies { probe: true, ..Remedies::default() });
        warm_up(&mut engine, 0, 100);
        warm_up(&mut engine, 1, 40);
        assert_eq!(engine.probe_at(), None, "nothing is in flight");
        engine.on_sent(path(0), 1, MTU, ms(100));
        assert_eq!((engine.probe_at(), engine.probe_due(ms(79))), (Some(ms(80)), None), "heard of after 40 ms");
        assert_eq!(engine.probe_due(ms(100)), Some(path(1)));
        engine.on_probed(path(1), ms(100));
        assert_eq!(engine.probe_at(), Some(ms(140)));
        engine.on_sent(path(1), 1, Bytes::new(52), ms(100));
        engine.on_ack(path(1), 1, ms(150));
        engine.on_ack_end(path(1), Duration::ZERO, ms(150));
        assert_eq!(engine.probe_at(), Some(ms(190)), "heard of at 150 ms");
    }

    #[test]
    fn without_the_remedy_nothing_is_probed_clamped_or_penalised() {
        let mut engine = engine(Remedies::default());
        warm_up(&mut engine, 0, 100);
        warm_up(&mut engine, 1, 40);
        engine.on_sent(path(0), 1, MTU, ms(100));
        let before = window(&engine, 0);
        assert!(!engine.penalise(path(1), path(0), ms(900)));
        assert_eq!((engine.probe_at(), window(&engine, 0)), (None, before));
    }

    #[test]
    fn who_holds_the_oldest_data_loses_half_its_window_once_in_a_round_trip_of_the_free_path() {
        let mut engine = engine(Remedies { penalty: true, ..Remedies::default() });
        warm_up(&mut engine, 0, 100);
        warm_up(&mut engine, 1, 40);
        assert_eq!(window(&engine, 0), MTU * 10);
        // 4 · 40 > 100, and ten datagrams are more than four.
        assert!(!engine.penalise(path(1), path(0), ms(200)));
        assert_eq!(window(&engine, 0), MTU * 5);
        assert!(!engine.penalise(path(1), path(0), ms(239)));
        assert_eq!(window(&engine, 0), MTU * 5, "within 40 ms");
        // Five datagrams, then two and a half: so few that what they hold is sent again.
        assert!(engine.penalise(path(1), path(0), ms(240)));
        // The slower path does not speak of the faster one.
        let fast = window(&engine, 1);
        assert!(!engine.penalise(path(0), path(1), ms(400)));
        assert_eq!(window(&engine, 1), fast);
    }

    proptest! {
        /// Whatever is on: windows stay at the minimum and above, and a clamp never makes one larger.
        #[test]
        fn no_remedy_takes_a_window_below_the_minimum(
            lambda in 1.01f64..4.0,
            steps in proptest::collection::vec((0u32..2, 1u64..2_000, any::<bool>()), 1..60),
        ) {
            let mut engine = engine(Remedies { bloat_clamp: Some(lambda), probe: true, penalty: true });
            let mut now = ms(0);
            for (number, (id, rtt, penalised)) in steps.into_iter().enumerate() {
                engine.on_sent(path(id), number as u64, MTU, now);
                now = now + Duration::from_millis(rtt);
                let before = window(&engine, id);
                engine.on_ack(path(id), number as u64, now);
                engine.on_ack_end(path(id), Duration::ZERO, now);
                prop_assert!(window(&engine, id) <= before + MTU);
                if penalised {
                    engine.penalise(path(1 - id), path(id), now);
                }
                prop_assert!(window(&engine, id) >= MTU * 2);
                prop_assert!(engine.probe_at().is_none(), "nothing is in flight");
            }
        }
    }
}
