//! Settings that a person should change on this machine for its interfaces to work together.

use std::fmt;
use std::net::IpAddr;

use super::{Interface, is_vpn};

/// Something that keeps interfaces from working together, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Both are in one network, and the system drops packets that come in on the one that it would not answer through.
    ReversePath {
        /// The interfaces, in the order of the system.
        interfaces: [String; 2],
    },
    /// Both are in one network, and the system answers for the addresses of both on either, so that others may reach both
    /// through one.
    Answers {
        /// The interfaces, in the order of the system.
        interfaces: [String; 2],
    },
    /// The interface is a tunnel over another.
    Vpn {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers { interfaces: [a, b] } => write!(
                f,
                "{a} and {b} are in one network, and this system answers for the addresses of both on either, so that \
                 others may send all through one; to use both: sysctl -w net.ipv4.conf.all.arp_ignore=1"
            ),
            Self::Vpn { name } => write!(
                f,
                "{name} is a VPN over another interface, and adds nothing to what that carries: unless --via names it, it \
                 is used only towards peers that the routing table sends through it"
            ),
            Self::ReversePath { interfaces: [a, b] } => write!(
                f,
                "{a} and {b} are in one network, and this system drops what comes in on one of them (rp_filter is 1), so \
                 that only one carries data; to use both: sysctl -w net.ipv4.conf.all.rp_filter=2"
            ),
        }
    }
}

/// The settings to change for these interfaces to work together.
pub fn advice(found: &[Interface]) -> Vec<Advice> {
    let usable = || found.iter().filter(|one| one.unusable.is_none());
    let has_card = usable().any(|one| !is_vpn(&one.name));
    let mut names: Vec<String> =
        usable().filter(|one| has_card && is_vpn(&one.name)).map(|one| one.name.clone()).collect();
    names.dedup();
    let vpns = names.into_iter().map(|name| Advice::Vpn { name });
    let strict = |name: &str| setting(name, "rp_filter") == Some(STRICT);
    let answers = |name: &str| setting(name, "arp_ignore") == Some(0) && setting(name, "arp_filter") == Some(0);
    let paths = neighbours(found, strict, |interfaces| Advice::ReversePath { interfaces });
    let answers = neighbours(found, answers, |interfaces| Advice::Answers { interfaces });
    paths.into_iter().chain(answers).chain(vpns).collect()
}

/// The advice on each two interfaces in one network, where `is_amiss` of one of them.
fn neighbours(
    found: &[Interface],
    is_amiss: impl Fn(&str) -> bool,
    advice_on: impl Fn([String; 2]) -> Advice,
) -> Vec<Advice> {
    let usable: Vec<&Interface> = found.iter().filter(|one| one.unusable.is_none() && one.address.is_ipv4()).collect();
    let mut advice: Vec<Advice> = Vec::new();
    for (at, one) in usable.iter().enumerate() {
        for other in &usable[at + 1..] {
            let is_amiss = || [one, other].iter().any(|one| is_amiss(&one.name));
            if one.name != other.name && are_neighbours(one, other.address) && is_amiss() {
                let found = advice_on([one.name.clone(), other.name.clone()]);
                advice.extend((!advice.contains(&found)).then_some(found));
            }
        }
    }
    advice
}

/// Two modems that give one address are two networks.
fn are_neighbours(one: &Interface, other: IpAddr) -> bool {
    one.address != other && one.same_subnet(other)
}

/// The value of `rp_filter` with which packets are dropped that come in on another interface than the best way back.
const STRICT: u8 = 1;

/// The value of a setting that counts for the interface: the larger of its own and the one for all.
fn setting(name: &str, setting: &str) -> Option<u8> {
    let read = |name: &str| -> Option<u8> {
        std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/{setting}")).ok()?.trim().parse().ok()
    };
    read(name).max(read("all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable: None }
    }

    #[test]
    fn two_interfaces_in_one_network_need_a_filter_that_lets_both_be_used() {
        let found = [interface("a", "10.6.0.2"), interface("b", "10.6.0.3"), interface("c", "10.7.0.3")];
        let advised = |found: &[Interface], is_amiss: bool| {
            neighbours(found, |_| is_amiss, |interfaces| Advice::ReversePath { interfaces })
        };
        let advice = advised(&found, true);
        assert_eq!(advice, [Advice::ReversePath { interfaces: ["a".into(), "b".into()] }]);
        assert!(advised(&found, false).is_empty());
        assert!(advised(&found[1..], true).is_empty());
        let modems = [interface("a", "192.168.8.100"), interface("b", "192.168.8.100")];
        assert!(advised(&modems, true).is_empty(), "networks of two modems");
    }
}
