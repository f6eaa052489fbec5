//! Flows of an application's packets with a deadline, on a connection.
//!
//! `fairpath-live` chooses what leaves next and on which path, by rates of its own. Here each packet is
//! pinned to that path, and leaves only when the engine's window and pacing allow it. QUIC's own
//! acknowledgements tell the fate of each packet, as for bulk data. The peer reports the delays of
//! every path.

use std::cell::Cell;
use std::num::NonZeroUsize;
use web_time::{Duration, Instant};

use bytes::Bytes;
use fairpath_engine::Timestamp;
use fairpath_live::{
    Cargo, Config, Counts, Delivered, FlowId, Outgoing, PathFacts, Receiver, SendError, Sender, Status,
};
use noq_proto::Transmit;

use super::{Connection, Event};
use crate::adapter::{Fate, Gate, Left};

/// Both directions of the flows of a connection.
#[derive(Debug)]
pub(super) struct Flows {
    sender: Sender,
    receiver: Receiver,
    /// The newest time there was.
    now: Timestamp,
    /// Whether a window or a pacer, and not the rate of a path, holds something back.
    is_held_back: bool,
    /// Whether the application knows that something may be there.
    is_told: bool,
}

impl Flows {
    /// It left, or it is not known in which packet.
    pub(super) fn on_left(&mut self, cargo: Cargo, left: Option<Left>) {
        match left {
            Some(left) => self.sender.on_sent(cargo, left.path, left.number, self.now),
            None => self.sender.on_unsent(cargo, self.now),
        }
    }
}

/// Passes the packets' fates to the flows' sender.
pub(super) fn learn(flows: &mut Option<Box<Flows>>, fates: &[Fate], now: impl FnOnce() -> Timestamp) {
    let Some(flows) = flows.as_mut().filter(|_| !fates.is_empty()) else { return };
    let now = now();
    for fate in fates {
        match *fate {
            Fate::Acked(path, number) => flows.sender.on_acked(path, number, now),
            Fate::Lost(path, number) => flows.sender.on_lost(path, number, now),
            Fate::Discarded(path) => flows.sender.on_discarded(path, now),
        }
    }
}

impl Connection {
    /// From now on packets of flows may be sent and are taken in: as many flows as the peer has, too.
    pub fn begin_flows(&mut self, config: Config, now: Instant) {
        self.engine.with(now, |engine, _| engine.set_live());
        let (sender, receiver, now) = (Sender::new(config), Receiver::new(config), self.engine.at(now));
        self.flows = Some(Box::new(Flows { sender, receiver, now, is_held_back: false, is_told: false }));
    }

    /// Queues a packet of a flow: it arrives by its deadline, once, or not at all. Nothing is sent before
    /// [`Connection::begin_flows`].
    ///
    /// # Errors
    ///
    /// It is not taken then.
    pub fn send_packet(&mut self, flow: FlowId, packet: &[u8], marked: bool, now: Instant) -> Result<(), SendError> {
        let room = self.quic.datagrams().max_size().unwrap_or(0);
        let Some(flows) = &mut self.flows else { return Err(SendError::Flow(flow.0)) };
        flows.sender.queue(flow, packet, marked, room, self.engine.at(now))
    }

    /// The next packet of a flow that is to be handed out by now.
    pub fn take_packet(&mut self, now: Instant) -> Option<Delivered> {
        let at = self.engine.at(now);
        let flows = self.flows.as_mut()?;
        let delivered = flows.receiver.take(at);
        flows.is_told = delivered.is_some();
        delivered
    }

    /// How long packets may take that are sent from now on.
    pub fn set_flows_deadline(&mut self, deadline: Duration) {
        if let Some(flows) = &mut self.flows {
            flows.sender.set_deadline(deadline);
        }
    }

    /// How the flows go that this end sends, and what came of the peer's; `None` before [`Connection::begin_flows`].
    pub fn flows(&self) -> Option<(Status, Counts)> {
        self.flows.as_ref().map(|flows| (flows.sender.status(), flows.receiver.counts()))
    }

    // ---- inside

    /// A datagram of a flow came. Of one that nobody waits for, or that is damaged, nothing is kept.
    pub(super) fn on_flow(&mut self, datagram: &Bytes, now: Instant) {
        let at = self.engine.at(now);
        let Some(flows) = &mut self.flows else { return };
        match flows.receiver.on_datagram(datagram, at) {
            Ok(Some(report)) => flows.sender.on_report(&report, at),
            Ok(None) => self.tell_of_packets(),
            Err(error) => tracing::debug!(%error, "a datagram of a flow was left out"),
        }
    }

    fn tell_of_packets(&mut self) {
        let Some(flows) = &mut self.flows else { return };
        if !std::mem::replace(&mut flows.is_told, true) {
            self.events.push_back(Event::Packet);
        }
    }

    /// When something is to be done for the flows.
    pub(super) fn next_of_flows(&self, now: Instant) -> Option<Instant> {
        let flows = self.flows.as_ref().filter(|_| self.is_connected)?;
        // Do not notify the application again until it has taken the last packets.
        let received = if flows.is_told { flows.receiver.report_at() } else { flows.receiver.next_timeout() };
        let next = flows.sender.next_timeout(self.engine.at(now)).into_iter().chain(received).min()?;
        self.engine.instant(next)
    }

    pub(super) fn are_flows_held_back(&self) -> bool {
        self.flows.as_ref().is_some_and(|flows| flows.is_held_back)
    }

    /// Does for the flows what is due.
    pub(super) fn drive_flows(&mut self, now: Instant) {
        if !self.is_connected || self.next_of_flows(now).is_none_or(|at| at > now) {
            return;
        }
        let Some(flows) = &mut self.flows else { return };
        let report = self.engine.with(now, |engine, at| {
            flows.sender.handle_timeout(&PathFacts::of(engine, at), engine.groups(), at);
            flows.receiver.report(at)
        });
        let at = self.engine.at(now);
        if flows.receiver.next_due().is_some_and(|due| due <= at) {
            self.tell_of_packets();
        }
        if let (Some(report), Some(policy)) = (report, &self.policy) {
            for path in policy.open_paths().filter_map(|(_, path)| path) {
                self.output.add_on(path, report.clone());
            }
        }
    }

    /// The next packet of a flow, on the path that it is meant for.
    pub(super) fn emit_flows(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.output.is_clear() {
            return None;
        }
        let flows = self.flows.as_mut()?;
        // It is that of the path with the smallest packets, and falls at once where one loses many.
        flows.sender.set_room(self.quic.datagrams().max_size().unwrap_or(0));
        let is_refused = Cell::new(false);
        let outgoing = self.engine.with(now, |engine, at| {
            flows.now = at;
            let outgoing = flows.sender.next(
                |path| {
                    let may_send = engine.verdict(path, at).may_send;
                    is_refused.set(is_refused.get() || !may_send);
                    may_send
                },
                at,
            );
            flows.is_held_back = outgoing.is_none() && is_refused.get() && flows.sender.has_work(at);
            // Windows of which half is used may grow, too [RFC7661 §4.3]: an encoder sends what its budget allows, which
            // is less than they let out. Else a stream beside a TCP has less and less.
            if flows.is_held_back || outgoing.is_none() && flows.sender.is_busy() {
                engine.on_held_back(at);
            }
            outgoing
        });
        let Outgoing { path, datagram, cargo } = outgoing?;
        if !self.put_piece(datagram, cargo) {
            let at = self.engine.at(now);
            if let Some(flows) = &mut self.flows {
                flows.sender.on_unsent(cargo, at);
            }
            return None;
        }
        self.engine.open_gate(Gate::Only(path));
        self.emit(now, NonZeroUsize::MIN, buffer)
    }
}
