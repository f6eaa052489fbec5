//! The statistics of a sender.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use fairpath_core::{Bitrate, ByteCount, PathId};

use crate::counts::Counts;
use crate::lane::Lane;
use crate::retained::PieceId;

/// The share of one path in a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// The path.
    pub path: PathId,
    /// The rate that it may carry, in time and in fairness to others.
    pub rate: Bitrate,
    /// The bytes sent on it so far, repair and copies included.
    pub sent: ByteCount,
    /// How long packets take there, one way; `None` before the first report.
    pub delay: Option<Duration>,
    /// The standard deviation of the delay.
    pub delay_deviation: Option<Duration>,
    /// The share that was lost in the last two seconds.
    pub loss: f64,
    /// Whether the peer hears nothing of it, so that it carries copies only.
    pub is_silent: bool,
    /// Whether the host can use it.
    pub is_usable: bool,
}

impl PathStatus {
    pub(super) fn of(path: PathId, lane: &Lane, sent: u64) -> Self {
        Self {
            path,
            rate: Bitrate::from_bps((8.0 * lane.rate) as u64),
            sent: ByteCount::new(sent),
            delay: lane.delays.map(|delays| delays.mean),
            delay_deviation: lane.delays.map(|delays| delays.deviation),
            loss: lane.loss,
            is_silent: lane.is_silent,
            is_usable: lane.facts.usable,
        }
    }
}

/// How a stream goes at its sending end.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// How long a packet may take.
    pub deadline: Duration,
    /// The state of each path.
    pub paths: Vec<PathStatus>,
    /// The budget of an encoder.
    pub budget: Bitrate,
    /// The deviation of the budget of the last half minute, in parts of its mean.
    pub budget_variation: f64,
    /// The share of what is sent that is no new data: repair, copies, and what is sent again. Copies that measure a path
    /// are left out: they go where nothing else does.
    pub beside: f64,
    /// Packets of the application.
    pub packets: u64,
    /// Pieces that were sent for the first time.
    pub pieces: u64,
    /// Packets of repair.
    pub repair: u64,
    /// Copies, of marked packets and for measuring.
    pub copies: u64,
    /// Pieces that were sent again because they were lost.
    pub again: u64,
    /// Pieces that were never sent because no path took them before their deadline.
    pub dropped: u64,
    /// The peer's counts; `None` before its first report.
    pub peer: Option<Counts>,
}

/// Running counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) pieces: u64,
    pub(super) repair: u64,
    pub(super) copies: u64,
    pub(super) again: u64,
    pub(super) dropped: u64,
    /// Pieces that wait and are to be copied.
    pub(super) marked: BTreeSet<PieceId>,
    sent: BTreeMap<PathId, u64>,
    /// Bytes of late: new ones, and all.
    new: f64,
    all: f64,
}

impl Tally {
    /// Counts the bytes of a leaving datagram. Copies that only measure a path take nothing from
    /// others, and are not counted as overhead.
    pub(super) fn on_leaving(&mut self, path: PathId, bytes: usize, is_new: bool, is_counted: bool) {
        *self.sent.entry(path).or_default() += bytes as u64;
        self.all += if is_counted { bytes as f64 } else { 0.0 };
        self.new += if is_new { bytes as f64 } else { 0.0 };
    }

    pub(super) fn sent_on(&self, path: PathId) -> u64 {
        self.sent.get(&path).copied().unwrap_or(0)
    }

    /// The share of recent traffic that is no new data.
    pub(super) fn beside(&self) -> f64 {
        if self.all > 0.0 { 1.0 - self.new / self.all } else { 0.0 }
    }

    /// Reduces the weight of past data: to half in two seconds of tenths.
    pub(super) fn fade(&mut self) {
        (self.new, self.all) = (0.966 * self.new, 0.966 * self.all);
    }
}
