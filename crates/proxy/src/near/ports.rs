//! Forwards at work: their ports, and the ports that the far end is asked for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::NearError;
use super::forward::{Forward, Protocol, Reverse};
use super::link::Link;
use crate::packets::{Budget, Held, PACKET_MAX, Packet};
use crate::relay::{Side, Unmetered, relay, reset_whole};
use crate::target::Target;

/// The most connections of one forward at once, and the most hosts that send to it by UDP.
const CONNECTIONS_MAX: usize = 4096;
const HOSTS_MAX: usize = 1024;

/// The memory for packets that wait for the connection: of one forward, and of one host that sends to it, in bytes.
const MEMORY: usize = 4 << 20;
const HOST_MEMORY: usize = 512 << 10;

/// How long a host that sends by UDP may be still before it is forgotten (RFC 4787, requirement 5).
const STILL: Duration = Duration::from_secs(5 * 60);

/// How long after a failure a port of the far end is asked for again.
const PAUSE: Duration = Duration::from_secs(2);

/// The ports of all forwards, open.
#[derive(Debug)]
pub(super) struct Ports {
    tcp: Vec<(TcpListener, Target)>,
    udp: Vec<(UdpSocket, Target)>,
}

impl Ports {
    pub(super) async fn bind(forwards: Vec<Forward>) -> Result<Self, NearError> {
        let (mut tcp, mut udp) = (Vec::new(), Vec::new());
        for Forward { protocol, listen, target } in forwards {
            let failed = |source| NearError::Listen { address: listen, source };
            match protocol {
                Protocol::Tcp => tcp.push((TcpListener::bind(listen).await.map_err(failed)?, target)),
                Protocol::Udp => udp.push((UdpSocket::bind(listen).await.map_err(failed)?, target)),
            }
        }
        Ok(Self { tcp, udp })
    }

    /// Serves them all, and asks for the ports of the far end, until the set is dropped.
    pub(super) fn serve(self, link: &Arc<Link>, reverses: &[Reverse]) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for (listener, target) in self.tcp {
            tasks.spawn(connections(listener, target, link.clone()));
        }
        for (socket, target) in self.udp {
            tasks.spawn(packets(Arc::new(socket), target, link.clone()));
        }
        for (id, reverse) in (0..).zip(reverses) {
            tasks.spawn(keep(id, reverse.listen, link.clone()));
        }
        tasks
    }
}

/// Forwards the connections of a port.
async fn connections(listener: TcpListener, target: Target, link: Arc<Link>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((tcp, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (target, link) = (target.clone(), link.clone());
        tokio::spawn(async move {
            match link.connect(&target).await {
                Ok(stream) => relay(tcp, Bytes::new(), stream, Side::Program, &Unmetered).await,
                Err(refusal) => {
                    link.tell_refused(&target, &refusal);
                    reset_whole(tcp);
                }
            }
            drop(place);
        });
    }
}

/// Forwards the packets of a port: each host that sends has an association of its own.
async fn packets(socket: Arc<UdpSocket>, target: Target, link: Arc<Link>) {
    let memory = Budget::new(MEMORY);
    let mut hosts: BTreeMap<SocketAddr, (mpsc::Sender<Waiting>, Budget)> = BTreeMap::new();
    let mut buffer = vec![0; PACKET_MAX];
    loop {
        // An error is that of a packet that was sent before.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        let known = hosts.get(&from).filter(|(host, _)| !host.is_closed());
        let (host, memory) = match known {
            Some(host) => host.clone(),
            None => {
                hosts.retain(|_, (host, _)| !host.is_closed());
                if hosts.len() >= HOSTS_MAX {
                    continue;
                }
                let (to, packets) = mpsc::channel(1024);
                let host = Source { address: from, socket: socket.clone(), target: target.clone(), link: link.clone() };
                tokio::spawn(host.carry(packets));
                let known = (to, memory.part(HOST_MEMORY));
                hosts.insert(from, known.clone());
                known
            }
        };
        // One that is late loses packets.
        if let Some(held) = memory.hold(length) {
            let _ = host.try_send((Bytes::copy_from_slice(&buffer[..length]), held));
        }
    }
}

/// A packet that waits, and its memory.
type Waiting = (Bytes, Held);

/// A host that sends to a port by UDP.
struct Source {
    address: SocketAddr,
    socket: Arc<UdpSocket>,
    target: Target,
    link: Arc<Link>,
}

impl Source {
    async fn carry(self, mut packets: mpsc::Receiver<Waiting>) {
        let Self { address, socket, target, link } = self;
        let (association, mut stream) = match link.associate(Some(&target)).await {
            Ok(associated) => associated,
            Err(refusal) => return link.tell_refused(&target, &refusal),
        };
        loop {
            tokio::select! {
                packet = packets.recv() => match packet {
                    Some((packet, _held)) => association.send(&target, &packet),
                    None => return,
                },
                packet = association.recv() => match packet {
                    Some(Packet { data, held: _held, .. }) => drop(socket.send_to(&data, address).await),
                    None => return,
                },
                // The far end says nothing more; its end is that of the association.
                more = stream.1.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
                () = sleep(STILL) => return,
            }
        }
    }
}

/// Asks for a port of the far end, and again where it is lost.
async fn keep(id: u32, listen: SocketAddr, link: Arc<Link>) {
    loop {
        match link.listen(id, listen).await {
            // It stays as long as the stream does.
            Ok((_send, mut recv)) => while matches!(recv.read_chunk(64).await, Ok(Some(_))) {},
            Err(refusal) => link.tell_refused(listen, &refusal),
        }
        sleep(PAUSE).await;
    }
}
