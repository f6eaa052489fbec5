//! Losses that are congestion: those around which packets waited.
//!
//! # Source
//!
//! Ours, of an old idea: a queue that overflows is full, so losses beside an empty queue have
//! another cause. [Cen2003] compares tests of this kind. Ours is like their Spike, which calls
//! losses congestion while the one-way delay is above a part of its highest. Ours takes the
//! round-trip time of the packets around the loss instead.
//!
//! # Symbols
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | level | `Levels::newest`: the least round-trip time of the packets acknowledged within a quarter of a round trip, or 25 ms | s |
//! | min | [`Rtt::windowed_min`](fairpath_core::Rtt::windowed_min) | s |
//! | max | the highest level of the last [`MEMORY`] | s |
//!
//! # What it cannot tell
//!
//! - A queue of less than [`FLOOR`]. A policer has none at all. Losses there are taken for random ones, up to
//!   [`TOO_MANY`] of the packets, until it shows that they fall when less is sent (`rate`).
//! - Random losses while a queue is there, for whatever reason: they count.

mod jitter;
mod rate;

use core::time::Duration;

use fairpath_core::{Ack, Congestion, CongestionSignal, Timestamp, WindowedMax};

use self::jitter::Jitter;
use self::rate::RateTest;
use crate::levels::Levels;
use crate::rounds::Rounds;

/// The verdict on a lost packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// For congestion [RFC5681 §3.1; RFC9002 §7.3.2].
    #[default]
    Congestion,
    /// For congestion if the packets around it waited in a queue, or too many are lost. Links that
    /// lose packets at random are then filled, and flows that share a queue with us keep their
    /// share.
    ByQueue,
    /// The same, but for trials whether losses fall when less is sent. Evaluations need it: a policer has no queue.
    ByQueueAlone,
}

/// Height of a wait that is a queue, as a part of the highest level above the minimum. A queue that
/// overflows is full, so half would do for its losses; but a shared queue drains until they are
/// found.
const QUEUED: f64 = 0.25;
/// A wait above this is a queue, however high the queue has been. Managed queues begin to drop
/// here: CoDel at 5 ms, the lowest of the common ones [RFC8289 §4]. A slow start may have filled
/// the same queue to 100 ms.
const TARGET: Duration = Duration::from_millis(5);
/// A wait below this is no queue. Hosts alone add as much, even to the least round trip in a
/// quarter of one.
const FLOOR: Duration = Duration::from_micros(250);
/// Limit on the floor, as a part of the round trip, so that it does not hide the queues of short
/// paths.
const FLOOR_PART: u32 = 8;
/// How long the highest level is remembered; longer than the least round-trip time. A link that
/// loses packets at random is kept below a part of that height. If the height were soon forgotten,
/// it would shrink to nothing. After a change of the bottleneck, losses count by the height of the
/// old queue for this long.
const MEMORY: Duration = Duration::from_secs(30);
/// Share of packets that may be lost without congestion. A slow start that overflows a queue loses
/// about half. Random losses of 2 % seldom reach this within two round trips.
const TOO_MANY: f64 = 0.05;
/// Losses that are too few to estimate a share from.
const FEW: f64 = 3.0;

/// The memory of a path: its queue and its losses.
#[derive(Clone, Debug)]
pub(super) struct LossTest {
    levels: Levels,
    highest: WindowedMax<Duration>,
    least: Duration,
    jitter: Jitter,
    /// `None` where policers are not looked for.
    rate: Option<RateTest>,
    /// The size of a packet in bytes, as it was last said.
    datagram: f64,
    /// Whether nothing was congestion yet.
    is_new: bool,
    rounds: Rounds,
    /// Bytes of this round and of earlier ones, halved at the end of each round.
    acked: f64,
    lost: f64,
}

impl Default for LossTest {
    fn default() -> Self {
        let highest = WindowedMax::new(MEMORY);
        Self {
            levels: Levels::default(),
            highest,
            least: Duration::ZERO,
            jitter: Jitter::default(),
            rate: Some(RateTest::default()),
            datagram: 0.0,
            is_new: true,
            rounds: Rounds::default(),
            acked: 0.0,
            lost: 0.0,
        }
    }
}

impl LossTest {
    /// For losses that are judged so; `None` where each is congestion.
    pub(super) fn new(losses: Losses) -> Option<Self> {
        match losses {
            Losses::Congestion => None,
            Losses::ByQueue => Some(Self::default()),
            Losses::ByQueueAlone => Some(Self { rate: None, ..Self::default() }),
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.bytes.as_f64();
        self.jitter.on_ack(ack);
        if let Some(rate) = &mut self.rate {
            rate.on_ack(ack, self.datagram);
        }
        if let Some(rtt) = ack.rtt {
            self.least = rtt.windowed_min;
            if let Some(level) = self.levels.on_sample(ack.now, rtt.latest, rtt.smoothed) {
                self.highest.update(ack.now, level);
            }
        }
        if self.rounds.end_with(ack) {
            (self.acked, self.lost) = (self.acked / 2.0, self.lost / 2.0);
        }
    }

    /// Takes losses or marks; says whether they are congestion. `datagram` is the size of a packet in bytes.
    pub(super) fn is_congestion(&mut self, event: &Congestion, datagram: f64) -> bool {
        self.lost += event.lost.as_f64();
        self.datagram = datagram;
        if event.signal != CongestionSignal::Loss {
            self.is_new = false;
            return true;
        }
        self.jitter.on_loss();
        if let Some(rate) = &mut self.rate {
            rate.on_loss(event);
        }
        let wait = self.wait(event.now);
        let has_queue = event.persistent || wait == Wait::Queue;
        let too_many = self.lost - FEW * datagram > TOO_MANY * (self.lost + self.acked);
        let is_policed = self.rate.as_ref().is_some_and(|rate| rate.is_policed(event.now));
        let is_congestion = has_queue || too_many || is_policed;
        // Where delays vary by as much as a queue, none may only seem to be empty.
        let share = self.lost / (self.lost + self.acked);
        let is_trial = is_congestion && wait == Wait::None && !self.jitter.is_above(TARGET);
        if let Some(rate) = self.rate.as_mut().filter(|_| is_trial) {
            rate.on_reduced(event, share);
        }
        self.is_new &= !is_congestion;
        is_congestion
    }

    /// Nothing of what was last taken for lost was.
    pub(super) fn on_spurious(&mut self) {
        if let Some(rate) = &mut self.rate {
            rate.on_spurious();
        }
    }

    //     level - min >= max( min( QUEUED * ( max - min ), TARGET ), min( FLOOR, min / FLOOR_PART ) )
    //
    // and not by jitter. A path that has had no congestion yet knows no height: of its first packets some wait for the
    // others that left with them.
    fn wait(&self, now: Timestamp) -> Wait {
        let (Some((at, level)), Some(highest)) = (self.levels.newest(), self.highest.get()) else {
            return if self.is_new { Wait::Jitter } else { Wait::Queue };
        };
        // A level from before a pause says nothing of the loss.
        if now.since(at) > highest * 2 {
            return Wait::Queue;
        }
        let height = highest.saturating_sub(self.least);
        let floor = FLOOR.min(self.least / FLOOR_PART);
        let queue = if self.is_new { TARGET } else { height.mul_f64(QUEUED).min(TARGET) }.max(floor);
        match level.saturating_sub(self.least) >= queue {
            false => Wait::None,
            true if self.jitter.explains(queue).unwrap_or(self.is_new) => Wait::Jitter,
            true => Wait::Queue,
        }
    }
}

/// The cause of waiting around a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    None,
    /// For nothing, or for less than their delays vary by.
    Jitter,
    Queue,
}

#[cfg(test)]
mod tests {
    use fairpath_core::{ByteCount, Rtt};

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, AimdConfig, Controller, Cubic};

    /// CUBIC, over a path of 100 ms.
    struct Flow {
        cubic: Aimd<Cubic>,
        now_ms: u64,
    }

    impl Flow {
        fn new(losses: Losses) -> Self {
            let mut cubic = Aimd::new(Cubic::default(), AimdConfig { losses, ..IN_PACKETS });
            cubic.on_path_opened(path(0), PACKET, Timestamp::ZERO);
            Self { cubic, now_ms: 1_000 }
        }

        /// Packets come back every 10 ms, each after a wait of `wait_ms`.
        fn waits(mut self, packets: u64, wait_ms: u64) -> Self {
            for _ in 0..packets {
                self.now_ms += 10;
                let rtt_ms = 100 + wait_ms;
                let rtt = Rtt { windowed_min: ms(100), ..rtt(ms(rtt_ms)) };
                self.cubic.on_ack(path(0), &Ack { rtt: Some(rtt), ..ack(self.now_ms, PACKET, rtt_ms) });
            }
            self
        }

        /// Packets are lost, and their reduction is over.
        fn loses(mut self) -> Self {
            self.cubic.on_congestion(path(0), &loss(self.now_ms));
            self
        }

        /// The part of the window that such an event leaves.
        fn left_by(mut self, change: impl Fn(&mut Congestion)) -> f64 {
            let before = self.cubic.window(path(0)).as_f64();
            let mut event = loss(self.now_ms);
            change(&mut event);
            self.cubic.on_congestion(path(0), &event);
            self.cubic.window(path(0)).as_f64() / before
        }
    }

    /// A path whose queue took 80 ms a while ago and is empty now.
    fn emptied(losses: Losses) -> Flow {
        Flow::new(losses).waits(40, 0).waits(40, 80).waits(40, 0)
    }

    #[test]
    fn a_loss_while_no_packet_waits_is_congestion_only_where_every_loss_is() {
        assert_eq!(emptied(Losses::ByQueue).left_by(|_| {}), 1.0);
        assert_near(emptied(Losses::Congestion).left_by(|_| {}), 0.7);
    }

    #[test]
    fn a_loss_is_congestion_where_packets_wait_a_quarter_as_long_as_they_did_at_most() {
        for (wait_ms, left) in [(2, 1.0), (3, 0.7), (12, 0.7)] {
            let flow = Flow::new(Losses::ByQueue).waits(40, 0).waits(40, 12).loses().waits(40, wait_ms);
            assert_near(flow.left_by(|_| {}), left);
        }
    }

    #[test]
    fn before_anything_was_congestion_a_queue_has_the_height_of_managed_ones() {
        for (wait_ms, left) in [(4, 1.0), (8, 0.7)] {
            let flow = Flow::new(Losses::ByQueue).waits(40, 0).waits(40, wait_ms);
            assert_near(flow.left_by(|_| {}), left);
        }
        assert_eq!(Flow::new(Losses::ByQueue).left_by(|_| {}), 1.0, "of the first packets");
    }

    #[test]
    fn a_loss_among_delays_that_vary_by_more_than_a_queue_is_none() {
        let jitter = |flow: Flow| (0..40).fold(flow, |flow, at| flow.waits(1, (at * 7 % 11) * 4));
        let flow = jitter(jitter(Flow::new(Losses::ByQueue).waits(40, 0)));
        assert_eq!(flow.left_by(|_| {}), 1.0);
    }

    #[test]
    fn a_loss_is_congestion_where_packets_wait_as_long_as_managed_queues_let_them() {
        for (wait_ms, left) in [(4, 1.0), (5, 0.7), (80, 0.7)] {
            assert_near(emptied(Losses::ByQueue).waits(40, wait_ms).left_by(|_| {}), left);
        }
    }

    #[test]
    fn one_packet_that_took_longer_is_no_queue() {
        assert_eq!(emptied(Losses::ByQueue).waits(1, 80).left_by(|_| {}), 1.0);
    }

    #[test]
    fn a_loss_after_a_pause_is_congestion() {
        let mut paused = emptied(Losses::ByQueue);
        paused.now_ms += 1_000;
        assert_near(paused.left_by(|_| {}), 0.7);
    }

    #[test]
    fn marks_and_outages_are_congestion_whatever_waits() {
        let mark = |event: &mut Congestion| (event.signal, event.lost) = (CongestionSignal::Ecn, ByteCount::ZERO);
        assert_near(emptied(Losses::ByQueue).left_by(mark), 0.7);
        assert!(emptied(Losses::ByQueue).left_by(|event| event.persistent = true) < 0.1);
    }

    #[test]
    fn more_than_a_twentieth_lost_is_congestion_whatever_waits() {
        // 10 packets in a round trip: what is counted tends to 20.
        let lost = |packets: u64| emptied(Losses::ByQueue).left_by(|event| event.lost = PACKET * packets);
        assert_eq!(lost(4), 1.0);
        assert_near(lost(5), 0.7);
    }
}
