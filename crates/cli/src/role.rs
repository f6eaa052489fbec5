//! Which end of a transfer this is, and what paths are called there.

use std::net::IpAddr;

use fairpath_core::{Bitrate, Bytes};
use fairpath_quic::PathReport;
use serde::Serialize;

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Send,
    Receive,
}

impl Role {
    pub(crate) fn rate(self, path: &PathReport) -> Bitrate {
        match self {
            Self::Send => path.send_rate,
            Self::Receive => path.receive_rate,
        }
    }

    pub(crate) fn bytes(self, path: &PathReport) -> Bytes {
        match self {
            Self::Send => path.acked,
            Self::Receive => path.received,
        }
    }

    /// The address that tells paths of one interface apart: the sender's, where paths begin.
    fn origin(self, path: &PathReport) -> Option<IpAddr> {
        match self {
            Self::Send => path.address(),
            Self::Receive => Some(path.remote.ip()),
        }
    }

    /// A name for every path, and no two alike: that of its interface, with an address where that is not
    /// enough, with the peer's where that is not, and with a number in the end.
    pub(crate) fn names(self, paths: &[PathReport]) -> Vec<String> {
        let mut names: Vec<String> = paths.iter().map(|path| path.interface.clone()).collect();
        let further: [&dyn Fn(usize) -> Option<String>; 3] = [
            &|at| self.origin(&paths[at]).map(|address| format!("/{address}")),
            &|at| Some(format!("/{}", paths[at].remote)),
            &|at| Some(format!("#{}", at + 1)),
        ];
        for more in further {
            let is_double = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
            let double: Vec<bool> = names.iter().map(is_double).collect();
            for (at, name) in names.iter_mut().enumerate().filter(|(at, _)| double[*at]) {
                name.push_str(&more(at).unwrap_or_default());
            }
        }
        names
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairpath_quic::{Binding, PathState};

    use super::*;

    /// A path that has carried so much.
    pub(crate) fn path(interface: &str, remote: &str, bytes: u64) -> PathReport {
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

    #[test]
    fn no_two_paths_have_the_same_name() {
        let alike = ["192.0.2.1:9", "192.0.2.2:9", "192.0.2.2:9"].map(|remote| path("lo", remote, 1));
        for role in [Role::Send, Role::Receive] {
            let mut names = role.names(&alike);
            assert!(names.iter().all(|name| name.starts_with("lo/")), "{names:?}");
            names.dedup();
            assert_eq!(names.len(), 3, "{names:?}");
        }
    }
}
