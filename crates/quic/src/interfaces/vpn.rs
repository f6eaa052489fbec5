//! A VPN beside the interface that it runs over: one of the two is left out, unless both are named.
//!
//! A tunnel adds no capacity to the card that its packets leave by, and what leaves by the card beside it goes around the
//! VPN. Which of the two a peer is to be reached over, the routing table says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::{Interface, Kind, Unusable, kind};

/// Addresses that stand for the whole of the Internet: nobody has them [RFC5737 §3] [RFC3849 §2].
const ANYWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Whether the interface is a tunnel, so that what it sends leaves over another.
pub fn is_vpn(name: &str) -> bool {
    kind(name) == Kind::Tunnel
}

/// The interfaces without the tunnels among them, where something was to be chosen: none is left out that is named in
/// `via`, nor where there is nothing else.
pub(crate) fn without_tunnels(found: Vec<Interface>, via: &[String]) -> Vec<Interface> {
    leave_out(found, via, &is_vpn)
}

fn leave_out(found: Vec<Interface>, via: &[String], is_vpn: &dyn Fn(&str) -> bool) -> Vec<Interface> {
    let is_link = |one: &&Interface| !is_vpn(&one.name);
    if !via.is_empty() || !found.iter().filter(is_link).any(|one| one.unusable.is_none()) {
        return found;
    }
    found.iter().filter(is_link).cloned().collect()
}

/// The knowledge of the system.
pub(super) struct System<'a> {
    pub(super) is_vpn: &'a dyn Fn(&str) -> bool,
    /// The address from which the routing table sends there.
    pub(super) source: &'a dyn Fn(SocketAddr) -> Option<IpAddr>,
}

impl System<'_> {
    pub(super) const REAL: System<'static> = System { is_vpn: &is_vpn, source: &source };

    /// The tunnel that carries what leaves for the Internet, in the family of `address`.
    fn full(&self, found: &[Interface], address: IpAddr) -> Option<String> {
        let anywhere = ANYWHERE.into_iter().find(|one| one.is_ipv4() == address.is_ipv4())?;
        let source = (self.source)(SocketAddr::new(anywhere, 9))?;
        found.iter().find(|one| one.address == source && (self.is_vpn)(&one.name)).map(|one| one.name.clone())
    }

    fn has_both(&self, found: &[Interface]) -> bool {
        let usable = || found.iter().filter(|one| one.unusable.is_none());
        usable().any(|one| (self.is_vpn)(&one.name)) && usable().any(|one| !(self.is_vpn)(&one.name))
    }

    /// Marks public addresses outside a VPN that is to carry all that leaves for the Internet: a ticket would tell them.
    pub(super) fn hide(&self, found: &mut [Interface]) {
        if !self.has_both(found) {
            return;
        }
        for at in 0..found.len() {
            let is_meant = found[at].unusable.is_none() && found[at].is_global() && !(self.is_vpn)(&found[at].name);
            if let Some(vpn) = self.full(found, found[at].address).filter(|_| is_meant) {
                found[at].unusable = Some(Unusable::OutsideVpn(vpn));
            }
        }
    }

    /// Leaves out tunnels through which the routing table sends to none of `remotes`, and beside a tunnel that carries all
    /// that leaves for the Internet also the other interfaces of which that is true.
    pub(super) fn choose(&self, found: Vec<Interface>, remotes: &[SocketAddr]) -> Vec<Interface> {
        if !self.has_both(&found) {
            return found;
        }
        let is_way = |one: &Interface| {
            remotes.iter().any(|remote| one.same_subnet(remote.ip()) || (self.source)(*remote) == Some(one.address))
        };
        let stays = |one: &&Interface| match (self.is_vpn)(&one.name) {
            false if self.full(&found, one.address).is_none() => true,
            _ => is_way(one),
        };
        let chosen: Vec<Interface> = found.iter().filter(stays).cloned().collect();
        if chosen.is_empty() { found } else { chosen }
    }
}

/// Sends nothing: it only looks up the route.
fn source(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "203.0.113.7";
    const LAN: &str = "192.168.1.7";
    const TUNNEL: &str = "10.8.0.2";

    fn interface(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable: None }
    }

    /// `default` has the default route; other networks are reached from the address in them.
    fn source(default: &'static str) -> impl Fn(SocketAddr) -> Option<IpAddr> {
        move |remote| {
            let own = [CARD, LAN, TUNNEL].into_iter().find(|own| interface("", own).same_subnet(remote.ip()));
            own.unwrap_or(default).parse().ok()
        }
    }

    fn chosen(found: &[Interface], default: &'static str, remotes: &[&str]) -> Vec<String> {
        let remotes: Vec<SocketAddr> = remotes.iter().map(|one| SocketAddr::new(one.parse().unwrap(), 7)).collect();
        let system = System { is_vpn: &|name| name == "wg0", source: &source(default) };
        system.choose(found.to_vec(), &remotes).into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn a_vpn_is_used_towards_peers_that_are_routed_through_it() {
        let found = [interface("eth0", LAN), interface("wg0", TUNNEL)];
        assert_eq!(chosen(&found, LAN, &["198.51.100.1"]), ["eth0"], "the VPN leads to some networks only");
        assert_eq!(chosen(&found, LAN, &["198.51.100.1", "10.8.0.9"]), ["eth0", "wg0"]);
        assert_eq!(chosen(&found, TUNNEL, &["198.51.100.1"]), ["wg0"], "the VPN leads everywhere");
        assert_eq!(chosen(&found, TUNNEL, &["192.168.1.9"]), ["eth0"], "a neighbour");
        assert_eq!(chosen(&found[1..], LAN, &["198.51.100.1"]), ["wg0"], "there is nothing else");
    }

    #[test]
    fn a_tunnel_over_the_connection_is_no_link_of_it_unless_it_is_named_or_alone() {
        let found = [interface("eth0", LAN), interface("wg0", TUNNEL)];
        let kept = |found: &[Interface], via: &[&str]| {
            let via: Vec<String> = via.iter().map(|name| (*name).to_owned()).collect();
            leave_out(found.to_vec(), &via, &|name| name == "wg0").into_iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(kept(&found, &[]), ["eth0"]);
        assert_eq!(kept(&found, &["eth0", "wg0"]), ["eth0", "wg0"]);
        assert_eq!(kept(&found[1..], &[]), ["wg0"], "there is nothing else");
        let cut = Interface { unusable: Some(Unusable::Down), ..found[0].clone() };
        assert_eq!(kept(&[cut, found[1].clone()], &[]), ["eth0", "wg0"], "the link is down");
    }

    #[test]
    fn public_addresses_are_hidden_beside_a_vpn_that_leads_everywhere() {
        for (default, hidden) in [(TUNNEL, 1), (CARD, 0)] {
            let mut found = [interface("eth0", CARD), interface("eth1", LAN), interface("wg0", TUNNEL)];
            System { is_vpn: &|name| name == "wg0", source: &source(default) }.hide(&mut found);
            assert_eq!(found.iter().filter(|one| one.unusable.is_some()).count(), hidden);
            assert_eq!(found[0].unusable, (hidden == 1).then(|| Unusable::OutsideVpn("wg0".into())));
        }
    }
}
