//! Coupled CUBIC: the paths of a group grow and shrink together as one CUBIC flow whose window is
//! the sum of theirs. The places of losses decide how this sum is divided among them.
//!
//! # Source
//!
//! Ours, of the curve of \[RFC9438\]. Others have coupled CUBIC before: \[MPCubic2011\],
//! \[mpCUBIC2020\] and \[CoupledCubic2023\]. In the last each path keeps a curve and a reduction of
//! its own, and their growth is linked, as in LIA for Reno. There a loss takes three tenths of one
//! window, whatever the others are, and the linked growth makes up for it on average. That holds
//! for losses that the paths meet independently. When a queue overflows, some or all paths lose at
//! once, and the group gives way more, the more they are. The time since the last reduction, by
//! which CUBIC grows, also differs from path to path. Here there is one curve, one episode of
//! recovery and one reduction for the group.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd | `Flow::cwnd`, the sum over the paths | bytes |
//! | RTT | `Flow::rtt_s`, the mean of the packets of all paths | s |
//! | W_max, K, W_est, t | `History::curve`, of that sum | |
//! | s_r | window of the path over that of the group | 1 |
//! | Q | sum of all s_r² | 1 |
//! | beta | `BETA` | 1 |
//!
//! # Deviations
//!
//! - None from \[RFC9438\] where a path is alone: it then is [`Cubic`](crate::Cubic) itself, by way of
//!   [`UntilCoupled`](crate::UntilCoupled).
//! - No event changes the window of another path: the others follow with their next event. So for a part of a
//!   round trip the sum is larger than the curve says.
//! - Paths that are newly coupled begin a curve at the sum of their windows, as after a timeout: where each of them
//!   met its last loss says little of where all together will.
//! - A reduction that turns out to be none is taken back for the whole group if no other path was reduced since,
//!   and otherwise only for the path itself.
//! - The time in which a path is not limited by its window counts if that of another is.

use fairpath_core::{Ack, ByteCount, Timestamp};

use super::cubic::{BETA, Curve, Grown};
use crate::aimd::{Followed, GroupView, PathWindow, Rule};

/// Coupled CUBIC, for paths that are coupled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoupledCubic {
    /// As in [`Cubic`](crate::Cubic), for the window of the group.
    pub fast_convergence: bool,
}

impl Default for CoupledCubic {
    fn default() -> Self {
        Self { fast_convergence: true }
    }
}

/// A path's memory of its group, as of the last event of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    history: History,
    /// Curve and level before the last reduction of this path.
    unreduced: (Curve, f64),
    /// The version that this reduction made.
    own_version: u64,
    others: Others,
}

/// The history of the group. Each path has a copy, and the newest of them is the group's.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    curve: Curve,
    /// How often the group was reduced, or a reduction taken back: the copy with the highest is the newest.
    version: u64,
    /// The logarithm of what reductions by others have left of a window since the group was formed. Where another
    /// path's is lower, this one has yet to follow.
    level: f64,
    reduced_at: Timestamp,
}

/// The news of its group for a path.
#[derive(Clone, Copy, Debug)]
pub struct News {
    others: Others,
    /// The history that the path does not know yet.
    history: Option<History>,
}

/// The other paths of the group.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    /// The sum of their windows, in bytes; zero where there are none.
    cwnd: f64,
    /// The sum of their rates, in bytes per second.
    rate: f64,
    /// The sum of the squares of their windows, in bytes².
    squares: f64,
}

/// The group as one flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    cwnd: f64,
    rtt_s: f64,
    /// How much of the flow's an acknowledged byte of the path is.
    weight: f64,
}

impl Rule for CoupledCubic {
    type Memory = Share;
    type News = News;

    fn increase(&self, group: &impl GroupView<Share>, acked: ByteCount) -> f64 {
        let (own, share) = (group.own(), group.own_memory());
        let Some(flow) = share.flow(own) else { return 0.0 };
        share.history.curve.growth(flow.grown(own), flow.rtt_s, acked.as_f64() * flow.weight)
    }

    fn decrease(&self, group: &impl GroupView<Share>) -> f64 {
        let cwnd = group.own().cwnd();
        let (share, squares) = group.own_memory().shares(group.own()).unwrap_or((1.0, 1.0));
        cwnd * own_left(share, squares)
    }

    /// One: of a group it is the sum that has to be that of a flow.
    fn min_ssthresh_datagrams(&self, group: &impl GroupView<Share>, configured: u32) -> u32 {
        if group.is_coupled() { 1 } else { configured }
    }

    fn news(&self, group: &impl GroupView<Share>) -> Option<News> {
        let own = group.coupled_member()?.memory;
        let newest = group.members().map(|path| path.memory).max_by(|one, other| one.history.order(&other.history))?;
        let is_new = !core::ptr::eq(newest, own);
        Some(News { others: others(group, own, &newest.history), history: is_new.then_some(newest.history) })
    }

    fn follow(&self, share: &mut Share, window: &PathWindow, news: News) -> Option<Followed> {
        share.others = news.others;
        let before = core::mem::replace(&mut share.history, news.history?);
        let behind = share.history.level - before.level;
        let cwnd = (behind != 0.0).then(|| window.cwnd() * libm::exp(behind))?;
        Some(Followed { cwnd, reduced_at: share.history.reduced_at })
    }

    fn on_ack(&self, share: &mut Share, window: &PathWindow, ack: &Ack) {
        if window.may_grow(ack)
            && !window.in_slow_start()
            && let Some(flow) = share.flow(window)
        {
            share.history.curve.count(flow.grown(window), ack, ack.bytes.as_f64() * flow.weight);
        }
    }

    fn on_reduced(&self, share: &mut Share, window: &PathWindow, now: Timestamp) {
        let Some((own, squares)) = share.shares(window) else { return };
        let cwnd = window.cwnd() + share.others.cwnd;
        let History { curve, version, level, .. } = share.history;
        share.unreduced = (curve, level);
        share.history = History {
            curve: curve.reduced(cwnd, left(own, squares), self.fast_convergence),
            version: version + 1,
            level: level + libm::log(others_left(own, squares)),
            reduced_at: now,
        };
        share.own_version = share.history.version;
    }

    fn on_collapsed(&self, share: &mut Share) {
        share.history.curve.forget();
        share.history.version += 1;
        share.own_version = share.history.version;
    }

    fn on_recoupled(&self, share: &mut Share, _coupled: bool) {
        *share = Share::default();
    }

    fn on_undone(&self, share: &mut Share, before: &Share) {
        let (unreduced, version) = (share.unreduced, share.history.version);
        let is_last = version == share.own_version;
        *share = *before;
        // A path that had yet to follow others has to do so again, and they did not follow it.
        if is_last && before.history.level == unreduced.1 {
            share.history.curve = unreduced.0;
            share.history.version = version + 1;
        }
    }
}

impl Share {
    fn flow(&self, own: &PathWindow) -> Option<Flow> {
        let inverse_rtt = own.inverse_rtt().filter(|_| self.others.cwnd > 0.0)?;
        let cwnd = own.cwnd() + self.others.cwnd;
        let rate = own.cwnd() * inverse_rtt + self.others.rate;
        let rtt_s = cwnd / rate;
        Some(Flow { cwnd, rtt_s, weight: weight(1.0 / inverse_rtt, rtt_s) })
    }

    /// The window of the path over that of the group, and Q; `None` where the path is alone.
    fn shares(&self, own: &PathWindow) -> Option<(f64, f64)> {
        if self.others.cwnd <= 0.0 || !own.has_rtt() {
            return None;
        }
        let cwnd = own.cwnd() + self.others.cwnd;
        let share = own.cwnd() / cwnd;
        Some((share, share * share + self.others.squares / (cwnd * cwnd)))
    }
}

impl History {
    fn order(&self, other: &Self) -> core::cmp::Ordering {
        self.version.cmp(&other.version).then_with(|| self.curve.order(&other.curve))
    }
}

impl Flow {
    fn grown(&self, own: &PathWindow) -> Grown {
        Grown { cwnd: self.cwnd, segment: own.max_datagram() }
    }
}

/// The other paths of the group, with the windows that they will have when they have followed.
fn others(group: &impl GroupView<Share>, own: &Share, newest: &History) -> Others {
    let others = group.members().filter(|path| !core::ptr::eq(path.memory, own));
    others.fold(Others::default(), |sum, path| {
        let behind = newest.level - path.memory.history.level;
        let cwnd = if behind == 0.0 { path.cwnd } else { path.cwnd * libm::exp(behind) };
        Others { cwnd: sum.cwnd + cwnd, rate: sum.rate + cwnd * path.inverse_rtt, squares: sum.squares + cwnd * cwnd }
    })
}

/// The weight of an acknowledged packet of a path in the group's one flow. A flow of the group's
/// window and round-trip time has one window acknowledged in a round trip. So have the paths with
/// this weight, each in proportion to its window.
//      rtt_r
//     -------
//      RTT
fn weight(rtt_s: f64, group_rtt_s: f64) -> f64 {
    rtt_s / group_rtt_s
}

/// The part of the group's window that congestion on a path leaves. With the same loss probability on all, path r
/// meets s_r of the group's losses, so that the mean over the paths is beta, what one flow would be left with. Losses
/// on a path that carries little, which would then be far more congested than the others, take little.
//     1 - ( 1 - beta ) * s_r / Q
pub fn left(share: f64, squares: f64) -> f64 {
    1.0 - (1.0 - BETA) * share / squares
}

/// The part that congestion on a path leaves of the window of another one of the group: the others keep their shares
/// among themselves, and take up what the path gives.
//     ( 1 - ( 1 - beta ) * s_r / Q ) * ( 1 + ( 1 - beta ) * s_r )
pub fn others_left(share: f64, squares: f64) -> f64 {
    left(share, squares) * (1.0 + (1.0 - BETA) * share)
}

/// The part of a path's window that congestion on it leaves: its share shrinks as a window of CUBIC does, as far
/// as there are others to take it up. So shares settle where all paths meet losses equally often, which is at rates in
/// proportion to one over the loss probability, as those of LIA.
//     ( 1 - ( 1 - beta ) * s_r / Q ) * ( 1 - ( 1 - beta ) * ( 1 - s_r ) )
pub fn own_left(share: f64, squares: f64) -> f64 {
    left(share, squares) * (1.0 - (1.0 - BETA) * (1.0 - share))
}

#[cfg(test)]
mod tests {
    use fairpath_core::Groups;

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller, Cubic, UntilCoupled};

    type Coupled = Aimd<UntilCoupled<Cubic, CoupledCubic>>;

    fn packets(controller: &impl Controller, id: u32) -> f64 {
        controller.window(path(id)).as_f64() / PACKET.as_f64()
    }

    /// The window after an acknowledgement of nothing, which lets nothing grow.
    fn after_word(coupled: &mut Coupled, id: u32, now_ms: u64) -> f64 {
        coupled.on_ack(path(id), &Ack { window_limited: false, ..ack(now_ms, ByteCount::ZERO, 100) });
        packets(coupled, id)
    }

    /// Paths with these windows, in packets, in congestion avoidance at 10 s; several of them are
    /// coupled.
    fn paths(windows: &[u64]) -> Coupled {
        // With fast convergence it would matter where each path met a loss before.
        let rule = UntilCoupled {
            alone: Cubic { fast_convergence: false },
            coupled: CoupledCubic { fast_convergence: false },
        };
        let mut coupled = Aimd::new(rule, IN_PACKETS);
        for (id, packets) in (0..).zip(windows) {
            let before = ByteCount::new(PACKET.get() * packets * 10 / 7 + 1);
            coupled.on_path_opened(path(id), PACKET, Timestamp::ZERO);
            coupled.on_ack(path(id), &Ack { rtt: None, ..ack(1_000, before - PACKET, 100) });
            coupled.on_congestion(path(id), &loss(2_000));
            assert_near(after_word(&mut coupled, id, 10_000), *packets as f64);
        }
        coupled
    }

    #[test]
    fn congestion_on_one_of_two_equal_paths_takes_three_tenths_of_both() {
        // s = 1/2, Q = 1/2: the group is left with 0.7 of 100 packets; the path with 0.7 · 0.85 of 50, the
        // other with 0.7 · 1.15.
        let mut coupled = paths(&[50, 50]);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_near(packets(&coupled, 0), 29.75);
        assert_near(packets(&coupled, 1), 50.0);
        assert_near(after_word(&mut coupled, 1, 11_001), 40.25);
        assert_near(after_word(&mut coupled, 1, 11_002), 40.25);
        assert_near(after_word(&mut coupled, 0, 11_003), 29.75);
    }

    #[test]
    fn the_mean_over_equally_congested_paths_is_what_one_flow_is_left_with() {
        for shares in [vec![0.5, 0.5], vec![0.9, 0.1], vec![0.4, 0.3, 0.2, 0.1]] {
            let squares = shares.iter().map(|share| share * share).sum();
            let mean: f64 = shares.iter().map(|share| share * left(*share, squares)).sum();
            assert!((mean - BETA).abs() < 1e-12, "{shares:?}: {mean}");
            for share in shares {
                // The group is the sum of its parts, and nobody else's loss makes a window grow.
                let sum = share * own_left(share, squares) + (1.0 - share) * others_left(share, squares);
                assert!((sum - left(share, squares)).abs() < 1e-12, "{sum}");
                assert!(others_left(share, squares) <= 1.0);
            }
        }
    }

    #[test]
    fn losses_of_both_paths_in_one_round_trip_are_one_reduction() {
        let mut coupled = paths(&[50, 50]);
        coupled.on_congestion(path(0), &loss(11_000));
        // Sent before the group was reduced, found lost afterwards.
        coupled
            .on_congestion(path(1), &fairpath_core::Congestion { now: Timestamp::from_millis(11_050), ..loss(11_000) });
        assert_near(packets(&coupled, 0) + packets(&coupled, 1), 70.0);
        // And what was sent afterwards is another.
        coupled.on_congestion(path(1), &loss(11_200));
        after_word(&mut coupled, 0, 11_201);
        let sum = packets(&coupled, 0) + packets(&coupled, 1);
        assert!((45.0..52.0).contains(&sum), "{sum}");
    }

    #[test]
    fn a_reduction_that_was_none_is_taken_back_on_all_paths() {
        let mut coupled = paths(&[50, 50]);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_near(after_word(&mut coupled, 1, 11_001), 40.25);
        coupled.on_spurious_congestion(path(0), Timestamp::from_millis(11_100));
        assert_near(packets(&coupled, 0), 50.0);
        assert_near(after_word(&mut coupled, 1, 11_101), 50.0);
        assert_near(after_word(&mut coupled, 0, 11_102), 50.0);
    }

    #[test]
    fn a_path_that_leaves_the_group_before_it_followed_does_not_follow() {
        let mut coupled = paths(&[50, 50]);
        coupled.on_congestion(path(0), &loss(11_000));
        coupled.on_groups(&Groups::singletons([path(0), path(1)]));
        assert_near(after_word(&mut coupled, 1, 11_001), 50.0);
        coupled.on_groups(&Groups::one([path(0), path(1)]));
        assert_near(after_word(&mut coupled, 1, 11_002), 50.0);
    }

    /// Acknowledges the windows of all paths, packet by packet, in each of these round trips of 100
    /// ms.
    fn run(controller: &mut impl Controller, ids: core::ops::Range<u32>, start_ms: u64, rounds: u64) {
        for round in 0..rounds {
            for id in ids.clone() {
                for _ in 0..controller.window(path(id)) / PACKET {
                    controller.on_ack(path(id), &ack(start_ms + 1 + round * 100, PACKET, 100));
                }
            }
        }
    }

    #[test]
    fn the_group_grows_as_one_flow_of_its_window_does() {
        // 100 packets, alone and on two and four paths; reduced at 11 s and left to grow for 3, 5 and 12 s.
        for rounds in [30, 50, 120] {
            let grown = [1u64, 2, 4].map(|count| {
                let mut coupled = paths(&vec![100 / count; count as usize]);
                let ids = 0..count as u32;
                coupled.on_congestion(path(0), &loss(11_000));
                for id in ids.clone() {
                    after_word(&mut coupled, id, 11_001);
                }
                let sum = |coupled: &Coupled| ids.clone().map(|id| packets(coupled, id)).sum::<f64>();
                assert_near(sum(&coupled), 70.0);
                run(&mut coupled, ids.clone(), 11_200, rounds);
                sum(&coupled)
            });
            for group in &grown[1..] {
                // Only whole packets are acknowledged, so that up to one on each path in a round trip is not.
                assert!((group / grown[0] - 1.0).abs() < 0.02, "{rounds} round trips: {grown:?}");
            }
        }
    }

    #[test]
    fn a_path_that_loses_more_carries_less() {
        // A loss for every 500 and every 2000 packets: rates as 1 : 4.
        let mut coupled = paths(&[50, 50]);
        let (mut since, mut carried) = ([0.0; 2], [0.0; 2]);
        // Twenty acknowledgements in a round trip of 100 ms, by turns.
        for step in 0..100_000 {
            let now_ms = 11_000 + 5 * step;
            for (id, every) in [(0, 500.0), (1, 2_000.0)] {
                let part = packets(&coupled, id as u32) / 20.0;
                coupled.on_ack(path(id as u32), &ack(now_ms, ByteCount::from_f64(part * PACKET.as_f64()), 100));
                carried[id] += part;
                since[id] += part;
                if since[id] >= every {
                    since[id] -= every;
                    coupled.on_congestion(path(id as u32), &loss(now_ms + 1));
                }
            }
        }
        let ratio = carried[1] / carried[0];
        // The losses are not independent: within a fifth of what the mean of such would be.
        assert!((3.2..4.8).contains(&ratio), "{ratio}");
    }
}
