//! What a sender is told of a path.

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes, PathId, Timestamp};
use fairpath_engine::{Engine, PathSnapshot, Terms};

/// What the host knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The path.
    pub path: PathId,
    /// Whether it may carry data.
    pub usable: bool,
    /// The smoothed round-trip time, once there is one.
    pub rtt: Option<Duration>,
    /// The shortest there was.
    pub least_rtt: Option<Duration>,
    /// What congestion control lets be in flight.
    pub window: Bytes,
    /// The size of its packets.
    pub max_datagram: Bytes,
    /// What was said of it.
    pub terms: PathTerms,
}

impl PathFacts {
    /// What an engine knows of its paths.
    pub fn of(engine: &Engine, now: Timestamp) -> Vec<Self> {
        let fact = |path: PathSnapshot| Self {
            path: path.path,
            usable: path.usable && !path.suspected,
            rtt: path.rtt.map(|rtt| rtt.smoothed),
            least_rtt: path.rtt.map(|rtt| rtt.windowed_min),
            window: path.window,
            max_datagram: engine.max_datagram(path.path).unwrap_or_default(),
            terms: PathTerms::of(engine, path.path),
        };
        engine.snapshots(now).map(fact).collect()
    }
}

/// What a person or the host says of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTerms {
    /// It carries the stream only where no other can.
    pub backup: bool,
    /// What using it costs: it carries only what those that cost less have no room for.
    pub cost: u32,
    /// No more is sent on it.
    pub cap: Option<Bitrate>,
}

impl PathTerms {
    fn of(engine: &Engine, path: PathId) -> Self {
        let Terms { cost, cap, .. } = engine.terms(path).unwrap_or_default();
        Self { backup: engine.is_backup(path), cost, cap }
    }

    /// Of two paths that serve, the one that carries the stream has the lower price.
    pub(crate) fn price(&self) -> (bool, u32) {
        (self.backup, self.cost)
    }
}
