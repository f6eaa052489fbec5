//! wVegas, Weighted Vegas: each path keeps a few packets queued in the network, fewer where the
//! group sends less, so that all its paths end up equally congested. It follows the queueing delay,
//! once per round trip, and a loss only where the delay did not keep it from happening.
//!
//! # Source
//!
//! [wVegas] draft-xu-mptcp-congestion-control-05.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd_i | `PathWindow::cwnd` | bytes |
//! | base_rtt_i | `Rtt::min` | s |
//! | average rtt of the round | `RoundTrip::mean_s` | s |
//! | diff_i | `backlog` | datagrams |
//! | alpha_i | `Vegas::backlog_target` | datagrams |
//! | weight_i | `weight` | 1 |
//! | equilibrium_rate_i | `Vegas::rate` | bytes/s |
//! | total_alpha | `WVegas::backlog_total` | datagrams |
//! | gamma | `WVegas::slow_start_backlog` | datagrams |
//! | queue_delay_i | `Vegas::queue_least_s` | s |
//!
//! # Deviations
//!
//! - Where slow start ends because of delay, the threshold is the window and not one datagram less.
//!   The next growth is by the round either way.
//! - A queueing delay of nothing is not remembered as the least one: any other would be twice as
//!   large, and the window would be halved for it.
//! - Backlog and target are counted in whole datagrams, as the implementation in Linux does: a
//!   backlog that is right to within one moves nothing.
//! - Congestion forgets the least queueing delay, as there; unlike there, rate and target are kept.
//! - One path alone is Vegas with all of total_alpha as its target, and not Reno.

use core::time::Duration;

use fairpath_core::{Ack, ByteCount, Timestamp};

use super::reno;
use crate::aimd::{Adjustment, GroupView, PathWindow, Rule};
use crate::rounds::Rounds;

/// Weighted Vegas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WVegas {
    /// How many datagrams the paths of a group keep queued together: 10.
    pub backlog_total: f64,
    /// How many datagrams of a path may be queued before it leaves slow start: 1.
    pub slow_start_backlog: f64,
    /// How many datagrams a path keeps queued at least, and at first: 2.
    pub backlog_least: f64,
    /// At how many times the least queueing delay that was seen the path drains its queue: 2. It never
    /// does at [`f64::INFINITY`]. A queue that builds up from nothing comes to twice its least delay
    /// before it holds what it may; a path alone that is drained then uses about three quarters of its
    /// link.
    pub drain_at: f64,
}

impl Default for WVegas {
    fn default() -> Self {
        Self { backlog_total: 10.0, slow_start_backlog: 1.0, backlog_least: 2.0, drain_at: 2.0 }
    }
}

/// A round trip with fewer samples than this says too little of the delay.
const SAMPLES_LEAST: u32 = 3;
/// No window is made smaller than this by delay, in datagrams.
const WINDOW_LEAST: f64 = 2.0;
/// A mean round-trip time below this is taken for this, as a divisor.
const RTT_LEAST: Duration = Duration::from_micros(1);

/// The memory of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vegas {
    rounds: Rounds,
    /// The samples of the round trip that is going on: their sum and their number.
    sum: Duration,
    samples: u32,
    ended: Ended,
    /// `None` until the queue was first as long as the least target.
    backlog_target: Option<f64>,
    /// The rate when the queue was last as long as the target; zero before.
    rate: f64,
    queue_least_s: Option<f64>,
}

/// Whether a round trip ended with the newest acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
enum Ended {
    #[default]
    No,
    WithTooFewSamples,
    Measured(RoundTrip),
}

/// A round trip that was measured.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    mean_s: f64,
    base_s: f64,
}

impl Rule for WVegas {
    type Memory = Vegas;
    type News = ();

    /// The window moves by the round, in [`on_delay`](Self::on_delay); where the round could not be
    /// measured, by Reno's step for the acknowledgement that ended it.
    fn increase(&self, group: &impl GroupView<Vegas>, acked: ByteCount) -> f64 {
        match group.own_memory().ended {
            Ended::WithTooFewSamples => reno::increase(group.own(), acked),
            Ended::No | Ended::Measured(_) => 0.0,
        }
    }

    fn decrease(&self, group: &impl GroupView<Vegas>) -> f64 {
        reno::halved(group.own())
    }

    fn on_delay(&self, group: &impl GroupView<Vegas>, _ack: &Ack) -> Option<Adjustment<Vegas>> {
        let (own, mut vegas) = (group.own(), *group.own_memory());
        let Ended::Measured(round) = vegas.ended else { return None };
        let (cwnd, datagram) = (own.cwnd(), own.max_datagram());
        let backlog = whole(backlog(cwnd / datagram, round));
        let cwnd = if own.in_slow_start() {
            if backlog <= self.slow_start_backlog {
                return None;
            }
            slow_start_exit(cwnd, datagram, round)
        } else {
            let target = self.target(group, &mut vegas, backlog, round);
            vegas.drained(cwnd + datagram * step(backlog, target), round, self.drain_at)
        };
        Some(Adjustment { cwnd: cwnd.max(WINDOW_LEAST * datagram), memory: vegas })
    }

    fn on_ack(&self, vegas: &mut Vegas, _window: &PathWindow, ack: &Ack) {
        if let Some(rtt) = vegas.rounds.sample(ack) {
            vegas.sum += rtt;
            vegas.samples += 1;
        }
        vegas.ended = if vegas.rounds.end_with(ack) { vegas.end(ack) } else { Ended::No };
    }

    fn on_reduced(&self, vegas: &mut Vegas, _window: &PathWindow, _now: Timestamp) {
        vegas.queue_least_s = None;
    }

    fn on_collapsed(&self, vegas: &mut Vegas) {
        vegas.rate = 0.0;
    }

    fn on_undone(&self, vegas: &mut Vegas, before: &Vegas) {
        let since_s = vegas.queue_least_s.unwrap_or(f64::INFINITY);
        vegas.queue_least_s = before.queue_least_s.map(|least_s| least_s.min(since_s)).or(vegas.queue_least_s);
        vegas.rate = before.rate.max(vegas.rate);
    }
}

impl WVegas {
    /// How many datagrams the path may keep queued. It changes only where the queue is as long.
    fn target(&self, group: &impl GroupView<Vegas>, vegas: &mut Vegas, backlog: f64, round: RoundTrip) -> f64 {
        let target = vegas.backlog_target.unwrap_or(self.backlog_least);
        if backlog < target {
            return target;
        }
        let own = group.own_memory();
        let others = group.members().filter(|path| !core::ptr::eq(path.memory, own)).map(|path| path.memory.rate).sum();
        vegas.rate = group.own().cwnd() / round.mean_s;
        let target = whole(weight(vegas.rate, others) * self.backlog_total).max(self.backlog_least);
        vegas.backlog_target = Some(target);
        target
    }
}

impl Vegas {
    fn end(&mut self, ack: &Ack) -> Ended {
        let (sum, samples) = (core::mem::take(&mut self.sum), core::mem::take(&mut self.samples));
        match ack.rtt {
            Some(rtt) if samples >= SAMPLES_LEAST => {
                let mean = (sum / samples).max(RTT_LEAST);
                Ended::Measured(RoundTrip { mean_s: mean.as_secs_f64(), base_s: rtt.min.min(mean).as_secs_f64() })
            }
            _ => Ended::WithTooFewSamples,
        }
    }

    // [wVegas §2], once the queueing delay is `drain_at` times the least one that was seen
    //             base_rtt
    //     cwnd * -----------
    //              2 * rtt
    fn drained(&mut self, cwnd: f64, round: RoundTrip, drain_at: f64) -> f64 {
        let queue_s = round.mean_s - round.base_s;
        let least_s = self.queue_least_s.map_or(queue_s, |least_s| least_s.min(queue_s));
        let drains = least_s > 0.0 && queue_s >= drain_at * least_s;
        self.queue_least_s = (least_s > 0.0 && !drains).then_some(least_s);
        if drains { cwnd * round.base_s / (2.0 * round.mean_s) } else { cwnd }
    }
}

/// Datagrams in whole ones, where what is whole but for rounding counts as whole.
fn whole(datagrams: f64) -> f64 {
    (datagrams + 1e-9).floor()
}

// [wVegas §2], in datagrams
//                           base_rtt
//     diff = cwnd * ( 1 - ------------ )
//                             rtt
fn backlog(cwnd: f64, round: RoundTrip) -> f64 {
    cwnd * (1.0 - round.base_s / round.mean_s)
}

// [wVegas §2], in bytes where the source has packets
//                        base_rtt
//     min( cwnd, cwnd * ---------- + 1 )
//                           rtt
fn slow_start_exit(cwnd: f64, datagram: f64, round: RoundTrip) -> f64 {
    cwnd.min(cwnd * round.base_s / round.mean_s + datagram)
}

// [wVegas §2]
//                  rate_i
//     weight_i = ------------
//                 sum rate_k
fn weight(rate: f64, others: f64) -> f64 {
    rate / (rate + others)
}

// [wVegas §2], in datagrams
//     cwnd - 1   if diff > alpha
//     cwnd + 1   if diff < alpha
fn step(backlog: f64, target: f64) -> f64 {
    if backlog > target {
        -1.0
    } else if backlog < target {
        1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use fairpath_core::{Congestion, Rtt};

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller, Phase};

    /// Ends a round trip on path `id` at `now_ms`, in which `samples` packets told of `rtt_ms`, with
    /// `base_ms` as the least ever. Rounds are at least a second apart. The packets carry nothing, so
    /// that only the end of the round changes the window. Gives by how many packets it did.
    fn round(vegas: &mut Aimd<WVegas>, id: u32, now_ms: u64, samples: u64, rtt_ms: u64, base_ms: u64) -> f64 {
        let before = packets(vegas, id);
        for left in (0..samples).rev() {
            // Only the last was sent after this round began.
            let sent_at = if left == 0 { Timestamp::from_millis(now_ms - 20) } else { Timestamp::ZERO };
            let measured = Rtt { min: ms(base_ms), ..rtt(ms(rtt_ms)) };
            vegas
                .on_ack(path(id), &Ack { sent_at, rtt: Some(measured), ..ack(now_ms - left, ByteCount::ZERO, rtt_ms) });
        }
        packets(vegas, id) - before
    }

    fn packets(vegas: &Aimd<WVegas>, id: u32) -> f64 {
        vegas.window(path(id)).as_f64() / PACKET.as_f64()
    }

    fn slow_start() -> Aimd<WVegas> {
        let mut vegas = Aimd::new(WVegas::default(), IN_PACKETS);
        vegas.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        vegas.on_ack(path(0), &ack(1_000, PACKET * 19, 100));
        assert_eq!(vegas.window(path(0)), PACKET * 20);
        vegas
    }

    #[test]
    fn the_backlog_is_what_the_window_holds_beyond_the_empty_path() {
        // 20 · (1 − 0.1/0.125) = 4
        assert_eq!(whole(backlog(20.0, RoundTrip { mean_s: 0.125, base_s: 0.1 })), 4.0);
    }

    #[test]
    fn the_target_follows_the_share_of_the_rate() {
        // 20/0.125 = 160 and 5/0.125 = 40 packets per second: 0.8 and 0.2 of the 10 datagrams.
        assert_near(weight(160.0, 40.0) * 10.0, 8.0);
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 125), (5, 125)]);
        // 5 · (1 − 0.05/0.125) = 3 ≥ 2: its rate is noted, its target is all 10, and it grows.
        assert_near(round(&mut vegas, 1, 11_400, 5, 125, 50), 1.0);
        // 20 · (1 − 0.0625/0.125) = 10 ≥ 2: its target is 160/200 of the 10, 8, and it shrinks.
        assert_near(round(&mut vegas, 0, 11_400, 5, 1_000, 500), -1.0);
    }

    #[test]
    fn a_window_with_the_right_backlog_stays() {
        // Alone: 20 · (1 − 0.1/0.2) = 10, of which all 10 are its own.
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 200)]);
        assert_near(round(&mut vegas, 0, 11_400, 5, 200, 100), 0.0);
        // 20 · (1 − 0.1/0.21) = 10.5: right to within one. 20 · (1 − 0.1/0.23) = 11.3: not.
        assert_near(round(&mut vegas, 0, 12_400, 5, 210, 100), 0.0);
        assert_near(round(&mut vegas, 0, 13_400, 5, 230, 100), -1.0);
        assert_eq!(vegas.state(path(0)).unwrap().delay_cuts, 1);
    }

    #[test]
    fn nothing_happens_between_the_ends_of_rounds() {
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 100)]);
        assert_near(round(&mut vegas, 0, 11_400, 5, 100, 100), 1.0);
        // Sent before that round ended.
        vegas.on_ack(path(0), &ack(11_450, PACKET, 100));
        assert_near(packets(&vegas, 0), 21.0);
    }

    #[test]
    fn a_round_of_two_samples_is_reno() {
        let mut vegas = in_avoidance(WVegas::default(), &[(4, 100)]);
        assert_near(round(&mut vegas, 0, 11_400, 2, 900, 100), 0.0);
        vegas.on_ack(path(0), &ack(13_000, PACKET, 100));
        assert_near(packets(&vegas, 0), 4.25);
    }

    #[test]
    fn slow_start_goes_on_until_the_queue_holds_more_than_gamma() {
        let mut vegas = slow_start();
        // 20 · (1 − 0.1/0.105) = 0.95 ≤ 1
        assert_near(round(&mut vegas, 0, 3_000, 5, 105, 100), 0.0);
        assert_eq!(vegas.state(path(0)).unwrap().phase, Phase::SlowStart);
        vegas.on_ack(path(0), &Ack { rtt: None, ..ack(3_010, PACKET, 100) });
        assert_near(packets(&vegas, 0), 21.0);
        // 21 · (1 − 0.1/0.14) = 6 > 1: 21 · 0.1/0.14 + 1 = 16
        assert_near(round(&mut vegas, 0, 5_000, 5, 140, 100), 16.0 - 21.0);
        assert_eq!(vegas.state(path(0)).unwrap().phase, Phase::CongestionAvoidance);
    }

    #[test]
    fn a_queue_of_twice_the_least_delay_is_drained() {
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 100)]);
        // 10 ms of queue: 20 · (1 − 0.1/0.11) = 1.8 < 2, grows. 19 ms: 21 · 0.19/1.19 = 3.4, grows.
        assert_near(round(&mut vegas, 0, 11_400, 5, 110, 100), 1.0);
        assert_near(round(&mut vegas, 0, 12_400, 5, 119, 100), 1.0);
        // 20 ms: twice the least. One packet more, then half of what the empty path holds:
        // 23 · 0.1/(2 · 0.12) = 9.583
        assert_near(round(&mut vegas, 0, 13_400, 5, 120, 100), 23.0 / 2.4 - 22.0);
        // 20 ms are the least now.
        assert_near(round(&mut vegas, 0, 14_400, 5, 120, 100), 1.0);
    }

    #[test]
    fn an_empty_queue_is_not_the_least() {
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 100)]);
        assert_near(round(&mut vegas, 0, 11_400, 5, 100, 100), 1.0);
        assert_near(round(&mut vegas, 0, 12_400, 5, 101, 100), 1.0);
    }

    #[test]
    fn congestion_halves_and_an_outage_forgets_the_rate() {
        let mut vegas = in_avoidance(WVegas::default(), &[(20, 200), (20, 200)]);
        assert_near(round(&mut vegas, 0, 11_400, 5, 200, 100), 0.0);
        vegas.on_congestion(path(0), &Congestion { persistent: true, ..loss(12_000) });
        assert_near(packets(&vegas, 0), 1.0);
        // Path 0 has no rate any more, so all 10 datagrams are path 1's, which has just these.
        assert_near(round(&mut vegas, 1, 12_400, 5, 200, 100), 0.0);
    }

    #[test]
    fn without_round_trip_samples_the_window_grows_as_reno_does_once_per_round() {
        let mut vegas = slow_start();
        vegas.on_congestion(path(0), &loss(2_000));
        let unmeasured = |now_ms| Ack { rtt: None, ..ack(now_ms, PACKET, 100) };
        vegas.on_ack(path(0), &unmeasured(2_500));
        assert_near(packets(&vegas, 0), 10.1);
    }
}
