//! Live packets: UDP flows with a deadline, for pictures and sound.
//!
//! A packet arrives once and by its deadline, or not at all. Lost ones are sent again, or brought back by repair, while
//! there is time. Both ends call [`Connection::begin_live`](crate::Connection::begin_live).

use std::time::Duration;

use bytes::Bytes;
use fairpath_engine::Bitrate;
use fairpath_quic::flows;

use crate::algorithm::named;

#[doc(inline)]
pub use flows::{DEADLINE_MAX, DEADLINE_MIN, FLOWS_MAX, PACKET_MAX};

named! {
    /// The packets that leave twice, on two paths.
    Copies, "copies",
    /// None.
    None = "none",
    /// Those that the program marks.
    #[default]
    Marked = "marked",
    /// All.
    All = "all",
}

named! {
    /// When packets that came are handed out.
    Playout, "playout",
    /// As soon as all before it were, at its deadline at the latest: for players with a buffer of their own.
    #[default]
    InOrder = "in_order",
    /// At its deadline, with the gaps with which they were sent: for decoders without a buffer.
    Steady = "steady",
}

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
        let flows::Config { flows, repair, .. } = flows::Config::default();
        Self { deadline, flows, copies: Copies::default(), playout: Playout::default(), repair }
    }

    /// The same with this many flows.
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
        let copies = match copies {
            Copies::None => flows::Copies::None,
            Copies::Marked => flows::Copies::Marked,
            Copies::All => flows::Copies::All,
        };
        let playout = match playout {
            Playout::InOrder => flows::Playout::InOrder,
            Playout::Steady => flows::Playout::Steady,
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_below_and_names_survive_text() {
        let ours = LiveConfig::new(Duration::from_secs(1)).as_flows();
        assert_eq!(ours, flows::Config { deadline: Duration::from_secs(1), ..flows::Config::default() });
        assert_eq!(("all".parse(), "steady".parse()), (Ok(Copies::All), Ok(Playout::Steady)));
        let error = "twice".parse::<Copies>().unwrap_err().to_string();
        assert!(error.contains("unknown copies 'twice'") && error.contains("marked"), "{error}");
    }
}
