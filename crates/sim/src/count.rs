//! What is counted while a run goes on, and summed up at its end.

use core::time::Duration;

use fairpath_core::Bytes;

/// What one path of a flow has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathCount {
    /// Packets of data sent.
    pub sent: u64,
    /// Packets found lost.
    pub lost: u64,
    /// New data that arrived on this path, without headers.
    pub delivered: Bytes,
    /// How often losses or marks began an episode of congestion.
    pub episodes: u64,
    /// How often the probe timeout passed.
    pub timeouts: u64,
    /// Samples of the round-trip time, and their sum.
    pub rtt_samples: u64,
    /// The sum of the samples.
    pub rtt_sum: Duration,
}

impl PathCount {
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            lost: self.lost - earlier.lost,
            delivered: self.delivered - earlier.delivered,
            episodes: self.episodes - earlier.episodes,
            timeouts: self.timeouts - earlier.timeouts,
            rtt_samples: self.rtt_samples - earlier.rtt_samples,
            rtt_sum: self.rtt_sum - earlier.rtt_sum,
        }
    }

    /// The mean round-trip time; `None` without a sample.
    pub fn mean_rtt(&self) -> Option<Duration> {
        let samples = u32::try_from(self.rtt_samples).ok().filter(|samples| *samples > 0)?;
        Some(self.rtt_sum / samples)
    }
}

/// What a flow has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlowCount {
    pub(crate) paths: Vec<PathCount>,
    /// Delivered in order, without headers.
    pub(crate) delivered: Bytes,
    /// How long each transfer that ended took.
    pub(crate) completions: Vec<Duration>,
    /// How many transfers were begun.
    pub(crate) begun: u64,
    /// How long each frame took, from the camera to its last byte in order.
    pub(crate) frame_delays: Vec<Duration>,
    /// Pieces that arrived more than once.
    pub(crate) duplicates: u64,
}

impl FlowCount {
    pub(crate) fn new(paths: usize) -> Self {
        Self { paths: vec![PathCount::default(); paths], ..Self::default() }
    }
}
