//! UDP sockets that a program has bound itself: in a namespace, to a device, with marks of its own.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use crate::interfaces::{self, Interface};

/// Sockets that paths start from, one path each.
#[derive(Clone, Debug)]
pub struct GivenSockets(Arc<[Given]>);

#[derive(Debug)]
struct Given {
    socket: UdpSocket,
    local: SocketAddr,
    name: String,
}

/// A socket that no path can start from. The caller is at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadSocket {
    /// It is bound to every address.
    #[error("a socket is bound to {0}, which names no interface: bind it to an address of one")]
    EveryAddress(SocketAddr),
    /// Two have one address.
    #[error("two sockets are bound to {0}: one for each address is wanted")]
    Twice(IpAddr),
    /// The system refused something.
    #[error("a socket cannot be used: {0}")]
    System(#[from] io::Error),
}

impl GivenSockets {
    /// Takes sockets that are bound, each to an address of its own.
    pub fn new(sockets: impl IntoIterator<Item = UdpSocket>) -> Result<Self, BadSocket> {
        let listed = interfaces::interfaces(&[])?;
        let mut all: Vec<Given> = Vec::new();
        for socket in sockets {
            let local = socket.local_addr()?;
            if local.ip().is_unspecified() {
                return Err(BadSocket::EveryAddress(local));
            }
            if all.iter().any(|other| other.local.ip() == local.ip()) {
                return Err(BadSocket::Twice(local.ip()));
            }
            socket.set_nonblocking(true)?;
            let of = listed.iter().find(|one| one.address == local.ip()).map(|one| one.name.clone());
            // All of the loopback subnet is the machine's, though one address of it is listed.
            let name = of.unwrap_or_else(|| match local.ip().is_loopback() {
                true => format!("lo:{}", local.ip()),
                false => local.ip().to_string(),
            });
            all.push(Given { socket, local, name });
        }
        Ok(Self(all.into()))
    }

    /// The addresses that paths start from.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        let interface = |given: &Given| Interface {
            name: given.name.clone(),
            address: given.local.ip(),
            twin: 0,
            prefix_bits: if given.local.is_ipv4() { 32 } else { 128 },
            unusable: None,
        };
        self.0.iter().map(interface).collect()
    }

    /// The socket of an address.
    pub(crate) fn socket(&self, address: IpAddr) -> io::Result<UdpSocket> {
        let given = self.0.iter().find(|given| given.local.ip() == address);
        given.ok_or(io::ErrorKind::AddrNotAvailable)?.socket.try_clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_without_an_address_of_their_own_are_refused() {
        let bind = |address: &str| UdpSocket::bind(address).unwrap();
        let error = GivenSockets::new([bind("0.0.0.0:0")]).unwrap_err().to_string();
        assert!(error.contains("0.0.0.0") && error.contains("bind it to an address"), "{error}");
        let error = GivenSockets::new([bind("127.0.0.1:0"), bind("127.0.0.1:0")]).unwrap_err().to_string();
        assert!(error.contains("two sockets are bound to 127.0.0.1"), "{error}");
        let given = GivenSockets::new([bind("127.0.0.1:0"), bind("127.0.0.2:0")]).unwrap();
        assert_eq!(given.interfaces().len(), 2);
        assert!(given.socket("127.0.0.3".parse().unwrap()).is_err());
    }
}
