//! The window while losses are repaired [BBRv1 §4.2.3.4]: for one round a packet leaves for each
//! that arrives, and afterwards the window is what it was.

use fairpath_core::{Congestion, CongestionSignal, Timestamp};

use super::{BbrPath, Phase};
use crate::model::Delivery;

/// The state of losses that are being repaired.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// When the newest loss was found, until a packet is acknowledged that was sent afterwards, as
    /// what repairs the loss is.
    lost_at: Option<Timestamp>,
    conserving: bool,
    /// Whether something was lost since the last acknowledgement.
    news: bool,
}

impl Recovery {
    pub(super) fn is_active(&self) -> bool {
        self.lost_at.is_some()
    }

    pub(super) fn is_conserving(&self) -> bool {
        self.conserving
    }

    /// Whether something was lost since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }
}

impl BbrPath {
    /// Congestion was found: a new episode, or more of one.
    pub(super) fn begin_recovery(&mut self, event: &Congestion) {
        let sizes = self.sizes;
        self.recovery.news |= event.signal == CongestionSignal::Loss;
        self.save_cwnd();
        if self.recovery.is_active() {
            self.cwnd = self.cwnd.saturating_sub(event.lost).max(sizes.min_window());
        } else {
            self.recovery.conserving = true;
            self.rounds.restart(self.delivered);
            let left = event.in_flight.saturating_sub(event.lost) + sizes.datagram;
            self.cwnd = self.cwnd.min(left.max(sizes.min_window()));
        }
        self.recovery.lost_at = Some(event.now);
        if event.persistent {
            self.cwnd = sizes.min_window();
            self.recovery.conserving = false;
        }
    }

    // [BBRv1 §4.2.3.4, BBRModulateCwndForRecovery]
    pub(super) fn recover(&mut self, delivery: &Delivery) {
        if self.rounds.starts() {
            self.recovery.conserving = false;
        }
        if self.recovery.lost_at.is_some_and(|lost_at| delivery.sent_at > lost_at) {
            self.recovery.lost_at = None;
            self.recovery.conserving = false;
            self.restore_cwnd();
        }
        if self.recovery.conserving {
            self.cwnd = self.cwnd.max(delivery.in_flight + delivery.newly_acked);
        }
    }

    // [BBRv1 §4.2.3.4, BBRSaveCwnd]
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.recovery.is_active() || self.phase == Phase::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    // [BBRv1 §4.2.3.4, BBRRestoreCwnd]
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
