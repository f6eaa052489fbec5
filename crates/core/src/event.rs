//! The events on a path, as the algorithms are told of them.

use core::time::Duration;

use crate::delivery_rate::{LossSample, RateSample};
use crate::rtt::Rtt;
use crate::units::{ByteCount, Timestamp};

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Timestamp,
    /// Its size.
    pub bytes: ByteCount,
    /// The bytes in flight on the path now, this packet included.
    pub in_flight: ByteCount,
}

/// A packet was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When the acknowledgement came.
    pub now: Timestamp,
    /// When the packet had been sent.
    pub sent_at: Timestamp,
    /// Its size.
    pub bytes: ByteCount,
    /// The bytes in flight on the path before this acknowledgement, the packet included.
    pub in_flight: ByteCount,
    /// Whether the window, and not a lack of data, bounded what was sent when the packet left or after
    /// it. A window that was not used must not grow [RFC9002 §7.8].
    pub window_limited: bool,
    /// The round-trip times of the path; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// The delivery rate that this acknowledgement shows; `None` where no time has passed to measure over, and where
    /// the controller does not read it.
    pub rate: Option<RateSample>,
}

/// How the network signalled congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Packets were lost.
    Loss,
    /// Packets came marked [RFC9002 §7.1].
    Ecn,
}

/// The network signalled congestion. Hosts report every batch of losses; the controllers decide
/// which of them belong to one episode, by `sent_at`.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When it was found out.
    pub now: Timestamp,
    /// When the newest packet of the batch had been sent.
    pub sent_at: Timestamp,
    /// How it was signalled.
    pub signal: CongestionSignal,
    /// How much was lost in this batch; zero for marks.
    pub lost: ByteCount,
    /// The bytes in flight before the loss was found, the lost packets included.
    pub in_flight: ByteCount,
    /// Everything sent over longer than the persistent-congestion period was lost [RFC9002 §7.6].
    pub persistent: bool,
}

/// A packet was lost, as a controller is told of it that judges each loss by what was in flight.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// When it was found out.
    pub now: Timestamp,
    /// When the packet had been sent.
    pub sent_at: Timestamp,
    /// Its number: packets that were sent one after the other have consecutive numbers.
    pub number: u64,
    /// Its size.
    pub bytes: ByteCount,
    /// A sample of the path from this loss.
    pub sample: LossSample,
}

/// A delay was measured.
#[derive(Clone, Copy, Debug)]
pub struct DelaySample {
    /// When.
    pub now: Timestamp,
    /// The round-trip time.
    pub rtt: Duration,
    /// The one-way delay, where the receiver reports it. Clocks differ: only changes mean anything.
    pub one_way: Option<Duration>,
}

/// Packets were lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When it was found out.
    pub now: Timestamp,
    /// How much.
    pub bytes: ByteCount,
}
