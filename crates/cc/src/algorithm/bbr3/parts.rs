//! The model of several paths taken together, and of a path that leaves such a group.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::Bbr3Path;
use super::probe_rtt::MinRtt;
use crate::model::{Opening, PathModel};

impl Bbr3Path {
    /// The model of one flow that carries these shares of the given models.
    /// The least round-trip time of its path is given. Counts of deliveries and rounds begin anew,
    /// and so does the wait for the next probe.
    pub(in crate::algorithm) fn of_parts<'a>(
        parts: impl Iterator<Item = (&'a Self, f64)> + Clone,
        min_rtt: Option<Duration>,
        opening: Opening,
    ) -> Self {
        let now = opening.now;
        let mut whole = Self::new(opening);
        whole.min_rtt = MinRtt::known(min_rtt, parts.clone().map(|(part, _)| part.min_rtt.at()).max(), now);
        whole.was_full = parts.clone().all(|(part, _)| part.was_full);
        let bytes = |of: &dyn Fn(&Self) -> ByteCount| {
            ByteCount::from_f64(parts.clone().map(|(part, share)| of(part).as_f64() * share).sum())
        };
        whole.cwnd = bytes(&|part| part.cwnd).max(whole.sizes.min_pipe());
        whole.prior_cwnd = bytes(&|part| part.prior_cwnd);
        // A bound that one of them lacks, the sum lacks too.
        whole.long_term.in_flight = parts
            .clone()
            .all(|(part, _)| part.long_term.in_flight.is_some())
            .then(|| bytes(&|part| part.long_term.in_flight.unwrap_or_default()));
        let rate = |of: &dyn Fn(&Self) -> Bitrate| {
            parts.clone().fold(Bitrate::ZERO, |sum, (part, share)| sum + of(part).scaled(share))
        };
        whole
            .max_bandwidth
            .restore(rate(&|part| part.max_bandwidth.previous()), rate(&|part| part.max_bandwidth.get()));
        whole.bandwidth = rate(&|part| part.bandwidth);
        whole.pacing.restore(rate(&|part| part.pacing.rate().unwrap_or(Bitrate::ZERO)));
        if whole.was_full {
            whole.start_down(now);
        }
        whole
    }

    /// The sending rate before the gain of the phase.
    pub(in crate::algorithm) fn bandwidth(&self) -> Bitrate {
        self.bandwidth
    }

    /// Whether the newest acknowledgement began a round.
    pub(in crate::algorithm) fn starts_round(&self) -> bool {
        self.rounds.starts()
    }
}

impl MinRtt {
    /// A value that is known of a path without having been measured.
    fn known(value: Option<Duration>, at: Option<Timestamp>, now: Timestamp) -> Self {
        let mut known = Self::new(now);
        known.restore(value, at.unwrap_or(now));
        known
    }
}
