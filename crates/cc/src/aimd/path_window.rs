//! The window of one path and what decides when it may change. No rule is known here.

use core::cell::OnceCell;
use core::time::Duration;

use fairpath_core::{Ack, Bitrate, ByteCount, Timestamp};

use super::AimdConfig;
use crate::controller::{ControlState, Phase};
use crate::slow_start::{self, HyStartPlusPlus, SlowStart};
use crate::time::nanos;

/// A smoothed round-trip time below this is taken for this: a time of zero, which a clock of coarse
/// ticks can measure, would make rates infinite.
const MIN_RTT: Duration = Duration::from_micros(1);

/// The smoothed round-trip time with its inverse: every rate needs it, and a division costs more
/// than all else in an acknowledgement. So it is made when it is first asked for: a path that is alone
/// and does not pace never asks.
#[derive(Clone, Debug)]
struct SmoothedRtt {
    time: Duration,
    inverse: OnceCell<f64>,
}

impl SmoothedRtt {
    fn new(time: Duration) -> Self {
        Self { time, inverse: OnceCell::new() }
    }

    fn inverse(&self) -> f64 {
        *self.inverse.get_or_init(|| 1e9 / nanos(self.time.max(MIN_RTT)))
    }
}

/// The values of a window that a reduction changes, as they were before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreduced {
    cwnd: f64,
    ssthresh: Option<f64>,
    recovery_start: Option<Timestamp>,
    recovering: bool,
}

/// The congestion window of one path.
#[derive(Clone, Debug)]
pub struct PathWindow {
    cwnd: f64,
    /// `None` while it is unlimited.
    ssthresh: Option<f64>,
    max_datagram: f64,
    min_window_datagrams: f64,
    rtt: Option<SmoothedRtt>,
    /// When the window was last reduced.
    recovery_start: Option<Timestamp>,
    /// Whether no packet sent after the last reduction has been acknowledged yet.
    recovering: bool,
    delay_cuts: u64,
    /// State that is needed only until slow start first ends is kept apart, so that the windows of all
    /// paths stay close together.
    hystart: Option<Box<HyStartPlusPlus>>,
}

impl PathWindow {
    pub(crate) fn new(config: &AimdConfig, max_datagram: ByteCount) -> Self {
        let mut window = Self {
            cwnd: slow_start::initial_window(config.initial_window_datagrams, config.initial_window_cap, max_datagram),
            ssthresh: None,
            max_datagram: 1.0,
            min_window_datagrams: f64::from(config.min_window_datagrams.max(1)),
            rtt: None,
            recovery_start: None,
            recovering: false,
            delay_cuts: 0,
            hystart: match config.slow_start {
                SlowStart::Standard => None,
                SlowStart::HyStartPlusPlus => Some(Box::default()),
            },
        };
        window.set_max_datagram(max_datagram);
        window
    }

    /// The congestion window, in bytes.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The window that other paths of the group count with, in bytes: the threshold while the path
    /// recovers, so that no transient of the recovery disturbs them.
    pub fn effective_cwnd(&self) -> f64 {
        match self.ssthresh {
            Some(ssthresh) if self.recovering => ssthresh,
            _ => self.cwnd,
        }
    }

    /// The size of a full datagram, in bytes.
    pub fn max_datagram(&self) -> f64 {
        self.max_datagram
    }

    /// One over the smoothed round-trip time, in 1/s; `None` before the first sample.
    pub fn inverse_rtt(&self) -> Option<f64> {
        self.rtt.as_ref().map(SmoothedRtt::inverse)
    }

    /// Whether there was a round-trip sample. Asked without the division that its inverse takes.
    pub fn has_rtt(&self) -> bool {
        self.rtt.is_some()
    }

    /// Whether the window is below the threshold and doubles each round trip.
    pub fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Whether there is a threshold, and the window is not above it.
    pub(super) fn is_up_to_threshold(&self) -> bool {
        self.ssthresh.is_some_and(|ssthresh| self.cwnd <= ssthresh)
    }

    /// Whether this acknowledgement lets the window grow: the window was the limit [RFC9002 §7.8],
    /// and the packet was sent after the last reduction [RFC9002 §7.3.2].
    pub fn may_grow(&self, ack: &Ack) -> bool {
        ack.window_limited && self.starts_episode(ack.sent_at)
    }

    /// Whether a packet sent at `sent_at` was sent after the last reduction. If it was lost, that is
    /// news; if an earlier one was, the window has been reduced for it [RFC9002 §7.3.2].
    pub(super) fn starts_episode(&self, sent_at: Timestamp) -> bool {
        self.recovery_start.is_none_or(|start| sent_at > start)
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt
            && self.rtt.as_ref().is_none_or(|known| known.time != rtt.smoothed)
        {
            self.rtt = Some(SmoothedRtt::new(rtt.smoothed));
        }
        if self.recovering && self.starts_episode(ack.sent_at) {
            self.recovering = false;
        }
        if self.ssthresh.is_none() && self.hystart.as_mut().is_some_and(|hystart| hystart.on_ack(ack)) {
            self.ssthresh = Some(self.cwnd);
        }
    }

    /// Grows as slow start does.
    pub(super) fn double(&mut self, acked: ByteCount) {
        let slowed = self.hystart.as_ref().filter(|_| self.ssthresh.is_none()).map_or(1.0, |hystart| hystart.divisor());
        self.cwnd = slow_start::grown(self.cwnd, self.ssthresh, acked.as_f64() / slowed);
    }

    /// Grows by `bytes`, which may be negative.
    pub(super) fn grow(&mut self, bytes: f64, lowers_threshold: bool) {
        debug_assert!(bytes.is_finite(), "a rule gave {bytes}");
        self.cwnd = (self.cwnd + bytes).max(self.min_window());
        if lowers_threshold {
            // A rule that shrinks a window means it: slow start must not take it back to the threshold.
            self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.min(self.cwnd));
        }
    }

    /// Sets the window to `cwnd` bytes because of a delay that was measured. Slow start is over.
    pub(super) fn adjust(&mut self, cwnd: f64) {
        debug_assert!(cwnd.is_finite(), "a rule gave {cwnd}");
        let before = self.cwnd;
        self.cwnd = cwnd.max(self.min_window());
        self.ssthresh = Some(self.ssthresh.map_or(self.cwnd, |ssthresh| ssthresh.min(self.cwnd)));
        self.delay_cuts += u64::from(self.cwnd < before);
    }

    /// Halves the window, and the threshold unless slow start is going on. No recovery begins: nothing was lost.
    pub(super) fn penalise(&mut self, min_ssthresh_datagrams: u32) {
        if !self.in_slow_start() {
            let least = f64::from(min_ssthresh_datagrams) * self.max_datagram;
            self.ssthresh = self.ssthresh.map(|ssthresh| (ssthresh / 2.0).max(least));
        }
        self.cwnd = (self.cwnd / 2.0).max(self.min_window());
    }

    /// Starts a recovery episode with a window of `cwnd` bytes.
    pub(super) fn reduce(&mut self, cwnd: f64, min_ssthresh_datagrams: u32, now: Timestamp) {
        let ssthresh = cwnd.max(f64::from(min_ssthresh_datagrams) * self.max_datagram);
        self.ssthresh = Some(ssthresh);
        // A window below the least threshold, as a timeout of TCP leaves it, is not raised to it.
        self.cwnd = ssthresh.min(self.cwnd).max(self.min_window());
        self.recovery_start = Some(now);
        self.recovering = true;
    }

    /// Sets the window to `cwnd` bytes because its group was reduced at `at`, or because a reduction of the group was
    /// taken back.
    pub(super) fn follow(&mut self, cwnd: f64, min_ssthresh_datagrams: u32, at: Timestamp) {
        if cwnd < self.cwnd {
            self.reduce(cwnd, min_ssthresh_datagrams, at);
        } else {
            self.cwnd = cwnd;
        }
    }

    /// The values that [`restore`](Self::restore) needs to take a reduction back.
    pub(super) fn unreduced(&self) -> Unreduced {
        let Self { cwnd, ssthresh, recovery_start, recovering, .. } = *self;
        Unreduced { cwnd, ssthresh, recovery_start, recovering }
    }

    /// Takes a reduction back. Not where the window has meanwhile grown beyond what it was: then that is
    /// the newer truth [RFC9438 §4.9.2]. Whether it did.
    pub(super) fn restore(&mut self, before: &Unreduced) -> bool {
        if self.cwnd > before.cwnd {
            return false;
        }
        self.cwnd = before.cwnd.max(self.min_window());
        self.ssthresh = before.ssthresh;
        self.recovery_start = before.recovery_start;
        self.recovering = before.recovering;
        true
    }

    /// Falls to the minimum and starts slowly [RFC9002 §7.6.2].
    pub(super) fn collapse(&mut self) {
        self.cwnd = self.min_window();
        self.recovering = false;
    }

    /// Doubles up to `ssthresh` bytes at least.
    pub(super) fn expect(&mut self, ssthresh: f64) {
        self.ssthresh = Some(self.ssthresh.map_or(ssthresh, |own| own.max(ssthresh)));
    }

    /// Goes on from `cwnd` bytes, and doubles up to `ssthresh`.
    pub(super) fn resume(&mut self, cwnd: f64, ssthresh: f64) {
        self.cwnd = cwnd.max(self.min_window());
        self.ssthresh = Some(ssthresh.max(self.cwnd));
        self.recovering = false;
    }

    /// Sets the size of a full datagram. The window stays, except that it may not be below the new
    /// minimum.
    pub(super) fn set_max_datagram(&mut self, max_datagram: ByteCount) {
        // A size of zero would divide by zero in every rule.
        self.max_datagram = max_datagram.max(ByteCount::new(1)).as_f64();
        self.cwnd = self.cwnd.max(self.min_window());
    }

    pub(super) fn pacing_rate(&self, config: &AimdConfig) -> Option<Bitrate> {
        let gain = if self.in_slow_start() { config.pacing_gain_slow_start } else { config.pacing_gain };
        let bytes_per_second = gain * self.cwnd * self.inverse_rtt()?;
        Some(Bitrate::from_bps((8.0 * bytes_per_second) as u64))
    }

    pub(super) fn state(&self) -> ControlState {
        let phase = match (self.recovering, self.in_slow_start()) {
            (true, _) => Phase::Recovery,
            (false, true) => Phase::SlowStart,
            (false, false) => Phase::CongestionAvoidance,
        };
        ControlState {
            window: ByteCount::from_f64(self.cwnd),
            ssthresh: self.ssthresh.map(ByteCount::from_f64),
            phase,
            delay_cuts: self.delay_cuts,
        }
    }

    fn min_window(&self) -> f64 {
        self.min_window_datagrams * self.max_datagram
    }
}
