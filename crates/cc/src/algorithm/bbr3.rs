//! BBR, version 3. Like the first it sends at the rate at which data arrives. Unlike the first it
//! also learns from loss how much the path holds, keeps below that, and probes for more only every
//! two or three seconds. So it queues less, and leaves room to others.
//!
//! # Source
//!
//! [BBRv3] BBR Congestion Control, draft 06.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | BBR.state | `phase` | |
//! | BBR.max_bw, BBR.bw | `MaxBandwidth`, `bandwidth` | bit/s |
//! | BBR.min_rtt, BBR.probe_rtt_min_delay | `min_rtt`, `MinRtt::recent` | s |
//! | BBR.pacing_gain, BBR.cwnd_gain | `Gains` | 1 |
//! | BBR.full_bw_now, BBR.full_bw_reached | `full_pipe.is_full()`, `was_full` | |
//! | BBR.bw_shortterm, BBR.inflight_shortterm | `ShortTerm::bandwidth`, `ShortTerm::in_flight` | bit/s, bytes |
//! | BBR.bw_latest, BBR.inflight_latest | `ShortTerm::latest` | bit/s, bytes |
//! | BBR.inflight_longterm | `LongTerm::in_flight` | bytes |
//! | BBR.extra_acked | `Aggregation::extra` | bytes |
//! | BBR.max_inflight, C.cwnd | `max_inflight()`, `cwnd` | bytes |
//! | BBR.ack_phase | `Feedback` | |
//! | BBR.bw_probe_wait, BBR.cycle_stamp | `Cycle::wait`, `Cycle::since` | s |
//! | RS.tx_in_flight, RS.lost | `Rate::tx_in_flight`, `Rate::lost` | bytes |
//! | Infinity | `None` | |
//!
//! # Deviations
//!
//! - The gains follow from the phase by one table [BBRv3 §5.6.1]; the pseudocode sets them on the
//!   way into some of the phases and not into others.
//! - A path has no pacing rate before its first round-trip time, where the source takes 1 ms for it.
//!   A rate that was never measured would otherwise stay while the application is the limit.
//! - Drain is not bounded by the long-term model, as the pseudocode of [BBRv3 §5.6.4.7] has it; the
//!   table of [BBRv3 §5.6.1] has it otherwise.
//! - The random choices follow from a configured seed and the path's id.
//! - No undoing of a loss that was none [BBRv3 §5.5.11]: the next probe, two or three seconds later, finds
//!   again what it took.
//! - No saving of the window on the way into recovery: nothing but the model's own bounds lowers it
//!   there. After persistent congestion it is two datagrams at least [RFC9002 §7.6.2], not what is
//!   in flight and one byte, until a packet arrives that was sent afterwards.
//! - An ECN mark counts as what [BBRv3 §3.7] demands at least, congestion: it ends Startup and a
//!   probe of the bandwidth, and elsewhere makes the round one with losses.
//! - The part of a packet below which the losses were few cannot be negative; the formula of
//!   [BBRv3 §5.5.10.2] can.
//! - A cycle in which every sample was limited by the application does not push the bandwidth of the
//!   one before out of the filter.
//! - A packet that is sent while nothing is in flight restarts from idleness; the source also asks
//!   whether the application was the limit, which here follows.
//! - The samples that BBR itself holds down in ProbeRTT are not marked in the connection but
//!   remembered here; nothing calls back.
//! - In ProbeRTT half of what arrives, and not half of the largest bandwidth of two cycles, is kept
//!   in flight [BBRv3 §5.6.4.5]. If the rate of the path fell to less than half without loss, half
//!   of its old rate would keep a queue. The probe would take that delay for the path's own, the
//!   window would follow, and the next probe would find still more (`docs/design/bbr3.md`).
//! - A ProbeRTT that interrupts a probe of the bandwidth ends its cycle in the filter [BBRv3 §5.5.5]. With half a
//!   second of queue a cycle takes longer than the five seconds between two ProbeRTTs, each of which begins it
//!   anew: a bandwidth that is gone would stay for good.
//! - Rate samples over less than the least round-trip time are not dropped [BBRv3 §4.1.2.3]: packet
//!   numbers are never used twice, so there are none.

mod aggregation;
mod long_term;
mod max_bandwidth;
mod parts;
mod probe_bw;
mod probe_rtt;
mod short_term;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use fairpath_core::{Bitrate, ByteCount, Congestion, CongestionSignal, LostPacket, Timestamp};

use self::aggregation::Aggregation;
use self::long_term::LongTerm;
use self::max_bandwidth::MaxBandwidth;
use self::probe_bw::Cycle;
use self::probe_rtt::{MinRtt, ProbeRtt};
use self::short_term::ShortTerm;
use self::startup::Losses;
use crate::controller::{ControlState, Phase as RecordedPhase};
use crate::model::{Delivery, FullPipe, Opening, OwnLimit, Pacing, PathModel, PerPath, Random, Rate, Rounds, Sizes};

/// BBRv3 on each path by itself.
pub type Bbr3 = PerPath<Bbr3Path>;

/// The largest share of what is sent in a round trip that a probe may lose [BBRv3 §2.8].
const LOSS_THRESHOLD: f64 = 0.02;

/// The least that one lossy round leaves [BBRv3 §2.8].
const BETA: f64 = 0.7;

/// The phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Doubling the rate each round, until no more arrives or too much is lost.
    Startup,
    /// Letting the queue drain that this has built.
    Drain,
    /// ProbeBW: sending less than arrives, to drain and to leave room.
    Down,
    /// ProbeBW: sending what arrives.
    Cruise,
    /// ProbeBW: filling the pipe for one round, so that a probe starts from there.
    Refill,
    /// ProbeBW: sending more than arrives, to see whether more can.
    Up,
    /// Sending half, to see the round-trip time.
    ProbeRtt,
}

impl Phase {
    // [BBRv3 §5.6.1]
    fn gains(self) -> Gains {
        let (pacing, cwnd) = match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise => (1.0, 2.0),
            Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, 0.5),
        };
        Gains { pacing, cwnd }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    // [BBRv3 §5.3.3.9, IsProbingBW]
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// The gains: factors of the bandwidth and of the bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gains {
    pacing: f64,
    cwnd: f64,
}

/// BBRv3 on one path.
#[derive(Clone, Debug)]
pub struct Bbr3Path {
    sizes: Sizes,
    phase: Phase,
    rounds: Rounds,
    delivered: ByteCount,
    max_bandwidth: MaxBandwidth,
    /// The sending rate: the largest bandwidth, or less where losses say so.
    bandwidth: Bitrate,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    was_full: bool,
    /// The round in which Drain began.
    drain_round: u64,
    losses: Losses,
    short_term: ShortTerm,
    long_term: LongTerm,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    aggregation: Aggregation,
    own_limit: OwnLimit,
    idle_restart: bool,
    pacing: Pacing,
    cwnd: ByteCount,
    prior_cwnd: ByteCount,
    /// When persistent congestion was found, until a packet arrives that was sent later.
    collapsed_at: Option<Timestamp>,
    random: Random,
}

impl Bbr3Path {
    // [BBRv3 §5.2.3, UpdateModelAndState]
    fn update_model(&mut self, delivery: &Delivery, rate: &Rate) {
        self.short_term.update_latest(rate, delivery.delivered);
        self.update_max_bandwidth(delivery, rate);
        self.adapt_short_term();
        self.aggregation.update(delivery, self.bandwidth, self.cwnd, self.rounds.count(), self.was_full);
        self.check_full_pipe(rate);
        self.check_startup_done(rate);
        self.check_drain_done(delivery);
        self.update_cycle(delivery, rate);
        self.update_min_rtt(delivery);
        self.check_probe_rtt(delivery, rate);
        self.short_term.advance_latest(rate);
        self.bandwidth = self.short_term.bounded(self.max_bandwidth.get());
    }

    // [BBRv3 §5.5.5, UpdateMaxBw]
    fn update_max_bandwidth(&mut self, delivery: &Delivery, rate: &Rate) {
        self.rounds.update(Some(rate.prior_delivered), delivery.delivered);
        if self.rounds.starts() {
            self.cycle.count_round();
        }
        if !rate.app_limited || rate.bandwidth >= self.max_bandwidth.get() {
            self.max_bandwidth.update(rate.bandwidth);
        }
    }

    // [BBRv3 §5.3.1.2, CheckFullBWReached]
    fn check_full_pipe(&mut self, rate: &Rate) {
        if !self.full_pipe.is_full() && self.rounds.starts() && !rate.app_limited {
            self.was_full |= self.full_pipe.observe(rate.bandwidth);
        }
    }

    /// The model's answer to a mark.
    fn on_mark(&mut self, now: Timestamp, in_flight: ByteCount) {
        self.short_term.note_loss(self.delivered);
        if self.phase == Phase::Startup {
            self.leave_startup_for_losses();
        } else if self.long_term.is_probe_sample {
            self.probe_went_too_high(now, in_flight, false);
        }
    }
}

impl PathModel for Bbr3Path {
    // [BBRv3 §5.2.1, OnInit]
    fn new(opening: Opening) -> Self {
        Self {
            sizes: opening.sizes,
            phase: Phase::Startup,
            rounds: Rounds::default(),
            delivered: ByteCount::ZERO,
            max_bandwidth: MaxBandwidth::default(),
            bandwidth: Bitrate::ZERO,
            min_rtt: MinRtt::new(opening.now),
            full_pipe: FullPipe::default(),
            was_full: false,
            drain_round: 0,
            losses: Losses::default(),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            cycle: Cycle::new(opening.now),
            probe_rtt: ProbeRtt::default(),
            aggregation: Aggregation::new(opening.now),
            own_limit: OwnLimit::default(),
            idle_restart: false,
            pacing: Pacing::default(),
            cwnd: opening.sizes.initial_window,
            prior_cwnd: ByteCount::ZERO,
            collapsed_at: None,
            random: opening.random,
        }
    }

    fn set_datagram(&mut self, datagram: ByteCount) {
        self.sizes.datagram = datagram;
        self.cwnd = self.cwnd.max(self.sizes.min_window());
    }

    // [BBRv3 §5.4.1, HandleRestartFromIdle]
    fn on_sent(&mut self, now: Timestamp, idle: bool) {
        if idle {
            self.idle_restart = true;
            self.aggregation.restart(now);
            if self.phase.is_probe_bw() {
                self.pacing.follow(1.0, self.bandwidth, self.was_full);
            } else if self.phase == Phase::ProbeRtt {
                self.check_probe_rtt_done(now);
            }
        }
    }

    // [BBRv3 §5.2.3, UpdateOnACK]
    fn on_delivery(&mut self, delivery: &Delivery) {
        self.delivered = delivery.delivered;
        self.pacing.begin(Phase::Startup.gains().pacing, self.sizes.initial_window, delivery.rtt());
        if let Some(rate) = delivery.rate {
            let rate = self.own_limit.mark(rate);
            self.update_model(delivery, &rate);
        }
        self.pacing.follow(self.phase.gains().pacing, self.bandwidth, self.was_full);
        self.set_cwnd(delivery);
    }

    // [BBRv3 §5.5.10.2, HandleLostPacket]
    fn on_lost(&mut self, lost: &LostPacket) {
        self.short_term.note_loss(self.delivered);
        self.losses.count(lost.number);
        let sample = lost.sample;
        if self.long_term.is_probe_sample && long_term::is_too_high(sample.lost, sample.tx_in_flight) {
            let in_flight = long_term::in_flight_at_loss(lost.bytes, sample.tx_in_flight, sample.lost);
            self.probe_went_too_high(lost.now, in_flight, sample.app_limited);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.signal == CongestionSignal::Ecn {
            self.on_mark(event.now, event.in_flight);
        }
        if event.persistent {
            self.collapse(event);
        }
    }

    fn window(&self) -> ByteCount {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.pacing.rate()
    }

    fn state(&self) -> ControlState {
        let phase = match self.phase {
            _ if self.collapsed_at.is_some() => RecordedPhase::Recovery,
            Phase::Startup => RecordedPhase::SlowStart,
            _ => RecordedPhase::CongestionAvoidance,
        };
        ControlState { window: self.cwnd, ssthresh: None, phase, delay_cuts: 0 }
    }
}
