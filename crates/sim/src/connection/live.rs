//! Both ends of a live stream on a connection: `fairpath-live`'s, unchanged.
//!
//! The network carries no bytes, so what is in a datagram waits here until its packet arrives. Everything else is as in
//! a connection of the real stack: the stream says what leaves next and on which path, the engine's windows and pacing
//! let it, and acknowledgements say what became of it. What the player reports leaves on every path, and is not
//! acknowledged.

use core::cell::Cell;
use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes as Datagram;
use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_engine::ConnectionView;
use fairpath_live::{Counts, DEADLINE_MAX, FlowId, Outgoing, PathFacts, Receiver, Sender, Status};
use fairpath_scenario::Traffic;

use super::{Connection, Outside};
use crate::count::LiveCount;
use crate::egress::Egress;
use crate::packet::{Body, Chunk, PACKETS_MAX, Packet};
use crate::recorder::FlowIndex;
use crate::timers::{Lazy, Timer};

/// Older datagrams have missed any deadline, so they are not kept for their arrival.
const KEPT_FOR: Duration = Duration::from_secs(2 * DEADLINE_MAX.as_secs());

/// An encoder looks at its budget this often.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Least time between two checks of due work.
const TICK: Duration = Duration::from_micros(1);

/// Datagrams that may still arrive, by the numbers of their packets.
#[derive(Debug, Default)]
struct OnTheWay {
    first: u64,
    held: VecDeque<(Timestamp, Option<Datagram>)>,
}

impl OnTheWay {
    /// The packet of this number leaves with a datagram. Those before it that are not known only probed.
    fn put(&mut self, number: u64, datagram: Datagram, now: Timestamp) {
        while self.first + (self.held.len() as u64) < number {
            self.held.push_back((now, None));
        }
        self.held.push_back((now, Some(datagram)));
        while self.held.front().is_some_and(|(at, one)| one.is_none() || now.since(*at) > KEPT_FOR) {
            self.held.pop_front();
            self.first += 1;
        }
    }

    /// The packet arrived. Of a second one, that a link has made, nothing is taken.
    fn take(&mut self, number: u64) -> Option<Datagram> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.held.get_mut(at)?.1.take()
    }
}

/// A live stream.
#[derive(Debug)]
pub(super) struct Live {
    sender: Sender,
    receiver: Receiver,
    rate: Option<Bitrate>,
    packet: usize,
    deadline: Duration,
    /// The data on its way, path by path, and the reports on all of them.
    data: Vec<OnTheWay>,
    reports: OnTheWay,
    reports_sent: u64,
    timer: Lazy,
    /// How many packets the application has had, how much of the next there is, in bits, and when that was looked at.
    queued: u64,
    ready: f64,
    looked_at: Timestamp,
    budget: (Bitrate, Timestamp),
    /// The number after that of the last packet that was played, and whether each was a later one than the one before.
    played: u64,
    in_order: bool,
}

impl Live {
    /// The stream of a flow with this traffic; `None` where it is none.
    pub(super) fn of(traffic: Traffic, paths: usize, now: Timestamp) -> Option<Self> {
        let Traffic::Live(live) = traffic else { return None };
        Some(Self {
            sender: Sender::sharing(live.stream, live.sharing, live.scheduler)
                .with_budget(live.budget)
                .with_parameters(live.parameters),
            receiver: Receiver::new(live.stream),
            rate: live.rate,
            packet: (live.packet.get() as usize).max(2 * size_of::<u64>()),
            deadline: live.stream.deadline,
            data: (0..paths).map(|_| OnTheWay::default()).collect(),
            reports: OnTheWay::default(),
            reports_sent: 0,
            timer: Lazy::default(),
            queued: 0,
            ready: (live.packet.get() * 8) as f64,
            looked_at: now,
            budget: (Bitrate::ZERO, now),
            played: 0,
            in_order: true,
        })
    }

    /// For how many packets there is an entry.
    pub(super) fn entries(&self) -> usize {
        self.data.iter().map(|data| data.held.len()).sum()
    }

    pub(super) fn on_acked(&mut self, path: PathId, number: u64, now: Timestamp) {
        self.sender.on_acked(path, number, now);
    }

    pub(super) fn on_lost(&mut self, path: PathId, number: u64, now: Timestamp) {
        self.sender.on_lost(path, number, now);
    }

    /// Checks the invariant: packets are played at most once, in order, and only if they were sent.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.in_order && self.played <= self.queued {
            return Ok(());
        }
        Err(format!("of {} packets one was played out of order, twice, or though it was not sent", self.queued))
    }

    /// Queues the application's next packet, which holds only its number and the time.
    /// Returns when the one after it is due.
    fn queue(&mut self, room: usize, count: &mut LiveCount, now: Timestamp) -> Timestamp {
        let rate = self.rate.unwrap_or(self.budget.0).as_bps() as f64;
        let bits = self.packet as f64 * 8.0;
        let passed = now.since(core::mem::replace(&mut self.looked_at, now));
        // The first one is there at once.
        self.ready = (self.ready + rate * passed.as_secs_f64()).min(2.0 * bits);
        if self.ready < bits {
            return self.next_look(rate, now);
        }
        self.ready -= bits;
        let mut packet = vec![0; self.packet];
        packet[..8].copy_from_slice(&self.queued.to_be_bytes());
        packet[8..16].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.queued += 1;
        count.queued += 1;
        // The sender counts a refused packet itself, like all that it drops.
        let _ = self.sender.queue(FlowId(0), &packet, false, room, now);
        self.next_look(rate, now)
    }

    /// When the next packet is there, or may be because the budget has grown.
    fn next_look(&self, rate: f64, now: Timestamp) -> Timestamp {
        let wait = (self.packet as f64 * 8.0 - self.ready) / rate;
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(LOOKS_EVERY).min(LOOKS_EVERY);
        now + (wait + Duration::from_nanos(1)).max(TICK)
    }

    /// Writes down what both ends have done, and what the budget allowed since this was last asked.
    fn note(&mut self, count: &mut LiveCount, now: Timestamp) {
        let status = self.sender.status();
        let (budget, since) = core::mem::replace(&mut self.budget, (status.budget, now));
        let passed = now.since(since);
        count.allowed += budget * passed;
        count.allowed_for += passed;
        count.steps_bps += budget.as_bps().abs_diff(status.budget.as_bps());
        (count.pieces, count.repair, count.copies) = (status.pieces, status.repair, status.copies);
        (count.again, count.dropped) = (status.again, status.dropped);
        count.counts = self.receiver.counts();
    }

    /// Plays what is due.
    fn play<N: Egress>(&mut self, flow: u32, now: Timestamp, out: &mut Outside<'_, N>) {
        while let Some(delivered) = self.receiver.take(now) {
            let word = |at: usize| delivered.packet.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
            let (Some(number), Some(queued_at)) = (word(0), word(8)) else {
                self.in_order = false;
                return;
            };
            self.in_order &= number >= self.played;
            self.played = number + 1;
            let took = now.since(Timestamp::from_nanos(queued_at));
            let bytes = ByteCount::new(delivered.packet.len() as u64);
            out.count.delivered += bytes;
            out.count.frame_delays.push(took);
            out.count.live.played += 1;
            if took <= self.deadline {
                out.count.live.in_time += 1;
                out.count.live.in_time_bytes += bytes;
            }
            out.recorder.on_played(now, FlowIndex(flow), took);
        }
    }
}

impl Connection {
    /// How its live stream goes, if it is one.
    pub(crate) fn live_status(&self) -> Option<(Status, Counts)> {
        self.live.as_ref().map(|live| (live.sender.status(), live.receiver.counts()))
    }

    /// The application of a live stream has a packet. When it has the next one.
    pub(crate) fn on_live_packet<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) -> Timestamp {
        // Before the first packet the stream has to know its paths.
        self.drive_live(now, out);
        let room = self.transport.packet.saturating_sub(self.transport.header).get() as usize;
        let Some(live) = &mut self.live else { return Timestamp::MAX };
        live.note(&mut out.count.live, now);
        let next = live.queue(room, &mut out.count.live, now);
        self.drive_live(now, out);
        next
    }

    pub(crate) fn on_live_timer<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        let timer = Timer::Live { connection: self.slot, generation: self.generation };
        if self.live.as_mut().is_some_and(|live| live.timer.is_due(now, now, timer, out.timers)) {
            self.drive_live(now, out);
        }
    }

    /// A packet of a live stream came: a piece, repair, or nothing, which only probes.
    pub(super) fn on_live_data<N: Egress>(
        &mut self,
        index: usize,
        number: u64,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) {
        let Some(live) = &mut self.live else { return };
        let Some(datagram) = live.data[index].take(number) else { return };
        out.count.paths[index].delivered += ByteCount::new(datagram.len() as u64);
        let read = live.receiver.on_datagram(&datagram, now);
        debug_assert_eq!(read, Ok(None), "the sender's own format");
        self.drive_live(now, out);
    }

    /// A report of the player came.
    pub(crate) fn on_report<N: Egress>(&mut self, number: u64, now: Timestamp, out: &mut Outside<'_, N>) {
        let Some(live) = &mut self.live else { return };
        let Some(datagram) = live.reports.take(number) else { return };
        if let Ok(Some(report)) = live.receiver.on_datagram(&datagram, now) {
            live.sender.on_report(&report, now);
        }
        self.drive_live(now, out);
    }

    /// An empty packet asks the path whether it is alive: which pieces are sent again, the stream says. It is asked on
    /// and on, as hosts of the real stack do, which ask a silent path every 150 ms.
    pub(super) fn probe_live<N: Egress>(&mut self, index: usize, now: Timestamp, out: &mut Outside<'_, N>) {
        self.transmit(PathId::new(index as u32), chunk(0), now, out);
        self.paths[index].recovery.keep_probing();
    }

    /// Does all that is due: plays, reports, sets rates, sends.
    pub(super) fn drive_live<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        let Some(mut live) = self.live.take() else { return };
        live.play(self.flow, now, out);
        if live.sender.next_timeout(now).is_some_and(|at| at <= now) {
            live.sender.handle_timeout(&PathFacts::of(&self.engine, now), self.engine.groups(), now);
        }
        if let Some(report) = live.receiver.report(now) {
            for (index, path) in self.paths.iter().enumerate() {
                let number = live.reports_sent;
                live.reports_sent += 1;
                live.reports.put(number, report.clone(), now);
                let packet = Packet::new(self.slot, self.generation, index as u16, Body::Report { number });
                *out.sent += 1;
                let size = self.transport.header + ByteCount::new(report.len() as u64);
                out.network.send(now, path.routes.backward, packet, size);
            }
        }
        self.send_live(&mut live, now, out);
        let due = live.sender.next_timeout(now).into_iter().chain(live.receiver.next_timeout()).min();
        if let Some(at) = due {
            let timer = Timer::Live { connection: self.slot, generation: self.generation };
            live.timer.arm(at.max(now + TICK), timer, out.timers);
        }
        if let Some(at) = self.engine.paced_until(now) {
            let timer = Timer::Pacing { connection: self.slot, generation: self.generation };
            self.pacing.arm(at, timer, out.timers);
        }
        self.live = Some(live);
    }

    fn send_live<N: Egress>(&mut self, live: &mut Live, now: Timestamp, out: &mut Outside<'_, N>) {
        let before = *out.sent;
        let is_refused = Cell::new(false);
        while *out.sent - before <= PACKETS_MAX {
            is_refused.set(false);
            let engine = &self.engine;
            let may_send = |path| {
                let may_send = engine.verdict(path, now).may_send;
                is_refused.set(is_refused.get() || !may_send);
                may_send
            };
            let Some(Outgoing { path, datagram, cargo }) = live.sender.next(may_send, now) else { break };
            let (number, _) = self.transmit(path, chunk(datagram.len()), now, out);
            live.sender.on_sent(cargo, path, number, now);
            live.data[path.get() as usize].put(number, datagram, now);
        }
        let is_held_back = is_refused.get() && live.sender.has_work(now);
        // Windows of which half is used may grow, too [RFC7661 §4.3]: an encoder sends what its budget allows, which is
        // less than they let out.
        if is_held_back || live.sender.is_busy() {
            self.engine.on_held_back(now);
        }
        if !is_held_back && let Some(path) = self.engine.pick(&ConnectionView::default(), now).path() {
            // It has room, and nothing is left for it.
            self.engine.on_app_limited(path);
        }
    }
}

/// A packet of this size. Datagrams have no order, so its number means nothing.
fn chunk(bytes: usize) -> Chunk {
    Chunk { number: 0, bytes: bytes as u32, last: false }
}
