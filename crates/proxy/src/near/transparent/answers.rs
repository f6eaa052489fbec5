//! Answers to packets that were led here. They seem to come from the host that was asked.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::bind_to;
use super::raw::Raw;
use crate::reach::Reach;
use crate::udp::{Burst, Ecn, Udp};

/// The addresses from which answers leave at once. Each takes a socket.
const SOCKETS_MAX: usize = 1_024;

/// How answers leave.
#[derive(Debug)]
pub(super) enum Answers {
    /// To machines behind an interface, by a socket for each address that answers.
    Clients(Replies),
    /// To programs of this machine.
    Own(Raw),
}

impl Answers {
    pub(super) fn to_clients(interface: &str) -> Self {
        Self::Clients(Replies { interface: interface.to_owned(), sockets: Mutex::default() })
    }

    /// Sends what came from an address outside, from that address.
    pub(super) async fn send(&self, from: SocketAddr, packets: &Burst, to: SocketAddr, ecn: Ecn) {
        if !is_public(from) || from.is_ipv4() != to.is_ipv4() {
            return;
        }
        match self {
            Self::Clients(replies) => replies.send(from, packets, to, ecn).await,
            Self::Own(raw) => packets.packets().for_each(|packet| raw.send(from, packet, to, ecn)),
        }
    }
}

/// Whether an address is one that rules lead here, and from which answers may seem to come: no other's business is behind it.
pub(super) fn is_public(address: SocketAddr) -> bool {
    Reach::default().objection(address, &[]).is_none()
}

/// Sockets of the addresses from which answers leave. Nothing comes in there: rules lead packets to the gate.
#[derive(Debug)]
pub(super) struct Replies {
    interface: String,
    sockets: Mutex<BTreeMap<SocketAddr, (Arc<Udp>, Instant)>>,
}

impl Replies {
    async fn send(&self, from: SocketAddr, packets: &Burst, to: SocketAddr, ecn: Ecn) {
        match self.socket(from) {
            Ok(socket) => socket.send(packets, to, None, ecn).await,
            Err(error) => tracing::debug!(%error, %from, "no socket to answer a client"),
        }
    }

    /// The socket of an address, in the place of the one that was used least lately.
    fn socket(&self, from: SocketAddr) -> io::Result<Arc<Udp>> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((socket, used)) = sockets.get_mut(&from) {
            *used = Instant::now();
            return Ok(socket.clone());
        }
        if sockets.len() >= SOCKETS_MAX {
            let least = sockets.iter().min_by_key(|(_, (_, used))| *used).map(|(address, _)| *address);
            least.and_then(|least| sockets.remove(&least));
        }
        let socket = Arc::new(self.open(from)?);
        sockets.insert(from, (socket.clone(), Instant::now()));
        Ok(socket)
    }

    fn open(&self, from: SocketAddr) -> io::Result<Udp> {
        let socket = Socket::new(Domain::for_address(from), Type::DGRAM, None)?;
        if from.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        bind_to(&socket, &self.interface)?;
        socket.set_reuse_address(true)?;
        socket.set_ip_transparent_v4(true)?;
        socket.bind(&from.into())?;
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket.into()).map(Udp::new)
    }
}
