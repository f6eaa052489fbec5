//! A connection: the engine, loss recovery and data on one side, the receiver on the other.
//!
//! Both ends are one object, because nothing but packets passes between them and one look-up finds
//! either. The engine is the one that real connections carry.

mod live;
mod remedies;

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{ByteCount, PathId, Timestamp};
use fairpath_engine::{Choice, CongestionSignal, Engine, LossBatch, PathSet, PathUse, Tracked};
use fairpath_net::PathRoutes;
use fairpath_scenario::{Remedies, Traffic, Transport};

use crate::count::FlowCount;
use crate::egress::Egress;
use crate::packet::{AckFrame, Body, Chunk, PACKETS_MAX, Packet};
use crate::receiver::{AckNow, Receiver};
use crate::recorder::{FlowIndex, Recorder};
use crate::recovery::Recovery;
use crate::remedies::AtWork;
use crate::send_stream::SendStream;
use crate::timers::{Lazy, Timer, Timers};
use live::Live;

/// Pieces that wait for reassembly per packet in the memory limit: 8 bytes against 96.
/// Over many paths most pieces wait, and counting each as a packet would overstate the memory.
const PIECES_PER_PACKET: usize = 12;

/// Where a connection's packets and timers go, and what counts them.
pub(crate) struct Outside<'a, N> {
    pub(crate) network: &'a mut N,
    pub(crate) timers: &'a mut Timers,
    pub(crate) count: &'a mut FlowCount,
    /// How many packets all hosts have sent.
    pub(crate) sent: &'a mut u64,
    pub(crate) recorder: &'a mut dyn Recorder,
}

/// The sender's side of a path.
#[derive(Debug)]
struct SendPath {
    routes: PathRoutes,
    recovery: Recovery,
    timer: Lazy,
    /// How many packets had come marked by the newest acknowledgement.
    marked: u32,
    /// When the newest episode of congestion began.
    episode_at: Option<Timestamp>,
    /// Data reinjected from other paths that this path has still to send.
    owed: VecDeque<Chunk>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) flow: u32,
    /// Its number among the connections of its flow.
    pub(crate) number: u64,
    pub(crate) engine: Engine,
    pub(crate) stream: SendStream,
    pub(crate) receiver: Receiver,
    slot: u32,
    generation: u32,
    started: Timestamp,
    completed: bool,
    transport: Transport,
    paths: Vec<SendPath>,
    pacing: Lazy,
    probing: Lazy,
    remedies: Option<Box<AtWork>>,
    /// The newest piece that was sent a second time because it held up the others.
    reinjected: Option<u64>,
    /// How many pieces there were when the tail was last looked at, and from which on copies of it were sent.
    tail_end: u64,
    tail_from: u64,
    /// Frames on their way: where each ends among the bytes, and when it was taken.
    frames: VecDeque<(u64, Timestamp)>,
    /// Both ends of a live stream, which then is all that the connection carries.
    live: Option<Box<Live>>,
    lost: Vec<Tracked<Chunk>>,
}

/// The identity of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) flow: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// Its number among the connections of its flow.
    pub(crate) number: u64,
}

impl Connection {
    /// A connection over `routes`, all of which can be used at once.
    pub(crate) fn new(
        name: Name,
        mut engine: Engine,
        (transport, traffic, remedies): (Transport, Traffic, Remedies),
        routes: &[PathRoutes],
        now: Timestamp,
    ) -> Self {
        for path in (0..routes.len() as u32).map(PathId::new) {
            engine.on_path_opened(path, transport.packet, now);
            engine.set_use(path, PathUse::Open);
        }
        let live = Live::of(traffic, routes.len(), now).map(Box::new);
        if live.is_some() {
            engine.set_live();
        }
        let payload = transport.payload();
        let pieces = |buffer: Option<ByteCount>| buffer.map_or(u64::MAX, |buffer| (buffer / payload).max(1));
        let receive_buffer = pieces(transport.receive_buffer);
        let path = |routes: &PathRoutes| SendPath {
            routes: *routes,
            recovery: Recovery::default(),
            timer: Lazy::default(),
            marked: 0,
            episode_at: None,
            owed: VecDeque::new(),
        };
        Self {
            flow: name.flow,
            number: name.number,
            engine,
            stream: SendStream::new(payload.get() as u32, pieces(transport.send_buffer), receive_buffer),
            receiver: Receiver::new(routes.len(), receive_buffer, transport.ack_every, transport.ack_delay_max),
            slot: name.slot,
            generation: name.generation,
            started: now,
            completed: false,
            transport,
            paths: routes.iter().map(path).collect(),
            pacing: Lazy::default(),
            probing: Lazy::default(),
            remedies: AtWork::new(remedies, routes.len()),
            reinjected: None,
            tail_end: 0,
            tail_from: 0,
            frames: VecDeque::new(),
            live,
            lost: Vec::new(),
        }
    }

    /// Its number among the connections that had this slot.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// How many packets are remembered at either end, by the room that it takes.
    pub(crate) fn remembered(&self) -> u64 {
        let sent: usize = self.paths.iter().map(|path| path.recovery.entries() + path.owed.len()).sum();
        let pieces = self.receiver.entries() + self.stream.entries();
        let live = self.live.as_ref().map_or(0, |live| live.entries());
        (sent + pieces / PIECES_PER_PACKET + self.frames.len() + live) as u64
    }

    /// Whether nothing more will happen: all was delivered, and the sender knows.
    pub(crate) fn is_over(&self) -> bool {
        self.completed && self.stream.is_finished()
    }

    /// Supplies a frame of this size.
    pub(crate) fn supply_frame(&mut self, bytes: u64, now: Timestamp) {
        let end = self.frames.back().map_or(self.receiver.delivered_bytes(), |(end, _)| *end) + bytes;
        self.frames.push_back((end, now));
        self.stream.supply(bytes);
    }

    /// Sends as much as there is and the windows let out.
    #[inline]
    pub(crate) fn send<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        if self.live.is_some() {
            self.drive_live(now, out);
            return;
        }
        let before = *out.sent;
        let mut alone = self.engine.room_alone(now);
        // A run that sends this many packets at one instant is over its limit, and the next count
        // ends it.
        while *out.sent - before <= PACKETS_MAX {
            if alone.is_some_and(|(_, room)| room == 0) {
                break;
            }
            let chunk = self.stream.next();
            if chunk.is_none() && self.paths.len() == 1 && !self.stream.is_dry() {
                // Held back by a buffer, and there is no other path to help.
                return;
            }
            if let (Some((path, room)), Some(chunk)) = (alone, chunk) {
                self.stream.on_sent(chunk);
                let (_, size) = self.transmit(path, chunk, now, out);
                // The room is one of full packets.
                let is_full = size == self.transport.packet;
                alone = if is_full { Some((path, room - 1)) } else { self.engine.room_alone(now) };
                continue;
            }
            alone = None;
            let choice = self.engine.pick(&self.stream.view(), now);
            let Some(path) = choice.path() else { break };
            let chunk = if let Choice::Ahead(_, gap) = choice { self.stream.ahead(gap) } else { chunk };
            if let Choice::Copies(paths) = choice
                && let Some((path, chunk)) = self.owed(&paths, now)
            {
                self.transmit(path, chunk, now, out);
                continue;
            }
            match chunk {
                Some(chunk) => {
                    self.stream.on_sent(chunk);
                    self.transmit(path, chunk, now, out);
                    if let Choice::Copies(paths) = choice {
                        paths.iter().skip(1).for_each(|other| self.paths[other.get() as usize].owed.push_back(chunk));
                    }
                }
                None => {
                    if !self.stream.is_dry() {
                        self.engine.on_window_blocked(now);
                    }
                    if !self.send_again_after_penalty(path, now, out) && !self.reinject(path, now, out) {
                        self.engine.on_app_limited(path);
                        if matches!(choice, Choice::Ahead(..)) {
                            // There is some for a path that its pacer holds back.
                            break;
                        }
                        return self.arm_probing(now, out.timers);
                    }
                }
            }
        }
        if let Some(at) = self.engine.paced_until(now) {
            let timer = Timer::Pacing { connection: self.slot, generation: self.generation };
            self.pacing.arm(at, timer, out.timers);
        }
        self.arm_probing(now, out.timers);
    }

    /// The oldest piece that one of the paths, which has room, has still to carry after others.
    fn owed(&mut self, paths: &PathSet, now: Timestamp) -> Option<(PathId, Chunk)> {
        for path in paths.iter() {
            let owed = &mut self.paths[path.get() as usize].owed;
            while owed.front().is_some_and(|chunk| self.stream.is_acked(chunk.number)) {
                owed.pop_front();
            }
            if !owed.is_empty() && self.engine.verdict(path, now).may_send {
                return Some((path, owed.pop_front()?));
            }
        }
        None
    }

    /// A piece of data goes out on a path: the number of its packet, and its size.
    #[inline]
    fn transmit<N: Egress>(
        &mut self,
        path: PathId,
        chunk: Chunk,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) -> (u64, ByteCount) {
        let index = path.get() as usize;
        let state = &mut self.paths[index];
        let number = state.recovery.on_sent(chunk, now);
        let size = self.transport.header + ByteCount::new(u64::from(chunk.bytes));
        self.engine.on_sent(path, number, size, now);
        out.count.paths[index].sent += 1;
        *out.sent += 1;
        let packet = Packet::new(self.slot, self.generation, index as u16, Body::Data { number, chunk });
        let packet = packet.ecn_capable(self.transport.ecn);
        out.network.send(now, state.routes.forward, packet, size);
        if !state.timer.is_armed() {
            self.arm_recovery(index, now, out.timers);
        }
        (number, size)
    }

    /// Where `path` has room and nothing new can be sent: sends a piece once more that is on its way on another
    /// path. Whether it did.
    fn reinject<N: Egress>(&mut self, path: PathId, now: Timestamp, out: &mut Outside<'_, N>) -> bool {
        if !self.transport.reinjection {
            return false;
        }
        let chunk = if self.stream.is_dry() { self.tail(path) } else { self.head(path, now) };
        let Some(chunk) = chunk else { return false };
        self.transmit(path, chunk, now, out);
        true
    }

    /// A buffer holds the sender back: the piece that holds up the others, where it would arrive sooner on this path or is
    /// overdue on the other.
    fn head(&mut self, path: PathId, now: Timestamp) -> Option<Chunk> {
        let oldest = self.stream.oldest_unacked();
        if self.reinjected.is_some_and(|at| at >= oldest) {
            return None;
        }
        let (holder, packet) = self.holder(path, oldest)?;
        let (own, there) = (self.engine.rtt(path)?, self.engine.rtt(holder)?);
        // A copy of what is about to arrive only fills the queue of this path.
        let is_late = now > packet.at + there.probe_timeout();
        if !is_late && now + own.smoothed >= packet.at + there.smoothed {
            return None;
        }
        self.reinjected = Some(oldest);
        Some(packet.data)
    }

    /// The other path that holds the oldest missing piece, and the packet that carries it.
    fn holder(&self, path: PathId, oldest: u64) -> Option<(PathId, Tracked<Chunk>)> {
        let others = self.paths.iter().enumerate().filter(|(index, _)| *index != path.get() as usize);
        let first = |(index, other): (usize, &SendPath)| {
            let mut packets = other.recovery.outstanding();
            Some((PathId::new(index as u32), *packets.find(|packet| !packet.data.is_probe())?))
        };
        others.filter_map(first).find(|(_, packet)| packet.data.number == oldest)
    }

    /// There is no more: what was sent last on a slower path, for it would arrive last. Each piece once.
    fn tail(&mut self, path: PathId) -> Option<Chunk> {
        let end = self.stream.sent();
        if self.tail_end != end {
            (self.tail_end, self.tail_from) = (end, end);
        }
        let (engine, stream, from) = (&self.engine, &self.stream, self.tail_from);
        let smoothed = |path: PathId| engine.rtt(path).map(|rtt| rtt.smoothed);
        let own = smoothed(path)?;
        let slower = |index: usize| smoothed(PathId::new(index as u32)).is_some_and(|rtt| rtt > own);
        let others = self.paths.iter().enumerate().filter(|(index, _)| slower(*index));
        let pieces = others.flat_map(|(_, other)| other.recovery.outstanding().map(|packet| packet.data));
        let chunk = pieces
            .filter(|chunk| chunk.number < from && !stream.is_acked(chunk.number))
            .max_by_key(|chunk| chunk.number)?;
        self.tail_from = chunk.number;
        Some(chunk)
    }

    fn arm_recovery(&mut self, index: usize, now: Timestamp, timers: &mut Timers) {
        let path = PathId::new(index as u32);
        let state = &mut self.paths[index];
        let deadline = state.recovery.deadline(self.engine.rtt(path), self.transport.ack_delay_max);
        let timer = Timer::Recovery { connection: self.slot, generation: self.generation, path: path.get() };
        // Where round trips have become shorter it may be past: then at once [RFC9002 §6.2.1].
        state.timer.arm(deadline.max(now), timer, timers);
    }

    /// Data came.
    #[inline]
    pub(crate) fn on_data<N: Egress>(
        &mut self,
        packet: &Packet,
        number: u64,
        chunk: Chunk,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) {
        let index = packet.path as usize;
        let ack = self.receiver.on_packet(index, number, packet.is_marked(), now);
        if self.live.is_some() {
            self.on_live_data(index, number, now, out);
        } else {
            self.on_chunk(index, chunk, now, out);
        }
        match ack {
            AckNow::Yes => self.acknowledge(index, now, out),
            AckNow::Alone => {
                let frame = self.receiver.ack_alone(index, number);
                self.send_ack(index, frame, now, out);
            }
            AckNow::No => {}
            AckNow::By(at) => {
                let (connection, generation, path) = (self.slot, self.generation, packet.path.into());
                self.receiver.ack_timers[index].arm(at, Timer::Ack { connection, generation, path }, out.timers);
            }
        }
    }

    /// A piece of data came on a path.
    #[inline]
    fn on_chunk<N: Egress>(&mut self, index: usize, chunk: Chunk, now: Timestamp, out: &mut Outside<'_, N>) {
        let before = (self.receiver.delivered_bytes(), self.receiver.duplicates());
        out.count.waited += self.receiver.waited(now);
        let fresh = self.receiver.on_chunk(chunk);
        out.count.paths[index].delivered += ByteCount::new(u64::from(fresh));
        out.count.delivered += ByteCount::new(self.receiver.delivered_bytes() - before.0);
        out.count.duplicates += self.receiver.duplicates() - before.1;
        while self.frames.front().is_some_and(|(end, _)| *end <= self.receiver.delivered_bytes()) {
            if let Some((_, taken)) = self.frames.pop_front() {
                out.count.frame_delays.push(now.since(taken));
            }
        }
        if self.receiver.is_complete() && !self.completed {
            self.completed = true;
            let took = now.since(self.started);
            out.count.completions.push(took);
            out.recorder.on_completion(now, FlowIndex(self.flow), took);
        }
    }

    #[inline]
    fn acknowledge<N: Egress>(&mut self, index: usize, now: Timestamp, out: &mut Outside<'_, N>) {
        if let Some(frame) = self.receiver.ack(index, now) {
            self.send_ack(index, frame, now, out);
        }
    }

    #[inline]
    fn send_ack<N: Egress>(&mut self, index: usize, frame: AckFrame, now: Timestamp, out: &mut Outside<'_, N>) {
        let packet = Packet::new(self.slot, self.generation, index as u16, Body::Ack(frame));
        *out.sent += 1;
        out.network.send(now, self.paths[index].routes.backward, packet, self.transport.ack);
    }

    /// An acknowledgement may have waited long enough.
    pub(crate) fn on_ack_timer<N: Egress>(&mut self, path: u32, now: Timestamp, out: &mut Outside<'_, N>) {
        let index = path as usize;
        let deadline = self.receiver.ack_deadline(index);
        let timer = Timer::Ack { connection: self.slot, generation: self.generation, path };
        if self.receiver.ack_timers[index].is_due(now, deadline, timer, out.timers) {
            self.acknowledge(index, now, out);
        }
    }

    /// The pacer may let something out.
    pub(crate) fn on_pacing_timer<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        let timer = Timer::Pacing { connection: self.slot, generation: self.generation };
        if self.pacing.is_due(now, now, timer, out.timers) {
            self.send(now, out);
        }
    }

    /// An acknowledgement came.
    #[inline]
    pub(crate) fn on_ack<N: Egress>(&mut self, path: u32, frame: &AckFrame, now: Timestamp, out: &mut Outside<'_, N>) {
        let id = PathId::new(path);
        let index = path as usize;
        let Self { engine, stream, paths, live, receiver, .. } = self;
        let (state, hears_order) = (&mut paths[index], engine.hears_order());
        let uncertain = state.recovery.is_uncertain();
        let mut newest = None;
        state.recovery.on_ack(frame, |packet| {
            let number = packet.number;
            match live {
                Some(live) => live.on_acked(id, number, now),
                None => stream.on_ack(packet.data),
            }
            if hears_order && !packet.data.is_probe() {
                engine.on_arrived(id, packet.data.number < frame.expected);
            }
            if !packet.was_lost() {
                engine.on_ack(id, number, now);
                newest = Some((number, packet.at));
            }
        });
        stream.on_receiver(frame.expected, frame.expected.saturating_add(receiver.buffer()));
        if state.recovery.on_ack_end(|| engine.rtt(id), now) {
            engine.on_spurious_congestion(id, now);
        }
        engine.on_ack_end(id, Duration::from_nanos(frame.delay_ns.into()), now);
        // Only the newest of all gives a sample [RFC9002 §5.1].
        let sample = newest.filter(|(number, _)| Some(*number) == state.recovery.newest_acked());
        if let Some((_, at)) = sample {
            let rtt = now.since(at);
            let count = &mut out.count.paths[index];
            count.rtt_samples += 1;
            count.rtt_sum += rtt;
            out.recorder.on_rtt(now, FlowIndex(self.flow), id, rtt);
        }
        if let Some(remedies) = &mut self.remedies {
            if sample.is_some() {
                remedies.on_sample(id, now);
            }
            remedies.on_ack_end(&mut self.engine, id, now);
        }
        if let Some((_, sent_at)) = newest.filter(|_| frame.marked > state.marked) {
            state.marked = frame.marked;
            self.on_congestion(index, CongestionSignal::Ecn, sent_at, false, now, out);
        }
        let has_gap = self.paths[index].recovery.has_gap();
        if has_gap {
            self.give_up(index, now, out);
        }
        if uncertain || has_gap {
            self.arm_recovery(index, now, out.timers);
        }
        self.send(now, out);
    }

    /// Gives up what must be taken for lost by now.
    fn give_up<N: Egress>(&mut self, index: usize, now: Timestamp, out: &mut Outside<'_, N>) {
        let path = PathId::new(index as u32);
        let rtt = self.engine.rtt(path);
        let mut lost = core::mem::take(&mut self.lost);
        let recovery = &mut self.paths[index].recovery;
        let batch: LossBatch = recovery.find_lost(rtt, self.transport.ack_delay_max, now, |packet| lost.push(*packet));
        out.count.paths[index].lost += lost.len() as u64;
        for packet in lost.drain(..) {
            self.engine.on_lost(path, packet.number, now);
            match &mut self.live {
                Some(live) => live.on_lost(path, packet.number, now),
                None => self.stream.send_again(packet.data),
            }
            out.recorder.on_lost(now, FlowIndex(self.flow), path);
        }
        self.lost = lost;
        if let Some(sent_at) = batch.newest {
            self.on_congestion(index, CongestionSignal::Loss, sent_at, batch.persistent, now, out);
        }
    }

    fn on_congestion<N: Egress>(
        &mut self,
        index: usize,
        signal: CongestionSignal,
        sent_at: Timestamp,
        persistent: bool,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) {
        let path = PathId::new(index as u32);
        self.engine.on_congestion(path, signal, sent_at, persistent, now);
        if self.paths[index].episode_at.is_none_or(|began| sent_at > began) {
            self.paths[index].episode_at = Some(now);
            out.count.paths[index].episodes += 1;
            out.recorder.on_congestion(now, FlowIndex(self.flow), path);
        }
    }

    /// Something may be late.
    pub(crate) fn on_recovery_timer<N: Egress>(&mut self, path: u32, now: Timestamp, out: &mut Outside<'_, N>) {
        let index = path as usize;
        let deadline =
            self.paths[index].recovery.deadline(self.engine.rtt(PathId::new(path)), self.transport.ack_delay_max);
        let timer = Timer::Recovery { connection: self.slot, generation: self.generation, path };
        if !self.paths[index].timer.is_due(now, deadline, timer, out.timers) {
            return;
        }
        if self.paths[index].recovery.loss_is_due(now) {
            self.give_up(index, now, out);
        } else {
            self.probe(index, now, out);
        }
        self.arm_recovery(index, now, out.timers);
        self.send(now, out);
    }

    /// The probe timeout has passed: the oldest packet goes out again, whatever the window says
    /// [RFC9002 §6.2.4]. At the second in a row what the path holds is given to the others too.
    fn probe<N: Egress>(&mut self, index: usize, now: Timestamp, out: &mut Outside<'_, N>) {
        out.count.paths[index].timeouts += 1;
        let row = self.paths[index].recovery.on_probe_timeout();
        if self.live.is_some() {
            self.probe_live(index, now, out);
            return;
        }
        let Some(oldest) = self.paths[index].recovery.outstanding().next().map(|packet| packet.data) else { return };
        if row == 2 && self.paths.len() > 1 {
            for packet in self.paths[index].recovery.outstanding() {
                self.stream.send_again(packet.data);
            }
        }
        self.transmit(PathId::new(index as u32), oldest, now, out);
    }

    /// Checks what must hold between the two ends at any time.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (known, delivered) = (self.stream.oldest_unacked(), self.receiver.expected());
        if known > delivered {
            return Err(format!("the sender takes {known} pieces for delivered, the receiver has {delivered}"));
        }
        let (held, buffer) = (self.receiver.held_count(), self.receiver.buffer());
        if held > buffer {
            return Err(format!("the receiver holds {held} pieces out of order and has room for {buffer}"));
        }
        self.live.as_ref().map_or(Ok(()), |live| live.check())
    }
}
