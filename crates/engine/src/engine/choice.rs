//! Which path is next: the scheduler's choice among the windows, as the hosts ask for it.

use fairpath_core::{Bytes, PathId, Timestamp};
use fairpath_sched::{Choice, PathView, Pending};

use super::Engine;
use crate::path::Path;

/// By how many datagrams a host's count of what is in flight may differ from ours.
const SURE_ROOM: u64 = 2;

impl Engine {
    /// When the first path that only its pacer holds back may send; `None` where there is none. A
    /// host that was told to wait asks again then, if no acknowledgement comes before.
    pub fn paced_until(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.paces {
            return None;
        }
        let held_back = |(id, state): (PathId, &Path)| {
            let room = state.packets.in_flight() + state.max_datagram <= self.window_of(id, state, now);
            (state.usable && room && !state.pacer.may_send(now)).then(|| state.pacer.free_at())
        };
        self.paths.iter().filter_map(held_back).min()
    }

    /// The path for the next packet.
    pub fn pick(&mut self, data: &Pending, now: Timestamp) -> Choice {
        if self.paths.len() == 1 {
            return self.pick_only(now);
        }
        self.look(now, 0);
        self.scheduler.pick(&self.views, data, now)
    }

    /// The path that there is, if it can send: nobody is asked to choose.
    fn pick_only(&self, now: Timestamp) -> Choice {
        let can_send = |(id, state): &(PathId, &Path)| {
            let has_room =
                state.packets.in_flight().saturating_add(state.max_datagram) <= self.window_of(*id, state, now);
            has_room && state.usable && state.pacer.may_send(now) && !state.suspected(now)
        };
        self.paths.iter().find(can_send).map_or(Choice::Wait, |(id, _)| Choice::Send(id))
    }

    /// For hosts that cannot be given a path but only be refused one: `None` where the path may not carry
    /// the next packet; else how much may be sent on it before this is to be asked again, if nothing else
    /// happens in between (less than a packet: ask after each).
    ///
    /// A path is refused only while another one surely can send, so the connection does not stall: the
    /// host counts what is in flight a little differently (probes, padding), so a path is taken to have
    /// room only where `SURE_ROOM` datagrams more would fit. A path that is not usable or a backup is
    /// never refused: the host itself sends no data there, but it does send probes.
    pub fn may_send(&mut self, path: PathId, now: Timestamp) -> Option<Bytes> {
        if self.paths.len() < 2 {
            return Some(Bytes::MAX);
        }
        let Some(state) = self.paths.get(path) else { return Some(Bytes::ZERO) };
        if !state.usable || state.backup {
            // The host keeps data off it by itself; refusing would only stop its probes.
            return Some(Bytes::ZERO);
        }
        let suspected = state.suspected(now);
        self.look(now, SURE_ROOM);
        if suspected {
            // It waits for an answer, unless there is nothing else.
            let another = self.views.iter().any(|view| view.usable && !view.backup);
            return (!another).then_some(Bytes::ZERO);
        }
        match self.scheduler.pick(&self.views, &Pending::default(), now) {
            Choice::Send(chosen) if chosen == path => Some(self.allowance(path, now)),
            Choice::Send(_) => None,
            Choice::Wait => Some(Bytes::ZERO),
        }
    }

    /// How much may be sent on the path that was chosen among the views before another is the choice. Time may
    /// meanwhile free a path that is preferred to it from its pacer: then no more is sent here than a burst.
    fn allowance(&self, path: PathId, now: Timestamp) -> Bytes {
        let chosen = self.scheduler.stays().then(|| self.views.iter().find(|view| view.id == path)).flatten();
        let (Some(view), Some(state)) = (chosen, self.paths.get(path)) else { return Bytes::ZERO };
        let room = view.window.saturating_sub(view.in_flight + view.max_datagram);
        let rate = if self.paces { self.controller.pacing_rate(path) } else { None };
        rate.map_or(room, |rate| room.min(state.pacer.allowance(now, rate)))
    }

    /// Draws up the views of all paths, their windows short of `margin` datagrams. A path that its
    /// pacer holds back shows a full window: the scheduler then takes another rather than wait.
    fn look(&mut self, now: Timestamp, margin: u64) {
        let mut views = core::mem::take(&mut self.views);
        views.clear();
        views.extend(self.paths.iter().map(|(id, state)| {
            let window = self.window_of(id, state, now).saturating_sub(state.max_datagram * margin);
            let in_flight = state.packets.in_flight();
            PathView {
                id,
                window: if state.pacer.may_send(now) { window } else { window.min(in_flight) },
                in_flight,
                max_datagram: state.max_datagram,
                smoothed_rtt: state.rtt.get().map(|rtt| rtt.smoothed),
                usable: state.usable && !state.suspected(now),
                backup: state.backup,
            }
        }));
        self.views = views;
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::tests::{MTU, engine, ms, path, warm_up};
    use crate::config::Coupling;

    #[test]
    fn a_host_that_is_refused_a_path_is_allowed_another() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 60);
        warm_up(&mut engine, 1, 20);
        let now = ms(1000);
        assert!(engine.may_send(path(0), now).is_none(), "path 1 is faster and has room");
        assert!(engine.may_send(path(1), now).is_some());
        // The faster path fills up; the pacer has all the time in the world.
        let mut number = 1;
        let mut at = now;
        while engine.snapshot(path(1), at).unwrap().in_flight + MTU <= engine.window(path(1), at) {
            engine.on_sent(path(1), number, MTU, at);
            number += 1;
            at = at + Duration::from_micros(1);
        }
        assert!(engine.may_send(path(0), at).is_some(), "the faster path is full");
        assert!(engine.may_send(path(1), at).is_none(), "and path 0 has room");
    }

    #[test]
    fn what_may_follow_on_a_path_may_be_sent_without_asking() {
        for (scheduler, stays) in [("min_rtt", true), ("round_robin", false)] {
            let mut engine = engine(scheduler, Coupling::Always);
            warm_up(&mut engine, 0, 20);
            warm_up(&mut engine, 1, 60);
            let now = ms(1000);
            let mut allowance = engine.may_send(path(0), now).unwrap();
            assert_eq!(allowance >= MTU * 2, stays, "{scheduler}: {allowance:?}");
            let mut number = 1;
            while allowance >= MTU {
                assert!(engine.may_send(path(1), now).is_none(), "{allowance:?} more");
                engine.on_sent(path(0), number, MTU, now);
                assert!(engine.may_send(path(0), now).is_some(), "{allowance:?} less a packet more");
                (allowance, number) = (allowance - MTU, number + 1);
            }
        }
    }

    #[test]
    fn a_silent_path_gets_no_new_data_while_another_answers() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        engine.on_sent(path(0), 1, MTU, ms(100));
        // PTO = 20 + 4 · 10 = 60 ms, and the peer may wait 25 ms: two of them are 170 ms.
        assert!(!engine.snapshot(path(0), ms(260)).unwrap().suspected);
        let late = ms(280);
        assert!(engine.snapshot(path(0), late).unwrap().suspected);
        assert!(engine.may_send(path(0), late).is_none(), "its good round-trip time is old");
        assert!(engine.may_send(path(1), late).is_some());
        engine.on_ack(path(0), 1, ms(290));
        engine.on_ack_end(path(0), Duration::ZERO, ms(290));
        assert!(!engine.snapshot(path(0), ms(290)).unwrap().suspected, "it answered");
    }

    #[test]
    fn where_every_path_is_silent_none_is_refused() {
        let mut engine = engine("min_rtt", Coupling::Always);
        for id in [0, 1] {
            warm_up(&mut engine, id, 20);
            engine.on_sent(path(id), 1, MTU, ms(100));
        }
        let late = ms(5000);
        assert!(engine.may_send(path(0), late).is_some() && engine.may_send(path(1), late).is_some());
    }

    #[test]
    fn probes_of_a_path_that_the_host_keeps_data_off_are_not_stopped() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        assert!(engine.may_send(path(1), ms(100)).is_none(), "path 0 is faster");
        engine.set_usable(path(1), false);
        assert!(engine.may_send(path(1), ms(100)).is_some(), "it is being validated");
        engine.set_usable(path(1), true);
        engine.set_backup(path(1), true);
        assert!(engine.may_send(path(1), ms(100)).is_some(), "it is a backup");
        assert!(engine.may_send(path(0), ms(100)).is_some());
    }
}
