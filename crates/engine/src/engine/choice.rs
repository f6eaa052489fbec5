//! The path for the next packet: the scheduler's choice within the windows.

use fairpath_core::{PathId, Timestamp};
use fairpath_sched::{Choice, ConnectionView, Train};

use super::Engine;
use crate::path::Path;

impl Engine {
    /// When the first path held back only by its pacer may send; `None` if there is none. A host
    /// that was told to wait asks again then, if no acknowledgement comes first.
    #[inline]
    pub fn paced_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.limit.as_ref().and_then(|limit| limit.asked_again_at(now)) {
            Some(at) => {
                self.paths.iter().any(|(id, state)| state.is_usable() && self.has_room(id, state, now)).then_some(at)
            }
            None if self.paces || self.has_caps => self.first_paced(now),
            None => None,
        }
    }

    fn first_paced(&self, now: Timestamp) -> Option<Timestamp> {
        let held_back = |(id, state): (PathId, &Path)| {
            let is_held = state.is_usable() && !state.pacer.may_send(now) && self.has_room(id, state, now);
            is_held.then(|| state.pacer.free_at())
        };
        self.paths.iter().filter_map(held_back).min()
    }

    /// The path, or the paths, for the next packet.
    pub fn pick(&mut self, connection: &ConnectionView, now: Timestamp) -> Choice {
        if self.limit.as_mut().is_some_and(|limit| limit.holds(now)) {
            return Choice::Wait;
        }
        if self.paths.len() == 1 {
            return self.pick_only(now);
        }
        self.look(now);
        self.scheduler.pick(connection, &self.views, now)
    }

    /// The path, or the paths, for the next packet, and how many packets may follow on it without
    /// asking again, if nothing else happens in between.
    pub fn pick_train(&mut self, connection: &ConnectionView, now: Timestamp) -> (Choice, usize) {
        let choice = self.pick(connection, now);
        (choice, self.following(choice, now).unwrap_or(0))
    }

    fn following(&self, choice: Choice, now: Timestamp) -> Option<usize> {
        let (Choice::Send(path) | Choice::Ahead(path, _)) = choice else { return None };
        let state = self.paths.get(path)?;
        let train = match self.views.iter().find(|view| view.id == path) {
            Some(view) if self.paths.len() > 1 => self.scheduler.train(view),
            _ => Train::All,
        };
        let next = state.packets.in_flight().saturating_add(state.max_datagram);
        let room = self.window_of(path, state, now).saturating_sub(next);
        let rate = self.pacing_rate(path, state);
        let allowance = rate.map_or(room, |rate| room.min(state.pacer.allowance(now, rate)));
        let allowance = self.limit.as_ref().map_or(allowance, |limit| allowance.min(limit.allowance(now)));
        let following = allowance.get() / state.max_datagram.get().max(1);
        Some(match train {
            Train::All => following,
            Train::UpTo(packets) => following.min(packets.saturating_sub(1)),
        } as usize)
    }

    /// With one path and an engine that does not pace: the path, and how many full datagrams may
    /// leave on it now. The answer after these is to wait until something else happens, so the host
    /// need not ask for each of them.
    #[inline]
    pub fn room_alone(&self, now: Timestamp) -> Option<(PathId, u64)> {
        let mut paths = self.paths.iter();
        let paces = self.paces || self.has_caps || self.limit.is_some();
        let (Some((path, state)), None, false) = (paths.next(), paths.next(), paces) else { return None };
        let room = self.window_of(path, state, now).saturating_sub(state.in_flight());
        // Usually there is room for none or one, and comparisons are cheaper than a division.
        let datagrams = if room < state.max_datagram {
            0
        } else if room < state.max_datagram * 2 {
            1
        } else {
            room / state.max_datagram
        };
        Some((path, if datagrams > 0 && state.is_free(now) { datagrams } else { 0 }))
    }

    /// The only path, if it can send; no scheduler is asked.
    #[inline]
    fn pick_only(&self, now: Timestamp) -> Choice {
        let mut paths = self.paths.iter();
        paths.find(|(id, state)| self.may_send(*id, state, now)).map_or(Choice::Wait, |(id, _)| Choice::Send(id))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::tests::{MTU, engine, ms, path, warm_up};
    use super::*;
    use crate::config::{Coupling, EngineConfig};
    use crate::path::{BackupReason, PathUse, ShutReason};

    fn picked(engine: &mut Engine, now: Timestamp) -> Choice {
        engine.pick(&ConnectionView::default(), now)
    }

    #[test]
    fn a_path_that_is_full_gives_way_to_the_next() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 60);
        warm_up(&mut engine, 1, 20);
        let mut at = ms(1000);
        assert_eq!(picked(&mut engine, at), Choice::Send(path(1)), "it is faster");
        // The faster path fills up; its pacer never holds it back here.
        for number in 1.. {
            if engine.verdict(path(1), at).room() < MTU {
                break;
            }
            engine.on_sent(path(1), number, MTU, at);
            at = at + Duration::from_micros(1);
        }
        assert_eq!(picked(&mut engine, at), Choice::Send(path(0)));
    }

    #[test]
    fn a_scheduler_sees_delivery_rates_though_the_controller_reads_none() {
        let mut engine = engine("arrival", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        engine.look(ms(20));
        let rate = engine.views[0].delivery_rate.map(|rate| rate.as_bps());
        assert_eq!(rate, Some(MTU.get() * 8 * 50), "a datagram in 20 ms");
    }

    #[test]
    fn each_packet_of_a_train_would_have_been_picked_by_itself() {
        for (scheduler, stays) in [("min_rtt", true), ("round_robin", false)] {
            let mut engine = engine(scheduler, Coupling::Always);
            warm_up(&mut engine, 0, 20);
            warm_up(&mut engine, 1, 60);
            let (now, mut number) = (ms(1000), 1);
            let mut trains = Vec::new();
            let train = |engine: &mut Engine| {
                let (choice, following) = engine.pick_train(&ConnectionView::default(), now);
                Some((choice.path()?, following))
            };
            while let Some((chosen, following)) = train(&mut engine) {
                for _ in 0..=following {
                    assert_eq!(picked(&mut engine, now), Choice::Send(chosen), "{scheduler}");
                    engine.on_sent(chosen, number, MTU, now);
                    number += 1;
                }
                trains.push((chosen, following));
            }
            assert_eq!(trains.iter().any(|(_, following)| *following > 0), stays, "{scheduler}: {trains:?}");
            assert!(trains.iter().any(|(chosen, _)| *chosen == path(1)), "{scheduler}: {trains:?}");
        }
    }

    #[test]
    fn a_train_may_follow_what_is_further_on_as_it_may_what_is_next() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        picked(&mut engine, ms(1000));
        let following = |choice| engine.following(choice, ms(1000));
        let next = following(Choice::Send(path(0)));
        assert!(next > Some(0), "{next:?}");
        assert_eq!(following(Choice::Ahead(path(0), MTU * 20)), next);
    }

    #[test]
    fn the_room_of_the_only_path_is_what_it_would_be_picked_for() {
        let config = EngineConfig { coupling: Coupling::Never, ..EngineConfig::default() };
        let mut engine = config.build().unwrap().unpaced();
        assert_eq!(engine.room_alone(ms(0)), None, "there is no path");
        engine.on_path_opened(path(0), MTU, ms(0));
        assert_eq!(engine.room_alone(ms(0)), Some((path(0), 0)), "it is not usable");
        engine.set_use(path(0), PathUse::Open);
        let mut number = 0;
        for now in [ms(0), ms(50), ms(100)] {
            let (only, room) = engine.room_alone(now).unwrap();
            for left in (0..room).rev() {
                assert_eq!(picked(&mut engine, now), Choice::Send(only));
                engine.on_sent(only, number, MTU, now);
                number += 1;
                assert_eq!(engine.room_alone(now), Some((only, left)));
            }
            assert_eq!(picked(&mut engine, now), Choice::Wait);
            for acked in number - room..number {
                engine.on_ack(only, acked, now + Duration::from_millis(20));
            }
            engine.on_ack_end(only, Duration::ZERO, now + Duration::from_millis(20));
        }
        assert!(number > 40, "{number}");
        engine.on_path_opened(path(1), MTU, ms(200));
        assert_eq!(engine.room_alone(ms(200)), None, "there are two");
    }

    #[test]
    fn a_silent_path_gets_no_new_data_while_another_answers() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        engine.on_sent(path(0), 1, MTU, ms(100));
        // PTO = 20 + 4 · 10 = 60 ms, and the peer may wait 25 ms: two of them are 170 ms.
        assert!(!engine.snapshot(path(0), ms(260)).unwrap().is_silent());
        let late = ms(280);
        assert!(engine.snapshot(path(0), late).unwrap().is_silent());
        assert_eq!(picked(&mut engine, late), Choice::Send(path(1)), "a good round-trip time that is old");
        engine.on_ack(path(0), 1, ms(290));
        engine.on_ack_end(path(0), Duration::ZERO, ms(290));
        assert!(!engine.snapshot(path(0), ms(290)).unwrap().is_silent(), "it answered");
        assert_eq!(picked(&mut engine, ms(290)), Choice::Send(path(0)));
    }

    /// If each direction works on another path, the acknowledgements for one path come on the
    /// other.
    #[test]
    fn what_left_before_a_path_fell_silent_is_no_round_trip_and_no_sign_of_life() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        let acked = |engine: &mut Engine, at, number, now| {
            engine.on_ack(path(at), number, now);
            engine.on_ack_end(path(at), Duration::ZERO, now);
        };
        let (before, after) = (ms(100), ms(1_000));
        (1..=2).for_each(|number| engine.on_sent(path(0), number, MTU, before));
        engine.on_sent(path(1), 1, MTU, after);
        let smoothed = engine.rtt(path(0));
        acked(&mut engine, 1, 1, ms(1_060));
        acked(&mut engine, 0, 1, ms(4_000));
        assert_eq!(engine.rtt(path(0)), smoothed, "3.9 s is no round trip");
        assert!(engine.snapshot(path(0), ms(4_000)).unwrap().is_silent());
        // A packet that left later, to probe the path, is answered.
        engine.on_sent(path(0), 3, fairpath_core::ByteCount::new(52), ms(4_000));
        acked(&mut engine, 0, 3, ms(4_500));
        assert_eq!(engine.rtt(path(0)).unwrap().latest, Duration::from_millis(500));
        assert!(!engine.snapshot(path(0), ms(4_500)).unwrap().is_silent());
    }

    #[test]
    fn a_backup_carries_data_only_where_no_other_path_can() {
        let mut engine = engine("min_rtt", Coupling::Always);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        engine.set_use(path(0), PathUse::Backup(BackupReason::Unwell));
        assert_eq!(picked(&mut engine, ms(100)), Choice::Send(path(1)));
        engine.set_use(path(1), PathUse::Shut(ShutReason::Lost));
        assert_eq!(picked(&mut engine, ms(100)), Choice::Send(path(0)));
        engine.set_use(path(0), PathUse::Shut(ShutReason::Lost));
        assert_eq!(picked(&mut engine, ms(100)), Choice::Wait);
        // Terms apply whatever the host says.
        for id in [0, 1] {
            engine.set_use(path(id), PathUse::Open);
        }
        engine.set_terms(path(0), fairpath_sched::Terms { backup: true, ..Default::default() });
        assert!(engine.is_backup(path(0)));
        assert_eq!(picked(&mut engine, ms(100)), Choice::Send(path(1)));
    }

    #[test]
    fn all_paths_together_keep_to_a_limit_that_each_of_them_could_fill() {
        let limit = fairpath_core::Bitrate::from_mbps(1);
        let mut engine = engine("min_rtt", Coupling::Always).with_limit(limit);
        warm_up(&mut engine, 0, 20);
        warm_up(&mut engine, 1, 60);
        let (mut sent, mut number) = ([0, 0], [1_000, 1_000]);
        for now in (1_000..5_000).map(ms) {
            while let Choice::Send(id) | Choice::Ahead(id, _) = picked(&mut engine, now) {
                let at = id.get() as usize;
                engine.on_sent(id, number[at], MTU, now);
                engine.on_ack(id, number[at], now);
                engine.on_ack_end(id, Duration::ZERO, now);
                number[at] += 1;
                sent[at] += MTU.get();
            }
            if engine.limit.is_some_and(|limit| !limit.may_send(now)) {
                let late = now + Duration::from_millis(300);
                assert!(engine.paced_until(late).is_some(), "the host is woken, however late it sets its timer");
            }
        }
        // Four seconds at a megabit per second, and a burst of ten datagrams of 1,500 bytes.
        let all = sent[0] + sent[1];
        assert!((490_000..=500_000 + 15_000 + MTU.get()).contains(&all), "{sent:?}");
    }
}
