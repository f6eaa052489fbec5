//! Ports of the far end at which a device listens: their connections go to the near end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairpath::{Connection, RecvStream, SendStream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::shared::DeviceMeter;
use crate::authorized::Device;
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Side, relay, reset_whole};
use crate::target::{Host, Target};
use crate::wire::{self, Purpose};

/// The connections of one port at once. More wait until the system refuses them.
const CONNECTIONS_MAX: usize = 1024;

/// How long the near end may take to connect to its target.
const ANSWERED: Duration = Duration::from_secs(20);

/// A port at which a device wants to listen.
pub(super) struct Listening {
    pub(super) connection: Connection,
    pub(super) meter: Arc<DeviceMeter>,
    /// The device's line, as it is now.
    pub(super) device: watch::Receiver<Arc<Device>>,
    pub(super) target: Target,
    /// The number of the port at the near end.
    pub(super) id: u32,
}

impl Listening {
    /// Listens until the stream ends, or the device's line does not allow it any more.
    pub(super) async fn serve(mut self, (mut send, mut recv): (SendStream, RecvStream)) {
        let meter = self.meter.clone();
        let many = |_| Refusal::new(RefusalKind::TooMany, "this device listens at too many ports");
        let listener = match meter.listens.try_acquire().map_err(many) {
            Ok(place) => self.open().await.map(|listener| (listener, place)),
            Err(refusal) => Err(refusal),
        };
        let answer = listener.as_ref().map(|_| ()).map_err(Clone::clone);
        if wire::answer(&mut send, &answer).await.is_err() {
            return;
        }
        if let Ok((listener, _place)) = listener {
            self.accept_all(&listener, &mut recv).await;
        }
        wire::finish(send).await;
    }

    async fn accept_all(&mut self, listener: &TcpListener, recv: &mut RecvStream) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            tokio::select! {
                (tcp, peer, place) = accept(listener, &places) => {
                    let (connection, meter, id) = (self.connection.clone(), self.meter.clone(), self.id);
                    tokio::spawn(async move {
                        arrive(connection, tcp, peer, id, &meter).await;
                        drop(place);
                    });
                }
                changed = self.device.changed() => {
                    if changed.is_err() || !self.device.borrow().may_listen(self.target.port) {
                        return;
                    }
                }
                more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
            }
        }
    }

    /// Opens the port, where the device may.
    async fn open(&self) -> Result<TcpListener, Refusal> {
        let Target { host: Host::Address(address), port } = self.target else {
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
        TcpListener::bind((address, port)).await.map_err(failed)
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
async fn arrive(connection: Connection, tcp: TcpStream, peer: SocketAddr, id: u32, meter: &DeviceMeter) {
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
