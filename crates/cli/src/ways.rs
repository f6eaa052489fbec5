//! The pairs of addresses tried to reach the peer, in words and for programs.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use fairpath_quic::{Outcome, PathReport, Tried};
use serde::Serialize;

/// One pair of addresses that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Way {
    interface: String,
    local: String,
    remote: String,
    /// Its outcome.
    result: String,
}

impl Way {
    pub(crate) fn all(tried: &[Tried]) -> Vec<Self> {
        let way = |one: &Tried| Self {
            interface: one.interface.clone(),
            local: one.address().to_string(),
            remote: one.remote.to_string(),
            result: one.outcome.to_string(),
        };
        tried.iter().map(way).collect()
    }
}

/// A sentence for each interface that found no way to the peer, and for each address of the peer that no
/// interface reached.
pub(crate) fn in_vain(tried: &[Tried], paths: &[PathReport]) -> Vec<String> {
    let failed = || tried.iter().filter(|one| matches!(one.outcome, Outcome::Failed(_)));
    let mut sentences = Vec::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for one in failed() {
        let has_way = |other: &Tried| other.interface == one.interface && !matches!(other.outcome, Outcome::Failed(_));
        let is_in_use = paths.iter().any(|path| path.interface == one.interface);
        if !is_in_use && !tried.iter().any(has_way) && told.insert(&one.interface) {
            let own = failed().filter(|other| other.interface == one.interface);
            let reasons: Vec<String> = own.map(|one| format!("{} {}", one.remote, one.outcome)).collect();
            sentences.push(format!("{} found no way to the peer: {}", one.interface, reasons.join(", ")));
        }
    }
    let mut reached: BTreeSet<SocketAddr> = paths.iter().map(|path| path.remote).collect();
    reached.extend(tried.iter().filter(|one| !matches!(one.outcome, Outcome::Failed(_))).map(|one| one.remote));
    let mut unreached: BTreeSet<SocketAddr> = BTreeSet::new();
    for one in failed().filter(|one| !reached.contains(&one.remote)) {
        let from: Vec<&Tried> = failed().filter(|other| other.remote == one.remote).collect();
        // Where all interfaces are told, so are their addresses.
        if unreached.insert(one.remote) && !from.iter().all(|other| told.contains(other.interface.as_str())) {
            let reasons: Vec<String> = from.iter().map(|one| format!("{} ({})", one.interface, one.outcome)).collect();
            sentences.push(format!("{} was not reached from {}", one.remote, reasons.join(", ")));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use fairpath_quic::WhyNot;

    use super::*;
    use crate::role::tests::path;

    fn tried(interface: &str, remote: &str, outcome: Outcome) -> Tried {
        let local = "10.0.0.1".parse().unwrap();
        Tried { interface: interface.into(), local, remote: remote.parse().unwrap(), outcome }
    }

    #[test]
    fn interfaces_without_a_way_and_addresses_that_nobody_reached_are_told_with_the_reasons() {
        let (peer, bridge) = ("192.0.2.1:7", "172.17.0.1:7");
        let all = [
            tried("eth0", peer, Outcome::Works),
            tried("eth0", bridge, Outcome::Failed(WhyNot::Silent)),
            tried("wwan0", peer, Outcome::Failed(WhyNot::NoRoute)),
            tried("wwan0", bridge, Outcome::Failed(WhyNot::Refused)),
        ];
        let paths = [path("eth0", peer, 1)];
        let expected = [
            "wwan0 found no way to the peer: 192.0.2.1:7 no route, 172.17.0.1:7 refused",
            "172.17.0.1:7 was not reached from eth0 (no answer), wwan0 (refused)",
        ];
        assert_eq!(in_vain(&all, &paths), expected);
        assert_eq!(in_vain(&all[2..], &paths), expected[..1], "nothing is told twice");
        // A failed pair is not reported if its interface and its address each work in another pair.
        let both = [all[0].clone(), tried("wwan0", bridge, Outcome::Works), all[1].clone(), all[2].clone()];
        assert!(in_vain(&both, &paths).is_empty());
        assert_eq!(Way::all(&all)[3].result, "refused");
    }
}
