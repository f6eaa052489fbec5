//! A path as a sender has it: what it may carry, and how good it is.

use core::time::Duration;

use fairpath_core::{GroupId, Timestamp};
use fairpath_rate::{Delays, LossIntervals};

use crate::facts::PathFacts;
use crate::track::Track;

/// How much above what congestion control allows a path is paced, so that its window, and not this, is the limit
/// [RFC9002 §7.7].
const ABOVE_WINDOW: f64 = 1.25;

/// How much may leave at once on a path, beside two packets: what its rate is in this time.
const BURST: Duration = Duration::from_millis(5);

/// A path whose share in time is less than this part of the best one's does not serve, whatever it costs: about as much
/// repair again would be needed as it lacks, and a burst is more than that.
pub(crate) const SERVES: f64 = 0.9;

/// What rates are taken to be before a path has measured a round trip.
const FIRST_RTT: Duration = Duration::from_millis(100);

/// How long the peer may keep back an acknowledgement [RFC9000 §18.2].
const ACKNOWLEDGED: Duration = Duration::from_millis(25);

/// The least that answers are taken to vary by: what timers of hosts and the other packets of a picture do.
const VARIES: Duration = Duration::from_millis(5);

/// Of two paths with room, the one with the lower rank is taken: whether it fails, what it costs, whether it is overdue,
/// and how far from the best it is.
pub(crate) type Rank = (bool, (bool, u32), bool, u32);

/// A path as a sender has it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) facts: PathFacts,
    pub(crate) track: Track,
    /// Those of its group share a bottleneck; `None` where groups do not count.
    pub(crate) group: Option<GroupId>,
    pub(crate) loss_intervals: LossIntervals,
    /// What it may send, in bytes in a second.
    pub(crate) rate: f64,
    /// The share of its packets that come in time.
    pub(crate) value: f64,
    /// The share of those that arrive that come too late.
    pub(crate) late: f64,
    pub(crate) delays: Option<Delays>,
    pub(crate) is_silent: bool,
    /// By how much its delays vary as a rule.
    pub(crate) varies: Duration,
    /// How many packets in a row had no answer, or had it later than all but a few do.
    unanswered: usize,
    /// Whether it brings too little in time, however little it costs.
    pub(crate) fails: bool,
    /// How far from the best it is, in steps of [`ALIKE`](crate::spread).
    pub(crate) tier: u32,
    /// What may leave now, in bytes; below zero where the last packet was larger than what was left.
    pub(crate) credit: f64,
    pub(crate) filled_at: Timestamp,
    /// The time of fair queueing at which its next packet leaves.
    pub(crate) turn: f64,
    /// What it is to carry of copies, in bytes.
    pub(crate) owes: f64,
    pub(crate) carried_at: Timestamp,
    /// How much of new data it carried since the rates were set.
    pub(crate) carried: f64,
}

impl Lane {
    pub(crate) fn new(facts: PathFacts, now: Timestamp) -> Self {
        Self {
            facts,
            track: Track::default(),
            group: None,
            loss_intervals: LossIntervals::default(),
            rate: allowed(&facts),
            value: 1.0,
            late: 0.0,
            delays: None,
            is_silent: false,
            varies: Duration::ZERO,
            unanswered: 0,
            fails: false,
            tier: 0,
            credit: 0.0,
            filled_at: now,
            turn: 0.0,
            owes: 0.0,
            carried_at: now,
            carried: 0.0,
        }
    }

    /// What the host knows of it now.
    pub(crate) fn look(&mut self, facts: PathFacts, now: Timestamp) {
        self.facts = facts;
        self.track.forget(now);
        (self.delays, self.varies) = (self.track.delays(now), self.track.usual_deviation());
    }

    pub(crate) fn rtt(&self) -> Duration {
        self.facts.rtt.unwrap_or(FIRST_RTT)
    }

    /// How much may leave at once, in bytes.
    pub(crate) fn burst(&self) -> f64 {
        2.0 * self.facts.max_datagram.as_f64() + self.rate * BURST.as_secs_f64()
    }

    pub(crate) fn fill(&mut self, now: Timestamp) {
        let passed = now.since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.credit = (self.credit + self.rate * passed).min(self.burst());
    }

    /// An answer that takes longer has been lost, or what it answers is late: all but one in a thousand come by then, and
    /// so a probe timeout counts them, too [RFC9002 §6.2.1].
    pub(crate) fn patience(&self) -> Duration {
        self.rtt() + ACKNOWLEDGED + 4 * self.varies.max(VARIES)
    }

    /// An answer came, so long after its packet left.
    pub(crate) fn on_answer(&mut self, after: Duration) {
        self.unanswered = if after > self.patience() { self.unanswered + 1 } else { 0 };
    }

    /// So many packets had no answer though all but a few have had one by then.
    pub(crate) fn on_no_answer(&mut self, packets: usize) {
        self.unanswered += packets;
    }

    /// Whether answers take longer than all but a few do, or more of them are missing than are lost in a row.
    pub(crate) fn is_overdue(&self) -> bool {
        self.unanswered >= self.track.seldom_lost()
    }

    /// Whether anything has said how long packets take.
    pub(crate) fn is_known(&self) -> bool {
        self.delays.is_some() || self.facts.rtt.is_some()
    }

    /// How long a packet takes that leaves now, with what most take more.
    pub(crate) fn takes(&self) -> Duration {
        let of = |delays: Delays| delays.mean + 2 * delays.deviation;
        self.delays.map_or(self.rtt() / 2, of)
    }

    /// The share of packets that leave now and are lost, or take longer than this.
    pub(crate) fn missing(&self, deadline: Duration) -> f64 {
        1.0 - (1.0 - self.track.loss()) * (1.0 - self.track.late(deadline))
    }

    /// How long about half of the packets take at most that leave now.
    pub(crate) fn mostly_takes(&self) -> Duration {
        self.delays.map_or(self.rtt() / 2, |delays| delays.mean)
    }

    /// What leaves on it in the long run, in bytes in a second: it is paced above what its window lets out.
    pub(crate) fn lasting(&self) -> f64 {
        self.rate.min(released(&self.facts))
    }

    /// Whether it loses so much that what leaves on it needs as much again, or may: nothing is heard of what left.
    pub(crate) fn is_lossy(&self) -> bool {
        self.is_overdue() || 1.0 - self.track.loss() < SERVES
    }

    /// Whether new data may go on it.
    pub(crate) fn is_open(&self) -> bool {
        self.facts.usable && !self.is_silent
    }

    pub(crate) fn rank(&self) -> Rank {
        (self.fails, self.facts.terms.price(), self.is_overdue(), self.tier)
    }
}

/// What a path may be paced at, in bytes in a second: by its window, and what was said of it.
pub(crate) fn allowed(facts: &PathFacts) -> f64 {
    let cap = facts.terms.cap.map_or(f64::INFINITY, |cap| cap.as_bps() as f64 / 8.0);
    (ABOVE_WINDOW * released(facts)).min(cap)
}

/// The rate that a window allows, in bytes a second, bounded by the rate that the path is known to carry. More would fill
/// a queue that congestion control keeps short.
fn released(facts: &PathFacts) -> f64 {
    let rtt = facts.rtt.unwrap_or(FIRST_RTT).max(Duration::from_millis(1));
    let served = facts.served.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 8.0);
    (facts.window.as_f64() / rtt.as_secs_f64()).min(served)
}

#[cfg(test)]
mod tests {
    use fairpath_core::{Bitrate, ByteCount, PathId};

    use super::*;
    use crate::facts::PathTerms;

    #[test]
    fn a_path_lasts_for_what_it_is_known_to_carry_however_large_its_window_is() {
        let lasting = |served: Option<u64>| {
            let facts = PathFacts {
                path: PathId::new(0),
                usable: true,
                rtt: Some(Duration::from_millis(40)),
                least_rtt: Some(Duration::from_millis(40)),
                window: ByteCount::new(100_000),
                served: served.map(Bitrate::from_mbps),
                max_datagram: ByteCount::new(1_200),
                terms: PathTerms::default(),
            };
            8e-6 * Lane::new(facts, Timestamp::ZERO).lasting()
        };
        // 100 kB in 40 ms are 20 Mbit/s.
        assert_eq!([None, Some(12), Some(30)].map(lasting), [20.0, 12.0, 20.0]);
    }
}
