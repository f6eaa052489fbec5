//! An address that a path can start from, as the host describes it.

use std::fmt;
use std::net::IpAddr;

use crate::address::{Scope, is_link_local, scope, stand_in};

/// Why an address is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It reaches only this machine.
    Loopback,
    /// It reaches only the local link.
    LinkLocal,
    /// The interface is down, or has no carrier.
    Down,
    /// The interface's MTU, given here in bytes, is smaller than QUIC needs.
    SmallPackets(u32),
    /// It was not among those asked for.
    NotSelected,
    /// Nothing but this machine is behind the interface, or only routers know a way to it.
    LeadsNowhere(Kind),
    /// It is public, and beside the VPN of this name, which is to carry all that leaves for the Internet.
    OutsideVpn(String),
    /// The interface has a better address of the same family already.
    SecondAddress,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SmallPackets(mtu) => {
                let [v4, v6] = [PACKET_MIN + 20 + 8, PACKET_MIN + 40 + 8];
                return write!(f, "its MTU is {mtu} bytes; QUIC needs {v4} with IPv4 and {v6} with IPv6");
            }
            Self::LeadsNowhere(kind) => return write!(f, "{kind} (name it with --via to use it)"),
            Self::OutsideVpn(vpn) => {
                return write!(
                    f,
                    "outside the VPN {vpn}, which carries what leaves here (name it with --via to use it)"
                );
            }
            Self::Loopback => "reaches only this machine (name it with --via to use it)",
            Self::LinkLocal => "link-local, reaches only its own link (name it with --via to use it)",
            Self::Down => "the interface is down or has no carrier",
            Self::NotSelected => "not among the interfaces asked for",
            Self::SecondAddress => "the interface has another address of this family, which is used",
        })
    }
}

/// The UDP payload that QUIC needs every network to carry, in bytes [RFC9000 §14].
const PACKET_MIN: u32 = 1200;

/// Whether packets of this many bytes, headers included, are too small for QUIC from an address of this family.
pub fn is_too_small(mtu: u32, address: IpAddr) -> bool {
    let headers = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
    mtu < PACKET_MIN + headers
}

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// The number of the interface among those that have this address: 0 where no other has it.
    pub twin: u16,
    /// How many leading bits of the address name its subnet.
    pub prefix_bits: u8,
    /// `None`: a path can start here; else why not.
    pub unusable: Option<Unusable>,
}

impl Interface {
    /// The name by which paths know the address: no other interface's.
    pub fn local(&self) -> IpAddr {
        stand_in(self.address, self.twin).unwrap_or(self.address)
    }

    /// Whether the address has a meaning at its own link only.
    pub fn is_link_local(&self) -> bool {
        is_link_local(self.address)
    }

    /// Whether the address is known everywhere.
    pub fn is_global(&self) -> bool {
        scope(self.address) == Scope::Global
    }

    /// Whether `other` lies in the subnet of this address.
    pub fn same_subnet(&self, other: IpAddr) -> bool {
        fn common_bits(a: &[u8], b: &[u8]) -> u32 {
            let mut bits = 0;
            for (a, b) in a.iter().zip(b) {
                bits += (a ^ b).leading_zeros();
                if a != b {
                    break;
                }
            }
            bits
        }
        let common = match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => common_bits(&a.octets(), &b.octets()),
            (IpAddr::V6(a), IpAddr::V6(b)) => common_bits(&a.octets(), &b.octets()),
            _ => return false,
        };
        common >= u32::from(self.prefix_bits)
    }
}

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It leads to other machines, or nothing speaks against it.
    Link,
    /// The loopback interface. An address of it that is not a loopback address is reached from outside
    /// where routers know it.
    Loopback,
    /// A bridge without ports: nothing is behind it.
    EmptyBridge,
    /// A bridge that joins only what runs on this machine: containers, virtual machines.
    GuestBridge,
    /// An interface that exists to hold addresses.
    Dummy,
    /// A tunnel without hardware of its own, as of a VPN: what it sends leaves over another interface.
    Tunnel,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "a link",
            Self::Loopback => "the loopback interface",
            Self::EmptyBridge => "a bridge without ports",
            Self::GuestBridge => "a bridge to containers or virtual machines on this machine",
            Self::Dummy => "an interface that only holds addresses",
            Self::Tunnel => "a tunnel over another interface",
        })
    }
}

impl Kind {
    /// Whether packets for an address of it can come in on it.
    pub fn has_wire(self) -> bool {
        matches!(self, Self::Link | Self::GuestBridge | Self::Tunnel)
    }
}

/// How a socket is tied to its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Packets leave through this interface only (`SO_BINDTODEVICE`).
    Device,
    /// Packets carry this interface's address; the routing table chooses the interface.
    Address,
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Address => "source address",
        })
    }
}
