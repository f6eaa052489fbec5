//! An association at the far end: a socket of its own for each family, so that a program has one address whomever it talks
//! to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairpath::RecvStream;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::dial::addresses;
use super::shared::{DeviceMeter, Shared};
use crate::authorized::Device;
use crate::packets::{Association, Packet};
use crate::relay::Meter as _;
use crate::snapshot::Entry;
use crate::still::Stillness;
use crate::target::{Host, Target};
use crate::udp::{Burst, Ecn, Udp};

/// How long an association lives without a packet (RFC 4787, requirement 5, recommends so much at least).
const STILL: Duration = Duration::from_secs(5 * 60);

/// How long packets of a program that has left still go out: they may be slower than the end of their stream.
const LAST: Duration = Duration::from_secs(1);

/// The names that are resolved at once, and those that are remembered, and how long.
const RESOLVING_MAX: usize = 16;
const NAMES_MAX: usize = 64;
const REMEMBERED: Duration = Duration::from_secs(60);

/// The hosts that are remembered, where only those may answer that were sent to.
const HOSTS_MAX: usize = 1024;

/// Packets of one program.
pub(super) struct Exit {
    pub(super) entry: Entry,
    pub(super) shared: Arc<Shared>,
    pub(super) meter: Arc<DeviceMeter>,
    /// The device's line, as it is now.
    pub(super) device: watch::Receiver<Arc<Device>>,
    /// Whether anybody may send to the program, or only hosts that it has sent to.
    pub(super) is_open: bool,
}

/// A packet, and the address of the name that it waited for.
type Resolved = (Packet, Option<SocketAddr>);

impl Exit {
    /// Carries packets until the stream of the association has ended, or none has passed for long.
    pub(super) async fn carry(self, association: Association, sockets: Sockets, recv: &mut RecvStream) {
        let mut names: BTreeMap<Target, (SocketAddr, Instant)> = BTreeMap::new();
        let mut hosts: BTreeMap<SocketAddr, ()> = BTreeMap::new();
        let mut resolving: JoinSet<Resolved> = JoinSet::new();
        let mut stillness = Stillness::new();
        let mut is_over = false;
        loop {
            let still = if is_over { LAST } else { STILL };
            let (to, Packet { data, ecn, held: _held, .. }) = tokio::select! {
                () = stillness.lasts(still) => return,
                // It says nothing more; its end is that of the association.
                more = recv.read_chunk(64), if !is_over => {
                    if !matches!(more, Ok(Some(_))) {
                        is_over = true;
                        association.end_soon();
                        stillness.note();
                    }
                    continue;
                }
                read = association.read(sockets.v4.as_ref()), if !is_over => {
                    self.came(&association, &hosts, read).await;
                    stillness.note();
                    continue;
                }
                read = association.read(sockets.v6.as_ref()), if !is_over => {
                    self.came(&association, &hosts, read).await;
                    stillness.note();
                    continue;
                }
                Some(resolved) = resolving.join_next() => {
                    let Ok((packet, Some(address))) = resolved else { continue };
                    if names.len() >= NAMES_MAX {
                        names.pop_first();
                    }
                    names.insert(packet.target.clone(), (address, Instant::now() + REMEMBERED));
                    (address, packet)
                }
                packet = association.recv() => {
                    let Some(packet) = packet else { return };
                    match (&packet.target.host, names.get(&packet.target)) {
                        (Host::Address(address), _) => (SocketAddr::new(*address, packet.target.port), packet),
                        (Host::Name(_), Some((address, until))) if *until > Instant::now() => (*address, packet),
                        (Host::Name(_), _) => {
                            if resolving.len() < RESOLVING_MAX {
                                let (shared, device) = (self.shared.clone(), self.device.borrow().clone());
                                resolving.spawn(async move {
                                    let found = addresses(&packet.target, &device.reach, &shared.own()).await;
                                    let address = found.ok().and_then(|found| found.first().copied());
                                    (packet, address)
                                });
                            }
                            continue;
                        }
                    }
                }
            };
            if !is_over {
                stillness.note();
            }
            self.leave(&sockets, &mut hosts, to, (&data, ecn)).await;
        }
    }

    /// Whether the device may reach an address.
    fn may(&self, address: SocketAddr) -> bool {
        let device = self.device.borrow().clone();
        device.reach.objection(address, &self.shared.own()).is_none()
    }

    /// Packets came from outside.
    async fn came(
        &self,
        association: &Association,
        hosts: &BTreeMap<SocketAddr, ()>,
        read: Vec<(SocketAddr, Burst, Ecn)>,
    ) {
        for (from, burst, ecn) in read {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if (self.is_open || hosts.contains_key(&from)) && self.may(from) {
                self.entry.count(0, burst.bytes());
                self.meter.down(burst.bytes()).await;
                association.send(&from.into(), burst.packets(), ecn);
            }
        }
    }

    /// Packets go out.
    async fn leave(
        &self,
        sockets: &Sockets,
        hosts: &mut BTreeMap<SocketAddr, ()>,
        to: SocketAddr,
        (data, ecn): (&Burst, Ecn),
    ) {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        if !self.may(to) {
            return;
        }
        if !self.is_open {
            if hosts.len() >= HOSTS_MAX {
                hosts.pop_first();
            }
            hosts.insert(to, ());
        }
        self.entry.count(data.bytes(), 0);
        self.meter.up(data.bytes()).await;
        let socket = if to.is_ipv4() { &sockets.v4 } else { &sockets.v6 };
        if let Some(socket) = socket {
            socket.send(data, to, None, ecn).await;
        }
    }
}

/// The sockets of an association.
#[derive(Debug)]
pub(super) struct Sockets {
    v4: Option<Udp>,
    v6: Option<Udp>,
}

impl Sockets {
    /// One of each family that the machine has; at least one.
    pub(super) fn bind() -> std::io::Result<Self> {
        let v4 = bind(Domain::IPV4, Ipv4Addr::UNSPECIFIED.into());
        let v6 = bind(Domain::IPV6, Ipv6Addr::UNSPECIFIED.into());
        match (v4, v6) {
            (Err(error), Err(_)) => Err(error),
            (v4, v6) => Ok(Self { v4: v4.ok(), v6: v6.ok() }),
        }
    }
}

fn bind(domain: Domain, address: IpAddr) -> std::io::Result<Udp> {
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    socket.bind(&SocketAddr::new(address, 0).into())?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into()).map(Udp::new)
}
