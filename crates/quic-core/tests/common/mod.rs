//! A client and a server without a network, for tests that decide themselves what arrives.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Instant;

use bytes::BytesMut;
use fairpath_quic_core::{
    Accepting, Application, Connecting, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, EngineConfig, Identity,
    ReceivedDatagram, Trust, Verify, search,
};
use noq_proto::{ConnectionHandle, Incoming};

/// The client's address.
pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// The server's.
pub(crate) const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// The server's port is this.
pub(crate) const PORT: u16 = 2;

pub(crate) fn endpoint(identity: Option<Identity>) -> Endpoint {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: Application::Fairpath };
    Endpoint::new(config).expect("an endpoint")
}

#[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// Has a client begin a connection to the server that has this identity.
pub(crate) fn call(client: &mut Endpoint, identity: &Identity, now: Instant) -> ConnectionHandle {
    let connecting = Connecting {
        local: HERE,
        remote: SocketAddr::new(THERE, PORT),
        verify: Verify::Fingerprint(identity.fingerprint()),
        admission_key: None,
        engine: &EngineConfig::live(),
        datagrams: search([], DATAGRAM_ETHERNET),
    };
    client.connect(connecting, now).expect("a connection")
}

/// Has a server let somebody in.
pub(crate) fn admit(server: &mut Endpoint, incoming: Incoming, trust: Trust, now: Instant) -> Option<ConnectionHandle> {
    let accepting = Accepting { engine: &EngineConfig::live(), datagrams: search([], DATAGRAM_ETHERNET), trust };
    server.accept(incoming, accepting, now, &mut Vec::new()).ok()
}

/// Brings to the client what the server has to say.
pub(crate) fn answer(server: &mut Endpoint, client: &mut Endpoint, now: Instant) {
    let mut buffer = Vec::new();
    while let Some((_, transmit)) = server.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
        let datagram = BytesMut::from(&buffer[..transmit.size]);
        let datagram = ReceivedDatagram::new((SocketAddr::new(THERE, PORT), HERE), datagram, now);
        client.handle_datagram(datagram, now, &mut Vec::new());
    }
}
