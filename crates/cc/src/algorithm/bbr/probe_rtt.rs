//! The round-trip time of the empty path, and ProbeRTT, which looks for it [BBRv1 §4.1.2, §4.3.5].

use core::time::Duration;

use fairpath_core::Timestamp;

use super::{BbrPath, HIGH_GAIN, Phase};
use crate::model::Delivery;

/// Length of the filter of the least round-trip time, which is probed when it is older [BBRv1 §2,
/// RTpropFilterLen and ProbeRTTInterval].
const INTERVAL: Duration = Duration::from_secs(10);

/// Duration of ProbeRTT, with a small window [BBRv1 §2, ProbeRTTDuration].
const DURATION: Duration = Duration::from_millis(200);

/// How far a probe has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; `None` while what is in flight is still falling.
    done_at: Option<Timestamp>,
    round_done: bool,
}

impl BbrPath {
    // [BBRv1 §4.1.2.3, BBRUpdateRTprop] [BBRv1 §4.3.5, BBRCheckProbeRTT]
    pub(super) fn update_min_rtt(&mut self, delivery: &Delivery) {
        let rtt = delivery.rtt();
        self.pacing.begin(HIGH_GAIN, self.sizes.initial_window, rtt);
        let expired = delivery.now > self.min_rtt_at + INTERVAL;
        if expired || self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt) {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = delivery.now;
        }
        if self.phase != Phase::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.phase = Phase::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.own_limit.begin(delivery.delivered);
        }
        if self.phase == Phase::ProbeRtt {
            self.probe_min_rtt(delivery);
        }
        self.idle_restart = false;
    }

    // [BBRv1 §4.3.5, BBRHandleProbeRTT]
    fn probe_min_rtt(&mut self, delivery: &Delivery) {
        self.own_limit.extend(delivery.delivered, delivery.in_flight);
        match self.probe_rtt.done_at {
            None if delivery.in_flight <= self.sizes.min_pipe() => {
                self.probe_rtt = ProbeRtt { done_at: Some(delivery.now + DURATION), round_done: false };
                self.rounds.restart(delivery.delivered);
            }
            None => {}
            Some(done_at) => {
                self.probe_rtt.round_done |= self.rounds.starts();
                if self.probe_rtt.round_done && delivery.now > done_at {
                    self.min_rtt_at = delivery.now;
                    self.restore_cwnd();
                    self.leave_probe_rtt(delivery.now);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Timestamp) {
        if self.was_full {
            self.enter_probe_bw(now);
        } else {
            self.phase = Phase::Startup;
        }
    }
}
