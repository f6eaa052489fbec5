//! Remedies for what loss-based congestion control and a scheduler by round-trip times do to each other
//! [Luebben2019, slides 8 and 9]. Each is as published, none is on by default, and any of them go together. Experiments
//! compare them with our own scheduler, which needs none: so the simulator's host has them, and the engine has not.

mod bloat_clamp;
mod penalty;
mod probe;

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, Timestamp};
use fairpath_engine::{Engine, Phase};
use fairpath_scenario::Remedies;

use self::bloat_clamp::BloatClamp;
use self::penalty::{Holder, Penalty, sends_again};
use self::probe::Probes;

/// The remedies of a connection that are on.
#[derive(Debug)]
pub(crate) struct AtWork {
    paths: u32,
    clamp: Option<BloatClamp>,
    probes: Option<Probes>,
    penalty: Option<Penalty>,
}

impl AtWork {
    /// The remedies of a connection with this many paths; `None` if all are off.
    pub(crate) fn new(remedies: Remedies, paths: usize) -> Option<Box<Self>> {
        (remedies != Remedies::default()).then(|| {
            Box::new(Self {
                paths: paths as u32,
                clamp: remedies.bloat_clamp.map(BloatClamp::new),
                probes: remedies.probe.then(Probes::default),
                penalty: remedies.penalty.then(Penalty::default),
            })
        })
    }

    /// A round-trip time was measured on the path.
    pub(crate) fn on_sample(&mut self, path: PathId, now: Timestamp) {
        if let Some(probes) = &mut self.probes {
            probes.on_heard(path, now);
        }
    }

    /// An acknowledgement was read whole: the clamp may find the window too large.
    pub(crate) fn on_ack_end(&mut self, engine: &mut Engine, path: PathId, now: Timestamp) {
        let (Some(clamp), Some(rtt)) = (&mut self.clamp, engine.rtt(path)) else { return };
        if let Some(window) = clamp.on_ack(path, &rtt, engine.verdict(path, now).window, now) {
            engine.clamp(path, window);
        }
    }

    /// The path that is to be probed first, and when; `None` where none is, or nothing is in flight on any path: what
    /// rests needs no times.
    pub(crate) fn next_probe(&self, engine: &Engine, now: Timestamp) -> Option<(Timestamp, PathId)> {
        let probes = self.probes.as_ref()?;
        let paths = || (0..self.paths).map(PathId::new);
        if paths().all(|path| engine.verdict(path, now).in_flight == ByteCount::ZERO) {
            return None;
        }
        let usable = paths().filter(|path| engine.is_usable(*path));
        usable.filter_map(|path| Some((probes.next(path, engine.rtt(path)?.min), path))).min()
    }

    /// A probe left on the path.
    pub(crate) fn on_probed(&mut self, path: PathId, now: Timestamp) {
        if let Some(probes) = &mut self.probes {
            probes.on_probed(path, now);
        }
    }

    /// A full receive window keeps new data back although `free` has room, and the oldest data is in flight on `holder`.
    /// Whether that data is to be sent again on `free`.
    pub(crate) fn penalise(&mut self, engine: &mut Engine, free: PathId, holder: PathId, now: Timestamp) -> bool {
        let Some(penalty) = &mut self.penalty else { return false };
        let smoothed = |path| Some(engine.rtt(path)?.smoothed);
        let (Some(own), Some(seen)) = (smoothed(free), seen(engine, holder, now)) else { return false };
        if !penalty.is_due(free, own, &seen, now) {
            return sends_again(own, &seen);
        }
        engine.penalise(holder);
        sends_again(own, &Holder { window: engine.verdict(holder, now).window, ..seen })
    }
}

fn seen(engine: &Engine, holder: PathId, now: Timestamp) -> Option<Holder> {
    let seen = engine.snapshot(holder, now)?;
    let smoothed: Duration = seen.rtt?.smoothed;
    let max_datagram = engine.max_datagram(holder)?;
    Some(Holder { smoothed, window: seen.window, max_datagram, recovers: seen.phase == Phase::Recovery })
}

#[cfg(test)]
mod tests {
    use fairpath_engine::{Coupling, EngineConfig, PathUse};
    use proptest::prelude::*;

    use super::*;

    const MTU: ByteCount = ByteCount::new(1_200);

    fn path(id: u32) -> PathId {
        PathId::new(id)
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// An engine over two paths, and remedies beside it.
    struct Host(Engine, AtWork);

    impl Host {
        fn new(remedies: Remedies) -> Self {
            let config =
                EngineConfig { congestion: "reno".into(), coupling: Coupling::Never, ..EngineConfig::default() };
            let mut engine = config.build().expect("names of the catalogue").unpaced();
            for id in [0, 1] {
                engine.on_path_opened(path(id), MTU, Timestamp::ZERO);
                engine.set_use(path(id), PathUse::Open);
            }
            Self(engine, *AtWork::new(remedies, 2).expect("one is on"))
        }

        /// Sends a packet, and acknowledges it after `rtt_ms`.
        fn round(&mut self, id: u32, number: u64, at: Timestamp, rtt_ms: u64) {
            self.0.on_sent(path(id), number, MTU, at);
            self.answer(id, number, at + Duration::from_millis(rtt_ms));
        }

        fn answer(&mut self, id: u32, number: u64, now: Timestamp) {
            self.0.on_ack(path(id), number, now);
            self.0.on_ack_end(path(id), Duration::ZERO, now);
            self.1.on_sample(path(id), now);
            self.1.on_ack_end(&mut self.0, path(id), now);
        }

        fn window(&self, id: u32) -> ByteCount {
            self.0.verdict(path(id), Timestamp::ZERO).window
        }

        fn next_probe(&self) -> Option<(Timestamp, PathId)> {
            self.1.next_probe(&self.0, Timestamp::ZERO)
        }

        fn penalise(&mut self, free: u32, holder: u32, now: Timestamp) -> bool {
            self.1.penalise(&mut self.0, path(free), path(holder), now)
        }
    }

    #[test]
    fn the_clamp_takes_of_the_window_what_makes_the_queue() {
        let mut host = Host::new(Remedies { bloat_clamp: Some(1.5), ..Remedies::default() });
        host.round(0, 0, ms(0), 100);
        // Ten datagrams are 12,000 bytes.
        let three_quarters = ByteCount::new(9_000);
        // Smoothed: 7/8 · 100 + 1/8 · 900 = 200 ms. 1.5 · 100 / 200 of the window remains, with what slow start adds
        // of a datagram that was the window's no limit: none.
        host.round(0, 1, ms(1_000), 900);
        assert_eq!(host.window(0), three_quarters);
        // Not again within the smoothed round-trip time.
        host.round(0, 2, ms(1_950), 100);
        assert_eq!(host.window(0), three_quarters);
    }

    #[test]
    fn a_path_that_rests_is_probed_once_in_its_least_round_trip_time_while_another_works() {
        let mut host = Host::new(Remedies { probe: true, ..Remedies::default() });
        host.round(0, 0, ms(0), 100);
        host.round(1, 0, ms(0), 40);
        assert_eq!(host.next_probe(), None, "nothing is in flight");
        host.0.on_sent(path(0), 1, MTU, ms(100));
        assert_eq!(host.next_probe(), Some((ms(80), path(1))), "heard of after 40 ms");
        host.1.on_probed(path(1), ms(100));
        assert_eq!(host.next_probe(), Some((ms(140), path(1))));
        host.0.on_sent(path(1), 1, ByteCount::new(52), ms(100));
        host.answer(1, 1, ms(150));
        assert_eq!(host.next_probe(), Some((ms(190), path(1))), "heard of at 150 ms");
    }

    #[test]
    fn what_is_off_does_nothing() {
        assert!(AtWork::new(Remedies::default(), 2).is_none());
        let mut host = Host::new(Remedies { bloat_clamp: Some(1.5), ..Remedies::default() });
        host.round(0, 0, ms(0), 100);
        host.round(1, 0, ms(0), 40);
        host.0.on_sent(path(0), 1, MTU, ms(100));
        let before = host.window(0);
        assert!(!host.penalise(1, 0, ms(900)));
        assert_eq!((host.next_probe(), host.window(0)), (None, before));
    }

    #[test]
    fn who_holds_the_oldest_data_loses_half_its_window_once_in_a_round_trip_of_the_free_path() {
        let mut host = Host::new(Remedies { penalty: true, ..Remedies::default() });
        host.round(0, 0, ms(0), 100);
        host.round(1, 0, ms(0), 40);
        assert_eq!(host.window(0), MTU * 10);
        // 4 · 40 > 100, and ten datagrams are more than four.
        assert!(!host.penalise(1, 0, ms(200)));
        assert_eq!(host.window(0), MTU * 5);
        assert!(!host.penalise(1, 0, ms(239)));
        assert_eq!(host.window(0), MTU * 5, "within 40 ms");
        // Five datagrams are halved to two and a half. A window that small has its data sent again.
        assert!(host.penalise(1, 0, ms(240)));
        // The slower path does not speak of the faster one.
        let fast = host.window(1);
        assert!(!host.penalise(0, 1, ms(400)));
        assert_eq!(host.window(1), fast);
    }

    proptest! {
        /// Whatever is on: windows stay at the minimum and above, and a clamp never makes one larger.
        #[test]
        fn no_remedy_takes_a_window_below_the_minimum(
            lambda in 1.01f64..4.0,
            steps in proptest::collection::vec((0u32..2, 1u64..2_000, any::<bool>()), 1..60),
        ) {
            let mut host = Host::new(Remedies { bloat_clamp: Some(lambda), probe: true, penalty: true });
            let mut now = ms(0);
            for (number, (id, rtt, penalised)) in steps.into_iter().enumerate() {
                let before = host.window(id);
                host.round(id, number as u64, now, rtt);
                now = now + Duration::from_millis(rtt);
                prop_assert!(host.window(id) <= before + MTU);
                if penalised {
                    host.penalise(1 - id, id, now);
                }
                prop_assert!(host.window(id) >= MTU * 2);
                prop_assert!(host.next_probe().is_none(), "nothing is in flight");
            }
        }
    }
}
