//! The scheduler's views of the paths.
//!
//! A view is rebuilt after an event on its path, or when the time until which it holds is over.
//! Otherwise asking for the next packet costs no more than the choice.

use fairpath_cc::{ControlState, Controller, Phase};
use fairpath_core::{ByteCount, PathId, Timestamp};
use fairpath_sched::PathView;

use super::{Engine, less_dip};
use crate::dips::Dips;
use crate::path::Path;

/// The state outside a path that its view needs.
struct Surroundings<'a> {
    controller: &'a dyn Controller,
    dips: &'a Option<Dips>,
}

impl Engine {
    /// Brings the views of all paths up to date.
    pub(super) fn look(&mut self, now: Timestamp) {
        let is_steered = self.controller.take_mark();
        let Self { paths, views, controller, dips, .. } = self;
        views.truncate(paths.len());
        let around = Surroundings { controller: &**controller, dips };
        for (at, (id, state)) in paths.drawn().enumerate() {
            let is_old = state.seen_until <= now;
            match views.get_mut(at) {
                Some(view) if is_old => *view = around.view_of(id, state, now),
                Some(view) if is_steered => around.control(view, state, now),
                Some(_) => {}
                None => views.push(around.view_of(id, state, now)),
            }
            if is_old {
                let dip = dips.as_ref().map_or(Timestamp::MAX, |dips| dips.same_until(now));
                state.seen_until = state.same_until(now).min(dip);
            }
        }
    }

    /// The scheduler's view of a path.
    pub(super) fn view_of(&self, id: PathId, state: &Path, now: Timestamp) -> PathView {
        let Self { controller, dips, .. } = self;
        Surroundings { controller: &**controller, dips }.view_of(id, state, now)
    }
}

impl Surroundings<'_> {
    /// Inlined, so that the view is written in place and not copied.
    #[inline(always)]
    fn view_of(&self, id: PathId, state: &Path, now: Timestamp) -> PathView {
        let control = self.controller.state(id);
        PathView {
            id,
            window: self.window(control, id, state, now),
            paced: !state.pacer.may_send(now),
            in_flight: state.in_flight(),
            max_datagram: state.max_datagram,
            rtt: state.rtt.get(),
            one_way: state.one_way.get(),
            transit: None,
            delivery_rate: state.rate.last(),
            ssthresh: control.and_then(|control| control.ssthresh),
            in_slow_start: control.is_some_and(|control| control.phase == Phase::SlowStart),
            window_limited: state.answers.proven_at.is_some_and(|sent_at| state.usage.window_was_full(sent_at)),
            burst_until: state.pacer.burst_until(),
            heard_at: state.answers.heard_at,
            oldest_sent: state.oldest(),
            usable: state.is_usable() && !state.is_silent(now),
            backup: state.is_backup(),
            terms: state.terms(),
        }
    }

    /// Updates the controller's part of a view.
    fn control(&self, view: &mut PathView, state: &Path, now: Timestamp) {
        let control = self.controller.state(view.id);
        view.window = self.window(control, view.id, state, now);
        view.ssthresh = control.and_then(|control| control.ssthresh);
        view.in_slow_start = control.is_some_and(|control| control.phase == Phase::SlowStart);
    }

    fn window(&self, control: Option<ControlState>, id: PathId, state: &Path, now: Timestamp) -> ByteCount {
        let window = control.map_or(ByteCount::ZERO, |control| control.window);
        less_dip(self.dips, id, window, state.max_datagram, now)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::CongestionSignal;
    use proptest::prelude::*;

    use super::super::tests::{MTU, ms, path};
    use super::*;
    use crate::config::EngineConfig;
    use crate::path::{BackupReason, PathUse, ShutReason};

    /// An event of a connection, on one of its paths.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Sent(u64),
        Acked(u64),
        Lost(u64),
        Time(u64),
        OneWay(u64),
        Used(PathUse),
        Cost(u32),
        Discarded,
        Opened,
        Closed,
        Polled,
        HeldBack,
    }

    fn event() -> impl Strategy<Value = (u32, Event)> {
        let event = prop_oneof![
            8 => (1..6_u64).prop_map(Event::Sent),
            6 => (0..8_u64).prop_map(Event::Acked),
            2 => (0..8_u64).prop_map(Event::Lost),
            8 => (0..400_u64).prop_map(Event::Time),
            1 => (0..100_u64).prop_map(Event::OneWay),
            2 => prop_oneof![
                Just(PathUse::Open),
                Just(PathUse::Backup(BackupReason::Unwell)),
                Just(PathUse::Shut(ShutReason::Moved)),
            ]
            .prop_map(Event::Used),
            1 => (0..3_u32).prop_map(Event::Cost),
            1 => Just(Event::Discarded),
            1 => Just(Event::Opened),
            1 => Just(Event::Closed),
            1 => Just(Event::Polled),
            1 => Just(Event::HeldBack),
        ];
        (0..3_u32, event)
    }

    /// A connection, the next packet number of each path, and its packets in flight.
    struct Driven {
        engine: Engine,
        now: Timestamp,
        next: [u64; 3],
        in_flight: [Vec<u64>; 3],
    }

    impl Driven {
        fn new(congestion: &str) -> Self {
            let config = EngineConfig { congestion: congestion.into(), ..EngineConfig::live() };
            let mut driven =
                Self { engine: config.build().unwrap(), now: ms(1), next: [0; 3], in_flight: Default::default() };
            driven.on(0, Event::Opened);
            driven.on(1, Event::Opened);
            driven
        }

        fn on(&mut self, id: u32, event: Event) {
            let Self { engine, now, next, in_flight } = self;
            let (id, at, now) = (path(id), id as usize, *now);
            match event {
                Event::Sent(count) => {
                    for _ in 0..count {
                        engine.on_sent(id, next[at], MTU, now);
                        in_flight[at].push(next[at]);
                        next[at] += 1;
                    }
                }
                Event::Acked(which) if (which as usize) < in_flight[at].len() => {
                    engine.on_ack(id, in_flight[at].remove(which as usize), now);
                    engine.on_ack_end(id, Duration::ZERO, now);
                }
                Event::Lost(which) if (which as usize) < in_flight[at].len() => {
                    engine.on_lost(id, in_flight[at].remove(which as usize), now);
                    engine.on_congestion(id, CongestionSignal::Loss, now, which > 6, now);
                }
                Event::Acked(_) | Event::Lost(_) => engine.on_spurious_congestion(id, now),
                Event::Time(millis) => self.now = now + Duration::from_millis(millis),
                Event::OneWay(millis) => engine.on_one_way_delay(id, Duration::from_millis(millis), now, now),
                Event::Used(path_use) => engine.set_use(id, path_use),
                Event::Cost(cost) => {
                    // The path of the highest cost may carry only some more packets.
                    let quota = (cost == 2).then_some(MTU * 8);
                    engine.set_terms(id, fairpath_sched::Terms { cost, quota, ..Default::default() });
                }
                Event::Discarded => {
                    engine.on_all_discarded(id);
                    in_flight[at].clear();
                }
                Event::Opened => {
                    engine.on_path_opened(id, MTU, now);
                    engine.set_use(id, PathUse::Open);
                    in_flight[at].clear();
                }
                Event::Closed => {
                    engine.on_path_closed(id, now);
                    in_flight[at].clear();
                }
                Event::Polled => engine.poll(now),
                Event::HeldBack => engine.on_held_back(now),
            }
        }
    }

    proptest! {
        /// After any events the scheduler's views equal views that are all built anew.
        #[test]
        fn views_are_never_old(events in prop::collection::vec((event(), any::<bool>()), 1..120)) {
            for congestion in EngineConfig::CONGESTION {
                let mut driven = Driven::new(congestion);
                for (index, ((id, event), looks)) in events.iter().enumerate() {
                    driven.on(*id, *event);
                    if *looks {
                        let (engine, now) = (&mut driven.engine, driven.now);
                        engine.look(now);
                        let anew: Vec<PathView> =
                            engine.paths.iter().map(|(id, state)| engine.view_of(id, state, now)).collect();
                        prop_assert_eq!(&engine.views, &anew, "{} after {}: {:?}", congestion, index, event);
                    }
                }
            }
        }
    }
}
