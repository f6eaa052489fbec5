//! The memory that peers take before they have proved themselves. The only test here: it counts
//! that of its process.

mod common;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fairpath_quic_core::guests::{GUEST_BYTES_MAX, GUESTS_MAX};
use fairpath_quic_core::{Endpoint, Identity, Received, ReceivedDatagram, Trust};
use noq_proto::{FourTuple, PathStatus};
use peak_alloc::PeakAlloc;

use common::{HERE, PORT, THERE, admit, answer, call, endpoint, start};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn mapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        v6 => v6,
    }
}

/// A client completes its handshake, opens paths, says what a guest may say for a second, and is forgotten.
fn visit(server: &mut Endpoint, identity: &Identity, now: &mut Instant, (port, paths): (u16, u8)) {
    let mut client = endpoint(None);
    let here = SocketAddr::new(HERE, port);
    let handle = call(&mut client, identity, *now);
    let mut buffer = Vec::new();
    let mut opened = 0;
    for step in 0..50 {
        if step > 10 && opened < paths {
            let way = FourTuple::new(SocketAddr::new(mapped(THERE), PORT), Some(mapped(HERE)));
            let connection = client.connection(handle).expect("it is there");
            opened += u8::from(connection.quic().open_path(way, PathStatus::Available, *now).is_ok());
        }
        *now += Duration::from_millis(20);
        while let Some((_, transmit)) = client.poll_transmit(*now, NonZeroUsize::MIN, &mut buffer) {
            let datagram = BytesMut::from(&buffer[..transmit.size]);
            let datagram = ReceivedDatagram::new((here, THERE), datagram, *now);
            let received = server.handle_datagram(datagram, *now, &mut Vec::new());
            if let Some(Received::New(incoming)) = received {
                admit(server, *incoming, Trust::Guest, *now).expect("a guest");
            }
        }
        answer(server, &mut client, *now);
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
        let mut now = start();
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
