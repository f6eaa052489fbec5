//! The connection of one device: its greeting, then its streams, until it leaves or is revoked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER as HEX;
use fairpath::{Connection, RecvStream, SendStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::timeout;

use super::FarNotice;
use super::dial::dial;
use super::packets::{Exit, Sockets};
use super::reverse::Listening;
use super::shared::{DeviceMeter, Shared};
use crate::authorized::{Authorized, Device};
use crate::greeting::{self, Admitted, Denial};
use crate::key::PublicKey;
use crate::packets::Packets;
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Meter as _, Side, relay};
use crate::snapshot::Kind;
use crate::target::Target;
use crate::wire::{self, Direction, Purpose};

/// How long a peer may take over its greeting, and over the first bytes of a stream.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest measurement.
const MEASURED: Duration = Duration::from_secs(70);

/// The connections of one device at once. More are sent away.
const CONNECTIONS_MAX: u64 = 16;

/// Serves a peer, from its greeting on.
pub(crate) async fn serve(shared: Arc<Shared>, connection: Connection, addresses: Vec<SocketAddr>) {
    // Before the check: a device that is revoked meanwhile is found below.
    let authorized = shared.authorized();
    match timeout(PATIENCE, admit(&shared, &connection)).await.unwrap_or(Err(Denial::Late)) {
        Ok(device) => {
            connection.welcome(shared.limits.clone());
            let guard = HEX.encode(&shared.guard);
            let seen = connection.paths().first().map(|path| shared.behind.peer(path.remote));
            let answer = Admitted { name: device.name.to_string(), addresses, guard, seen };
            if connection.send_message(answer.encode()).await.is_ok() {
                Session { shared, connection, key: device.key }.run(device, authorized).await;
            }
        }
        Err(denial) => {
            shared.denied(denial);
            connection.close(denial.code(), &denial.to_string()).await;
        }
    }
}

/// The device that the peer has shown to be.
async fn admit(shared: &Shared, connection: &Connection) -> Result<Device, Denial> {
    let message = connection.recv_message().await.map_err(|_| Denial::Malformed)?;
    let greeting = greeting::read(connection, &message)?;
    match &greeting.invitation {
        Some(proof) => shared.join(greeting.key, proof),
        None => {
            shared.look();
            let authorized = shared.authorized().borrow().clone();
            authorized.device(&greeting.key).cloned().ok_or(Denial::UnknownKey)
        }
    }
}

struct Session {
    shared: Arc<Shared>,
    connection: Connection,
    key: PublicKey,
}

impl Session {
    async fn run(self, device: Device, mut authorized: watch::Receiver<Arc<Authorized>>) {
        let Self { shared, connection, key } = self;
        let name = device.name.clone();
        let meter = shared.meter(key);
        let connected = meter.connected();
        if connected.count() > CONNECTIONS_MAX {
            connection.close(0, "this device has too many connections").await;
            return;
        }
        meter.heed(&device);
        let _present = shared.enter(&name, &connection);
        let rules = watch::Sender::new(Arc::new(device));
        let packets = Packets::begin(connection.clone());
        shared.tell(FarNotice::Entered(name.clone()));
        let why = loop {
            let current = authorized.borrow_and_update().clone();
            match current.device(&key) {
                Some(device) => {
                    meter.heed(device);
                    rules.send_replace(Arc::new(device.clone()));
                }
                None => {
                    connection.close(Denial::Revoked.code(), &Denial::Revoked.to_string()).await;
                    break "it was revoked".to_owned();
                }
            }
            tokio::select! {
                biased;
                _ = authorized.changed() => {}
                why = accept(&shared, &connection, &packets, &meter, &rules) => break why,
            }
        };
        shared.tell(FarNotice::Left(name, why));
    }
}

/// Takes streams in until the connection ends; why it did.
async fn accept(
    shared: &Arc<Shared>,
    connection: &Connection,
    packets: &Arc<Packets>,
    meter: &Arc<DeviceMeter>,
    rules: &watch::Sender<Arc<Device>>,
) -> String {
    loop {
        match connection.accept_bi().await {
            Ok(stream) => {
                let one = Stream {
                    shared: shared.clone(),
                    connection: connection.clone(),
                    packets: packets.clone(),
                    meter: meter.clone(),
                    device: rules.subscribe(),
                };
                // It ends with the connection, whose end resets what is carried.
                tokio::spawn(one.serve(stream));
            }
            Err(error) => return error.to_string(),
        }
    }
}

/// A stream that the device opened.
struct Stream {
    shared: Arc<Shared>,
    connection: Connection,
    packets: Arc<Packets>,
    meter: Arc<DeviceMeter>,
    /// The device's line, as it is now.
    device: watch::Receiver<Arc<Device>>,
}

impl Stream {
    async fn serve(self, (mut send, mut recv): (SendStream, RecvStream)) {
        let header = timeout(PATIENCE, wire::read_header(&mut recv)).await;
        match header {
            Ok(Some(Ok((Purpose::Connect, target)))) => self.connect(target, (send, recv)).await,
            Ok(Some(Ok((purpose, target)))) => {
                let Ok(Ok(id)) = timeout(PATIENCE, recv.read_u32()).await else { return };
                match purpose {
                    Purpose::Packets => self.carry_packets(target, id, (send, recv)).await,
                    Purpose::Reverse | Purpose::ReversePackets => {
                        let is_packets = purpose == Purpose::ReversePackets;
                        let Self { shared, connection, packets, meter, device } = self;
                        let packets = is_packets.then_some(packets);
                        Listening { shared, packets, connection, meter, device, target, id }.serve((send, recv)).await;
                    }
                    Purpose::Measure => self.measure(id, (send, recv)).await,
                    Purpose::Connect | Purpose::Arrival | Purpose::ArrivalPackets => {}
                }
            }
            Ok(Some(Err(bad))) => {
                let _ = wire::answer(&mut send, &Err(Refusal::new(RefusalKind::Failed, bad))).await;
                wire::finish(send).await;
            }
            // It said nothing that could be answered: the dropped halves tell it.
            Ok(None) | Err(_) => {}
        }
    }

    /// A TCP connection to a target.
    async fn connect(self, target: Target, (mut send, recv): (SendStream, RecvStream)) {
        let (own, device) = (self.shared.own(), self.device.borrow().clone());
        let dialled = async {
            // The semaphore is never closed.
            let _turn = self.meter.dials.acquire().await;
            dial(&target, &device.reach, &own).await
        };
        let dialled = tokio::select! {
            dialled = dialled => dialled,
            // The program has gone away meanwhile.
            _ = send.arrived() => return,
        };
        let answer = dialled.as_ref().map(|_| ()).map_err(Clone::clone);
        if wire::answer(&mut send, &answer).await.is_err() {
            return;
        }
        match dialled {
            Ok(tcp) => {
                let entry = self.shared.ledger.enter(device.name.as_str(), &target, Kind::Tcp);
                relay(tcp, Bytes::new(), (send, recv), Side::Target, &(&entry, &*self.meter)).await;
            }
            Err(_) => wire::finish(send).await,
        }
    }
}

impl Stream {
    /// Bytes that mean nothing, for a while.
    async fn measure(self, direction: u32, (mut send, mut recv): (SendStream, RecvStream)) {
        if wire::answer(&mut send, &Ok(())).await.is_err() {
            return;
        }
        let measured = async {
            if direction == Direction::Up as u32 {
                while let Ok(Some(chunk)) = recv.read_chunk(256 << 10).await {
                    self.meter.up(chunk.len()).await;
                }
                return;
            }
            let zeros = vec![0; 64 << 10];
            while send.write_all(&zeros).await.is_ok() {
                self.meter.down(zeros.len()).await;
            }
        };
        let _ = timeout(MEASURED, measured).await;
    }

    /// Packets of UDP to this target, or to any where it has no port.
    async fn carry_packets(self, target: Target, id: u32, (mut send, mut recv): (SendStream, RecvStream)) {
        let many = || Refusal::new(RefusalKind::TooMany, "this device has too many associations");
        let opened = self.packets.open_given(id).ok_or_else(many);
        let sockets = |error| Refusal::new(RefusalKind::Failed, format!("no socket for packets: {error}"));
        let opened = opened.and_then(|association| Ok((association, Sockets::bind().map_err(sockets)?)));
        let answer = opened.as_ref().map(|_| ()).map_err(Clone::clone);
        if wire::answer(&mut send, &answer).await.is_err() {
            return;
        }
        if let Ok((association, sockets)) = opened {
            let name = self.device.borrow().name.to_string();
            let entry = self.shared.ledger.enter(&name, &target, Kind::Udp);
            let exit =
                Exit { entry, shared: self.shared, meter: self.meter, device: self.device, is_open: target.port == 0 };
            exit.carry(association, sockets, &mut recv).await;
        }
        wire::finish(send).await;
    }
}
