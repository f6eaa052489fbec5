//! The report on a path that a person sees.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairpath_engine::health::Condition;
use fairpath_engine::{Bitrate, ByteCount, PathId, PathSnapshot, PathUse, ShutReason};

use super::name::{Ends, names};
use crate::address::own_address;
use crate::interface::Binding;

/// How a path is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Being validated.
    Opening,
    /// Carrying data.
    Open,
    /// No answer for a while; no new data is sent on it as long as another path works.
    Suspected,
    /// Closed; it will be tried again.
    Closed,
}

impl std::fmt::Display for PathState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Suspected => "suspected",
            Self::Closed => "closed",
        })
    }
}

/// The report on a pair of interface and address, over all times that its path was opened.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// The interface here.
    pub interface: String,
    /// The name by which paths know the address here.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// How the path is tied to its interface; `None` once the interface is gone.
    pub binding: Option<Binding>,
    /// How it is doing.
    pub state: PathState,
    /// The use that is made of it, and why.
    pub path_use: PathUse,
    /// How often it was opened.
    pub opened: u32,
    /// The bytes sent that the peer acknowledged.
    pub acked: ByteCount,
    /// The bytes sent that were lost.
    pub lost: ByteCount,
    /// The bytes received, in UDP payloads.
    pub received: ByteCount,
    /// How fast data is being acknowledged, over the last half second or so.
    pub send_rate: Bitrate,
    /// How fast data is coming in, over the last half second or so.
    pub receive_rate: Bitrate,
    /// The engine's state of the path; `None` while it is closed.
    pub snapshot: Option<PathSnapshot>,
    /// The engine's numbers of its paths, the present one last.
    pub numbers: Vec<PathId>,
}

impl PathReport {
    /// A name for each of them, and no two alike: the interface, with an address where several share one.
    pub fn names(reports: &[Self]) -> Vec<String> {
        let ends =
            reports.iter().map(|one| Ends { interface: &one.interface, ours: one.address(), theirs: one.remote });
        names(&ends.collect::<Vec<_>>())
    }

    /// The address here.
    pub fn address(&self) -> Option<IpAddr> {
        self.local.map(own_address)
    }

    /// The smoothed round-trip time.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.snapshot.and_then(|path| path.rtt).map(|rtt| rtt.smoothed)
    }
}

impl PathState {
    pub(super) fn of(path_use: PathUse, condition: Condition) -> Self {
        match path_use {
            PathUse::Shut(ShutReason::Opening) => Self::Opening,
            PathUse::Shut(_) => Self::Closed,
            PathUse::Open | PathUse::Backup(_) if condition == Condition::Healthy => Self::Open,
            PathUse::Open | PathUse::Backup(_) => Self::Suspected,
        }
    }
}
