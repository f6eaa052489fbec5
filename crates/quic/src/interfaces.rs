//! The network interfaces of this machine: which of their addresses a path can start from, and why
//! not from the others.

mod advice;
mod kind;
mod lost;
mod twins;
mod vpn;

use std::io;
use std::net::{IpAddr, SocketAddr};

pub use advice::{Advice, advice};
pub use fairpath_quic_core::{Interface, Kind, Unusable};
use fairpath_quic_core::{is_link_local, is_too_small};
pub(crate) use kind::of as kind;
pub use lost::{Link, Lost};
pub(crate) use twins::number as number_twins;
use vpn::System;
pub use vpn::is_vpn;
pub(crate) use vpn::without_tunnels;

/// A name or address asked for that this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no interface or address '{name}' on this machine; there are {}", .available.join(", "))]
pub struct UnknownInterface {
    /// The name that was asked for.
    pub name: String,
    /// The names of the interfaces there are.
    pub available: Vec<String>,
}

/// All addresses of this machine, in the order of the system. With `via`, only those whose interface
/// or address is named there are usable, and loopback addresses may be named too.
pub fn interfaces(via: &[String]) -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    let listed = if_addrs::get_if_addrs()?;
    let has_more = |name: &str| listed.iter().any(|one| one.name == name && !one.is_link_local());
    for interface in &listed {
        let address = interface.ip();
        let prefix_bits = match &interface.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        };
        // On Unix the system only says whether the interface runs: `Up` or `Unknown`.
        let down = match interface.oper_status {
            if_addrs::IfOperStatus::Up => false,
            if_addrs::IfOperStatus::Unknown | if_addrs::IfOperStatus::Testing => cfg!(unix),
            _ => true,
        };
        let by_address = via.iter().any(|name| is_address(name, &interface.name, address));
        let named = by_address || via.contains(&interface.name);
        let rivals = |other: &&Interface| other.name == interface.name && other.address.is_ipv4() == address.is_ipv4();
        let has_address = found.iter().filter(rivals).any(|other| other.unusable.is_none());
        let unusable = if !via.is_empty() && !named {
            Some(Unusable::NotSelected)
        } else if down {
            Some(Unusable::Down)
        } else if let Some(mtu) = kind::mtu(&interface.name).filter(|mtu| is_too_small(*mtu, address)) {
            Some(Unusable::SmallPackets(mtu))
        } else if address.is_loopback() && via.is_empty() {
            Some(Unusable::Loopback)
        } else if interface.is_link_local() && !by_address && (!named || has_more(&interface.name)) {
            Some(Unusable::LinkLocal)
        } else if let Some(kind) =
            Some(kind(&interface.name)).filter(|kind| !matches!(kind, Kind::Link | Kind::Tunnel) && !named)
        {
            Some(Unusable::LeadsNowhere(kind))
        } else if has_address && !by_address {
            Some(Unusable::SecondAddress)
        } else {
            None
        };
        found.push(Interface { name: interface.name.clone(), address, twin: 0, prefix_bits, unusable });
    }
    if via.is_empty() {
        System::REAL.hide(&mut found);
    }
    Ok(found)
}

/// Whether `text` is the address, which may have its interface behind it: `fe80::1%eth0`.
fn is_address(text: &str, interface: &str, address: IpAddr) -> bool {
    let (text, zone) = text.split_once('%').map_or((text, None), |(text, zone)| (text, Some(zone)));
    zone.is_none_or(|zone| zone == interface) && text.parse() == Ok(address)
}

/// Checks that every name in `via` is an interface or an address of this machine. Addresses inside a
/// loopback subnet count: the whole of it is this machine's.
pub fn check_names(via: &[String], found: &[Interface]) -> Result<(), UnknownInterface> {
    for name in via {
        let known = found.iter().any(|one| one.name == *name || is_address(name, &one.name, one.address));
        if !known && loopback_alias(name).is_none() {
            let mut available: Vec<String> = found.iter().map(|one| one.name.clone()).collect();
            available.sort_unstable();
            available.dedup();
            return Err(UnknownInterface { name: name.clone(), available });
        }
    }
    Ok(())
}

/// The address `name` where it is one of 127.0.0.0/8: usable on Linux without being configured, and
/// so a second "interface" for tests and demonstrations on one machine.
pub fn loopback_alias(name: &str) -> Option<IpAddr> {
    let address: IpAddr = name.parse().ok()?;
    (address.is_ipv4() && address.is_loopback()).then_some(address)
}

/// The number by which the system knows the interface, given by its name or as that number.
pub fn index(name: &str) -> Option<u32> {
    let listed = || if_addrs::get_if_addrs().ok()?.into_iter().find(|one| one.name == name)?.index;
    name.parse().ok().or_else(listed)
}

/// The name of the interface that the system knows by this number.
pub(crate) fn name(index: u32) -> Option<String> {
    let listed = if_addrs::get_if_addrs().ok()?;
    listed.into_iter().find(|one| one.index == Some(index)).map(|one| one.name)
}

/// How many addresses are listened on everywhere: some machines have thousands on one interface.
const EVERYWHERE_MAX: usize = 64;

/// The addresses at which a machine is reached that listens on all it has, the usable ones first. Loopback, and what
/// is of use only to guests on this machine or stands behind another address, is marked unusable: nobody is told of it.
pub fn everywhere() -> io::Result<Vec<Interface>> {
    let mut found = interfaces(&[])?;
    found.retain_mut(|one| match one.unusable {
        None | Some(Unusable::SecondAddress | Unusable::Loopback | Unusable::OutsideVpn(_)) => true,
        // Routers lead to a public address that lies on an interface without a wire, or it would not be there.
        Some(Unusable::LeadsNowhere(_)) if one.is_global() => {
            one.unusable = None;
            true
        }
        Some(Unusable::LeadsNowhere(kind)) => kind == Kind::GuestBridge,
        Some(_) => false,
    });
    found.sort_by_key(|one| one.unusable.is_some());
    found.truncate(EVERYWHERE_MAX);
    Ok(found)
}

/// The addresses that paths start from: the usable ones, and loopback addresses named in `via`.
pub fn usable(via: &[String]) -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = interfaces(via)?.into_iter().filter(|one| one.unusable.is_none()).collect();
    for address in via.iter().filter_map(|name| loopback_alias(name)) {
        if !found.iter().any(|one| one.address == address) {
            let name = format!("lo:{address}");
            found.push(Interface { name, address, twin: 0, prefix_bits: 8, unusable: None });
        }
    }
    Ok(found)
}

/// The addresses from which paths to `remotes` start: the usable ones. If `via` is empty, also those
/// that lead to one of `remotes` and to nobody else, such as a container of this machine.
pub fn towards(via: &[String], remotes: &[SocketAddr]) -> io::Result<Vec<Interface>> {
    let mut found = usable(via)?;
    if via.is_empty() {
        found = System::REAL.choose(found, remotes);
        let leads_to = |one: &Interface| match one.unusable {
            Some(Unusable::LeadsNowhere(_) | Unusable::OutsideVpn(_)) => {
                remotes.iter().any(|remote| one.same_subnet(remote.ip()))
            }
            // A ticket names one only where its receiver was told to.
            Some(Unusable::LinkLocal) => {
                remotes.iter().any(|remote| is_link_local(remote.ip()) && remote.is_ipv4() == one.address.is_ipv4())
            }
            // Every loopback address is reached from every other.
            Some(Unusable::Loopback) => {
                remotes.iter().any(|remote| remote.ip().is_loopback() && remote.is_ipv4() == one.address.is_ipv4())
            }
            _ => false,
        };
        let more = interfaces(via)?.into_iter().filter(leads_to);
        found.extend(more.map(|one| Interface { unusable: None, ..one }));
    }
    Ok(found)
}

/// How many paths the usable ones of these addresses can start at the same time: an interface with
/// addresses of both families starts one, with either.
pub fn starts(found: &[Interface]) -> usize {
    let usable = || found.iter().filter(|one| one.unusable.is_none());
    let of_interface = |one: &Interface, ipv4: bool| {
        usable().filter(|other| other.name == one.name && other.address.is_ipv4() == ipv4).count()
    };
    // Each address of the family that has more, or of the first where both have as many.
    let counts = |one: &&Interface| {
        let ipv4 = of_interface(one, true) >= of_interface(one, false);
        one.address.is_ipv4() == ipv4
    };
    usable().filter(counts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(address: &str, prefix_bits: u8) -> Interface {
        Interface { name: "eth0".into(), address: address.parse().unwrap(), twin: 0, prefix_bits, unusable: None }
    }

    #[test]
    fn a_subnet_is_decided_by_its_leading_bits() {
        let lan = interface("10.1.2.3", 24);
        assert!(lan.same_subnet("10.1.2.250".parse().unwrap()));
        assert!(!lan.same_subnet("10.1.3.3".parse().unwrap()));
        assert!(!lan.same_subnet("fe80::1".parse().unwrap()));
        let odd = interface("10.1.2.129", 25);
        assert!(!odd.same_subnet("10.1.2.1".parse().unwrap()));
        assert!(interface("2001:db8::1", 64).same_subnet("2001:db8::ffff".parse().unwrap()));
    }

    #[test]
    fn both_families_of_an_interface_start_one_path() {
        let both = [interface("10.1.2.3", 24), interface("2001:db8::1", 64)];
        assert_eq!(starts(&both), 1);
        assert_eq!(starts(&both[1..]), 1);
        let down = Interface { unusable: Some(Unusable::Down), ..both[0].clone() };
        assert_eq!(starts(&[down, both[1].clone()]), 1);
        let other = Interface { name: "wwan0".into(), ..interface("2001:db8:1::1", 64) };
        assert_eq!(starts(&[both[0].clone(), both[1].clone(), other]), 2);
    }

    #[test]
    fn loopback_is_used_only_when_named() {
        let all = interfaces(&[]).unwrap();
        assert!(all.iter().filter(|one| one.address.is_loopback()).all(|one| one.unusable.is_some()));
        let named = usable(&["127.0.0.1".into(), "127.0.7.1".into()]).unwrap();
        assert_eq!(named.len(), 2, "{named:?}");
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let all = interfaces(&[]).unwrap();
        let error = check_names(&["wwan9".into()], &all).unwrap_err();
        assert_eq!(error.name, "wwan9");
        assert!(error.to_string().contains("'wwan9'"));
    }
}
