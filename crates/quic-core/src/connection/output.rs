//! What leaves next, and on which path.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Instant;

use bytes::Bytes;
use fairpath_engine::{Choice, PathId as EnginePath, Pending};
use noq_proto::Transmit;

use super::{APPLICATION, Connection};
use crate::adapter::Gate;
use crate::channel::{Cargo, ChannelId};

/// What an application may queue of datagrams, in number: they are for what is worth little when it is old.
const DATAGRAMS_MAX: usize = 256;

/// The datagrams that wait, and who may send out of turn.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Paths that have to say something for themselves, whatever their windows.
    turns: VecDeque<EnginePath>,
    /// What is to be said on a certain path, or on any.
    sayings: VecDeque<(Option<EnginePath>, Bytes)>,
    /// The datagrams of the application.
    datagrams: VecDeque<Bytes>,
    /// What lies in the stack's queue, which is one datagram at most.
    queued: Option<Queued>,
    /// Whether nothing of ours is said: the peer speaks another protocol, which has no DATAGRAM frames.
    pub(super) is_mute: bool,
    /// Whether there was more to send than the paths took.
    pub(super) is_held_back: bool,
    /// Whether every path is to be asked whether it has something to say.
    pub(super) is_sweep_due: bool,
    /// The packet that is being made.
    packet: Vec<u8>,
}

/// A datagram in the stack's queue.
#[derive(Debug)]
enum Queued {
    Channel(ChannelId, Cargo),
    /// Nobody asks what becomes of it.
    Other,
}

impl Output {
    /// Lets the path send one packet although it may not be picked, or its window may be full: it has to give a
    /// sign of life.
    pub(super) fn give_turn(&mut self, path: EnginePath) {
        if !self.turns.contains(&path) {
            self.turns.push_back(path);
        }
    }

    /// Says something on whichever path is next.
    pub(super) fn say(&mut self, datagram: Bytes) {
        if !self.is_mute {
            self.sayings.push_back((None, datagram));
        }
    }

    /// Says something on this path, whatever its window: it is small.
    pub(super) fn say_on(&mut self, path: EnginePath, datagram: Bytes) {
        if self.is_mute {
            return;
        }
        // An older one that has not left is worth nothing any more.
        self.sayings.retain(|(on, _)| *on != Some(path));
        self.sayings.push_back((Some(path), datagram));
    }
}

impl Connection {
    /// Queues a datagram of the application: it arrives once or not at all. False where too many wait, or the
    /// peer takes none.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> bool {
        let has_room = !self.output.is_mute && self.output.datagrams.len() < DATAGRAMS_MAX;
        if has_room {
            self.output.datagrams.push_back([&[APPLICATION], datagram].concat().into());
        }
        has_room
    }

    /// The next packet, appended to `buffer`, which is to leave at once.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        // Fates may have come of what a timer found lost.
        self.learn_fates();
        if self.farewell.is_some() {
            let gate = if self.output.queued.is_some() { Gate::Any } else { Gate::Shut };
            return self.emit_saying(now, buffer).or_else(|| {
                self.engine.open_gate(gate);
                self.emit(now, buffer)
            });
        }
        if !self.is_connected || self.closed.is_some() {
            // Before anything can be picked there is one path, and the stack knows best.
            self.engine.open_gate(Gate::Only(EnginePath::new(0)));
            return self.emit(now, buffer);
        }
        self.emit_turn(now, buffer).or_else(|| self.emit_saying(now, buffer)).or_else(|| self.emit_data(now, buffer))
    }

    /// A sign of life.
    fn emit_turn(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(path) = self.output.turns.front().copied() {
            self.engine.open_gate(Gate::Only(path));
            // Acknowledgements of another path may come first.
            let transmit = self.emit(now, buffer);
            if transmit.is_some() {
                return transmit;
            }
            self.output.turns.pop_front();
        }
        None
    }

    /// Something small that is to be said.
    fn emit_saying(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while self.output.queued.is_none()
            && let Some((path, datagram)) = self.output.sayings.pop_front()
        {
            let path = path.or_else(|| self.pick(now)).unwrap_or(EnginePath::new(0));
            // A path may carry less than was thought, or none: then nobody hears it.
            if self.quic.datagrams().send(datagram, true).is_err() {
                continue;
            }
            self.output.queued = Some(Queued::Other);
            self.engine.open_gate(Gate::Only(path));
            if let Some(transmit) = self.emit(now, buffer) {
                return Some(transmit);
            }
        }
        None
    }

    fn pick(&self, now: Instant) -> Option<EnginePath> {
        match self.engine.with(now, |engine, at| engine.pick(&Pending::default(), at)) {
            Choice::Send(path) => Some(path),
            Choice::Wait => None,
        }
    }

    /// The next packet of data, on the path that the engine picks.
    fn emit_data(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let had_more = std::mem::take(&mut self.output.is_held_back);
        let Some(path) = self.pick(now) else {
            self.output.is_held_back = had_more || self.output.queued.is_some() || self.has_cargo();
            if self.output.is_held_back {
                self.engine.with(now, |engine, at| engine.on_held_back(at));
            }
            self.engine.open_gate(Gate::Shut);
            return self.emit(now, buffer);
        };
        if self.output.queued.is_none() && !self.output.is_mute {
            self.load(path);
        }
        self.engine.open_gate(Gate::Only(path));
        let transmit = self.emit(now, buffer).or_else(|| self.emit_elsewhere(path, now, buffer));
        // What left may have been the last of a stream: then the next look finds nothing.
        self.output.is_held_back = transmit.is_some();
        if transmit.is_none() {
            self.engine.with(now, |engine, _| engine.on_app_limited(path));
        }
        transmit
    }

    /// Nothing left on the path that was picked. Where that is so because the stack keeps data off it, another
    /// path takes it. And what others have to say for themselves, keep-alives and challenges, must not wait for
    /// ever behind their gates.
    fn emit_elsewhere(&mut self, picked: EnginePath, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let had_queued = self.output.queued.is_some();
        let may_be_refused = had_queued || self.quic.streams().send_streams() > 0;
        if !std::mem::take(&mut self.output.is_sweep_due) && !may_be_refused {
            return None;
        }
        self.engine.open_gate(Gate::Any);
        let transmit = self.emit(now, buffer);
        if had_queued
            && self.output.queued.is_none()
            && let Some(policy) = &mut self.policy
        {
            policy.on_refused(picked, now);
        }
        transmit
    }

    fn has_cargo(&self) -> bool {
        !self.output.datagrams.is_empty() || self.channels.iter().any(|channel| channel.has_work())
    }

    /// Puts what is to leave next on the path into the stack's queue.
    fn load(&mut self, path: EnginePath) {
        let Some(room) = self.quic.datagrams().max_size() else { return };
        let Some((datagram, queued)) = self.next_datagram(path, room) else { return };
        if let Err(error) = self.quic.datagrams().send(datagram, false) {
            tracing::debug!(%error, "a datagram was refused");
            if let Queued::Channel(channel, cargo) = queued {
                self.channels[channel as usize].on_unsent(cargo);
            }
            return;
        }
        self.output.queued = Some(queued);
    }

    fn next_datagram(&mut self, path: EnginePath, room: usize) -> Option<(Bytes, Queued)> {
        let of = |id| move |(datagram, cargo)| (datagram, Queued::Channel(id, cargo));
        let mut channels = ChannelId::ALL.into_iter();
        if let Some(credit) = channels.find_map(|id| self.channels[id as usize].credit().map(of(id))) {
            return Some(credit);
        }
        if let Some(datagram) = self.output.datagrams.pop_front() {
            return Some((datagram, Queued::Other));
        }
        let mut channels = ChannelId::ALL.into_iter();
        let fragment = channels.find_map(|id| self.channels[id as usize].next(room).map(of(id)));
        fragment.or_else(|| self.reinjected(path, room).map(of(ChannelId::Bulk)))
    }

    /// Nothing waits, and the path has room: what is on its way on a slower one goes here too, so that the
    /// last bytes do not wait for the slowest path.
    fn reinjected(&mut self, path: EnginePath, room: usize) -> Option<(Bytes, Cargo)> {
        let Self { channels, engine, .. } = self;
        let channel = &mut channels[ChannelId::Bulk as usize];
        if channel.sender.is_idle() {
            return None;
        }
        let own = engine.smoothed_rtt(path)?;
        channel.reinject(path, room, |other| engine.smoothed_rtt(other).is_some_and(|rtt| rtt > own))
    }

    /// Asks the stack for one packet with the gates as they are, and notes what it carried.
    fn emit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let mut packet = std::mem::take(&mut self.output.packet);
        packet.clear();
        let transmit = self.quic.poll_transmit(now, NonZeroUsize::MIN, &mut packet);
        let left = self.engine.take_left();
        if let (Some(_), Some((path, _))) = (&transmit, left) {
            self.one_way.on_departure(&packet, path, now);
            self.output.turns.retain(|turn| *turn != path);
        }
        self.unload(left);
        buffer.extend_from_slice(&packet);
        self.output.packet = packet;
        transmit.map(|transmit| Transmit { src_ip: transmit.src_ip.or(self.primary), ..transmit })
    }

    /// Notes in which packet the queued datagram left, if it did.
    fn unload(&mut self, left: Option<(EnginePath, u64)>) {
        if self.output.queued.is_none() || self.quic.datagrams().send_buffer_space() < self.queue_space {
            return;
        }
        match (self.output.queued.take(), left) {
            (Some(Queued::Channel(channel, cargo)), Some((path, number))) => {
                self.channels[channel as usize].on_sent(cargo, path, number);
            }
            // The stack dropped it: it has become too large for a path.
            (Some(Queued::Channel(channel, cargo)), None) => self.channels[channel as usize].on_unsent(cargo),
            _ => {}
        }
    }
}
