//! What both ends of a transfer show a person.

mod summary;
mod view;

use std::net::IpAddr;

use fairpath_core::{Bitrate, Bytes};
use fairpath_quic::PathReport;
use serde::Serialize;

pub(crate) use summary::Summary;
pub(crate) use view::{TICK, View};

/// The options on what is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Shown {
    /// Print the summary as one line of JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor summary
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Send,
    Receive,
}

impl Role {
    fn rate(self, path: &PathReport) -> Bitrate {
        match self {
            Self::Send => path.send_rate,
            Self::Receive => path.receive_rate,
        }
    }

    fn bytes(self, path: &PathReport) -> Bytes {
        match self {
            Self::Send => path.acked,
            Self::Receive => path.received,
        }
    }

    /// The address that tells paths of one interface apart: the sender's, where paths begin.
    fn origin(self, path: &PathReport) -> Option<IpAddr> {
        match self {
            Self::Send => path.local,
            Self::Receive => Some(path.remote.ip()),
        }
    }

    /// A name for every path: that of its interface, with an address where that is not enough.
    pub(crate) fn names(self, paths: &[PathReport]) -> Vec<String> {
        let count = |name: &str| paths.iter().filter(|path| path.interface == name).count();
        let name = |path: &PathReport| match self.origin(path) {
            Some(address) if count(&path.interface) > 1 => format!("{}/{address}", path.interface),
            _ => path.interface.clone(),
        };
        paths.iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use fairpath_quic::{Binding, PathState};

    use super::*;

    /// A path that has carried so much.
    pub(super) fn path(interface: &str, remote: &str, bytes: u64) -> PathReport {
        PathReport {
            interface: interface.into(),
            local: None,
            remote: remote.parse().unwrap(),
            binding: Some(Binding::Device),
            state: PathState::Open,
            opened: 1,
            acked: Bytes::new(bytes),
            lost: Bytes::ZERO,
            received: Bytes::new(bytes),
            send_rate: Bitrate::from_mbps(8),
            receive_rate: Bitrate::from_mbps(8),
            snapshot: None,
        }
    }

    #[test]
    fn paths_that_share_an_interface_are_told_apart_by_their_address() {
        let paths = [path("lo", "127.0.1.1:9", 1), path("lo", "127.0.2.1:9", 1), path("eth0", "192.0.2.1:9", 1)];
        assert_eq!(Role::Receive.names(&paths), ["lo/127.0.1.1", "lo/127.0.2.1", "eth0"]);
    }
}
