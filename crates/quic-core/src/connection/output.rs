//! The choice of the next packet and of its path.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use web_time::Instant;

use bytes::Bytes;
use fairpath_engine::{ByteCount, Choice, ConnectionView, PathId as EnginePath, PathSet};
use noq_proto::{FrameStats, Transmit};

use super::datagrams::{CongestionMark, Datagrams};
use super::flows::Flows;
use super::lanes::{Ahead, Lanes, Load};
use super::pending_copies::PendingCopies;
use super::pending_frames::PendingFrames;
use super::queue::{Frames, Outcome, Queue, Queued, frame};
use super::{APPLICATION, Connection};
use crate::adapter::{Gate, Left};

/// The largest train that the system segments itself, in bytes. With the headers of Ethernet (14), IPv6
/// (40) and UDP (8) it stays below 65,536 (`gso_max_size`). From that size on Linux does not leave
/// segmentation to the device, and a receiver on this machine gets each datagram by itself.
pub const TRAIN_MAX: usize = 65_536 - 1 - 14 - 40 - 8;

/// The smallest fragment worth cutting just to fill a packet, in bytes. Its header takes 11, and the
/// stack ends a train at a packet with more than 32 bytes free.
const FILLING_MIN: usize = 64;

/// The longest frame of control, in bytes: three numbers, or a credit of records.
const CONTROL_MAX: usize = 1 + 3 * 8;

/// How often the stack is asked for what it says of a handshake that was closed, each time that something came or was
/// due. It says so in each space, with a datagram for each; where it may make one only it begins with the first again,
/// for ever. The peer can read the first.
const CLOSES_MAX: u8 = 2;

/// How often the stack is asked anew in a row where packets are to an address that may not get them: of the questions
/// that it asks there, each path has one.
const TAKEN_BACK_MAX: usize = 16;

/// The datagrams that wait, and the paths that may send out of turn.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Paths that have to say something for themselves, whatever their windows.
    turns: VecDeque<EnginePath>,
    /// Control messages, for a certain path or for any.
    control: VecDeque<(Option<EnginePath>, Bytes)>,
    /// The datagrams of the application.
    datagrams: Datagrams,
    /// The copies that each path still has to carry.
    copies: PendingCopies,
    /// The datagrams in the stack's queue.
    queue: Queue,
    /// The path on which the last packet of data left as picked, with nothing else to be sent. If
    /// nothing has happened since, the next packet picked for it leaves on it.
    pub(super) smooth: Option<EnginePath>,
    /// The frames that the stack may have pending, as far as is known.
    pub(super) pending_frames: PendingFrames,
    /// Whether something came since that was found out.
    pub(super) has_heard: bool,
    /// The frames that had come then.
    pub(super) heard: FrameStats,
    /// The adapter's count of changes at that time.
    pub(super) changes: u32,
    /// Whether nothing of ours is said: the peer speaks another protocol, which has no DATAGRAM frames.
    pub(super) is_mute: bool,
    /// Whether there was more to send than the paths took.
    pub(super) is_held_back: bool,
    /// Whether every path is to be asked whether it has something to say.
    pub(super) is_sweep_due: bool,
    /// How often the stack was asked for the end of a handshake since something happened.
    closes: u8,
    /// The packets that were made.
    left: Vec<Left>,
    /// The datagrams that are about to be put into the stack's queue. Kept to reuse its memory.
    loaded: Vec<Bytes>,
}

impl Output {
    /// Notes that something happened: the stack may have to say something of its own, or may keep data off a path.
    pub(super) fn look_again(&mut self) {
        self.smooth = None;
        self.pending_frames = PendingFrames::Anything;
        self.closes = 0;
    }

    /// Lets the path send one packet although it may not be picked, or its window may be full: it has to give a
    /// sign of life.
    pub(super) fn give_turn(&mut self, path: EnginePath) {
        if !self.turns.contains(&path) {
            self.turns.push_back(path);
        }
    }

    /// Nothing is to go on the path any more.
    pub(super) fn forget(&mut self, path: EnginePath) {
        self.copies.forget(path);
    }

    /// Says something on whichever path is next.
    pub(super) fn say(&mut self, datagram: Bytes) {
        if !self.is_mute {
            self.control.push_back((None, datagram));
        }
    }

    /// Says something on this path too, whatever its window: it is small, and takes the place of nothing.
    pub(super) fn add_on(&mut self, path: EnginePath, datagram: Bytes) {
        if !self.is_mute {
            self.control.push_back((Some(path), datagram));
        }
    }

    /// Whether nothing lies in the stack's queue.
    pub(super) fn is_clear(&self) -> bool {
        self.queue.is_empty()
    }

    /// Says something on this path, whatever its window: it is small.
    pub(super) fn say_on(&mut self, path: EnginePath, datagram: Bytes) {
        if self.is_mute {
            return;
        }
        // An older one that has not left is worth nothing any more.
        self.control.retain(|(on, _)| *on != Some(path));
        self.control.push_back((Some(path), datagram));
    }
}

impl Connection {
    /// Queues a datagram of the application: it arrives once or not at all. Where those that wait do so for long, some of
    /// them are dropped, or marked where they say how. False where too many wait, or the peer takes none.
    pub fn send_datagram(&mut self, datagram: &[u8], mark: Option<CongestionMark>, now: Instant) -> bool {
        let has_room = !self.output.is_mute && self.output.datagrams.has_room();
        if has_room {
            // The first byte is this crate's own.
            let mark = mark.map(|mark| CongestionMark { at: mark.at + 1, ..mark });
            self.output.datagrams.push([&[APPLICATION], datagram].concat(), mark, now);
        }
        has_room
    }

    /// Whether datagrams of the application wait to leave.
    pub fn has_datagrams(&self) -> bool {
        !self.output.datagrams.is_empty()
    }

    /// The next packets, up to `packets_max` of one size for one path, which take the place of what is in `buffer`
    /// and are to leave at once. The last may be smaller.
    pub fn poll_transmit(&mut self, now: Instant, packets_max: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.learn_fates(now);
        self.weigh_arrivals(now);
        if self.silence.has_ended() {
            return None;
        }
        if let Some(transmit) = self.amplification.take_waiting(buffer, now) {
            return Some(transmit);
        }
        if !self.is_connected && self.quic.is_closed() {
            return self.emit_close(now, packets_max, buffer);
        }
        if self.farewell.is_some() {
            let gate = if self.output.queue.is_empty() { Gate::Shut } else { Gate::Any };
            return self.emit_saying(now, buffer).or_else(|| {
                self.engine.open_gate(gate);
                self.emit(now, NonZeroUsize::MIN, buffer)
            });
        }
        if !self.is_connected || self.closed.is_some() {
            // Before anything can be picked there is one path, and the stack knows best.
            self.engine.open_gate(Gate::Only(EnginePath::new(0)));
            return self.emit(now, NonZeroUsize::MIN, buffer);
        }
        let own = self.emit_turn(now, buffer).or_else(|| self.emit_saying(now, buffer));
        let own = own.or_else(|| self.emit_flows(now, buffer));
        own.or_else(|| self.emit_data(now, packets_max, buffer))
    }

    /// The end of a handshake.
    fn emit_close(&mut self, now: Instant, packets_max: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if self.output.closes == CLOSES_MAX {
            return None;
        }
        self.output.closes += 1;
        self.engine.open_gate(Gate::Only(EnginePath::new(0)));
        self.emit(now, packets_max, buffer)
    }

    /// A sign of life.
    fn emit_turn(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(path) = self.output.turns.front().copied() {
            self.engine.open_gate(Gate::Only(path));
            // Acknowledgements of another path may come first.
            let transmit = self.emit(now, NonZeroUsize::MIN, buffer);
            if transmit.is_some() {
                return transmit;
            }
            self.output.turns.pop_front();
        }
        None
    }

    /// Something small that is to be said.
    fn emit_saying(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while self.output.queue.is_empty()
            && let Some((path, datagram)) = self.output.control.pop_front()
        {
            let path = path.or_else(|| self.pick(now).0.path()).unwrap_or(EnginePath::new(0));
            // A path may carry less than was thought, or none: then nobody hears it.
            if !self.put(datagram, Queued::Other) {
                continue;
            }
            self.engine.open_gate(Gate::Only(path));
            if let Some(transmit) = self.emit(now, NonZeroUsize::MIN, buffer) {
                return Some(transmit);
            }
        }
        None
    }

    /// Sends the next pending copy on the first of the paths that has room.
    fn emit_owed(&mut self, paths: &PathSet, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.output.queue.is_empty() {
            return None;
        }
        for path in paths.iter() {
            if self.engine.with(now, |engine, at| engine.verdict(path, at).may_send)
                && let Some(debt) = self.output.copies.take(path, &self.lanes)
                && let Some((datagram, load)) = self.lanes.repeat(debt)
                && self.put(datagram, Queued::Load(load))
            {
                self.engine.open_gate(Gate::Only(path));
                return self.emit(now, NonZeroUsize::MIN, buffer);
            }
        }
        None
    }

    /// The path for the next packet, or the paths, and how many more may follow on it if nothing else happens.
    fn pick(&self, now: Instant) -> (Choice, usize) {
        let view = self.waiting();
        self.engine.with(now, |engine, at| engine.pick_train(&view, at))
    }

    /// The scheduler's view of the connection. Windows and buffers are those of bulk data: of what comes before it there
    /// is little.
    fn waiting(&self) -> ConnectionView {
        let Ahead { unsent, used, credit } = self.lanes.ahead();
        ConnectionView {
            unsent: unsent.map(ByteCount::new),
            window: Some(ByteCount::new(used + credit)),
            window_used: ByteCount::new(used),
            buffered: ByteCount::new(used),
            is_blocked: self.lanes.are_blocked(),
            ..ConnectionView::default()
        }
    }

    /// The next packets of data, on the path that the engine picks.
    fn emit_data(&mut self, now: Instant, packets_max: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let had_more = std::mem::take(&mut self.output.is_held_back);
        if self.output.pending_frames != PendingFrames::Anything && self.is_listening() {
            return self.emit_owing(now, buffer);
        }
        if let Some(transmit) = self.emit_rescue(now, buffer) {
            self.output.is_held_back = true;
            return Some(transmit);
        }
        let (choice, following) = self.pick(now);
        let Some(path) = choice.path() else {
            let has_cargo = self.has_cargo();
            self.output.is_held_back = had_more || !self.output.queue.is_empty() || has_cargo;
            if self.output.is_held_back {
                self.engine.with(now, |engine, at| {
                    engine.on_held_back(at);
                    if has_cargo {
                        engine.on_transfer_held_back(at);
                    }
                });
            }
            return self.emit_owing(now, buffer);
        };
        self.output.copies.begin(choice);
        if let Choice::Copies(paths) = choice
            && let Some(transmit) = self.emit_owed(&paths, now, buffer)
        {
            self.output.is_held_back = true;
            return Some(transmit);
        }
        let mut packets = NonZeroUsize::MIN;
        if self.output.queue.is_empty() && !self.output.is_mute {
            // The first one shows what the stack has to say beside, and whether it takes data on this path at all.
            let is_smooth = self.output.smooth == Some(path);
            let most = if is_smooth { packets_max.get().min(following + 1) } else { 1 };
            packets = self.load(path, most, now);
        }
        self.engine.open_gate(Gate::Only(path));
        let transmit = self.emit(now, packets, buffer);
        let is_smooth = transmit.is_some() && self.output.queue.is_empty();
        self.output.smooth = is_smooth.then_some(path);
        if transmit.is_none() {
            self.output.pending_frames = PendingFrames::Nothing;
        }
        let transmit = transmit.or_else(|| self.emit_elsewhere(path, now, buffer));
        // This packet may have carried the last data of a stream: then the next call finds nothing.
        self.output.is_held_back = transmit.is_some() || !self.output.queue.is_empty();
        if !self.output.is_held_back {
            let is_blocked = self.lanes.are_blocked();
            self.engine.with(now, |engine, at| {
                engine.on_app_limited(path);
                if is_blocked {
                    engine.on_window_blocked(at);
                }
            });
        }
        transmit
    }

    /// Sends frames of the stack's own, if any may be pending.
    fn emit_owing(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let pending_frames = self.output.pending_frames;
        if pending_frames == PendingFrames::Nothing {
            return None;
        }
        self.engine.open_gate(Gate::Shut);
        let transmit = self.emit(now, NonZeroUsize::MIN, buffer);
        if transmit.is_none() || pending_frames == PendingFrames::Acknowledgement {
            self.output.pending_frames = PendingFrames::Nothing;
        }
        transmit
    }

    /// Tries the other paths when nothing left on the path that was picked. If the stack keeps data off
    /// that path, another one with room takes it. The path is refused even if none has room, or one that is
    /// always full would hide it. And keep-alives and challenges of other paths must not wait for ever
    /// behind their gates.
    fn emit_elsewhere(&mut self, picked: EnginePath, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let had_queued = !self.output.queue.is_empty();
        let may_be_refused = had_queued || self.quic.streams().send_streams() > 0;
        if !std::mem::take(&mut self.output.is_sweep_due) && !may_be_refused {
            return None;
        }
        self.engine.open_gate(Gate::Any);
        let transmit = self.emit(now, NonZeroUsize::MIN, buffer);
        let is_refused = had_queued && (self.output.queue.is_empty() || transmit.is_none());
        if is_refused && let Some(policy) = &mut self.policy {
            policy.on_refused(picked, now);
        }
        transmit
    }

    /// Whether nothing of ours is to be sent, nor on its way.
    fn is_listening(&mut self) -> bool {
        let are_listening = self.lanes.are_listening() && self.output.datagrams.is_empty();
        are_listening && self.output.queue.is_empty() && self.quic.streams().send_streams() == 0
    }

    fn has_cargo(&self) -> bool {
        !self.output.datagrams.is_empty() || self.lanes.have_data()
    }

    /// Loads the stack's queue with the next datagrams for the path, enough for up to `packets_max`
    /// packets.
    /// Returns the number of packets.
    fn load(&mut self, path: EnginePath, packets_max: usize, now: Instant) -> NonZeroUsize {
        let Some(room) = self.quic.datagrams().max_size() else { return NonZeroUsize::MIN };
        if self.load_control(room) {
            return NonZeroUsize::MIN;
        }
        if let Some((datagram, queued)) = self.next_small(room, now) {
            if let Queued::Load(load) = &queued {
                self.output.copies.order(load, &self.lanes);
            }
            self.put(datagram, queued);
            return NonZeroUsize::MIN;
        }
        // Where another path takes smaller datagrams, a packet has room for more than is put in here.
        let mtu = self.quic.current_mtu();
        let is_smallest = self.engine.max_datagram(path) == Some(mtu.into());
        let packets_max = if is_smallest { packets_max.min(TRAIN_MAX / usize::from(mtu)).max(1) } else { 1 };
        let mut packets = 0;
        while packets < packets_max {
            let filled = self.load_packet(room);
            packets += usize::from(filled != Filled::Nothing);
            if filled != Filled::Whole {
                break;
            }
        }
        if packets > 0 {
            self.put_loaded();
        } else if let Some((datagram, load)) = self.reinjected(path, room) {
            self.put(datagram, Queued::Load(load));
        }
        NonZeroUsize::new(packets).unwrap_or(NonZeroUsize::MIN)
    }

    /// Puts what was loaded into the stack's queue.
    fn put_loaded(&mut self) {
        let Self { quic, output, lanes, flows, queue_space, .. } = self;
        let count = quic.datagrams().send_many(&output.loaded, false);
        if count.as_ref().ok() != Some(&output.loaded.len()) {
            tracing::debug!(?count, "datagrams were refused");
            let left_over = queue_space.saturating_sub(quic.datagrams().send_buffer_space());
            output.queue.disown(left_over, |queued| tell(queued, lanes, flows, None));
        }
        output.loaded.clear();
    }

    /// Puts bulk data for one packet into the stack's queue: what the end of a record leaves free, the next begins
    /// to fill.
    fn load_packet(&mut self, room: usize) -> Filled {
        let mut space = room;
        while space >= FILLING_MIN
            && let Some((datagram, load)) = self.lanes.next_bulk(space)
        {
            space = space.saturating_sub(frame(datagram.len()));
            self.output.copies.order(&load, &self.lanes);
            self.output.queue.push(Queued::Load(load), datagram.len());
            self.output.loaded.push(datagram);
        }
        self.output.queue.end_packet();
        match space {
            _ if space == room => Filled::Nothing,
            0 => Filled::Whole,
            _ => Filled::Part,
        }
    }

    /// Puts a datagram of a flow into the stack's queue; false where it is refused.
    pub(super) fn put_piece(&mut self, datagram: Bytes, cargo: fairpath_live::Cargo) -> bool {
        self.put(datagram, Queued::Flow(cargo))
    }

    /// Puts a datagram into the stack's queue; false where it is refused.
    pub(super) fn put(&mut self, datagram: Bytes, queued: Queued) -> bool {
        let bytes = datagram.len();
        if let Err(error) = self.quic.datagrams().send(datagram, false) {
            tracing::debug!(%error, "a datagram was refused");
            if let Queued::Load(load) = queued {
                self.lanes.on_unsent(load);
            }
            return false;
        }
        self.output.queue.push(queued, bytes);
        true
    }

    /// Puts credits and the control of streams into the stack's queue, as many as fit into one packet. Whether there
    /// were any.
    fn load_control(&mut self, room: usize) -> bool {
        let mut space = room;
        while space >= CONTROL_MAX
            && let Some((datagram, load)) = self.lanes.next_control()
        {
            space = space.saturating_sub(frame(datagram.len()));
            self.put(datagram, Queued::Load(load));
        }
        space < room
    }

    /// Datagrams and messages, which go before bulk data.
    fn next_small(&mut self, room: usize, now: Instant) -> Option<(Bytes, Queued)> {
        if let Some(datagram) = self.output.datagrams.pop(now) {
            return Some((datagram, Queued::Other));
        }
        self.lanes.next_message(room).map(|(datagram, load)| (datagram, Queued::Load(load)))
    }

    /// Nothing waits, and the path has room: what is on its way on a slower one goes here too, so that the
    /// last bytes do not wait for the slowest path.
    fn reinjected(&mut self, path: EnginePath, room: usize) -> Option<(Bytes, Load)> {
        let Self { lanes, engine, .. } = self;
        if lanes.are_idle() {
            return None;
        }
        let own = engine.smoothed_rtt(path)?;
        lanes.reinject(path, room, |other| engine.smoothed_rtt(other).is_some_and(|rtt| rtt > own))
    }

    /// Asks the stack for up to `packets_max` packets with the gates as they are, and notes their
    /// contents. Packets that may not leave are taken back, and the next ones asked for.
    pub(super) fn emit(&mut self, now: Instant, packets_max: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        for _ in 0..TAKEN_BACK_MAX {
            let transmit = self.make(now, packets_max, buffer)?;
            // Before the handshake is complete the stack keeps to the limit by itself.
            if !self.is_amplification_limited() || self.amplification.admits(&transmit, buffer, now) {
                return Some(transmit);
            }
        }
        None
    }

    fn make(&mut self, now: Instant, packets_max: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let are_many = packets_max > NonZeroUsize::MIN;
        let before = are_many.then(|| self.quic.stats().frame_tx);
        buffer.clear();
        let transmit = self.quic.poll_transmit(now, packets_max, buffer);
        self.engine.take_left(&mut self.output.left);
        if let (Some(transmit), Some(Left { path, .. })) = (&transmit, self.output.left.last().copied()) {
            let contents = &buffer[..transmit.size];
            let packets = contents.chunks(transmit.segment_size.unwrap_or(transmit.size));
            packets.for_each(|packet| self.one_way.on_departure(packet, path, now));
            self.output.turns.retain(|turn| *turn != path);
        }
        let frames = before.map(|before| frames_between(before, self.quic.stats().frame_tx));
        self.disclaim_unusable();
        self.unload(frames);
        transmit.map(|transmit| Transmit { src_ip: transmit.src_ip.or(self.primary), ..transmit })
    }

    /// The stack has paths of which the engine knows no more than that they exist, and puts data on the first that its own
    /// rules allow. Nobody would see that such a path is silent. So what left there counts as not sent: the peer knows a
    /// copy, as it does where it is not known in which packet something left.
    fn disclaim_unusable(&mut self) {
        let is_usable = |left: &Left| self.engine.is_usable(left.path);
        if !self.output.left.first().is_none_or(is_usable) {
            self.output.left.clear();
        }
    }

    /// Notes in which packets the queued datagrams left, those that did.
    fn unload(&mut self, frames: Option<Frames>) {
        let Self { quic, output, lanes, flows, queue_space, .. } = self;
        if output.queue.is_empty() {
            return;
        }
        let left_over = queue_space.saturating_sub(quic.datagrams().send_buffer_space());
        let outcome = Outcome { left_over, packets: &output.left, frames };
        output.queue.settle(outcome, |queued, left| tell(queued, lanes, flows, left));
    }

    /// Whatever lies in the stack's queue, nobody waits for it any more.
    pub(super) fn forget_queue(&mut self) {
        let Self { quic, output, lanes, flows, queue_space, .. } = self;
        let left_over = queue_space.saturating_sub(quic.datagrams().send_buffer_space());
        output.queue.disown(left_over, |queued| tell(queued, lanes, flows, None));
    }
}

/// Tells the channel or the flow whose a datagram is in which packet it left, or that it did not.
fn tell(queued: Queued, lanes: &mut Lanes, flows: &mut Option<Box<Flows>>, left: Option<Left>) {
    match (queued, left) {
        (Queued::Load(load), Some(left)) => lanes.on_sent(load, left.path, left.number),
        (Queued::Load(load), None) => lanes.on_unsent(load),
        (Queued::Flow(cargo), left) => {
            if let Some(flows) = flows {
                flows.on_left(cargo, left);
            }
        }
        (Queued::Other, _) => {}
    }
}

/// How far a packet was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    Whole,
    /// Less would be gained by filling it than by ending here.
    Part,
    Nothing,
}

/// The frames that left between two looks.
fn frames_between(before: FrameStats, mut after: FrameStats) -> Frames {
    let datagrams = after.datagram - before.datagram;
    after.datagram = before.datagram;
    Frames { datagrams, are_alone: after == before }
}
