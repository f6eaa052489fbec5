//! DAIMD, delay-based AIMD: LIA that also shrinks a window, a little less than for a loss, when the
//! queue on its path has been nearly full for a while. It so avoids most losses and keeps queues
//! shorter, and still gets a share beside flows that only losses stop.
//!
//! # Source
//!
//! [DAIMD2016] Hybrid Delay-Based Congestion Control for Multipath TCP.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd_r | `PathWindow::cwnd` | bytes |
//! | D, packet delay | `Rtt::latest` | s |
//! | D0, delay that triggers a backoff | base plus `Daimd::full` of the longest queue | s |
//! | W0, window that activates it | `Daimd::window_least` | datagrams |
//! | T, time for which the delay must hold | `Daimd::hold_rtts` | smoothed round-trip times |
//! | 0.7 | `Daimd::backoff` | 1 |
//!
//! # Deviations
//!
//! - The source gives D0, W0 and T no values; all that is here are ours. D0 is set between the least
//!   and the greatest round-trip time, so that it needs no knowledge of the path.
//! - One queue that is full gives one backoff: the next needs that the delay fell below `rearmed` of
//!   the longest queue, or a loss, in between. The rule as it is written would cut again and again
//!   beside a Reno that keeps the queue full, and starve.
//! - The longest queue is learnt from losses ([`LongestQueue::Adaptive`]). The paper's tables are
//!   run with the longest round-trip time ever ([`LongestQueue::Seen`]). That includes the up to 25
//!   ms for which a peer delayed one acknowledgement [RFC9000 §18.2, max_ack_delay], and is then
//!   longer than any queue can be. D0 is never reached, and LIA remains, to the bit. Hosts cannot
//!   subtract that delay: not all of them are told how long the peer waited.

use core::time::Duration;

use fairpath_core::{Ack, ByteCount, Rtt, Timestamp};

use super::{coupled_increase, lia, reno};
use crate::aimd::{Adjustment, GroupView, PathWindow, Rule};
use crate::time::nanos;

/// Delay-based AIMD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Daimd {
    /// The part of the longest queue at which it counts as full: 0.9.
    pub full: f64,
    /// The part below which the queue must fall before it can be full again: 0.5.
    pub rearmed: f64,
    /// A window up to this is not shrunk by delay, in datagrams: 10.
    pub window_least: f64,
    /// How long the queue must be full, in smoothed round-trip times: 1.
    pub hold_rtts: f64,
    /// The part of the window that remains: 0.7.
    pub backoff: f64,
    /// Against what round-trip time the queue is measured.
    pub base: BaseRtt,
    /// How long the longest queue is.
    pub queue: LongestQueue,
}

impl Default for Daimd {
    fn default() -> Self {
        Self {
            full: 0.9,
            rearmed: 0.5,
            window_least: 10.0,
            hold_rtts: 1.0,
            backoff: 0.7,
            base: BaseRtt::default(),
            queue: LongestQueue::default(),
        }
    }
}

/// The round-trip time of the path without a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseRtt {
    /// The least ever.
    #[default]
    Ever,
    /// The least of the last 10 s: follows a path that has become longer, and mistakes a queue that
    /// stands for that long for one.
    TenSeconds,
}

/// The delay of the longest queue that the path can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongestQueue {
    /// The longest ever seen. Only for peers that acknowledge each packet at once.
    Seen,
    /// The longest wait that two samples in a row have shown, until the first loss. A single
    /// delayed acknowledgement does not count. It is at least the base round-trip time, the queue
    /// of a buffer of one bandwidth-delay product. After the first loss, an average of the queues
    /// at losses, with gain 1/8.
    #[default]
    Adaptive,
}

/// The memory of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    /// The last measurement; `None` before the first sample.
    rtt: Option<Rtt>,
    /// When: the packets of one acknowledgement share one sample.
    sampled_at: Option<Timestamp>,
    rtt_max: Duration,
    /// The longest that two samples in a row have shown.
    rtt_max_held: Duration,
    /// The average of the queues at losses, in nanoseconds; `None` before the first.
    at_losses_ns: Option<f64>,
    /// Whether the queue has not fallen since the last backoff.
    spent: bool,
    full_since: Option<Timestamp>,
    cut_at: Option<Timestamp>,
}

impl Rule for Daimd {
    type Memory = Queue;
    type News = ();

    fn increase(&self, group: &impl GroupView<Queue>, acked: ByteCount) -> f64 {
        coupled_increase(group, acked, lia::gain)
    }

    fn decrease(&self, group: &impl GroupView<Queue>) -> f64 {
        reno::halved(group.own())
    }

    fn on_delay(&self, group: &impl GroupView<Queue>, ack: &Ack) -> Option<Adjustment<Queue>> {
        let memory = *group.own_memory();
        let (since, rtt) = (memory.full_since?, memory.rtt?);
        let held = nanos(ack.now.since(since)) >= self.hold_rtts * nanos(rtt.smoothed);
        let rested = memory.cut_at.is_none_or(|cut_at| ack.now.since(cut_at) >= rtt.smoothed);
        (held && rested).then(|| Adjustment {
            cwnd: group.own().cwnd() * self.backoff,
            memory: Queue { spent: true, full_since: None, cut_at: Some(ack.now), ..memory },
        })
    }

    fn on_ack(&self, memory: &mut Queue, window: &PathWindow, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        if let (Some(before), true) = (memory.rtt, memory.sampled_at != Some(ack.now)) {
            memory.rtt_max_held = memory.rtt_max_held.max(rtt.latest.min(before.latest));
        }
        (memory.rtt, memory.sampled_at) = (Some(rtt), Some(ack.now));
        memory.rtt_max = memory.rtt_max.max(rtt.latest);
        let (queue_ns, longest_ns) = (self.queue_ns(&rtt), self.longest_ns(memory, &rtt));
        if queue_ns < self.rearmed * longest_ns {
            memory.spent = false;
        }
        let is_full = queue_ns > 0.0 && queue_ns >= self.full * longest_ns;
        // Elsewhere than in congestion avoidance a full queue is no news: slow start goes on until
        // there is one, and during recovery it is the one that caused the loss.
        let counts = window.may_grow(ack)
            && !window.in_slow_start()
            && window.cwnd() > self.window_least * window.max_datagram();
        memory.full_since = match memory.full_since {
            _ if memory.spent || !is_full || !counts => None,
            None => Some(ack.now),
            since => since,
        };
    }

    fn on_reduced(&self, memory: &mut Queue, _window: &PathWindow, _now: Timestamp) {
        memory.spent = false;
        memory.full_since = None;
        if let (Some(rtt), LongestQueue::Adaptive) = (memory.rtt, self.queue) {
            memory.at_losses_ns = Some(averaged(self.longest_ns(memory, &rtt), self.queue_ns(&rtt)));
        }
    }

    fn on_undone(&self, memory: &mut Queue, before: &Queue) {
        (memory.at_losses_ns, memory.spent) = (before.at_losses_ns, before.spent);
    }
}

impl Daimd {
    fn base(&self, rtt: &Rtt) -> Duration {
        match self.base {
            BaseRtt::Ever => rtt.min,
            BaseRtt::TenSeconds => rtt.windowed_min,
        }
    }

    /// How long the queue is, in nanoseconds.
    fn queue_ns(&self, rtt: &Rtt) -> f64 {
        nanos(rtt.latest.saturating_sub(self.base(rtt)))
    }

    /// How long the longest queue is, in nanoseconds.
    fn longest_ns(&self, memory: &Queue, rtt: &Rtt) -> f64 {
        let base = self.base(rtt);
        match (self.queue, memory.at_losses_ns) {
            (LongestQueue::Seen, _) => nanos(memory.rtt_max.saturating_sub(base)),
            (LongestQueue::Adaptive, None) => nanos(memory.rtt_max_held.saturating_sub(base).max(base)),
            (LongestQueue::Adaptive, Some(at_losses_ns)) => at_losses_ns,
        }
    }
}

// Ours: 7/8 of what was known and 1/8 of the queue at this loss.
fn averaged(known_ns: f64, queue_ns: f64) -> f64 {
    (7.0 * known_ns + queue_ns) / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller};

    /// Acknowledges nothing on path 0 at `now_ms`, sent after the last reduction, with this latest
    /// round-trip time and 100 ms as the least and the smoothed one.
    fn measure(daimd: &mut Aimd<Daimd>, now_ms: u64, latest_ms: u64) {
        let measured = Rtt { latest: ms(latest_ms), ..rtt(ms(100)) };
        let sent_at = Timestamp::from_millis(now_ms);
        daimd.on_ack(path(0), &Ack { sent_at, rtt: Some(measured), ..ack(now_ms, ByteCount::ZERO, 100) });
    }

    fn packets(daimd: &Aimd<Daimd>) -> f64 {
        daimd.window(path(0)).as_f64() / PACKET.as_f64()
    }

    fn cuts(daimd: &Aimd<Daimd>) -> u64 {
        daimd.state(path(0)).unwrap().delay_cuts
    }

    /// A window of 20 packets and a longest queue of 100 ms, at 11 s.
    fn queue_of_100_ms(rule: Daimd) -> Aimd<Daimd> {
        let mut daimd = in_avoidance(rule, &[(20, 100)]);
        measure(&mut daimd, 10_900, 200);
        measure(&mut daimd, 11_000, 100);
        daimd
    }

    #[test]
    fn a_queue_nine_tenths_full_for_a_round_trip_leaves_seven_tenths_of_the_window() {
        let mut daimd = queue_of_100_ms(Daimd::default());
        measure(&mut daimd, 11_100, 189);
        measure(&mut daimd, 11_300, 190);
        measure(&mut daimd, 11_399, 195);
        assert_eq!((packets(&daimd), cuts(&daimd)), (20.0, 0));
        measure(&mut daimd, 11_400, 190);
        assert_eq!((packets(&daimd), cuts(&daimd)), (14.0, 1));
    }

    #[test]
    fn a_delay_that_falls_in_between_starts_the_time_anew() {
        let mut daimd = queue_of_100_ms(Daimd::default());
        for (now_ms, latest_ms) in [(11_300, 190), (11_350, 180), (11_400, 190), (11_499, 190)] {
            measure(&mut daimd, now_ms, latest_ms);
        }
        assert_eq!(cuts(&daimd), 0);
        measure(&mut daimd, 11_500, 190);
        assert_eq!(cuts(&daimd), 1);
    }

    #[test]
    fn a_queue_that_stays_full_is_cut_once_until_it_has_fallen_by_half() {
        let mut daimd = queue_of_100_ms(Daimd::default());
        (0..50).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 195));
        assert_eq!((packets(&daimd), cuts(&daimd)), (14.0, 1));
        // 50 ms are half of the longest queue, 49 less than half.
        measure(&mut daimd, 20_000, 150);
        (0..50).for_each(|step| measure(&mut daimd, 20_100 + 100 * step, 195));
        assert_eq!(cuts(&daimd), 1);
        measure(&mut daimd, 30_000, 149);
        (0..50).for_each(|step| measure(&mut daimd, 30_100 + 100 * step, 195));
        // 0.7 · 14 = 9.8
        assert_near(packets(&daimd), 9.8);
        assert_eq!(cuts(&daimd), 2);
    }

    #[test]
    fn a_loss_halves_and_rearms() {
        let mut daimd = queue_of_100_ms(Daimd { window_least: 5.0, ..Daimd::default() });
        (0..50).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 195));
        daimd.on_congestion(path(0), &loss(20_000));
        assert_eq!((packets(&daimd), cuts(&daimd)), (7.0, 1));
        // Recovery: sent before the loss was found. A round trip of full queue counts from its end.
        let measured = Rtt { latest: ms(195), ..rtt(ms(100)) };
        daimd.on_ack(path(0), &Ack { rtt: Some(measured), ..ack(20_050, ByteCount::ZERO, 100) });
        measure(&mut daimd, 20_101, 195);
        measure(&mut daimd, 20_200, 195);
        assert_eq!(cuts(&daimd), 1);
        measure(&mut daimd, 20_201, 195);
        assert_eq!(cuts(&daimd), 2);
    }

    #[test]
    fn a_small_window_and_slow_start_are_left_alone() {
        let mut daimd = queue_of_100_ms(Daimd { window_least: 20.0, ..Daimd::default() });
        (0..50).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 195));
        assert_eq!(cuts(&daimd), 0);
        let mut daimd = Aimd::new(Daimd { window_least: 0.0, ..Daimd::default() }, IN_PACKETS);
        daimd.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        (0..50).for_each(|step| measure(&mut daimd, 1_000 + 100 * step, 195));
        assert_eq!((packets(&daimd), cuts(&daimd)), (1.0, 0));
    }

    #[test]
    fn a_path_that_never_had_a_queue_is_never_cut() {
        let mut daimd = in_avoidance(Daimd::default(), &[(20, 100)]);
        (0..50).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 100));
        assert_eq!(cuts(&daimd), 0);
    }

    #[test]
    fn an_acknowledgement_that_was_kept_back_is_taken_for_a_queue_only_by_the_longest_ever_seen() {
        for (queue, cut) in [(LongestQueue::Adaptive, 1), (LongestQueue::Seen, 0)] {
            // A queue of 120 ms, so that it and not the base counts.
            let mut daimd = in_avoidance(Daimd { queue, ..Daimd::default() }, &[(20, 100)]);
            for (now_ms, latest_ms) in [(10_800, 220), (10_810, 220), (10_820, 245), (11_000, 100)] {
                measure(&mut daimd, now_ms, latest_ms);
                // Another packet of the same acknowledgement is no second sample.
                measure(&mut daimd, now_ms, latest_ms);
            }
            // 0.9 · 120 = 108 ms, 0.9 · 145 = 130.5 ms.
            (0..50).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 220));
            assert_eq!(cuts(&daimd), cut, "{queue:?}");
        }
    }

    #[test]
    fn an_adaptive_queue_is_at_least_the_base_until_a_loss_and_follows_the_losses_then() {
        let adaptive = Daimd { queue: LongestQueue::Adaptive, window_least: 0.0, ..Daimd::default() };
        let mut daimd = in_avoidance(adaptive, &[(40, 100)]);
        // 40 ms are the longest seen, and 0.9 of the base would be 90.
        (0..20).for_each(|step| measure(&mut daimd, 11_100 + 100 * step, 140));
        assert_eq!(cuts(&daimd), 0);
        // A loss at 40 ms: 7/8 · 100 + 1/8 · 40 = 92.5, of which 0.9 are 83.25.
        assert_near(averaged(100.0, 40.0), 92.5);
        daimd.on_congestion(path(0), &loss(14_000));
        measure(&mut daimd, 14_100, 183);
        measure(&mut daimd, 14_300, 183);
        assert_eq!(cuts(&daimd), 0);
        measure(&mut daimd, 14_400, 184);
        measure(&mut daimd, 14_500, 184);
        assert_eq!(cuts(&daimd), 1);
    }

    #[test]
    fn the_base_can_follow_a_path_that_has_become_longer() {
        let follows = Daimd { base: BaseRtt::TenSeconds, ..Daimd::default() };
        let measured = Rtt { latest: ms(300), windowed_min: ms(290), ..rtt(ms(100)) };
        assert_eq!(follows.queue_ns(&measured), 1e7);
        assert_eq!(Daimd::default().queue_ns(&measured), 2e8);
    }

    #[test]
    fn growth_is_that_of_lia() {
        let paths = [(20, 100), (10, 50)];
        assert_near(growth(&mut in_avoidance(Daimd::default(), &paths), 0, 100), 0.025);
    }
}
