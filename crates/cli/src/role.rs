//! Which end of a transfer this is, and what paths are called there.

use std::collections::BTreeSet;
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

    /// A name for every path, and no two alike: that of its interface, and where several share one, the least that tells
    /// these apart: the sender's address, the peer's, both, or a number.
    pub(crate) fn names(self, paths: &[PathReport]) -> Vec<String> {
        let origin = |at: usize| self.origin(&paths[at]).map_or(String::new(), |address| address.to_string());
        let ways: [&dyn Fn(usize) -> String; 6] = [
            &|_| String::new(),
            &|at| format!("/{}", origin(at)),
            &|at| format!("/{}", paths[at].remote.ip()),
            &|at| format!("/{}", paths[at].remote),
            &|at| format!("/{}/{}", origin(at), paths[at].remote),
            &|at| format!("#{}", at + 1),
        ];
        let name = |at: usize| {
            let alike = || (0..paths.len()).filter(|other| paths[*other].interface == paths[at].interface);
            let tells_apart = |way: &&&dyn Fn(usize) -> String| {
                let words: BTreeSet<String> = alike().map(*way).collect();
                words.len() == alike().count()
            };
            let way = ways.iter().find(tells_apart).expect("no two have the same number");
            format!("{}{}", paths[at].interface, way(at))
        };
        (0..paths.len()).map(name).collect()
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
    fn no_address_is_in_a_name_that_tells_nothing_apart() {
        let from = |local: &str, remote: &str| {
            let local = Some(local.parse().unwrap());
            PathReport { local, ..path("eth0", remote, 1) }
        };
        let one_address = [from("10.0.0.1", "192.0.2.1:9"), from("10.0.0.1", "192.0.2.2:9")];
        assert_eq!(Role::Send.names(&one_address), ["eth0/192.0.2.1", "eth0/192.0.2.2"]);
        let ports = [from("10.0.0.1", "192.0.2.1:8"), from("10.0.0.1", "192.0.2.1:9")];
        assert_eq!(Role::Send.names(&ports), ["eth0/192.0.2.1:8", "eth0/192.0.2.1:9"]);
        let crossed = ["1", "2"]
            .map(|last| ["1", "2"].map(|other| from(&format!("10.0.0.{last}"), &format!("192.0.2.{other}:9"))));
        let names = Role::Send.names(&crossed.concat());
        assert_eq!(names[1], "eth0/10.0.0.1/192.0.2.2:9");
    }

    #[test]
    fn no_two_paths_have_the_same_name() {
        let alike = ["192.0.2.1:9", "192.0.2.2:9", "192.0.2.2:9"].map(|remote| path("lo", remote, 1));
        for role in [Role::Send, Role::Receive] {
            let mut names = role.names(&alike);
            assert!(names.iter().all(|name| name.starts_with("lo#")), "{names:?}");
            names.dedup();
            assert_eq!(names.len(), 3, "{names:?}");
        }
    }
}
