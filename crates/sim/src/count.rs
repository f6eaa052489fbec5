//! The counters of a run, summed up at its end.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_live::Counts;

/// The counters of one path of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PathCount {
    /// Packets of data sent.
    pub sent: u64,
    /// Packets found lost.
    pub lost: u64,
    /// New data that arrived on this path, without headers.
    pub delivered: ByteCount,
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

/// The counters of a live stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LiveCount {
    /// Packets that the application had.
    pub queued: u64,
    /// Packets that were played by their deadline, by the one clock of a simulation.
    pub in_time: u64,
    /// The data in them.
    pub in_time_bytes: ByteCount,
    /// Packets that were played at all: the two ends' clocks are told apart by a guess.
    pub played: u64,
    /// Pieces that were sent for the first time.
    pub pieces: u64,
    /// Packets of repair that were sent.
    pub repair: u64,
    /// Copies that were sent, of marked packets and to measure paths.
    pub copies: u64,
    /// Pieces that were sent again.
    pub again: u64,
    /// Pieces that were never sent because no path took them in time, and packets for which there was no room.
    pub dropped: u64,
    /// Data that the budget allowed an encoder to send.
    pub allowed: ByteCount,
    /// Over how long.
    pub allowed_for: Duration,
    /// All steps of the budget, up and down, in bit/s.
    pub steps_bps: u64,
    /// The counters of the receiver.
    pub counts: Counts,
}

impl LiveCount {
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            queued: self.queued - earlier.queued,
            in_time: self.in_time - earlier.in_time,
            in_time_bytes: self.in_time_bytes - earlier.in_time_bytes,
            played: self.played - earlier.played,
            pieces: self.pieces - earlier.pieces,
            repair: self.repair - earlier.repair,
            copies: self.copies - earlier.copies,
            again: self.again - earlier.again,
            dropped: self.dropped - earlier.dropped,
            allowed: self.allowed - earlier.allowed,
            allowed_for: self.allowed_for - earlier.allowed_for,
            steps_bps: self.steps_bps - earlier.steps_bps,
            counts: counts_since(&self.counts, &earlier.counts),
        }
    }

    /// The share of the application's packets that were played in time; `None` where it had none. What is on its way
    /// when counting begins and ends is counted too: with a steady rate it is as much.
    pub fn on_time(&self) -> Option<f64> {
        (self.queued > 0).then(|| self.in_time as f64 / self.queued as f64)
    }

    /// The mean budget of an encoder.
    pub fn budget(&self) -> Bitrate {
        self.allowed.per(self.allowed_for).unwrap_or(Bitrate::ZERO)
    }

    /// The budget's movement up and down per minute, relative to its mean. An encoder that follows
    /// the budget changes its picture as much.
    pub fn restlessness(&self) -> f64 {
        let whole = self.budget().as_bps() as f64 * self.allowed_for.as_secs_f64() / 60.0;
        if whole > 0.0 { self.steps_bps as f64 / whole } else { 0.0 }
    }

    /// Repair, copies and what was sent again, in parts of all that was sent.
    pub fn beside(&self) -> f64 {
        let beside = self.repair + self.copies + self.again;
        beside as f64 / (self.pieces + beside).max(1) as f64
    }
}

/// Pieces that come late are counted anew, so that a number may have fallen.
fn counts_since(now: &Counts, earlier: &Counts) -> Counts {
    Counts {
        delivered: now.delivered - earlier.delivered,
        received: now.received - earlier.received,
        recovered: now.recovered.saturating_sub(earlier.recovered),
        late: now.late - earlier.late,
        duplicate: now.duplicate - earlier.duplicate,
        lost: now.lost.saturating_sub(earlier.lost),
        repair: now.repair - earlier.repair,
    }
}

/// The counters of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlowCount {
    pub(crate) paths: Vec<PathCount>,
    /// Delivered in order, without headers.
    pub(crate) delivered: ByteCount,
    /// How long each transfer that ended took.
    pub(crate) completions: Vec<Duration>,
    /// How many transfers were begun.
    pub(crate) begun: u64,
    /// How long each frame took, from the camera to its last byte in order, or each packet of a live stream.
    pub(crate) frame_delays: Vec<Duration>,
    /// Pieces that arrived more than once.
    pub(crate) duplicates: u64,
    /// How long pieces waited at the receiver for what comes before them, all of them together.
    pub(crate) waited: Duration,
    /// The counters of its live stream.
    pub(crate) live: LiveCount,
}

impl FlowCount {
    pub(crate) fn new(paths: usize) -> Self {
        Self { paths: vec![PathCount::default(); paths], ..Self::default() }
    }
}
