//! RED, random early detection: the longer the average queue, the more likely an arrival is
//! dropped or marked. The average forgets slowly, so a burst passes and a standing queue does not.
//!
//! # Source
//!
//! [FloydJacobson1993]; the gentle variant [Floyd2000]. How likely, is a piecewise linear function of
//! the average queue: the original, the gentle variant and the testbed of [CoNEXT2012OLIA] differ
//! only in its points.
//!
//! # Symbols
//!
//! | paper | here | unit |
//! |---|---|---|
//! | `avg` | `average` | packets or bytes |
//! | `w_q` | `weight` | |
//! | `min_th`, `max_th`, `max_p` | `points` | packets, bytes or time; probability |
//! | `count` | `unmarked` | packets |
//! | `q_time` | `Arrival::idle_since` | timestamp |
//! | `s` | `typical_packet` at the link's rate | time |
//!
//! # Deviations
//!
//! - The queue is what waits. The packet in transmission is not in it, but the link is idle only
//!   when nothing is transmitted either.
//! - A signal is a mark where the packet can carry one, and a drop where it cannot [RFC3168 §5].
//!   Where the probability is 1, everything is dropped: marks have not helped.
//! - The probability does not depend on the packet's size, which [RFC7141] advises against.
//! - After an idle time the average decays as the paper says, at the rate of the link at the end of
//!   that time. Thresholds in time follow the rate; the average, in bytes, does not.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use rand_chacha::ChaCha8Rng;

use super::drop_tail::sent_in;
use super::{Arrival, EnqueueAction, QueueLimit};
use crate::error::LinkConfigError;
use crate::stats::Count;
use crate::stream::unit;

/// The weight of the newest queue in the average [FloydJacobson1993].
const WEIGHT: f64 = 0.002;
/// The packet that an idle link is taken to have sent; the paper says a small one, the size is
/// assumed.
const TYPICAL_PACKET: ByteCount = ByteCount::new(500);

/// How the signals are spread over the arrivals [FloydJacobson1993 §7].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedSpacing {
    /// Each arrival has the probability of the profile, whatever happened before: the distances
    /// between signals are geometric. Signals cluster.
    Geometric,
    /// The probability grows with the arrivals since the last signal, so that the distances are
    /// uniform from 1 to about 1/p, and half as long on average.
    Uniform,
}

/// A queue under RED.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The probability of a signal by the average queue: linear between these points, 0 before the
    /// first, and that of the last from there on. Two points of one threshold make a jump. All
    /// thresholds are of one unit, and they do not fall.
    pub points: Vec<(QueueLimit, f64)>,
    /// The weight of the newest queue in the average, from 0 to 1.
    pub weight: f64,
    /// How the signals are spread.
    pub spacing: RedSpacing,
    /// The size of the packets that an idle link could have sent: for each, the average decays as
    /// if one had come to an empty queue.
    pub typical_packet: ByteCount,
    /// The most that may wait, whatever the average.
    pub limit: QueueLimit,
}

impl RedConfig {
    /// As first published: nothing happens below `min`, then the probability grows up to
    /// `max_probability` at `max`, and from there on everything is dropped. No limit.
    pub fn classic(min: QueueLimit, max: QueueLimit, max_probability: f64) -> Self {
        Self::new(vec![(min, 0.0), (max, max_probability), (max, 1.0)])
    }

    /// The gentle variant: from `max` to twice `max` the probability grows on to 1 \[Floyd2000\].
    pub fn gentle(min: QueueLimit, max: QueueLimit, max_probability: f64) -> Self {
        Self::new(vec![(min, 0.0), (max, max_probability), (twice(max), 1.0)])
    }

    /// The routers of OLIA's testbed: for each 10 Mbit/s, 0 up to 25 packets, 0.1 at 50 and 1 at
    /// 100 (\[Khalili2013\], §3 of the draft). With packets of 1500 bytes that is 30, 60 and 120 ms at any rate.
    /// The probability is plain, not spread by a count; the weight of 0.01 is assumed.
    pub fn olia_testbed(packet: ByteCount) -> Self {
        let time = |packets| QueueLimit::Sojourn(packet * packets / Bitrate::from_mbps(10));
        let points = vec![(time(25), 0.0), (time(50), 0.1), (time(100), 1.0)];
        Self { weight: 0.01, spacing: RedSpacing::Geometric, ..Self::new(points) }
    }

    /// The profile of `points`, and for the rest what the paper recommends. No limit.
    pub fn new(points: Vec<(QueueLimit, f64)>) -> Self {
        Self {
            points,
            weight: WEIGHT,
            spacing: RedSpacing::Uniform,
            typical_packet: TYPICAL_PACKET,
            limit: QueueLimit::Unlimited,
        }
    }

    /// The same with this limit.
    pub fn limit(self, limit: QueueLimit) -> Self {
        Self { limit, ..self }
    }

    /// The same with this weight.
    pub fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        for (_, probability) in &self.points {
            LinkConfigError::check_probability("queue.points", *probability)?;
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(LinkConfigError::NotAWeight { value: self.weight });
        }
        let Some(first) = self.points.first() else { return Err(LinkConfigError::NoPoints) };
        let steps = self.points.windows(2).map(|pair| (pair[0].0, pair[1].0));
        match [(first.0, first.0)].into_iter().chain(steps).position(|(from, to)| !is_step(from, to)) {
            Some(index) => Err(LinkConfigError::BadThreshold { number: index + 1 }),
            None => Ok(()),
        }
    }
}

/// Whether both are amounts of one unit and the second is not below the first.
fn is_step(from: QueueLimit, to: QueueLimit) -> bool {
    match (from, to) {
        (QueueLimit::Bytes(from), QueueLimit::Bytes(to)) => from <= to,
        (QueueLimit::Packets(from), QueueLimit::Packets(to)) => from <= to,
        (QueueLimit::Sojourn(from), QueueLimit::Sojourn(to)) => from <= to,
        _ => false,
    }
}

fn twice(threshold: QueueLimit) -> QueueLimit {
    match threshold {
        QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes.saturating_add(bytes)),
        QueueLimit::Packets(packets) => QueueLimit::Packets(packets.saturating_mul(2)),
        QueueLimit::Sojourn(time) => QueueLimit::Sojourn(time.saturating_mul(2)),
        QueueLimit::Unlimited => QueueLimit::Unlimited,
    }
}

/// RED at work.
#[derive(Debug)]
pub(super) struct Red {
    config: RedConfig,
    /// The thresholds in packets or bytes, and the probabilities, for the rate `scaled_to`.
    points: Vec<(f64, f64)>,
    scaled_to: Option<Bitrate>,
    average: f64,
    /// How many arrivals in a row got no signal although they could have; one more after a signal,
    /// as in the paper.
    unmarked: u64,
    generator: ChaCha8Rng,
}

impl Red {
    pub(super) fn new(config: &RedConfig, generator: ChaCha8Rng) -> Self {
        let mut red =
            Self { config: config.clone(), points: Vec::new(), scaled_to: None, average: 0.0, unmarked: 0, generator };
        red.scale_to(None);
        red
    }

    /// The decision about an arrival that finds this `waiting`, with framing.
    pub(super) fn judge(&mut self, waiting: Count, arrival: &Arrival) -> EnqueueAction {
        if self.scaled_to != arrival.rate {
            self.scale_to(arrival.rate);
        }
        self.average = match arrival.idle_since {
            Some(since) => {
                let idle = arrival.now.since(since);
                let packets = packets_in(idle, arrival.rate, self.config.typical_packet);
                decayed(self.average, self.config.weight, packets)
            }
            None => filtered(self.average, self.config.weight, self.length(waiting)),
        };
        let probability = interpolated(&self.points, self.average);
        if probability <= 0.0 {
            self.unmarked = 0;
            return EnqueueAction::Pass;
        }
        let spread = match self.config.spacing {
            RedSpacing::Geometric => probability,
            RedSpacing::Uniform => spread(probability, self.unmarked),
        };
        if probability >= 1.0 {
            self.unmarked = 1;
            EnqueueAction::Drop
        } else if unit(&mut self.generator) < spread {
            self.unmarked = 1;
            EnqueueAction::Signal
        } else {
            self.unmarked += 1;
            EnqueueAction::Pass
        }
    }

    /// The queue in the unit of the thresholds.
    fn length(&self, waiting: Count) -> f64 {
        match self.config.points.first() {
            Some((QueueLimit::Packets(_), _)) => waiting.packets as f64,
            _ => waiting.bytes.as_f64(),
        }
    }

    fn scale_to(&mut self, rate: Option<Bitrate>) {
        let scaled = |(threshold, probability): &(QueueLimit, f64)| {
            let threshold = match *threshold {
                QueueLimit::Packets(packets) => packets as f64,
                QueueLimit::Bytes(bytes) => bytes.as_f64(),
                QueueLimit::Sojourn(time) => sent_in(time, rate).as_f64(),
                QueueLimit::Unlimited => f64::INFINITY,
            };
            (threshold, *probability)
        };
        self.points = self.config.points.iter().map(scaled).collect();
        self.scaled_to = rate;
    }
}

// [FloydJacobson1993 §4]
//
//     avg <- (1 - w_q) avg + w_q q
fn filtered(average: f64, weight: f64, queue: f64) -> f64 {
    (1.0 - weight) * average + weight * queue
}

// [FloydJacobson1993 §4], m packets could have been sent while the queue was empty:
//
//     avg <- (1 - w_q)^m avg
fn decayed(average: f64, weight: f64, packets: f64) -> f64 {
    // The product of 0 and infinity is not a number: a queue that was empty stays so.
    if average == 0.0 { 0.0 } else { average * libm::pow(1.0 - weight, packets) }
}

// [FloydJacobson1993 §4]
//
//     m = (time - q_time) / s
fn packets_in(idle: Duration, rate: Option<Bitrate>, packet: ByteCount) -> f64 {
    match rate {
        Some(rate) => idle.as_secs_f64() * rate.as_bps() as f64 / (8.0 * packet.as_f64()),
        None => f64::INFINITY,
    }
}

// [FloydJacobson1993 §4], between two points of the profile:
//
//     p_b = max_p (avg - min_th) / (max_th - min_th)
fn interpolated(points: &[(f64, f64)], average: f64) -> f64 {
    let reached = points.iter().take_while(|(threshold, _)| *threshold <= average).count();
    match (reached.checked_sub(1).map(|last| points[last]), points.get(reached)) {
        (None, _) => 0.0,
        (Some((_, probability)), None) => probability,
        (Some((from, low)), Some((to, high))) => low + (high - low) * (average - from) / (to - from),
    }
}

// [FloydJacobson1993 §4]
//
//     p_a = p_b / (1 - count p_b)
fn spread(probability: f64, unmarked: u64) -> f64 {
    let rest = 1.0 - unmarked as f64 * probability;
    if rest > 0.0 { probability / rest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use fairpath_core::Timestamp;

    use super::*;
    use crate::stream::Streams;

    const PACKET: ByteCount = ByteCount::new(1_500);
    const MS: fn(u64) -> QueueLimit = |millis| QueueLimit::Sojourn(Duration::from_millis(millis));

    fn red(config: &RedConfig) -> Red {
        Red::new(config, Streams::new(1).generator("link", "red"))
    }

    /// An arrival at a busy link of 10 Mbit/s.
    fn arrival(rate: Bitrate) -> Arrival {
        Arrival { now: Timestamp::from_secs(1), on_wire: PACKET, rate: Some(rate), idle_since: None }
    }

    fn packets(packets: u64) -> Count {
        Count { packets, bytes: PACKET * packets }
    }

    /// The drop probability of a config at this average of packets of 1500 bytes.
    fn probability(config: &RedConfig, average: u64, rate: Bitrate) -> f64 {
        let mut red = red(&config.clone().weight(1.0));
        let _ = red.judge(packets(average), &arrival(rate));
        interpolated(&red.points, red.average)
    }

    #[test]
    fn the_testbed_is_piecewise_linear_and_scales_with_the_rate() {
        let config = RedConfig::olia_testbed(PACKET);
        // 25 · 1500 · 8 / 10^7 = 30 ms, and so on.
        assert_eq!(config.points, [(MS(30), 0.0), (MS(60), 0.1), (MS(120), 1.0)]);
        for scale in [1, 4, 100] {
            let rate = Bitrate::from_mbps(10 * scale);
            // Half way from 50 to 100: 0.1 + 0.9 / 2. From 25 to 50: 0.1 · 15 / 25.
            for (average, expected) in [(0, 0.0), (25, 0.0), (40, 0.06), (50, 0.1), (75, 0.55), (100, 1.0), (200, 1.0)]
            {
                let found = probability(&config, average * scale, rate);
                assert!((found - expected).abs() < 1e-12, "{average} packets at {rate}: {found}");
            }
        }
    }

    #[test]
    fn the_classic_profile_jumps_to_one_and_the_gentle_one_grows_to_it() {
        let rate = Bitrate::from_mbps(10);
        let (min, max) = (QueueLimit::Packets(10), QueueLimit::Packets(30));
        let classic = RedConfig::classic(min, max, 0.1);
        let gentle = RedConfig::gentle(min, max, 0.1);
        // Half way from 10 to 30: 0.05. Gentle, half way from 30 to 60: 0.1 + 0.9 / 2.
        for (average, at_classic, at_gentle) in
            [(9, 0.0, 0.0), (20, 0.05, 0.05), (30, 1.0, 0.1), (45, 1.0, 0.55), (60, 1.0, 1.0)]
        {
            assert!((probability(&classic, average, rate) - at_classic).abs() < 1e-12);
            assert!((probability(&gentle, average, rate) - at_gentle).abs() < 1e-12);
        }
        assert_eq!(RedConfig::gentle(MS(5), MS(15), 0.1).points[2].0, MS(30));
        assert_eq!(
            RedConfig::gentle(QueueLimit::Bytes(PACKET), QueueLimit::Bytes(PACKET * 2), 0.1).points[2].0,
            QueueLimit::Bytes(PACKET * 4)
        );
    }

    #[test]
    fn thresholds_in_packets_count_packets_and_thresholds_in_bytes_count_bytes() {
        let rate = Bitrate::from_mbps(10);
        let in_packets =
            RedConfig::new(vec![(QueueLimit::Packets(0), 0.0), (QueueLimit::Packets(10), 1.0)]).weight(1.0);
        let in_bytes =
            RedConfig::new(vec![(QueueLimit::Bytes(ByteCount::ZERO), 0.0), (QueueLimit::Bytes(PACKET), 1.0)])
                .weight(1.0);
        // Ten packets of 100 bytes: all of the first, 1000 / 1500 of the second.
        let small = Count { packets: 10, bytes: ByteCount::new(1_000) };
        for (config, expected) in [(in_packets, 1.0), (in_bytes, 1_000.0 / 1_500.0)] {
            let mut red = red(&config);
            let _ = red.judge(small, &arrival(rate));
            assert!((interpolated(&red.points, red.average) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        // 100 arrivals that find 50 packets: 50 · (1 - 0.998^100) = 9.0717
        let mut red = red(&RedConfig::classic(QueueLimit::Packets(20), QueueLimit::Packets(60), 0.02));
        for _ in 0..100 {
            assert_eq!(red.judge(packets(50), &arrival(Bitrate::from_mbps(10))), EnqueueAction::Pass);
        }
        assert!((red.average - 9.071_7).abs() < 1e-4, "{}", red.average);
    }

    #[test]
    fn an_idle_link_forgets_as_if_small_packets_had_come_to_an_empty_queue() {
        let mut red = red(&RedConfig::classic(QueueLimit::Packets(20), QueueLimit::Packets(60), 0.02));
        red.average = 10.0;
        // 4 Mbit/s send a packet of 500 bytes in 1 ms. 100 of them: 10 · 0.998^100 = 8.1857
        let now = Timestamp::from_millis(350);
        let idle_since = Some(Timestamp::from_millis(250));
        let _ = red.judge(packets(0), &Arrival { now, idle_since, ..arrival(Bitrate::from_mbps(4)) });
        assert!((red.average - 8.185_7).abs() < 1e-4, "{}", red.average);
        // A link without a limit has sent any number of packets meanwhile.
        let _ = red.judge(packets(0), &Arrival { now, idle_since, rate: None, ..arrival(Bitrate::ZERO) });
        assert_eq!(red.average, 0.0);
    }

    /// The distances between the signals of 200,000 arrivals at a probability of 2 %.
    fn distances(spacing: RedSpacing) -> Vec<u64> {
        let points = vec![(QueueLimit::Packets(0), 0.0), (QueueLimit::Packets(100), 1.0)];
        let mut red = red(&RedConfig { spacing, ..RedConfig::new(points) }.weight(1.0));
        let mut since = 0;
        let mut distances = Vec::new();
        for _ in 0..200_000 {
            since += 1;
            if red.judge(packets(2), &arrival(Bitrate::from_mbps(10))) == EnqueueAction::Signal {
                distances.push(since);
                since = 0;
            }
        }
        distances
    }

    #[test]
    fn geometric_signals_come_at_the_probability_of_the_profile() {
        // 200,000 draws at 2 %: 4,000, with a deviation of sqrt(200,000 · 0.02 · 0.98) = 63; four of them.
        let distances = distances(RedSpacing::Geometric);
        assert!(distances.len().abs_diff(4_000) < 250, "{}", distances.len());
        // Above 49 are 0.98^49 = 37.2 % of the distances; the deviation of 4,000 is 0.0077; four of them.
        let long = distances.iter().filter(|distance| **distance > 49).count() as f64 / distances.len() as f64;
        assert!((long - 0.372).abs() < 0.031, "{long}");
    }

    #[test]
    fn uniform_signals_are_never_far_apart() {
        // p_a = 0.02 / (1 - n · 0.02), n from 1: each distance from 1 to 49 has the probability
        // 0.02 / 0.98. The mean is 25, so 8,000 distances; the deviation of the mean is
        // sqrt((49² - 1) / 12 / 8,000) = 0.16; four of them.
        let distances = distances(RedSpacing::Uniform);
        // The first has no signal before it, and may be 50.
        assert!(distances[1..].iter().all(|distance| (1..=49).contains(distance)));
        let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
        assert!((mean - 25.0).abs() < 0.64, "{mean}");
        // A distance up to 16 has the share 16 / 49, up to 33 has 33 / 49. The deviation of a share
        // of 8,000 is at most 0.0056; four of them.
        for longest in [16, 33] {
            let share =
                distances.iter().filter(|distance| **distance <= longest).count() as f64 / distances.len() as f64;
            assert!((share - longest as f64 / 49.0).abs() < 0.022, "up to {longest}: {share}");
        }
    }

    #[test]
    fn where_the_probability_is_one_everything_must_be_dropped() {
        let mut red = red(&RedConfig::olia_testbed(PACKET).weight(1.0));
        for (average, expected) in [(25, EnqueueAction::Pass), (100, EnqueueAction::Drop), (0, EnqueueAction::Pass)] {
            assert_eq!(red.judge(packets(average), &arrival(Bitrate::from_mbps(10))), expected);
        }
    }

    #[test]
    fn during_an_outage_a_queue_in_time_has_no_room() {
        let mut red = red(&RedConfig::olia_testbed(PACKET));
        assert_eq!(red.judge(packets(0), &arrival(Bitrate::ZERO)), EnqueueAction::Drop);
        assert_eq!(red.judge(packets(0), &arrival(Bitrate::from_mbps(10))), EnqueueAction::Pass);
    }

    #[test]
    fn a_profile_that_cannot_be_meant_is_refused() {
        let check = |points: &[(QueueLimit, f64)]| RedConfig::new(points.to_vec()).check();
        let packets = QueueLimit::Packets;
        assert_eq!(check(&[]), Err(LinkConfigError::NoPoints));
        assert_eq!(check(&[(packets(1), 0.0), (packets(1), 1.0)]), Ok(()));
        assert_eq!(check(&[(packets(2), 0.0), (packets(1), 1.0)]), Err(LinkConfigError::BadThreshold { number: 2 }));
        assert_eq!(check(&[(packets(2), 0.0), (MS(5), 1.0)]), Err(LinkConfigError::BadThreshold { number: 2 }));
        assert_eq!(check(&[(QueueLimit::Unlimited, 0.0)]), Err(LinkConfigError::BadThreshold { number: 1 }));
        let not_a_probability = LinkConfigError::NotAProbability { field: "queue.points", value: 1.5 };
        assert_eq!(check(&[(packets(2), 1.5)]), Err(not_a_probability));
        for value in [0.0, 1.5, -1.0] {
            let config = RedConfig::olia_testbed(PACKET).weight(value);
            assert_eq!(config.check(), Err(LinkConfigError::NotAWeight { value }));
        }
    }
}
