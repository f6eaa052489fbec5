//! Passes datagrams and the time to an endpoint, and takes its datagrams. It has neither sockets nor a
//! clock, so the same code runs over real sockets and in virtual time.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Instant;

use fairpath_quic_core::{
    Accepting, Application, Connection, DATAGRAM_ETHERNET, Endpoint, EngineConfig, Received, ReceivedDatagram, Trust,
    search, unmapped,
};
use noq_proto::{ConnectionHandle, Transmit};

/// The protocol of the interoperability runner: HTTP/0.9 over the streams of QUIC.
pub(crate) const HQ: Application = Application::Other(b"hq-interop");

/// The application of an end: how it handles its connections.
pub(crate) trait Role {
    /// Whether others may connect.
    const ACCEPTS: bool;
    /// Something may have happened on the connection, and all that could leave has left.
    fn act(&mut self, handle: ConnectionHandle, connection: &mut Connection, now: Instant);
    /// The connection is over, and its handle will be that of another.
    fn forget(&mut self, _handle: ConnectionHandle) {}
}

/// A datagram as it leaves.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    /// The address here, where it matters.
    pub(crate) from: Option<IpAddr>,
    /// The peer's.
    pub(crate) to: SocketAddr,
    /// Its payload.
    pub(crate) contents: Vec<u8>,
}

/// An endpoint and what it is for.
pub(crate) struct Host<R> {
    /// The connections.
    pub(crate) endpoint: Endpoint,
    engine: EngineConfig,
    /// Whether peers have to show first that they receive at their addresses.
    pub(crate) asks_for_addresses: bool,
    /// The application.
    pub(crate) role: R,
}

impl<R: Role> Host<R> {
    pub(crate) fn new(endpoint: Endpoint, role: R) -> Self {
        Self { endpoint, engine: EngineConfig::live(), asks_for_addresses: false, role }
    }

    /// A datagram came. Gives what it is answered with at once, if anything.
    pub(crate) fn receive(&mut self, from: SocketAddr, to: IpAddr, contents: &[u8], now: Instant) -> Option<Leaving> {
        let mut answer = Vec::new();
        let datagram = ReceivedDatagram::new((from, to), contents.into(), now);
        let received = self.endpoint.handle_datagram(datagram, now, &mut answer)?;
        let transmit = match received {
            Received::Connection(_) => None,
            Received::Answer(transmit) => Some(transmit),
            Received::New(incoming) if self.asks_for_addresses && !incoming.remote_address_validated() => {
                self.endpoint.retry(*incoming, &mut answer)
            }
            Received::New(incoming) if R::ACCEPTS => {
                for (handle, _) in self.endpoint.take_drained() {
                    self.role.forget(handle);
                }
                let datagrams = search([], DATAGRAM_ETHERNET);
                let accepting = Accepting { engine: &self.engine, datagrams, trust: Trust::Full };
                self.endpoint.accept(*incoming, accepting, now, &mut answer).err().flatten()
            }
            Received::New(incoming) => Some(self.endpoint.refuse(*incoming, &mut answer)),
        };
        transmit.map(|transmit| leaving(&transmit, &answer))
    }

    /// Does what is due; what leaves goes to `send`.
    pub(crate) fn drive(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        self.endpoint.handle_timeout(now);
        self.transmit(now, send);
        for (handle, connection) in self.endpoint.connections() {
            self.role.act(handle, connection, now);
        }
        self.transmit(now, send);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        let mut buffer = Vec::new();
        while let Some((_, transmit)) = self.endpoint.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            send(leaving(&transmit, &buffer));
        }
    }

    /// When [`Host::drive`] is to be called although nothing comes.
    pub(crate) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.endpoint.next_timeout(now)
    }
}

fn leaving(transmit: &Transmit, contents: &[u8]) -> Leaving {
    Leaving { from: transmit.src_ip, to: unmapped(transmit.destination), contents: contents[..transmit.size].to_vec() }
}
