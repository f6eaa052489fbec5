//! The engine without a host: for programs that use noq themselves. noq chooses the path of each packet and paces;
//! windows, and what couples them, are the engine's.

use std::sync::Arc;
use web_time::Instant;

use fairpath_engine::{EngineConfig, PairVerdict, PathId, PathSnapshot, UnknownName};
use noq_proto::congestion::{ControllerFactory, ControllerMetrics};

use super::{ConnectionEngine, Gate, Shared};

/// The congestion control of one connection of noq, all of whose paths one engine sees.
#[derive(Clone, Debug)]
pub struct Controllers(ConnectionEngine);

impl Controllers {
    /// For one connection.
    pub fn new(config: &EngineConfig) -> Result<Self, UnknownName> {
        let engine = ConnectionEngine::new(config.build()?);
        engine.lock().is_alone = true;
        engine.open_gate(Gate::Any);
        Ok(Self(engine))
    }

    /// The maker of the controllers for noq's settings of that connection.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        self.0.factory()
    }

    /// The paths, in the order in which noq made them.
    pub fn snapshots(&self, now: Instant) -> Vec<PathSnapshot> {
        self.0.with(now, |engine, at| engine.snapshots(at).collect())
    }

    /// Pair by pair, whether paths share a bottleneck. None where the coupling is fixed.
    pub fn verdicts(&self, now: Instant) -> Vec<PairVerdict> {
        self.0.with(now, |engine, _| engine.pair_verdicts())
    }
}

impl Shared {
    /// Nobody asks for what left and what became of it.
    pub(super) fn forget(&mut self) {
        self.left.clear();
        self.told = 0;
        self.fates.clear();
    }

    /// noq had more to send than the window of the path took. A host of ours knows that by itself.
    pub(super) fn on_cwnd_limited(&mut self, path: PathId) {
        if self.is_alone {
            self.engine.on_fully_used(path, self.now);
        }
    }

    /// An acknowledgement came while noq had nothing to send, or had.
    pub(super) fn on_app_limited(&mut self, path: PathId, is_limited: bool) {
        if self.is_alone && is_limited {
            self.engine.on_app_limited(path);
        }
    }

    /// Shows noq's pacer the window and rate to pace by. On a host the engine itself paces.
    pub(super) fn show(&mut self, path: PathId, metrics: &mut ControllerMetrics) {
        if self.is_alone {
            let verdict = self.engine.verdict(path, self.now);
            metrics.congestion_window = verdict.window.get().max(1);
            metrics.pacing_rate = verdict.pacing_rate.map(|rate| rate.as_bytes_per_second());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use fairpath_engine::Bitrate;
    use noq_proto::congestion::Controller as _;

    use super::*;
    use crate::adapter::PathHandle;

    const MTU: u16 = 1_200;
    /// The way there and back without a queue.
    const RTT: Duration = Duration::from_millis(40);
    /// The longest queue of a link.
    const QUEUE_MAX: Duration = Duration::from_millis(60);
    const STEP: Duration = Duration::from_micros(500);
    const SPAN: Duration = Duration::from_secs(20);

    /// A link with a drop-tail queue, by the time at which all that waits has left.
    struct Link {
        rate: Bitrate,
        free_at: Instant,
    }

    impl Link {
        /// When a packet that comes now is answered; `None`: it is dropped.
        fn take(&mut self, now: Instant) -> Option<Instant> {
            let from = self.free_at.max(now);
            if from - now > QUEUE_MAX {
                return None;
            }
            let takes = Duration::from_secs_f64(f64::from(MTU) * 8.0 / self.rate.as_bps() as f64);
            self.free_at = from + takes;
            Some(self.free_at + RTT)
        }
    }

    /// One path of noq, as far as a controller sees of it: sends whenever the window has room.
    struct Sender {
        handle: Box<PathHandle>,
        link: usize,
        next: u64,
        in_flight: u64,
        /// When packets are acknowledged or found lost: the number, when it was sent, whether it arrived.
        answers: VecDeque<(Instant, u64, Instant, bool)>,
    }

    impl Sender {
        fn step(&mut self, links: &mut [Link], now: Instant) {
            let mut lost = None;
            while let Some(&(at, number, sent, has_arrived)) = self.answers.front().filter(|(at, ..)| *at <= now) {
                self.answers.pop_front();
                self.in_flight -= u64::from(MTU);
                match has_arrived {
                    // All that `on_ack` does; only noq can make the estimator it takes.
                    true => {
                        self.handle.acked.push((number, sent));
                        self.handle.on_end_acks(at, self.in_flight, false, Some(number));
                    }
                    false => {
                        self.handle.on_packet_lost(MTU, number, at);
                        lost = Some((sent, number));
                    }
                }
            }
            if let Some((sent, number)) = lost {
                self.handle.on_congestion_event(now, sent, false, false, MTU.into(), number);
            }
            while self.in_flight + u64::from(MTU) <= self.handle.window() {
                self.handle.on_packet_sent(now, MTU, self.next);
                let (answer, has_arrived) = match links[self.link].take(now) {
                    Some(at) => (at, true),
                    // Later packets tell.
                    None => (now + RTT + QUEUE_MAX + 3 * STEP, false),
                };
                self.answers.push_back((answer, self.next, now, has_arrived));
                (self.next, self.in_flight) = (self.next + 1, self.in_flight + u64::from(MTU));
            }
            self.handle.on_cwnd_limited();
        }
    }

    /// Two paths send as much as they may for this time, over the links of these numbers.
    fn run(over: [usize; 2], span: Duration) -> (Controllers, [Sender; 2], Instant) {
        let controllers = Controllers::new(&EngineConfig::live()).unwrap();
        let begun = Instant::now();
        let mut links = [12, 8].map(|mbps| Link { rate: Bitrate::from_mbps(mbps), free_at: begun });
        let mut senders = over.map(|link| {
            let handle = controllers.factory().build(begun, MTU).into_any().downcast().unwrap();
            Sender { handle, link, next: 0, in_flight: 0, answers: VecDeque::new() }
        });
        let mut now = begun;
        while now < begun + span {
            now += STEP;
            senders.iter_mut().for_each(|sender| sender.step(&mut links, now));
        }
        (controllers, senders, now)
    }

    #[test]
    fn paths_without_a_host_are_coupled_where_they_share_a_link_and_else_are_not() {
        for (over, are_one) in [([0, 0], true), ([0, 1], false)] {
            // The paths close with their handles.
            let (controllers, _open, now) = run(over, SPAN);
            let paths = controllers.snapshots(now);
            assert_eq!(paths[0].group == paths[1].group, are_one, "over {over:?}: {:?}", controllers.verdicts(now));
            let delivered: u64 = paths.iter().map(|path| path.delivered.get()).sum();
            let mbps = delivered as f64 * 8.0 / 1e6 / SPAN.as_secs_f64();
            let rate = if are_one { 12.0 } else { 20.0 };
            // Start-up, and halves of the queue that run empty after a loss.
            assert!(mbps > 0.85 * rate && mbps <= rate, "over {over:?} {mbps:.1} Mbit/s");
        }
    }

    #[test]
    fn nothing_is_kept_for_a_host_that_is_not_there() {
        let (controllers, _open, now) = run([0, 1], Duration::from_secs(2));
        controllers.snapshots(now);
        let shared = controllers.0.lock();
        assert!(shared.left.is_empty() && shared.fates.is_empty() && shared.told == 0);
        assert!(shared.left.capacity() < 2_000 && shared.fates.capacity() < 2_000);
    }
}
