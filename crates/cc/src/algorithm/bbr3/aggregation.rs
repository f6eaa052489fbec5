//! How much more is acknowledged at once than the bandwidth explains [BBRv3 §5.5.9]: links and hosts
//! gather packets, and the window must last through the gaps.

use fairpath_core::{Bitrate, ByteCount, RoundMax, Timestamp};

use crate::model::Delivery;

/// Length of the filter of the excess, in rounds [BBRv3 §2.12].
const ROUNDS: u64 = 10;

/// In Startup the path changes too fast to remember more than the newest round [BBRv3 §5.5.9].
const ROUNDS_IN_STARTUP: u64 = 1;

/// The estimate of one path.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    since: Timestamp,
    delivered: ByteCount,
    extra: RoundMax<ByteCount>,
}

impl Aggregation {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, delivered: ByteCount::ZERO, extra: RoundMax::new(ROUNDS_IN_STARTUP) }
    }

    /// The path was idle: the pause is no gap.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.since = now;
    }

    // [BBRv3 §5.5.9, UpdateACKAggregation]
    pub(super) fn update(
        &mut self,
        delivery: &Delivery,
        bandwidth: Bitrate,
        cwnd: ByteCount,
        round: u64,
        was_full: bool,
    ) {
        let mut expected = expected(bandwidth, delivery.now, self.since);
        if self.delivered <= expected {
            // Slower than the bandwidth: whatever was gathered has passed.
            self.delivered = ByteCount::ZERO;
            self.since = delivery.now;
            expected = ByteCount::ZERO;
        }
        self.delivered += delivery.newly_acked;
        let extra = self.delivered.saturating_sub(expected).min(cwnd);
        self.extra.set_window(if was_full { ROUNDS } else { ROUNDS_IN_STARTUP });
        self.extra.update(round, extra);
    }

    /// The excess.
    pub(super) fn extra(&self) -> ByteCount {
        self.extra.get().unwrap_or(ByteCount::ZERO)
    }
}

fn expected(bandwidth: Bitrate, now: Timestamp, since: Timestamp) -> ByteCount {
    ByteCount::from_f64(bandwidth.as_bps() as f64 / 8.0 * now.since(since).as_secs_f64())
}
