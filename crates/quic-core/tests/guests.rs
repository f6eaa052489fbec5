//! How much memory those take who have not proved themselves. The only test here: it counts that of its process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fairpath_quic_core::guests::{GUEST_BYTES_MAX, GUESTS_MAX};
use fairpath_quic_core::{
    Accepting, Application, Connecting, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, EngineConfig, Identity, Received,
    Trust, Verify, search,
};
use noq_proto::{FourTuple, PathStatus};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn endpoint(identity: Option<Identity>) -> Endpoint {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: Application::Fairpath };
    Endpoint::new(config).expect("an endpoint")
}

fn mapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        v6 => v6,
    }
}

/// A client completes its handshake, opens paths, says what a guest may say for a second, and is forgotten.
fn visit(server: &mut Endpoint, identity: &Identity, now: &mut Instant, (port, paths): (u16, u8)) {
    let mut client = endpoint(None);
    let (here, there) = (SocketAddr::new(HERE, port), SocketAddr::new(THERE, 2));
    let engine = EngineConfig::live();
    let connecting = Connecting {
        local: HERE,
        remote: there,
        verify: Verify::Fingerprint(identity.fingerprint()),
        knock: None,
        engine: &engine,
        datagrams: search([], DATAGRAM_ETHERNET),
    };
    let handle = client.connect(connecting, *now).expect("a connection");
    let (mut buffer, mut answer) = (Vec::new(), Vec::new());
    let mut opened = 0;
    for step in 0..50 {
        if step > 10 && opened < paths {
            let way = FourTuple::new(SocketAddr::new(mapped(THERE), there.port()), Some(mapped(HERE)));
            let connection = client.connection(handle).expect("it is there");
            opened += u8::from(connection.quic().open_path(way, PathStatus::Available, *now).is_ok());
        }
        *now += Duration::from_millis(20);
        while let Some((_, transmit)) = client.poll_transmit(*now, NonZeroUsize::MIN, &mut buffer) {
            let datagram = BytesMut::from(&buffer[..transmit.size]);
            let received = server.handle_datagram((here, THERE), None, datagram, *now, *now, &mut answer);
            if let Some(Received::New(incoming)) = received {
                let (datagrams, trust) = (search([], DATAGRAM_ETHERNET), Trust::Guest);
                let accepting = Accepting { engine: &engine, datagrams, trust };
                server.accept(*incoming, accepting, *now, &mut answer).expect("a guest");
            }
        }
        while let Some((_, transmit)) = server.poll_transmit(*now, NonZeroUsize::MIN, &mut buffer) {
            let datagram = BytesMut::from(&buffer[..transmit.size]);
            client.handle_datagram((there, HERE), None, datagram, *now, *now, &mut answer);
        }
        client.handle_timeout(*now);
        server.handle_timeout(*now);
        if let Some(connection) = client.connection(handle)
            && connection.has_room(fairpath_quic_core::ChannelId::Messages)
        {
            let _ = connection.send_message(vec![7; 3_000].into());
        }
    }
    assert!(server.connections().any(|(_, connection)| connection.close_reason().is_none()));
}

#[test]
fn a_guest_takes_no_more_memory_than_is_reckoned_with() {
    let identity = Identity::generate().expect("an identity");
    for paths in [0, 11] {
        let mut server = endpoint(Some(identity.clone()));
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let mut now = Instant::now();
        // Some things are made once, with the first.
        visit(&mut server, &identity, &mut now, (1_000, 0));
        let before = ALLOCATOR.current_usage();
        let guests = 4;
        for number in 1..=guests {
            visit(&mut server, &identity, &mut now, (1_000 + number, paths));
        }
        let each = (ALLOCATOR.current_usage() - before) / usize::from(guests);
        println!(
            "a guest that wants {paths} more paths takes {each} bytes, {GUESTS_MAX} of them {}",
            each * GUESTS_MAX
        );
        assert!(each <= GUEST_BYTES_MAX, "{paths} more paths: {each} bytes");
    }
}
