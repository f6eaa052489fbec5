//! The limits on peers that have not proved themselves.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::{Event, Identity, Received, ReceivedDatagram, Trust};

use crate::common::{HERE, PORT, THERE, admit, answer, call, endpoint, start};

/// Somebody who knows an id of the connection makes up what the server would say first.
#[test]
fn a_forged_retry_or_version_negotiation_does_not_keep_a_client_from_the_real_one() {
    let identity = Identity::generate().expect("an identity");
    let (mut client, mut server) = (endpoint(None), endpoint(Some(identity.clone())));
    let (here, there) = (SocketAddr::new(HERE, 1), SocketAddr::new(THERE, PORT));
    let mut now = start();
    let of_client = call(&mut client, &identity, now);
    let (mut buffer, mut reply, mut retries) = (Vec::new(), Vec::new(), 0);
    for _ in 0..40 {
        now += Duration::from_millis(10);
        while let Some((_, transmit)) = client.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            let datagram = BytesMut::from(&buffer[..transmit.size]);
            let received = server.handle_datagram(ReceivedDatagram::new((here, THERE), datagram, now), now, &mut reply);
            let Some(Received::New(incoming)) = received else { continue };
            if incoming.remote_address_validated() {
                admit(&mut server, *incoming, Trust::Guest, now).expect("a guest");
                continue;
            }
            reply.clear();
            let transmit = server.retry(*incoming, &mut reply).expect("it has shown nothing yet");
            let real = &reply[..transmit.size];
            let mut changed = real.to_vec();
            *changed.last_mut().expect("a check sequence") ^= 1;
            // The same ids, no version that anybody speaks.
            let ids = 5 + 1 + usize::from(real[5]) + 1 + usize::from(real[6 + usize::from(real[5])]);
            let mut versions = real[..ids].to_vec();
            versions[1..5].fill(0);
            versions.extend([0x1a, 0x2a, 0x3a, 0x4a]);
            for datagram in [&versions[..], &changed, real] {
                let datagram = ReceivedDatagram::new((there, HERE), datagram.into(), now);
                client.handle_datagram(datagram, now, &mut Vec::new());
            }
            retries += 1;
        }
        answer(&mut server, &mut client, now);
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    assert_eq!(retries, 1);
    let connection = client.connection(of_client).expect("it is not over");
    let is_connected = std::iter::from_fn(|| connection.poll_event()).any(|event| matches!(event, Event::Connected));
    assert!(is_connected, "{:?}", connection.close_reason());
}

/// A system may give many datagrams in one buffer. Whatever is kept of one of them keeps that buffer: of somebody who
/// sends pieces of a handshake that do not fit together, one for each piece.
#[test]
fn what_is_kept_of_a_guest_does_not_keep_the_buffer_that_it_came_in() {
    let identity = Identity::generate().expect("an identity");
    let (mut client, mut server) = (endpoint(None), endpoint(Some(identity.clone())));
    let (here, mut now) = (SocketAddr::new(HERE, 1), start());
    let of_client = call(&mut client, &identity, now);
    let (mut buffer, mut of_server, mut sent) = (Vec::new(), None, 0);
    for _ in 0..40 {
        now += Duration::from_millis(10);
        while let Some((_, transmit)) = client.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            let mut train = BytesMut::from(&buffer[..transmit.size]);
            train.extend_from_slice(&[0; 20_000]);
            let datagram = train.split_to(transmit.size);
            let datagram = ReceivedDatagram::new((here, THERE), datagram, now);
            let received = server.handle_datagram(datagram, now, &mut Vec::new());
            sent += 1;
            train.clear();
            let more = train.capacity() + 1;
            assert!(train.try_reclaim(more), "something of datagram {sent} is kept with its train: {received:?}");
            if let Some(Received::New(incoming)) = received {
                of_server = admit(&mut server, *incoming, Trust::Guest, now);
            }
        }
        answer(&mut server, &mut client, now);
        if let Some(connection) = client.connection(of_client) {
            // More than a guest may say at once: the rest waits.
            let _ = connection.send_message(Bytes::from(vec![7; 3_000]));
        }
    }
    assert!(of_server.is_some_and(|handle| server.connection(handle).is_some()) && sent > 10, "{sent}");
}
