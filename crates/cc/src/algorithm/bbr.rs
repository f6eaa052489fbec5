//! BBR, version 1: Bottleneck Bandwidth and Round-trip propagation time. It sends at the rate at
//! which data arrives, and keeps about one bandwidth-delay product in flight. Now and then it sends
//! faster, to see whether more arrives, and almost stops, to see the round-trip time of an empty
//! queue.
//!
//! # Source
//!
//! [BBRv1] BBR Congestion Control, the first draft; the pacing margin from [BBRv3 §5.6.2].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | BBR.state | `phase` | |
//! | BBR.BtlBw | `bandwidth` | bit/s |
//! | BBR.RTprop, BBR.rtprop_stamp | `min_rtt`, `min_rtt_at` | s |
//! | BBR.pacing_gain, BBR.cwnd_gain | `Gains` | 1 |
//! | BBR.filled_pipe | `was_full` | |
//! | BBR.cycle_index, BBR.cycle_stamp | `Cycle` | 1, s |
//! | BBR.target_cwnd | `inflight(cwnd_gain)` | bytes |
//! | BBR.packet_conservation, BBR.prior_cwnd | `Recovery::conserving`, `prior_cwnd` | bytes |
//! | InLossRecovery() | `Recovery::active` | |
//!
//! # Deviations
//!
//! - Paths pace 1 % below the bandwidth, as the version in Linux and the third version do.
//! - A path has no pacing rate before its first round-trip time, where the source takes 1 ms for it
//!   and corrects that later [BBRv1 §4.2.1].
//! - The random choices follow from a configured seed and the path's id.
//! - A recovery lasts until a packet is acknowledged that was sent after the newest loss was found,
//!   as what repairs the loss is. Under random losses it goes on without the round of conservation
//!   beginning anew; the source leaves to the transport what a recovery is.
//! - In recovery the window stays at two datagrams at least and not at one: [RFC9002 §7.2]. A window
//!   is never raised by the event that reports a loss.
//! - An ECN mark begins a recovery as a loss does; the source says nothing of marks, and
//!   [BBRv3 §3.7] demands an answer to them.
//! - A packet that is sent while nothing is in flight restarts from idleness; the source also asks
//!   whether the application was the limit, which here follows.
//! - The samples that BBR itself holds down in ProbeRTT are not marked in the connection but
//!   remembered here; nothing calls back.
//! - The detector of policers in Linux is left out, as in the source.

mod cycle;
mod probe_rtt;
mod recovery;
#[cfg(test)]
mod tests;

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Congestion, RoundMax, Timestamp};

use self::cycle::Cycle;
pub(super) use self::cycle::PHASES;
use self::probe_rtt::ProbeRtt;
use self::recovery::Recovery;
use crate::controller::{ControlState, Phase as RecordedPhase};
use crate::model::{
    Delivery, FullPipe, Opening, OwnLimit, Pacing, PathModel, PerPath, Random, Rounds, Sizes, bdp_multiple,
    send_quantum,
};

/// BBR on each path by itself.
pub type Bbr = PerPath<BbrPath>;

/// The least gain that lets the rate double each round, 2/ln 2 [BBRv1 §2, BBRHighGain].
const HIGH_GAIN: f64 = 2.885;

/// Length of the bandwidth filter, in rounds [BBRv1 §2, BtlBwFilterLen].
const BANDWIDTH_ROUNDS: u64 = 10;

/// Up to here one quantum is one datagram, in bit/s [BBRv1 §4.2.2].
const ONE_DATAGRAM_BELOW: Bitrate = Bitrate::from_kbps(1_200);

/// The phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Doubling the rate each round, until no more arrives.
    Startup,
    /// Letting the queue drain that this has built.
    Drain,
    /// Sending at the bandwidth, a little more and a little less in turn.
    ProbeBw,
    /// Sending next to nothing, to see the round-trip time.
    ProbeRtt,
}

/// The gains: factors of the bandwidth and of the bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gains {
    pacing: f64,
    cwnd: f64,
}

/// BBR on one path.
#[derive(Clone, Debug)]
pub struct BbrPath {
    sizes: Sizes,
    phase: Phase,
    rounds: Rounds,
    delivered: ByteCount,
    delivered_at: Timestamp,
    bandwidths: RoundMax<Bitrate>,
    bandwidth: Bitrate,
    full_pipe: FullPipe,
    was_full: bool,
    min_rtt: Option<Duration>,
    min_rtt_at: Timestamp,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Recovery,
    own_limit: OwnLimit,
    idle_restart: bool,
    pacing: Pacing,
    cwnd: ByteCount,
    prior_cwnd: ByteCount,
    random: Random,
}

impl BbrPath {
    /// The largest delivery rate of the last rounds; zero before the first sample.
    pub(super) fn bandwidth(&self) -> Bitrate {
        self.bandwidth
    }

    /// When something was last delivered.
    pub(super) fn delivered_at(&self) -> Timestamp {
        self.delivered_at
    }

    /// The gains of the phase [BBRv1 §4.3].
    fn gains(&self) -> Gains {
        let (pacing, cwnd) = match self.phase {
            Phase::Startup => (HIGH_GAIN, HIGH_GAIN),
            Phase::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Phase::ProbeBw => (self.cycle.gain(), 2.0),
            Phase::ProbeRtt => (1.0, 1.0),
        };
        Gains { pacing, cwnd }
    }

    // [BBRv1 §4.2.3.2]
    //     gain * BBR.BtlBw * BBR.RTprop + 3 * BBR.send_quantum
    /// The bytes of `gain` times the bandwidth-delay product, with what waits in the hosts.
    fn inflight(&self, gain: f64) -> ByteCount {
        match self.min_rtt {
            Some(min_rtt) => bdp_multiple(gain, self.bandwidth, min_rtt) + self.send_quantum() * 3,
            None => self.sizes.initial_window,
        }
    }

    fn send_quantum(&self) -> ByteCount {
        let rate = self.pacing.rate();
        let datagrams = if rate.is_some_and(|rate| rate < ONE_DATAGRAM_BELOW) { 1 } else { 2 };
        send_quantum(rate, self.sizes.datagram * datagrams)
    }

    // [BBRv1 §4.1.1.3, BBRUpdateBtlBw]
    fn update_bandwidth(&mut self, delivery: &Delivery) {
        let rate = delivery.rate.map(|rate| self.own_limit.mark(rate));
        self.rounds.update(rate.map(|rate| rate.prior_delivered), delivery.delivered);
        let Some(rate) = rate else { return };
        if !rate.app_limited || rate.bandwidth >= self.bandwidth {
            self.bandwidth = self.bandwidths.update(self.rounds.count(), rate.bandwidth);
        }
        // [BBRv1 §4.3.2.2, BBRCheckFullPipe]
        if !self.was_full && self.rounds.starts() && !rate.app_limited {
            self.was_full = self.full_pipe.observe(self.bandwidth);
        }
    }

    // [BBRv1 §4.3.3, BBRCheckDrain]
    fn check_drain(&mut self, delivery: &Delivery) {
        if self.phase == Phase::Startup && self.was_full {
            self.phase = Phase::Drain;
        }
        if self.phase == Phase::Drain && delivery.in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(delivery.now);
        }
    }

    // [BBRv1 §4.2.3.6, BBRSetCwnd]
    fn set_cwnd(&mut self, delivery: &Delivery) {
        self.recover(delivery);
        if !self.recovery.is_conserving() {
            let target = self.inflight(self.gains().cwnd);
            if self.was_full {
                self.cwnd = (self.cwnd + delivery.newly_acked).min(target);
            } else if self.cwnd < target || delivery.delivered < self.sizes.initial_window {
                self.cwnd += delivery.newly_acked;
            }
            self.cwnd = self.cwnd.max(self.sizes.min_pipe());
        }
        if self.phase == Phase::ProbeRtt {
            self.cwnd = self.cwnd.min(self.sizes.min_pipe());
        }
    }
}

impl PathModel for BbrPath {
    fn new(opening: Opening) -> Self {
        Self {
            sizes: opening.sizes,
            phase: Phase::Startup,
            rounds: Rounds::default(),
            delivered: ByteCount::ZERO,
            delivered_at: opening.now,
            bandwidths: RoundMax::new(BANDWIDTH_ROUNDS),
            bandwidth: Bitrate::ZERO,
            full_pipe: FullPipe::default(),
            was_full: false,
            min_rtt: None,
            min_rtt_at: opening.now,
            cycle: Cycle::new(opening.now),
            probe_rtt: ProbeRtt::default(),
            recovery: Recovery::default(),
            own_limit: OwnLimit::default(),
            idle_restart: false,
            pacing: Pacing::default(),
            cwnd: opening.sizes.initial_window,
            prior_cwnd: ByteCount::ZERO,
            random: opening.random,
        }
    }

    fn set_datagram(&mut self, datagram: ByteCount) {
        self.sizes.datagram = datagram;
        self.cwnd = self.cwnd.max(self.sizes.min_window());
    }

    // [BBRv1 §4.3.4.4, BBRHandleRestartFromIdle]
    fn on_sent(&mut self, _now: Timestamp, idle: bool) {
        if idle {
            self.idle_restart = true;
            if self.phase == Phase::ProbeBw {
                self.pacing.follow(1.0, self.bandwidth, true);
            }
        }
    }

    // [BBRv1 §3.5.2, BBRUpdateOnACK]
    fn on_delivery(&mut self, delivery: &Delivery) {
        self.delivered = delivery.delivered;
        self.delivered_at = delivery.now;
        self.update_bandwidth(delivery);
        self.check_cycle(delivery);
        self.check_drain(delivery);
        self.update_min_rtt(delivery);
        self.pacing.follow(self.gains().pacing, self.bandwidth, self.was_full);
        self.set_cwnd(delivery);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.begin_recovery(event);
    }

    fn window(&self) -> ByteCount {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.pacing.rate()
    }

    fn state(&self) -> ControlState {
        let phase = match self.phase {
            _ if self.recovery.is_active() => RecordedPhase::Recovery,
            Phase::Startup => RecordedPhase::SlowStart,
            _ => RecordedPhase::CongestionAvoidance,
        };
        ControlState { window: self.cwnd, ssthresh: None, phase, delay_cuts: 0 }
    }
}
