//! Live packets: UDP flows with a deadline, for pictures and sound.
//!
//! A packet arrives once and by its deadline, or not at all. Lost ones are sent again, or brought back by repair, while
//! there is time. Both ends call [`Connection::begin_live`](crate::Connection::begin_live).

use std::time::Duration;

use bytes::Bytes;
use fairpath_engine::Bitrate;
use fairpath_quic::flows;

#[doc(inline)]
pub use flows::{Copies, DEADLINE_MAX, DEADLINE_MIN, FLOWS_MAX, PACKET_MAX, Playout};

/// How an end sends and takes live packets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveConfig {
    /// How long what this end sends may take, within [`DEADLINE_MIN`] and [`DEADLINE_MAX`].
    pub deadline: Duration,
    /// How many flows there are, 1 to [`FLOWS_MAX`].
    pub flows: u8,
    /// The packets that leave twice, on two paths.
    pub copies: Copies,
    /// When packets that came are handed out.
    pub playout: Playout,
    /// Whether packets have repair beside them.
    pub repair: bool,
}

impl LiveConfig {
    /// One flow with this deadline, with repair, whose marked packets leave twice, handed out as soon as they are in
    /// order.
    pub fn new(deadline: Duration) -> Self {
        let flows::Config { flows, copies, playout, repair, .. } = flows::Config::default();
        Self { deadline, flows, copies, playout, repair }
    }

    /// The same with so many flows.
    pub fn flows(self, flows: u8) -> Self {
        Self { flows, ..self }
    }

    /// The same with these packets sent twice.
    pub fn copies(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// The same, handed out so.
    pub fn playout(self, playout: Playout) -> Self {
        Self { playout, ..self }
    }

    /// The same with repair or without.
    pub fn repair(self, repair: bool) -> Self {
        Self { repair, ..self }
    }

    pub(crate) fn as_flows(self) -> flows::Config {
        let Self { deadline, flows, copies, playout, repair } = self;
        flows::Config { flows, deadline, copies, playout, repair }
    }
}

/// A live packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePacket<'a> {
    /// The number of its flow, from 0.
    pub flow: u8,
    /// Its bytes, at most [`PACKET_MAX`].
    pub data: &'a [u8],
    /// Whether it is one of those that leave twice with [`Copies::Marked`].
    pub marked: bool,
}

/// A live packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrived {
    /// The number of its flow.
    pub flow: u8,
    /// Its bytes.
    pub data: Bytes,
}

/// How live packets fare.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveStats {
    /// The rate that an encoder may send at, now.
    pub budget: Bitrate,
    /// Packets of the program that were sent.
    pub packets: u64,
    /// The share of what is sent that is no new data, from 0 to 1: repair, copies, what is sent again.
    pub beside: f64,
    /// The share of the peer's packets that were there in time, from 0 to 1; `None` where none came yet.
    pub on_time: Option<f64>,
    /// The same of our packets, as the peer counts them; `None` before it has said.
    pub on_time_at_peer: Option<f64>,
    /// Packets of the peer that were handed out.
    pub delivered: u64,
}

impl LiveStats {
    pub(crate) fn of(status: &flows::Status, counts: &flows::Counts) -> Self {
        Self {
            budget: status.budget,
            packets: status.packets,
            beside: status.beside,
            on_time: counts.on_time(),
            on_time_at_peer: status.peer.and_then(|peer| peer.on_time()),
            delivered: counts.delivered,
        }
    }
}
