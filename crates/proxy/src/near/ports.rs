//! Forwards at work: their ports, and the ports that the far end is asked for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::NearError;
use super::forward::{Forward, Protocol, Reverse};
use super::link::Link;
use crate::hosts::{self, Host};
use crate::relay::{Side, relay, reset_whole};
use crate::snapshot::Kind;
use crate::target::Target;
use crate::udp::Udp;

/// The most connections of one forward at once.
const CONNECTIONS_MAX: usize = 4096;

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

    /// Ports that are open already, all for one target.
    pub(super) fn of(tcp: Vec<TcpListener>, udp: Vec<UdpSocket>, target: &Target) -> Self {
        let to = target.clone();
        Self {
            tcp: tcp.into_iter().map(|port| (port, to.clone())).collect(),
            udp: udp.into_iter().map(|port| (port, to.clone())).collect(),
        }
    }

    /// Serves them all, and asks for the ports of the far end, until the set is dropped.
    pub(super) fn serve(self, link: &Arc<Link>, reverses: &[Reverse]) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for (listener, target) in self.tcp {
            tasks.spawn(connections(listener, target, link.clone()));
        }
        for (socket, target) in self.udp {
            let link = link.clone();
            tasks.spawn(hosts::serve(Udp::new(socket), move |host| packets(host, target.clone(), link.clone())));
        }
        for (id, reverse) in (0..).zip(reverses) {
            tasks.spawn(keep(id, reverse.clone(), link.clone()));
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
                Ok(stream) => {
                    let entry = link.enter(&target, Kind::Forward);
                    relay(tcp, Bytes::new(), stream, Side::Program, &entry).await;
                }
                Err(refusal) => {
                    link.tell_refused(&target, &refusal);
                    reset_whole(tcp);
                }
            }
            drop(place);
        });
    }
}

/// Carries the packets of a host that sends to a port.
async fn packets(host: Host, target: Target, link: Arc<Link>) {
    match link.associate(Some(&target)).await {
        Ok((association, (_send, recv))) => {
            let entry = link.enter(&target, Kind::Forward);
            host.carry(&target, (association, recv), Side::Program, &entry).await;
        }
        Err(refusal) => link.tell_refused(&target, &refusal),
    }
}

/// Asks for a port of the far end, and again where it is lost.
async fn keep(id: u32, reverse: Reverse, link: Arc<Link>) {
    loop {
        match link.listen(id, &reverse).await {
            // It stays as long as the stream does.
            Ok((_send, mut recv)) => while matches!(recv.read_chunk(64).await, Ok(Some(_))) {},
            Err(refusal) => link.tell_refused(reverse.listen, &refusal),
        }
        sleep(PAUSE).await;
    }
}
