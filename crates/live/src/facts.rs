//! The facts about a path that a sender needs.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_engine::{Engine, Liveness, PathSnapshot, Terms};

/// The host's knowledge of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The path.
    pub path: PathId,
    /// Whether it may carry data.
    pub usable: bool,
    /// Whether it answers.
    pub liveness: Liveness,
    /// The smoothed round-trip time, once there is one.
    pub rtt: Option<Duration>,
    /// The shortest there was.
    pub least_rtt: Option<Duration>,
    /// The congestion window.
    pub window: ByteCount,
    /// The bottleneck's service rate, if congestion control knows that no other flow fills its
    /// queue.
    pub served: Option<Bitrate>,
    /// The size of its packets.
    pub max_datagram: ByteCount,
    /// Its terms.
    pub terms: PathTerms,
}

impl PathFacts {
    /// Whether new data may go on it.
    pub(crate) fn is_open(&self) -> bool {
        self.usable && self.liveness != Liveness::Silent
    }

    /// The facts about an engine's paths.
    pub fn of(engine: &Engine, now: Timestamp) -> Vec<Self> {
        let fact = |path: PathSnapshot| Self {
            path: path.path,
            usable: path.usable,
            liveness: path.liveness,
            rtt: path.rtt.map(|rtt| rtt.smoothed),
            least_rtt: path.rtt.map(|rtt| rtt.windowed_min),
            window: path.window,
            served: engine.served(path.path),
            max_datagram: engine.max_datagram(path.path).unwrap_or_default(),
            terms: PathTerms::of(engine, path.path),
        };
        let mut facts: Vec<Self> = engine.snapshots(now).map(fact).collect();
        if let Some(limit) = engine.limit() {
            share(&mut facts, limit);
        }
        facts
    }
}

/// Caps the paths so that together they keep to the limit. Each has the part of it that its window is of all windows; those
/// that carry nothing while a cheaper one serves take no part.
fn share(facts: &mut [PathFacts], limit: Bitrate) {
    let rate = |fact: &PathFacts| match fact.rtt {
        Some(rtt) if fact.is_open() && !rtt.is_zero() => 8.0 * fact.window.as_f64() / rtt.as_secs_f64(),
        _ => 0.0,
    };
    let Some(cheapest) = facts.iter().filter(|fact| fact.is_open()).map(|fact| fact.terms.backup).min() else { return };
    let counts = |fact: &PathFacts| fact.terms.backup == cheapest;
    let all: f64 = facts.iter().filter(|fact| counts(fact)).map(rate).sum();
    for fact in facts {
        let part = if all > 0.0 && counts(fact) { rate(fact) / all } else { 1.0 };
        let own = limit.scaled(part);
        fact.terms.cap = Some(fact.terms.cap.map_or(own, |cap| cap.min(own)));
    }
}

/// The terms of a path, set by the user or the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTerms {
    /// It carries the stream only where no other can.
    pub backup: bool,
    /// Its cost: it carries only data for which cheaper paths have no room.
    pub cost: u32,
    /// No more is sent on it.
    pub cap: Option<Bitrate>,
}

impl PathTerms {
    fn of(engine: &Engine, path: PathId) -> Self {
        let Terms { cost, cap, .. } = engine.terms(path).unwrap_or_default();
        Self { backup: engine.is_backup(path), cost, cap }
    }

    /// The order of preference: the path with the lower price carries the stream.
    pub(crate) fn price(&self) -> (bool, u32) {
        (self.backup, self.cost)
    }
}
