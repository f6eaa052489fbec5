//! Packets of machines behind an interface, which rules of the system lead here (TPROXY): each comes with the address to which
//! it was going, and its answer leaves from that address.
//!
//! Each socket of a client has one association, whomever it sends to.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::bind_to;
use crate::hosts::{self, Host, STILL, Waiting};
use crate::near::link::Link;
use crate::packets::{Association, Packet};
use crate::reach::Reach;
use crate::snapshot::Kind;
use crate::still::Stillness;
use crate::target::{self, Target};
use crate::udp::{Burst, Ecn, Udp};

/// The addresses from which answers leave at once. Each takes a socket.
const REPLIES_MAX: usize = 1_024;

/// The gate for packets of one interface.
#[derive(Debug)]
pub(super) struct Clients {
    socket: Udp,
    replies: Arc<Replies>,
}

impl Clients {
    pub(super) fn new(socket: Udp, interface: &str) -> io::Result<Self> {
        let replies = Replies { interface: interface.to_owned(), sockets: Mutex::default() };
        Ok(Self { socket, replies: Arc::new(replies) })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Carries packets until it is dropped.
    pub(super) async fn serve(self, link: Arc<Link>) {
        let Self { socket, replies } = self;
        hosts::serve(socket, move |host| carry(host, link.clone(), replies.clone())).await;
    }
}

/// Whether an address is one that rules lead here, and from which answers may seem to come: no other's business is behind it.
fn is_public(address: SocketAddr) -> bool {
    Reach::default().objection(address, &[]).is_none()
}

/// Carries the packets of one socket of a client.
async fn carry(mut host: Host, link: Arc<Link>, replies: Arc<Replies>) {
    let (association, (_send, mut recv)) = match link.associate(None).await {
        Ok(associated) => associated,
        Err(refusal) => {
            tracing::debug!(%refusal, "packets of a client were refused");
            return;
        }
    };
    let entry = link.enter(&Target::from(host.address), Kind::Udp);
    let mut stillness = Stillness::new();
    loop {
        tokio::select! {
            waiting = host.packets.recv() => match waiting {
                Some(waiting) => {
                    entry.count(waiting.packets.bytes(), 0);
                    send(&association, &waiting);
                }
                None => return,
            },
            packet = association.recv() => match packet {
                Some(Packet { target: Target { host: target::Host::Address(from), port }, data, ecn, held: _held }) => {
                    host.note_answer();
                    entry.count(0, data.bytes());
                    replies.send(SocketAddr::new(from, port), &data, host.address, ecn).await;
                }
                Some(_) => {}
                None => return,
            },
            more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
            () = stillness.lasts(STILL) => return,
        }
        stillness.note();
    }
}

fn send(association: &Association, waiting: &Waiting) {
    // Somebody who sends to the gate itself would be led in a circle.
    if let Some(to) = waiting.to.filter(|to| is_public(*to)) {
        association.send(&to.into(), waiting.packets.packets(), waiting.ecn);
    }
}

/// Sockets of the addresses from which answers leave. Nothing comes in there: rules lead packets to the gate.
#[derive(Debug)]
struct Replies {
    interface: String,
    sockets: Mutex<BTreeMap<SocketAddr, (Arc<Udp>, Instant)>>,
}

impl Replies {
    /// Sends what came from an address outside, from that address.
    async fn send(&self, from: SocketAddr, packets: &Burst, to: SocketAddr, ecn: Ecn) {
        if is_public(from) && from.is_ipv4() == to.is_ipv4() {
            match self.socket(from) {
                Ok(socket) => socket.send(packets, to, None, ecn).await,
                Err(error) => tracing::debug!(%error, %from, "no socket to answer a client"),
            }
        }
    }

    /// The socket of an address, in the place of the one that was used least lately.
    fn socket(&self, from: SocketAddr) -> io::Result<Arc<Udp>> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((socket, used)) = sockets.get_mut(&from) {
            *used = Instant::now();
            return Ok(socket.clone());
        }
        if sockets.len() >= REPLIES_MAX {
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
