//! The couple itself: one connection over two deep queues, and what is asked of it.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Remedies, Scenario};
use fairpath_sim::SimError;

use crate::{Net, ms};

/// The payload rate of one path with 52 of 1,500 bytes for headers, in Mbit/s.
pub(super) const ONE_PATH: f64 = 30.0 * 1_448.0 / 1_500.0;

/// The reason for each number that is less than the independent model's.
pub(super) const GROWTH: &str = "the model's windows grow only while they are full, and ours in slow start while less than \
    twice what is in flight is allowed, as Linux's do, so that one path takes more of the buffer before the other is asked.";

pub(super) const NONE: Remedies = Remedies { bloat_clamp: None, probe: false, penalty: false };

/// Packets in the queues of the slides.
pub(super) const DEEP: usize = 3_000;

/// One connection over paths of 30 Mbit/s with deep queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Couple {
    pub(super) congestion: &'static str,
    pub(super) scheduler: &'static str,
    pub(super) remedies: Remedies,
    /// Payload that the send buffer holds, in kB.
    pub(super) send_kb: u64,
    /// The limit of the receive window, in kB; `None`: no bound.
    pub(super) receive_kb: Option<u64>,
    /// Round-trip times without queues, in ms; as many as there are paths.
    pub(super) base: &'static [u64],
    /// How far delays spread, in µs.
    pub(super) jitter_us: u64,
    /// Packets that each queue holds.
    pub(super) queue: usize,
    /// When it ends; it is measured from 20 s on.
    pub(super) seconds: u64,
}

impl Couple {
    /// NewReno with `min_rtt` over two paths of 100 ms.
    pub(super) const fn plain(send_kb: u64) -> Self {
        Self {
            congestion: "reno",
            scheduler: "min_rtt",
            remedies: NONE,
            send_kb,
            receive_kb: None,
            base: &[100, 100],
            jitter_us: 0,
            queue: DEEP,
            seconds: 120,
        }
    }

    /// From the 20th second on.
    pub(super) fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("two deep queues", seed, Duration::from_secs(20), Duration::from_secs(self.seconds));
        let path = |(at, rtt): (usize, &u64)| {
            let there =
                LinkConfig::new(Bitrate::from_mbps(30)).delay(ms(*rtt) / 2).queue(QueueConfig::packets(self.queue));
            let there = net.link(&format!("path {at}"), there.jitter(Duration::from_micros(self.jitter_us)));
            let back = net.link(&format!("path {at} back"), LinkConfig::pure_delay(ms(*rtt) / 2));
            PathRoute { forward: vec![there], backward: vec![back] }
        };
        let paths: Vec<_> = self.base.iter().enumerate().map(path).collect();
        let engine = EngineConfig {
            congestion: self.congestion.into(),
            coupling: Coupling::Never,
            scheduler: self.scheduler.into(),
            ..EngineConfig::default()
        };
        let flow = net.flow("transfer", engine, &paths);
        flow.remedies = self.remedies;
        flow.transport.send_buffer = Some(ByteCount::from_kilobytes(self.send_kb));
        flow.transport.receive_buffer = self.receive_kb.map(ByteCount::from_kilobytes);
        flow.start_jitter = ms(100);
        net.scenario
    }

    /// The goodput, in Mbit/s.
    pub(super) fn goodput(&self, seed: u64) -> Result<f64, SimError> {
        Ok(fairpath_sim::run(&self.scenario(seed), &mut ())?.flows[0].goodput.as_mbps_f64())
    }

    /// How long the whole send buffer takes over one path, in ms: S/C, the round-trip time of the path that has it.
    pub(super) fn buffer_ms(&self) -> f64 {
        self.send_kb as f64 * 8.0 / ONE_PATH
    }
}
