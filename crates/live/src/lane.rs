//! A path as a sender has it: what it may carry, and how good it is.

use core::time::Duration;

use fairpath_core::{Bitrate, GroupId, Rtt, Timestamp};
use fairpath_engine::{PathView, Rank, Terms, Transit};
use fairpath_rate::{Delays, LossIntervals};

use crate::facts::PathFacts;
use crate::parameters::LiveParameters;
use crate::track::Track;

/// How much above what congestion control allows a path is paced, so that its window, and not this, is the limit
/// [RFC9002 §7.7].
const ABOVE_WINDOW: f64 = 1.25;

/// The round trip assumed for rates before a path has measured one.
const FIRST_RTT: Duration = Duration::from_millis(100);

/// How long the peer may keep back an acknowledgement [RFC9000 §18.2, max_ack_delay]. Reports are as often, and the host is
/// asked as often which paths answer.
pub(crate) const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// To the scheduler a backup is a path that costs more than any other: it carries what those have no room for.
const BACKUP: u32 = 1 << 31;

/// A path as a sender has it.
#[derive(Debug)]
pub(crate) struct Lane {
    parameters: LiveParameters,
    pub(crate) facts: PathFacts,
    pub(crate) track: Track,
    /// Those of its group share a bottleneck; `None` where groups do not count.
    pub(crate) group: Option<GroupId>,
    pub(crate) loss_intervals: LossIntervals,
    /// Its rate, in bytes per second.
    pub(crate) rate: f64,
    /// The share of its packets that was lost of late.
    pub(crate) loss: f64,
    /// The share of its packets that come in time.
    pub(crate) value: f64,
    /// The share of those that arrive that come too late.
    pub(crate) late: f64,
    pub(crate) delays: Option<Delays>,
    pub(crate) is_silent: bool,
    /// The usual deviation of its delays.
    pub(crate) varies: Duration,
    /// How many packets in a row had no answer, or had it later than all but a few do.
    unanswered: usize,
    /// How good it is to the scheduler.
    pub(crate) rank: Rank,
    /// The share of its packets that is missing at the deadline though it is sent again.
    pub(crate) unmended: f64,
    /// The bytes that may leave now; negative after a packet larger than the credit that was left.
    pub(crate) credit: f64,
    pub(crate) filled_at: Timestamp,
    /// The bytes of copies that it still has to carry.
    pub(crate) owes: f64,
    pub(crate) carried_at: Timestamp,
    /// How much of new data it carried since the rates were set.
    pub(crate) carried: f64,
}

impl Lane {
    pub(crate) fn new(facts: PathFacts, parameters: LiveParameters, now: Timestamp) -> Self {
        Self {
            parameters,
            facts,
            track: Track::default(),
            group: None,
            loss_intervals: LossIntervals::default(),
            rate: allowed(&facts),
            loss: 0.0,
            value: 1.0,
            late: 0.0,
            delays: None,
            is_silent: false,
            varies: Duration::ZERO,
            unanswered: 0,
            rank: Rank::default(),
            unmended: 0.0,
            credit: 0.0,
            filled_at: now,
            owes: 0.0,
            carried_at: now,
            carried: 0.0,
        }
    }

    /// Takes the host's current facts.
    pub(crate) fn look(&mut self, facts: PathFacts, now: Timestamp) {
        self.facts = facts;
        self.track.forget(self.parameters.delays_for, now);
        (self.delays, self.varies) = (self.track.delays(self.parameters.newest_for, now), self.track.usual_deviation());
    }

    pub(crate) fn rtt(&self) -> Duration {
        self.facts.rtt.unwrap_or(FIRST_RTT)
    }

    /// The share of packets that take longer than `deadline`.
    pub(crate) fn late_for(&self, deadline: Duration) -> f64 {
        self.track.late(deadline, self.parameters.newest_for)
    }

    /// How much may leave at once, in bytes.
    pub(crate) fn burst(&self) -> f64 {
        2.0 * self.facts.max_datagram.as_f64() + self.rate * self.parameters.burst.as_secs_f64()
    }

    pub(crate) fn fill(&mut self, now: Timestamp) {
        let passed = now.since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.credit = (self.credit + self.rate * passed).min(self.burst());
    }

    /// An answer that takes longer has been lost, or what it answers is late: all but one in a thousand come by then, and
    /// so a probe timeout counts them, too [RFC9002 §6.2.1].
    pub(crate) fn patience(&self) -> Duration {
        self.round_trips().probe_timeout() + ACK_DELAY_MAX
    }

    fn round_trips(&self) -> Rtt {
        Rtt { variance: self.varies.max(self.parameters.varies), ..Rtt::steady(self.rtt()) }
    }

    /// An answer came `after` its packet left. A late one counts as missing, since later ones are
    /// late, too.
    pub(crate) fn on_answer(&mut self, after: Duration) {
        self.unanswered = if after > self.patience() { self.unanswered + 1 } else { 0 };
    }

    /// This many packets had no answer by the time at which all but a few have one.
    pub(crate) fn on_no_answer(&mut self, packets: usize) {
        self.unanswered += packets;
    }

    /// Whether more answers in a row are missing than by chance, where this share is lost.
    fn is_overdue(&self) -> bool {
        let LiveParameters { by_chance, loss_max, .. } = self.parameters;
        let seldom_lost = libm::ceil(libm::log(by_chance) / libm::log(self.loss.min(loss_max))).max(1.0);
        self.unanswered as f64 >= seldom_lost
    }

    /// The scheduler's view of it.
    pub(crate) fn view(&self) -> PathView {
        let PathFacts { path, max_datagram, window, terms, .. } = self.facts;
        let guess = Delays { mean: self.rtt() / 2, deviation: Duration::ZERO };
        let Delays { mean, deviation } = self.delays.unwrap_or(guess);
        PathView {
            id: path,
            window: window.max(max_datagram),
            paced: self.credit <= 0.0,
            in_flight: fairpath_core::ByteCount::ZERO,
            max_datagram,
            rtt: Some(self.round_trips()),
            one_way: None,
            transit: Some(Transit { mean, deviation, late: self.late, lost: self.loss_intervals.rate() }),
            delivery_rate: Some(Bitrate::from_bps((8.0 * self.lasting()) as u64)),
            ssthresh: None,
            in_slow_start: false,
            window_limited: false,
            burst_until: Timestamp::ZERO,
            // An answer that is overdue is so by any patience.
            heard_at: Timestamp::ZERO,
            oldest_sent: self.is_overdue().then_some(Timestamp::ZERO),
            usable: self.is_open(),
            backup: false,
            terms: Terms { cost: terms.cost | if terms.backup { BACKUP } else { 0 }, ..Terms::default() },
        }
    }

    /// Whether anything has said how long packets take.
    pub(crate) fn is_known(&self) -> bool {
        self.delays.is_some() || self.facts.rtt.is_some()
    }

    /// How long about half of the packets take at most that leave now.
    pub(crate) fn mostly_takes(&self) -> Duration {
        self.delays.map_or(self.rtt() / 2, |delays| delays.mean)
    }

    /// The long-term rate, in bytes per second: pacing runs above the rate that its window allows.
    pub(crate) fn lasting(&self) -> f64 {
        self.rate.min(released(&self.facts))
    }

    /// Whether new data may go on it.
    pub(crate) fn is_open(&self) -> bool {
        self.facts.usable && !self.is_silent
    }
}

/// The limit of a path's pacing rate, in bytes per second: by its window and its cap.
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
    use fairpath_engine::Liveness;

    use super::*;
    use crate::facts::PathTerms;

    #[test]
    fn a_path_lasts_for_what_it_is_known_to_carry_however_large_its_window_is() {
        let lasting = |served: Option<u64>| {
            let facts = PathFacts {
                path: PathId::new(0),
                usable: true,
                liveness: Liveness::Alive,
                rtt: Some(Duration::from_millis(40)),
                least_rtt: Some(Duration::from_millis(40)),
                window: ByteCount::new(100_000),
                served: served.map(Bitrate::from_mbps),
                max_datagram: ByteCount::new(1_200),
                terms: PathTerms::default(),
            };
            8e-6 * Lane::new(facts, LiveParameters::DEFAULT, Timestamp::ZERO).lasting()
        };
        // 100 kB in 40 ms are 20 Mbit/s.
        assert_eq!([None, Some(12), Some(30)].map(lasting), [20.0, 12.0, 20.0]);
    }
}
