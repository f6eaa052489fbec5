//! Paths and interfaces, as a program sees them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairpath_engine::{Bitrate, ByteCount as Amount};
use fairpath_quic::{self as quic, PathReport, interfaces};
use quic::interfaces::Unusable;

/// A pair of addresses that has carried a path, with its figures over all the times it was open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Path {
    /// A name that no other path of the connection has: the interface, with an address where several start there.
    pub name: String,
    /// The interface here.
    pub interface: String,
    /// The address here; `None` where it is gone.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// How it is doing.
    pub state: PathState,
    /// Whether it carries data only while no other path works, as either end wants it or as its health demands.
    pub backup: bool,
    /// Why it carries no data, or only while no other path works, in words; `None`: it carries data.
    pub reason: Option<String>,
    /// The cost of using it and the most that is sent on it, as the two ends say together. Defaults while it is closed.
    pub terms: PathTerms,
    /// How often it was opened.
    pub opened: u32,
    /// The smoothed round-trip time; `None` before it was measured and while the path is closed.
    pub rtt: Option<Duration>,
    /// The congestion window; `None` while the path is closed.
    pub window: Option<Amount>,
    /// The number of the group with which it is coupled: paths of one group take together as much as one connection.
    /// `None` while the path is closed.
    pub group: Option<u32>,
    /// UDP payload that was sent and acknowledged.
    pub acked: Amount,
    /// UDP payload that was sent and lost.
    pub lost: Amount,
    /// UDP payload that came.
    pub received: Amount,
    /// How fast data is being acknowledged, over the last half second or so.
    pub send_rate: Bitrate,
    /// How fast data is coming in, over the last half second or so.
    pub receive_rate: Bitrate,
}

/// How a path is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathState {
    /// It is being validated.
    Opening,
    /// It carries data.
    Open,
    /// It has not answered for a while: no new data is sent on it as long as another works.
    Suspected,
    /// It is closed, and will be tried again.
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

impl PathState {
    fn of(state: quic::PathState) -> Self {
        match state {
            quic::PathState::Opening => Self::Opening,
            quic::PathState::Open => Self::Open,
            quic::PathState::Suspected => Self::Suspected,
            quic::PathState::Closed => Self::Closed,
        }
    }
}

/// The paths of these reports.
pub(crate) fn paths(reports: Vec<PathReport>) -> Vec<Path> {
    let names = PathReport::names(&reports);
    let path = |(report, name): (PathReport, String)| Path {
        name,
        local: report.address(),
        rtt: report.smoothed_rtt(),
        window: report.snapshot.map(|snapshot| snapshot.window),
        group: report.snapshot.map(|snapshot| snapshot.group.get()),
        interface: report.interface,
        remote: report.remote,
        state: PathState::of(report.state),
        backup: report.snapshot.is_some_and(|snapshot| snapshot.backup),
        reason: match report.path_use {
            quic::PathUse::Open => None,
            quic::PathUse::Backup(reason) => Some(reason.to_string()),
            quic::PathUse::Shut(reason) => Some(reason.to_string()),
        },
        terms: PathTerms(report.snapshot.map(|snapshot| snapshot.terms).unwrap_or_default()),
        opened: report.opened,
        acked: report.acked,
        lost: report.lost,
        received: report.received,
        send_rate: report.send_rate,
        receive_rate: report.receive_rate,
    };
    reports.into_iter().zip(names).map(path).collect()
}

/// How sure the detector of shared bottlenecks is of two paths.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sharing {
    /// Their names.
    pub paths: (String, String),
    /// How sure it is that they share one, from 0, surely not, to 1.
    pub confidence: f64,
    /// Whether they are coupled, so that both together take as much as one connection.
    pub together: bool,
}

/// The detector's verdicts about paths, by their names.
pub(crate) fn sharing(reports: &[PathReport], verdicts: &[quic::PairVerdict]) -> Vec<Sharing> {
    let names = PathReport::names(reports);
    let name = |path: quic::PathId| {
        let at = reports.iter().position(|report| report.snapshot.is_some_and(|snapshot| snapshot.path == path))?;
        Some(names[at].clone())
    };
    let of = |one: &quic::PairVerdict| {
        let paths = (name(one.paths.0)?, name(one.paths.1)?);
        Some(Sharing { paths, confidence: one.confidence, together: one.together })
    };
    verdicts.iter().filter_map(of).collect()
}

/// The terms of a program for the paths that begin at an interface or an address.
///
/// ```
/// use fairpath::{Bitrate, PathTerms};
///
/// let modem = PathTerms::new().backup(true).cap(Bitrate::from_mbps(5));
/// # let _ = modem;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTerms(pub(crate) quic::Terms);

impl PathTerms {
    /// Like all others: no cost, no cap, weight 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// The cost of using it, 0 by default: a path is spared where one that costs less will do.
    pub fn cost(mut self, cost: u32) -> Self {
        self.0.cost = cost;
        self
    }

    /// Used only where no other path can be.
    pub fn backup(mut self, backup: bool) -> Self {
        self.0.backup = backup;
        self
    }

    /// The most that is sent on it, UDP payload in bits per second.
    pub fn cap(mut self, cap: Bitrate) -> Self {
        self.0.cap = Some(cap);
        self
    }

    /// The cost that was set.
    pub fn cost_set(&self) -> u32 {
        self.0.cost
    }

    /// Whether it is used only where no other path can be.
    pub fn is_backup(&self) -> bool {
        self.0.backup
    }

    /// The cap that was set.
    pub fn cap_set(&self) -> Option<Bitrate> {
        self.0.cap
    }

    /// Its share beside those of the others, with [`Scheduler::Weighted`](crate::Scheduler::Weighted).
    pub fn weight(mut self, weight: u32) -> Self {
        self.0.weight = weight;
        self
    }
}

/// An address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// Why no path starts there where none was named with `via`, in words; `None`: one does.
    pub unused: Option<String>,
}

/// All addresses of this machine, and whether paths start there by themselves.
///
/// # Errors
///
/// The system's, where the interfaces cannot be read.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let interface = |one: interfaces::Interface| Interface {
        unused: one.unusable.as_ref().map(reason),
        name: one.name,
        address: one.address,
    };
    Ok(interfaces::interfaces(&[])?.into_iter().map(interface).collect())
}

/// Why an address is not used, for a program.
fn reason(unusable: &Unusable) -> String {
    match unusable {
        Unusable::Loopback => "reaches only this machine".into(),
        Unusable::LinkLocal => "link-local, reaches only its own link".into(),
        Unusable::LeadsNowhere(kind) => kind.to_string(),
        Unusable::OutsideVpn(vpn) => format!("outside the VPN {vpn}, which carries what leaves here"),
        other => other.to_string(),
    }
}
