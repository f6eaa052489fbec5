//! Connections and packets that come to a port of the far end, on their way to a target of this machine.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairpath::{RecvStream, SendStream};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;

use super::forward::{Protocol, Reverse};
use crate::packets::{Packet, Packets};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Side, relay};
use crate::snapshot::{Kind, Ledger};
use crate::still::Stillness;
use crate::target::{Host, Target};
use crate::udp::Udp;
use crate::wire::{self, Purpose};

/// How long a target of this machine may take to be connected.
const CONNECTED: Duration = Duration::from_secs(10);

/// How long an association may be still (RFC 4787, requirement 5).
const STILL: Duration = Duration::from_secs(5 * 60);

/// The ports of the far end, and what their targets are carried by.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    pub(super) reverses: Arc<[Reverse]>,
    pub(super) packets: Arc<Packets>,
    pub(super) ledger: Arc<Ledger>,
}

/// Carries what the far end opened a stream for.
pub(super) async fn arrive(arrivals: Arrivals, (send, mut recv): (SendStream, RecvStream)) {
    let header = async {
        let (purpose, from) = wire::read_header(&mut recv).await?.ok()?;
        Some((purpose, from, recv.read_u32().await.ok()?))
    };
    let Some((purpose, from, id)) = timeout(CONNECTED, header).await.ok().flatten() else { return };
    let Some(reverse) = usize::try_from(id).ok().and_then(|id| arrivals.reverses.get(id)) else { return };
    match (purpose, reverse.protocol) {
        (Purpose::Arrival, Protocol::Tcp) => connection(&arrivals, &reverse.target, (send, recv)).await,
        (Purpose::ArrivalPackets, Protocol::Udp) => packets(&arrivals, &reverse.target, &from, (send, recv)).await,
        _ => {}
    }
}

/// The addresses of a target, as this machine resolves its name.
async fn addresses(target: &Target) -> io::Result<Vec<SocketAddr>> {
    match &target.host {
        Host::Address(address) => Ok(vec![SocketAddr::new(*address, target.port)]),
        Host::Name(name) => Ok(lookup_host((name.as_str(), target.port)).await?.collect()),
    }
}

async fn connection(arrivals: &Arrivals, target: &Target, (mut send, recv): (SendStream, RecvStream)) {
    let connecting = async { TcpStream::connect(&*addresses(target).await?).await };
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    let connected = timeout(CONNECTED, connecting).await.unwrap_or_else(late);
    let answer = connected.as_ref().map(|_| ()).map_err(|error| Refusal::of(target, error));
    if wire::answer(&mut send, &answer).await.is_ok()
        && let Ok(tcp) = connected
    {
        let entry = arrivals.ledger.enter("", target, Kind::Reverse);
        relay(tcp, Bytes::new(), (send, recv), Side::Target, &entry).await;
    } else {
        wire::finish(send).await;
    }
}

/// Packets of a host that sends to the port.
async fn packets(arrivals: &Arrivals, target: &Target, from: &Target, (mut send, mut recv): (SendStream, RecvStream)) {
    let Ok(Ok(id)) = timeout(CONNECTED, recv.read_u32()).await else { return };
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    let opened = timeout(CONNECTED, socket_to(target)).await.unwrap_or_else(late);
    let many = || Refusal::new(RefusalKind::TooMany, "there are too many associations");
    let opened = opened.map_err(|error| Refusal::of(target, &error));
    let opened = opened.and_then(|socket| Ok((socket, arrivals.packets.open_given(id).ok_or_else(many)?)));
    let answer = opened.as_ref().map(|_| ()).map_err(Clone::clone);
    if wire::answer(&mut send, &answer).await.is_ok()
        && let Ok((socket, association)) = opened
    {
        let entry = arrivals.ledger.enter("", target, Kind::Reverse);
        // It is connected.
        let Ok(peer) = socket.peer_addr() else { return };
        let mut stillness = Stillness::new();
        loop {
            tokio::select! {
                packet = association.recv() => match packet {
                    Some(Packet { data, ecn, held: _held, .. }) => {
                        entry.count(0, data.bytes());
                        socket.send(&data, peer, None, ecn).await;
                    }
                    None => return,
                },
                read = association.read(Some(&socket)) => for (_, burst, ecn) in read {
                    entry.count(burst.bytes(), 0);
                    association.send(from, burst.packets(), ecn);
                },
                more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
                () = stillness.lasts(STILL) => return,
            }
            stillness.note();
        }
    }
    wire::finish(send).await;
}

/// A socket that sends to a target, and hears of nobody else.
async fn socket_to(target: &Target) -> io::Result<Udp> {
    let found = addresses(target).await?;
    let Some(address) = found.first() else { return Err(io::ErrorKind::NotFound.into()) };
    let socket = match address {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?,
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await?,
    };
    socket.connect(address).await?;
    Ok(Udp::new(socket))
}
