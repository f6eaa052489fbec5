//! Which local address goes with which address of the peer: one path per pair.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::interfaces::Interface;

/// Where a path begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The interface it leaves through.
    pub(crate) local: Interface,
    /// The peer's address.
    pub(crate) remote: SocketAddr,
}

/// The pairs to open, `paths_max` at most. Every address at either end is used at least once where
/// it can be, so the end with more of them decides how many pairs there are. Addresses of one subnet
/// go together; otherwise the least used partner is taken. An interface that has addresses of both
/// families uses one of them: the one in which more interfaces reach the peer, IPv4 where it is the same.
pub(crate) fn pairs(locals: &[Interface], remotes: &[SocketAddr], paths_max: usize) -> Vec<Pair> {
    let mut first = of_family(true, locals, remotes);
    let mut second = of_family(false, locals, remotes);
    if interfaces(&second) > interfaces(&first) {
        core::mem::swap(&mut first, &mut second);
    }
    second.retain(|pair| !first.iter().any(|chosen| chosen.local.name == pair.local.name));
    first.append(&mut second);
    first.truncate(paths_max);
    first
}

/// How many interfaces the pairs use.
fn interfaces(pairs: &[Pair]) -> usize {
    pairs.iter().map(|pair| &pair.local.name).collect::<BTreeSet<_>>().len()
}

fn of_family(ipv4: bool, locals: &[Interface], remotes: &[SocketAddr]) -> Vec<Pair> {
    let locals: Vec<&Interface> = locals.iter().filter(|local| local.address.is_ipv4() == ipv4).collect();
    let remotes: Vec<SocketAddr> = remotes.iter().copied().filter(|remote| remote.is_ipv4() == ipv4).collect();
    let mut chosen: Vec<Pair> = Vec::new();
    for local in &locals {
        let uses = |remote: &SocketAddr| chosen.iter().filter(|pair| pair.remote == *remote).count();
        let partner = remotes.iter().min_by_key(|remote| (!local.same_subnet(remote.ip()), uses(remote)));
        if let Some(remote) = partner {
            chosen.push(Pair { local: (*local).clone(), remote: *remote });
        }
    }
    for remote in &remotes {
        let uses = |local: &Interface| chosen.iter().filter(|pair| pair.local == *local).count();
        let partner = locals.iter().min_by_key(|local| (!local.same_subnet(remote.ip()), uses(local)));
        if let Some(local) = partner.filter(|_| !chosen.iter().any(|pair| pair.remote == *remote)) {
            chosen.push(Pair { local: (*local).clone(), remote: *remote });
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), prefix_bits: 24, unusable: None }
    }

    fn names(pairs: &[Pair]) -> Vec<String> {
        pairs.iter().map(|pair| format!("{}>{}", pair.local.name, pair.remote.ip())).collect()
    }

    #[test]
    fn addresses_of_one_subnet_go_together() {
        let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
        let remotes = ["10.0.2.2:1".parse().unwrap(), "10.0.1.2:1".parse().unwrap()];
        assert_eq!(names(&pairs(&locals, &remotes, 8)), ["a>10.0.1.2", "b>10.0.2.2"]);
    }

    #[test]
    fn two_uplinks_to_one_server_are_two_paths() {
        let locals = [local("wlan0", "192.168.1.5"), local("wwan0", "100.64.0.9")];
        let remotes = ["198.51.100.1:4433".parse().unwrap()];
        assert_eq!(names(&pairs(&locals, &remotes, 8)), ["wlan0>198.51.100.1", "wwan0>198.51.100.1"]);
    }

    #[test]
    fn one_uplink_to_a_server_with_two_is_two_paths() {
        let locals = [local("eth0", "192.168.1.5")];
        let remotes = ["198.51.100.1:1".parse().unwrap(), "203.0.113.1:1".parse().unwrap()];
        assert_eq!(names(&pairs(&locals, &remotes, 8)).len(), 2);
        assert_eq!(names(&pairs(&locals, &remotes, 1)).len(), 1);
    }

    #[test]
    fn families_do_not_mix() {
        let locals = [local("eth0", "192.168.1.5")];
        let remotes = ["[2001:db8::1]:1".parse().unwrap()];
        assert!(pairs(&locals, &remotes, 8).is_empty());
    }

    #[test]
    fn an_interface_with_both_families_is_one_path() {
        let locals = [
            local("wlan0", "192.168.1.5"),
            local("wlan0", "2001:db8:1::5"),
            local("wwan0", "100.64.0.9"),
            local("wwan0", "2001:db8:2::9"),
        ];
        let remotes = ["198.51.100.1:1".parse().unwrap(), "[2001:db8:9::1]:1".parse().unwrap()];
        assert_eq!(names(&pairs(&locals, &remotes, 8)), ["wlan0>198.51.100.1", "wwan0>198.51.100.1"]);
        assert_eq!(names(&pairs(&locals, &remotes[1..], 8)), ["wlan0>2001:db8:9::1", "wwan0>2001:db8:9::1"]);
        // A mobile network without IPv4.
        let mixed = [locals[0].clone(), locals[3].clone()];
        assert_eq!(names(&pairs(&mixed, &remotes, 8)), ["wlan0>198.51.100.1", "wwan0>2001:db8:9::1"]);
        let more = [locals[0].clone(), locals[1].clone(), locals[3].clone()];
        assert_eq!(names(&pairs(&more, &remotes, 8)), ["wlan0>2001:db8:9::1", "wwan0>2001:db8:9::1"]);
    }
}
