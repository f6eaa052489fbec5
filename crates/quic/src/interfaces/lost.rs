//! Why no path can start any more at an address that one started from.

use std::fmt;
use std::net::IpAddr;

use fairpath_quic_core::is_link_local;

use super::{Interface, Unusable, interfaces};

/// Why an address that a path started from is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its interface does not exist any more.
    Gone,
    /// Its interface is down, or has no carrier.
    Down,
    /// Its interface has another address of the same family instead.
    Changed {
        /// The address that is lost.
        from: IpAddr,
        /// The address there is instead.
        to: IpAddr,
    },
    /// Its interface runs, and has no address of the same family.
    Removed {
        /// The address that is lost.
        address: IpAddr,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("its interface is gone"),
            Self::Down => f.write_str("its interface is down"),
            Self::Changed { from, to } => write!(f, "its address changed from {from} to {to}"),
            Self::Removed { address } => write!(f, "its address {address} was removed"),
        }
    }
}

/// The state of an interface by the system's word, apart from its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// There is none of that name.
    Missing,
    /// It is down, or has no carrier.
    Down,
    /// It is up.
    Running,
}

impl Lost {
    /// Why `address` of the interface `name` is of no use, where `found` are all addresses there are,
    /// the unusable ones included.
    pub fn classify(name: &str, address: IpAddr, found: &[Interface], link: Link) -> Self {
        let instead = |one: &&Interface| {
            let is_alike = one.address.is_ipv4() == address.is_ipv4() && one.is_link_local() == is_link_local(address);
            one.name == name && one.address != address && is_alike
        };
        let usable = || found.iter().filter(instead).find(|one| one.unusable.is_none());
        // An address that was not selected is reported too: the user who named the old address
        // wants to know the new one.
        let unwanted = || {
            let kept = [Some(Unusable::NotSelected), Some(Unusable::SecondAddress)];
            found.iter().filter(instead).find(|one| kept.contains(&one.unusable))
        };
        match (link, usable().or_else(unwanted)) {
            (Link::Missing, _) => Self::Gone,
            (Link::Down, _) => Self::Down,
            (Link::Running, Some(other)) => Self::Changed { from: address, to: other.address },
            (Link::Running, None) => Self::Removed { address },
        }
    }

    /// Why `address` of the interface `name` is of no use at present, `via` being what was asked for.
    pub fn look(name: &str, address: IpAddr, via: &[String]) -> Self {
        let found = interfaces(via).unwrap_or_default();
        Self::classify(name, address, &found, link(name, &found))
    }
}

/// The state of the interface `name`, as the system tells it.
#[cfg(target_os = "linux")]
fn link(name: &str, _: &[Interface]) -> Link {
    use nix::net::if_::InterfaceFlags;
    // Every interface is listed here, also without any address.
    let Ok(mut listed) = nix::ifaddrs::getifaddrs() else { return Link::Running };
    let runs = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    match listed.find(|one| one.interface_name == name) {
        None => Link::Missing,
        Some(one) if one.flags.contains(runs) => Link::Running,
        Some(_) => Link::Down,
    }
}

/// The state of the interface `name`, inferred from its addresses.
#[cfg(not(target_os = "linux"))]
fn link(name: &str, found: &[Interface]) -> Link {
    let mut own = found.iter().filter(|one| one.name == name).peekable();
    match own.peek() {
        None => Link::Missing,
        Some(_) if own.all(|one| one.unusable == Some(Unusable::Down)) => Link::Down,
        Some(_) => Link::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "192.0.2.7";

    fn found(name: &str, address: &str, unusable: Option<Unusable>) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable }
    }

    /// The reason given for the loss of 192.0.2.7 of wlan0.
    fn said(found: &[Interface], link: Link) -> String {
        Lost::classify("wlan0", OLD.parse().unwrap(), found, link).to_string()
    }

    #[test]
    fn an_interface_that_is_down_or_gone_is_told_as_such() {
        let down = [found("wlan0", OLD, Some(Unusable::Down)), found("eth0", "192.0.2.8", None)];
        assert_eq!(said(&down, Link::Down), "its interface is down");
        // Addresses of version 6 go with the interface.
        assert_eq!(said(&[], Link::Down), "its interface is down");
        assert_eq!(said(&down[1..], Link::Missing), "its interface is gone");
    }

    #[test]
    fn a_new_address_is_told_with_the_old_one() {
        let changed = "its address changed from 192.0.2.7 to 198.51.100.3";
        let others = [found("eth0", "192.0.2.8", None), found("wlan0", "2001:db8::1", None)];
        for unusable in [None, Some(Unusable::NotSelected)] {
            let now = [&others[..], &[found("wlan0", "198.51.100.3", unusable)]].concat();
            assert_eq!(said(&now, Link::Running), changed);
        }
        let both =
            [found("wlan0", "198.51.100.9", Some(Unusable::SecondAddress)), found("wlan0", "198.51.100.3", None)];
        assert_eq!(said(&both, Link::Running), changed, "the one that is used is told");
    }

    #[test]
    fn an_address_without_a_successor_was_removed() {
        let others = [found("wlan0", "2001:db8::1", None), found("eth0", "192.0.2.8", None)];
        assert_eq!(said(&others, Link::Running), "its address 192.0.2.7 was removed");
        let local = [found("wlan0", "169.254.7.7", Some(Unusable::LinkLocal))];
        assert_eq!(said(&local, Link::Running), "its address 192.0.2.7 was removed");
    }

    #[test]
    fn an_interface_that_was_never_there_is_gone_and_loopback_runs() {
        let address = OLD.parse().unwrap();
        assert_eq!(Lost::look("no-such-link0", address, &[]), Lost::Gone);
        let all = interfaces(&[]).unwrap();
        if let Some(loopback) = all.iter().find(|one| one.address.is_loopback()) {
            assert_ne!(Lost::look(&loopback.name, address, &[]), Lost::Gone);
        }
    }
}
