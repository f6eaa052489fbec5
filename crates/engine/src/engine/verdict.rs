//! The state of a path for sending: all that a host needs to send on it, in one look-up.

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};

use super::Engine;
use crate::path::Path;

/// The state of a path for sending. A path that is not open may do nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// Whether the path can carry data, by [`Engine::set_use`] and its quota.
    pub usable: bool,
    /// Whether a full datagram may leave now: the path is usable and not silent, its window has
    /// room, and its pacer is free.
    pub may_send: bool,
    /// How much may be in flight.
    pub window: ByteCount,
    /// How much is in flight.
    pub in_flight: ByteCount,
    /// The bytes in flight that have waited longer than an answer takes, and so have left the
    /// network.
    pub overdue: ByteCount,
    /// The sending rate, for hosts that pace by themselves; `None`: the engine sets none.
    pub pacing_rate: Option<Bitrate>,
    /// When the pacer releases the next packet; `None`: at once.
    pub next_departure: Option<Timestamp>,
}

impl SendState {
    /// How much more may be put in flight.
    pub fn room(&self) -> ByteCount {
        self.window.saturating_sub(self.in_flight)
    }
}

impl Engine {
    /// The state of the path for sending.
    pub fn verdict(&self, path: PathId, now: Timestamp) -> SendState {
        let Some(state) = self.paths.get(path) else { return SendState::default() };
        SendState {
            usable: state.is_usable(),
            may_send: self.may_send(path, state, now),
            window: self.window_of(path, state, now),
            in_flight: state.in_flight(),
            overdue: state.overdue(now),
            pacing_rate: self.pacing_rate(path, state),
            next_departure: (!state.pacer.may_send(now)).then(|| state.pacer.free_at()),
        }
    }

    /// Whether a full datagram may leave on the path now.
    pub(super) fn may_send(&self, path: PathId, state: &Path, now: Timestamp) -> bool {
        self.has_room(path, state, now)
            && state.is_free(now)
            && self.limit.as_ref().is_none_or(|limit| limit.may_send(now))
    }

    /// Whether a full datagram has room in the window.
    pub(super) fn has_room(&self, path: PathId, state: &Path, now: Timestamp) -> bool {
        state.in_flight().saturating_add(state.max_datagram) <= self.window_of(path, state, now)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_sched::Terms;

    use super::super::tests::{MTU, engine, ms, path, warm_up};
    use super::*;
    use crate::config::Coupling;
    use crate::path::{PathUse, ShutReason};

    #[test]
    fn a_path_whose_quota_is_used_up_stays_so_whatever_its_host_says() {
        let mut engine = engine("min_rtt", Coupling::Never).unpaced();
        engine.set_terms(path(0), Terms { quota: Some(MTU * 2), ..Terms::default() });
        for number in 0..2 {
            assert!(engine.verdict(path(0), ms(0)).may_send, "packet {number}");
            engine.on_sent(path(0), number, MTU, ms(0));
        }
        let verdict = |engine: &crate::Engine| (engine.verdict(path(0), ms(0)).usable, engine.is_usable(path(1)));
        assert_eq!(verdict(&engine), (false, true));
        engine.set_use(path(0), PathUse::Open);
        assert_eq!(verdict(&engine), (false, true));
    }

    #[test]
    fn a_path_may_send_until_its_window_is_full() {
        let mut engine = engine("min_rtt", Coupling::Never).unpaced();
        let mut number = 0;
        while engine.verdict(path(0), ms(0)).may_send {
            let before = engine.verdict(path(0), ms(0));
            engine.on_sent(path(0), number, MTU, ms(0));
            assert_eq!(engine.verdict(path(0), ms(0)).room() + MTU, before.room());
            number += 1;
        }
        let full = engine.verdict(path(0), ms(0));
        assert_eq!((full.in_flight, full.room()), (MTU * 10, ByteCount::ZERO), "the initial window");
        assert!(full.usable && full.next_departure.is_none());
    }

    #[test]
    fn a_path_that_its_pacer_holds_back_says_until_when() {
        let mut engine = engine("min_rtt", Coupling::Never);
        warm_up(&mut engine, 0, 100);
        let mut number = 1;
        while engine.verdict(path(0), ms(200)).may_send {
            engine.on_sent(path(0), number, MTU, ms(200));
            number += 1;
        }
        let held = engine.verdict(path(0), ms(200));
        assert!(held.room() >= MTU, "not the window: {held:?}");
        let until = held.next_departure.expect("it is the pacer");
        assert!(held.pacing_rate.is_some() && until > ms(200), "{held:?}");
        assert!(engine.verdict(path(0), until).may_send);
        assert_eq!(engine.paced_until(ms(200)), Some(until));
    }

    #[test]
    fn a_cap_is_kept_by_an_engine_that_does_not_pace_and_by_one_that_paces_faster() {
        for paces in [false, true] {
            let mut engine = engine("min_rtt", Coupling::Never);
            if !paces {
                engine = engine.unpaced();
            }
            warm_up(&mut engine, 0, 20);
            let cap = Bitrate::from_mbps(1);
            engine.set_terms(path(0), Terms { cap: Some(cap), ..Terms::default() });
            let (mut sent, mut number) = (ByteCount::ZERO, 1);
            for now in (100..4_100).map(ms) {
                while engine.verdict(path(0), now).may_send {
                    engine.on_sent(path(0), number, MTU, now);
                    (sent, number) = (sent + MTU, number + 1);
                }
                // All packets are acknowledged at once, so the window is never full.
                engine.on_ack(path(0), number - 1, now);
                engine.on_ack_end(path(0), Duration::ZERO, now);
                engine.on_all_discarded(path(0));
            }
            // 1 Mbit/s in 4 s are 500,000 bytes, and at most 2 ms and one packet more.
            let allowed = cap * Duration::from_secs(4);
            assert!(sent <= allowed + MTU * 2 && sent + MTU * 2 >= allowed, "{paces}: {sent}");
            assert_eq!(engine.verdict(path(0), ms(4_100)).pacing_rate, Some(cap));
        }
    }

    #[test]
    fn what_was_said_of_an_interface_holds_for_the_paths_that_begin_there() {
        let terms = Terms { cost: 3, ..Terms::default() };
        let said = crate::NamedTerms { of: "10.0.0.2".into(), terms };
        let config = crate::EngineConfig { terms: vec![said], ..crate::EngineConfig::default() };
        let mut engine = config.build().unwrap();
        for (id, address) in [(0, "10.0.0.1"), (1, "10.0.0.2")] {
            engine.on_path_opened(path(id), MTU, ms(0));
            engine.name_path(path(id), &["eth0", address]);
        }
        assert_eq!([0, 1].map(|id| engine.terms(path(id))), [Some(Terms::default()), Some(terms)]);
    }

    #[test]
    fn what_waits_too_long_for_an_answer_is_overdue_and_its_path_does_not_send() {
        let mut engine = engine("min_rtt", Coupling::Never);
        warm_up(&mut engine, 0, 20);
        engine.on_sent(path(0), 1, MTU, ms(100));
        engine.on_sent(path(0), 2, MTU, ms(200));
        let verdict = engine.verdict(path(0), ms(200));
        assert_eq!((verdict.overdue, verdict.may_send), (ByteCount::ZERO, true));
        // PTO = 20 + 4 · 10 = 60 ms, and the peer may wait 25 ms: two of them are 170 ms.
        let verdict = engine.verdict(path(0), ms(280));
        assert_eq!((verdict.overdue, verdict.may_send), (MTU, false));
        engine.on_ack(path(0), 1, ms(290));
        engine.on_ack_end(path(0), Duration::ZERO, ms(290));
        assert!(engine.verdict(path(0), ms(290)).may_send);
    }

    #[test]
    fn a_path_that_is_not_usable_has_a_window_and_one_that_is_not_open_has_none() {
        let mut engine = engine("min_rtt", Coupling::Never);
        engine.set_use(path(0), PathUse::Shut(ShutReason::Lost));
        let verdict = engine.verdict(path(0), ms(0));
        assert_eq!((verdict.usable, verdict.may_send, verdict.window), (false, false, MTU * 10));
        assert_eq!(engine.verdict(path(7), ms(0)), SendState::default());
    }
}
