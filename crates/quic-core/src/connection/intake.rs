//! Input of a connection: the peer's datagrams, by way of the stack, and the fates of packets sent.

use web_time::Instant;

use bytes::Bytes;
use noq_proto::{EndpointEvent, Event as ProtoEvent, PathId};

use super::flows;
use super::pending_frames::PendingFrames;
use super::{APPLICATION, Connection, Event};
use crate::adapter::Fate;
use crate::address::mapped;
use crate::arrival::Arrival;
use crate::channel::ChannelId;
use crate::farewell;
use crate::one_way::report::Message as DelayMessage;
use crate::paths::policy::Policy;
use crate::receipts;
use crate::streams::is_streams;
use crate::{peer_addresses, peer_terms};

impl Connection {
    /// Takes in a datagram that the router has found to be one of this connection.
    pub fn take_in(&mut self, arrival: Arrival, now: Instant) {
        let Arrival { event, mark, remote, bytes, at, retry } = arrival;
        // A client is deaf to the server's Retry once it has seen any other.
        if retry.is_some_and(|retry| !self.expects(&retry)) {
            return;
        }
        self.one_way.on_arrival(mark, at);
        if let Some(policy) = &mut self.policy {
            policy.on_source(remote);
        }
        // The peer would count data acknowledged now as arrived, and its readers would never get
        // it.
        if self.lanes.are_streams_gone() {
            return;
        }
        let remote = mapped(remote);
        if !self.is_amplification_limited() || self.amplification.is_proved(remote) {
            return self.handle_event(event, now);
        }
        let answers = self.quic.stats().frame_rx.path_response;
        self.amplification.on_datagram(remote, bytes);
        self.handle_event(event, now);
        if self.quic.stats().frame_rx.path_response > answers {
            self.amplification.on_answer(remote);
        }
    }

    /// Whether the amplification limit applies beside the stack's own. In the handshake the stack
    /// keeps to the limit by itself. Clients of other stacks send little while they receive
    /// nothing, and would not be found again.
    pub(super) fn is_amplification_limited(&self) -> bool {
        self.is_server && self.is_connected && self.application.is_fairpath()
    }

    fn handle_event(&mut self, event: noq_proto::ConnectionEvent, now: Instant) {
        self.quic.handle_event(event);
        match self.is_connected && self.closed.is_none() {
            true => self.output.has_heard = true,
            false => self.output.look_again(),
        }
        self.absorb(now);
    }

    /// Events of the stack for the router. To be asked for after everything that is done with the connection.
    pub fn take_endpoint_events(&mut self) -> Vec<EndpointEvent> {
        let said: Vec<_> = std::iter::from_fn(|| self.quic.poll_endpoint_events()).collect();
        self.is_draining |= said.iter().any(EndpointEvent::is_draining);
        said
    }

    /// Takes the router's answer.
    pub fn hear(&mut self, event: noq_proto::ConnectionEvent) {
        self.output.look_again();
        self.quic.handle_event(event);
    }

    /// Finds out what the stack may have to say to what came.
    pub(super) fn weigh_arrivals(&mut self, now: Instant) {
        if !std::mem::take(&mut self.output.has_heard) {
            return;
        }
        let before = std::mem::replace(&mut self.output.heard, self.quic.stats().frame_rx);
        let changes = std::mem::replace(&mut self.output.changes, self.engine.changes());
        if changes != self.output.changes {
            self.with_policy(now, |policy, live| policy.on_new_paths(live));
        }
        match PendingFrames::after(before, self.output.heard) {
            // To whatever came from a new address, the stack asks whether that is the peer's; and to the answer to a
            // search for larger packets, it goes on searching.
            _ if changes != self.output.changes => self.output.look_again(),
            PendingFrames::Anything => self.output.look_again(),
            PendingFrames::Acknowledgement => {
                self.output.smooth = None;
                self.output.pending_frames = self.output.pending_frames.max(PendingFrames::Acknowledgement);
            }
            PendingFrames::Nothing => {}
        }
    }

    /// Takes in what the stack has to say.
    pub(super) fn absorb(&mut self, now: Instant) {
        while let Some(event) = self.quic.poll() {
            match event {
                ProtoEvent::Connected => {
                    self.is_connected = true;
                    self.engine.find_losses(self.application.is_fairpath());
                    self.engine.pin_data(self.application.is_fairpath());
                    self.name_streams();
                    self.events.push_back(Event::Connected);
                    if self.is_server {
                        let way = self.quic.network_path(PathId::ZERO).ok();
                        way.into_iter().for_each(|way| self.amplification.prove(way.remote()));
                        self.change_keys();
                        let (engine, application) = (self.engine.clone(), self.application);
                        let (policy, mut live) = self.policy_and_live(now);
                        *policy = Some(Policy::acceptor(engine, &mut live, now).speaking(application));
                    }
                }
                ProtoEvent::ConnectionLost { reason } => {
                    self.farewell = None;
                    self.note_closed(reason, now);
                }
                ProtoEvent::Path(event) => {
                    self.with_policy(now, |policy, live| policy.on_event(live, &event, now));
                }
                ProtoEvent::Stream(event) => self.events.push_back(Event::Stream(event)),
                _ => {}
            }
        }
        while let Some(datagram) = self.quic.datagrams().recv() {
            self.on_datagram(datagram, now);
        }
    }

    /// Changes the keys once, while there is one path and nothing is on its way.
    ///
    /// noq changes them by itself after 10 to 1,000 packets. It tells a packet's keys by its number and
    /// that of the first packet with new keys, on whatever paths these came. If one path is quicker than
    /// another, packets in flight on the slow one with higher numbers are then thrown away. That may be a
    /// whole window, in the middle of slow start. After this change the next one is due when the limit of
    /// the cipher is near [RFC9001 §6.6]: 2^23 packets with AES-GCM.
    fn change_keys(&mut self) {
        if self.application.is_fairpath() {
            self.quic.force_key_update();
        }
    }

    /// Passes the fates of packets on to their contents.
    pub(super) fn learn_fates(&mut self, now: Instant) {
        self.engine.take_fates(&mut self.fates);
        flows::learn(&mut self.flows, &self.fates, || self.engine.at(now));
        let is_any_acked = self.fates.iter().any(|fate| matches!(fate, Fate::Acked(..)));
        for fate in self.fates.drain(..) {
            self.lanes.on_fate(fate);
            if let Fate::Discarded(path) = fate {
                self.output.forget(path);
            }
        }
        for channel in ChannelId::ALL {
            if self.full[channel as usize] && self.lanes.channel(channel).sender.has_room() {
                self.full[channel as usize] = false;
                self.events.push_back(Event::Writable(channel));
            }
        }
        if is_any_acked {
            self.rescue_streams_again(now);
        }
    }

    /// A datagram is told by its first byte.
    pub(crate) fn on_datagram(&mut self, datagram: Bytes, now: Instant) {
        let Some(kind) = datagram.first().copied() else { return };
        if let Some(channel) = ChannelId::of(kind) {
            return self.on_channel(channel, &datagram, now);
        }
        match kind {
            farewell::KIND => {
                if let Some((code, reason)) = farewell::read(&datagram) {
                    self.on_farewell(code, reason, now);
                }
            }
            // An end that is connected to has the addresses that its peers come from.
            peer_addresses::KIND if !self.is_server => {
                let told = peer_addresses::read(&datagram[1..]);
                self.with_policy(now, |policy, _| policy.on_peer_addresses(&told));
            }
            peer_terms::KIND => {
                let told = peer_terms::read(&datagram[1..]);
                self.with_policy(now, |policy, live| policy.on_peer_terms(live, &told, now));
            }
            receipts::KIND => self.receipts.on_receipt(&datagram[1..], now),
            kind if fairpath_live::is_stream(kind) => self.on_flow(&datagram, now),
            kind if is_streams(kind) => self.on_streams(&datagram, now),
            APPLICATION => self.events.push_back(Event::Datagram(datagram.slice(1..))),
            _ => match DelayMessage::read(&datagram) {
                Some(DelayMessage::Ask) => self.one_way.on_ask(now),
                Some(DelayMessage::Report(report)) => {
                    let Self { engine, one_way, .. } = self;
                    engine.with(now, |engine, at| one_way.on_report(&report, engine, at, now));
                }
                None => tracing::debug!(length = datagram.len(), "a datagram of an unknown kind"),
            },
        }
    }

    fn on_channel(&mut self, id: ChannelId, datagram: &[u8], now: Instant) {
        let channel = self.lanes.channel_mut(id);
        let before = channel.complete_records();
        let result = channel.on_datagram(datagram);
        if channel.complete_records() > before {
            self.events.push_back(Event::Readable(id));
        }
        if let Err(error) = result {
            self.fail(error.to_string(), now);
        }
    }
}
