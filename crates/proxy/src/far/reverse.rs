//! Ports of the far end at which a device listens: their connections go to the near end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairpath::{Connection, RecvStream, SendStream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::shared::{DeviceMeter, Shared};
use crate::authorized::Device;
use crate::hosts::{self, Host};
use crate::packets::{Opener, Packets};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Meter, Side, relay, reset_whole};
use crate::snapshot::Kind;
use crate::target::{self, Target};
use crate::udp::Udp;
use crate::wire::{self, Purpose};

/// The connections of one port at once. More wait until the system refuses them.
const CONNECTIONS_MAX: usize = 1024;

/// How long the near end may take to connect to its target.
const ANSWERED: Duration = Duration::from_secs(20);

/// A port at which a device wants to listen.
pub(super) struct Listening {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Connection,
    /// Where packets are wanted, and no connections.
    pub(super) packets: Option<Arc<Packets>>,
    pub(super) meter: Arc<DeviceMeter>,
    /// The device's line, as it is now.
    pub(super) device: watch::Receiver<Arc<Device>>,
    pub(super) target: Target,
    /// The number of the port at the near end.
    pub(super) id: u32,
}

/// A port that is open.
enum Port {
    Tcp(TcpListener),
    Udp(UdpSocket, Arc<Packets>),
}

impl Listening {
    /// Listens until the stream ends, or the device's line does not allow it any more.
    pub(super) async fn serve(mut self, (mut send, mut recv): (SendStream, RecvStream)) {
        let meter = self.meter.clone();
        let many = |_| Refusal::new(RefusalKind::TooMany, "this device listens at too many ports");
        let opened = match meter.listens.try_acquire().map_err(many) {
            Ok(place) => self.open().await.map(|port| (port, place)),
            Err(refusal) => Err(refusal),
        };
        let answer = opened.as_ref().map(|_| ()).map_err(Clone::clone);
        if wire::answer(&mut send, &answer).await.is_err() {
            return;
        }
        match opened {
            Ok((Port::Tcp(listener), _place)) => self.accept_all(&listener, &mut recv).await,
            Ok((Port::Udp(socket, packets), _place)) => self.take_packets(socket, &packets, &mut recv).await,
            Err(_) => {}
        }
        wire::finish(send).await;
    }

    /// Waits until the stream ends, or the device's line does not allow the port any more.
    async fn ended(device: &mut watch::Receiver<Arc<Device>>, port: u16, recv: &mut RecvStream) {
        loop {
            tokio::select! {
                changed = device.changed() => if changed.is_err() || !device.borrow().may_listen(port) { return },
                more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
            }
        }
    }

    async fn take_packets(&mut self, socket: UdpSocket, packets: &Arc<Packets>, recv: &mut RecvStream) {
        let carry = |host: Host| {
            let (shared, connection, packets) = (self.shared.clone(), self.connection.clone(), packets.clone());
            let (meter, target, id) = (self.meter.clone(), self.target.clone(), self.id);
            let name = self.device.borrow().name.to_string();
            async move {
                let entry = shared.ledger.enter(&name, &target, Kind::Reverse);
                arrive_packets(connection, &packets, host, id, &(&entry, &*meter)).await;
            }
        };
        let mut device = self.device.clone();
        tokio::select! {
            () = hosts::serve(Udp::new(socket), carry) => {}
            () = Self::ended(&mut device, self.target.port, recv) => {}
        }
    }

    async fn accept_all(&mut self, listener: &TcpListener, recv: &mut RecvStream) {
        let mut device = self.device.clone();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            tokio::select! {
                (tcp, peer, place) = accept(listener, &places) => {
                    let (connection, meter, id) = (self.connection.clone(), self.meter.clone(), self.id);
                    let name = self.device.borrow().name.to_string();
                    let entry = self.shared.ledger.enter(&name, &self.target, Kind::Reverse);
                    tokio::spawn(async move {
                        arrive(connection, tcp, (peer, id), &(&entry, &*meter)).await;
                        drop(place);
                    });
                }
                () = Self::ended(&mut device, self.target.port, recv) => return,
            }
        }
    }

    /// Opens the port, where the device may.
    async fn open(&self) -> Result<Port, Refusal> {
        let Target { host: target::Host::Address(address), port } = self.target else {
            return Err(Refusal::new(RefusalKind::Failed, "a port to listen at has an address and no name"));
        };
        if !self.device.borrow().may_listen(port) {
            let words =
                format!("this device may not listen at port {port}: its line at the far end needs listen={port}");
            return Err(Refusal::new(RefusalKind::Forbidden, words));
        }
        let target = &self.target;
        let failed =
            |error| Refusal::new(RefusalKind::Failed, format!("the far end cannot listen at {target}: {error}"));
        match &self.packets {
            None => TcpListener::bind((address, port)).await.map(Port::Tcp).map_err(failed),
            Some(packets) => {
                let bound = UdpSocket::bind((address, port)).await.map_err(failed)?;
                Ok(Port::Udp(bound, packets.clone()))
            }
        }
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<tokio::sync::OwnedSemaphorePermit>) {
    loop {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await.ok();
        match listener.accept().await {
            Ok((tcp, peer)) => return (tcp, peer, place),
            // Mostly there are too many open files: some will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Hands a connection to the near end.
async fn arrive(connection: Connection, tcp: TcpStream, (peer, id): (SocketAddr, u32), meter: &impl Meter) {
    let opened = async {
        let (mut send, mut recv) = connection.open_bi().await.ok()?;
        let words = [&wire::header(Purpose::Arrival, &peer.into())[..], &id.to_be_bytes()].concat();
        send.write_all(&words).await.ok()?;
        wire::read_answer(&mut recv).await.ok()?;
        Some((send, recv))
    };
    match timeout(ANSWERED, opened).await.ok().flatten() {
        Some(stream) => relay(tcp, Bytes::new(), stream, Side::Target, meter).await,
        None => reset_whole(tcp),
    }
}

/// Hands the packets of a host to the near end.
async fn arrive_packets(connection: Connection, packets: &Arc<Packets>, host: Host, id: u32, meter: &impl Meter) {
    let Some(association) = packets.open_new(Opener::Far) else { return };
    let from = Target::from(host.address);
    let opened = async {
        let (mut send, mut recv) = connection.open_bi().await.ok()?;
        let numbers = [id.to_be_bytes(), association.id().to_be_bytes()].concat();
        send.write_all(&[wire::header(Purpose::ArrivalPackets, &from), numbers].concat()).await.ok()?;
        wire::read_answer(&mut recv).await.ok()?;
        Some((send, recv))
    };
    if let Some((_send, recv)) = timeout(ANSWERED, opened).await.ok().flatten() {
        host.carry(&from, (association, recv), Side::Target, meter).await;
    }
}
