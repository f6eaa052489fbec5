//! The stack by itself: two of its connections and one path between them, and nothing of ours. A stream that its
//! receiver always reads, and packets that take time to arrive and are never lost. No host of the stack moves packets
//! for less.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fairpath_core::{Bitrate, ByteCount};
use fairpath_faults::{Cryptography, Pinned};
use fairpath_quic_core::{Application, DATAGRAM_ETHERNET, Identity, Origin as _, Verify};
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, FourTuple, StreamEvent, StreamId,
    TransportConfig, VarInt,
};

const RATE: Bitrate = Bitrate::from_mbps(100);
const DELAY: Duration = Duration::from_millis(10);

/// How many bytes the receiver lets the sender have on its way: twice what the path holds.
const WINDOW: u32 = 500_000;

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Datagrams on their way to it, with their times of arrival.
    coming: VecDeque<(Instant, BytesMut)>,
    /// When the last of what it has sent has left.
    free_at: Instant,
    stream: Option<StreamId>,
    packets: u64,
}

/// Two ends; the client sends.
pub(crate) struct Stack {
    ends: [End; 2],
    now: Instant,
}

impl Stack {
    /// Ends whose handshake has begun.
    pub(crate) fn new(cryptography: Cryptography, seed: u64) -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let now = Instant::now();
        let identity = Identity::generate().ok()?;
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u32(WINDOW);
        transport.initial_mtu(DATAGRAM_ETHERNET).mtu_discovery_config(None);
        transport.stream_receive_window(window).receive_window(window);
        let transport = Arc::new(transport);
        let application = Application::Fairpath;
        let origins = [Pinned::new(cryptography, seed), Pinned::new(cryptography, !seed)];
        let mut server = origins[1].server(&identity, application).ok()?;
        server.transport_config(transport.clone());
        let mut client = origins[0].client(Verify::Fingerprint(identity.fingerprint()), application).ok()?;
        client.transport_config(transport);
        let mut ends = origins.map(|origin| End {
            endpoint: Endpoint::new(Arc::new(origin.endpoint()), None, true),
            connection: None,
            coming: VecDeque::new(),
            free_at: now,
            stream: None,
            packets: 0,
        });
        ends[1].endpoint.set_server_config(Some(Arc::new(server)));
        ends[0].connection = Some(ends[0].endpoint.connect(now, client, address(1), "fairpath").ok()?);
        Some(Self { ends, now })
    }

    /// How many packets have left both ends.
    pub(crate) fn packets(&self) -> u64 {
        self.ends.iter().map(|end| end.packets).sum()
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            for at in 0..2 {
                let sent = self.ends[at].drive(self.now, address(1 - at));
                self.ends[1 - at].coming.extend(sent);
            }
            match self.ends.iter_mut().filter_map(|end| end.next()).min().filter(|at| *at <= until) {
                Some(next) => self.now = self.now.max(next),
                None => return self.now = until,
            }
        }
    }
}

impl End {
    fn next(&mut self) -> Option<Instant> {
        let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.coming.front().map(|(at, _)| *at).into_iter().chain(timer).min()
    }

    /// Does what is due; what it sends to `peer`, and when that arrives.
    fn drive(&mut self, now: Instant, peer: std::net::SocketAddr) -> Vec<(Instant, BytesMut)> {
        let (mut sent, mut buffer) = (Vec::new(), Vec::new());
        while self.coming.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, datagram)) = self.coming.pop_front()
        {
            self.take_in(datagram, peer, now);
            self.send(now, &mut buffer, &mut sent);
        }
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|at| at <= now)
        {
            connection.handle_timeout(now);
        }
        self.send(now, &mut buffer, &mut sent);
        sent
    }

    fn take_in(&mut self, datagram: BytesMut, peer: std::net::SocketAddr, now: Instant) {
        let mut answer = Vec::new();
        match self.endpoint.handle(now, FourTuple::new(peer, None), None, datagram, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            _ => {}
        }
        self.hear();
    }

    /// Hears of what happened, reads and writes what there is.
    fn hear(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if connection.side().is_client() => self.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) => self.stream = connection.streams().accept(dir),
                _ => {}
            }
        }
        let Some(stream) = self.stream else { return };
        if connection.side().is_client() {
            while connection.send_stream(stream).write(&[7; 16_384]).is_ok_and(|written| written > 0) {}
        } else if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
            while let Ok(Some(_)) = chunks.next(usize::MAX) {}
            let _ = chunks.finalize();
        }
    }

    fn send(&mut self, now: Instant, buffer: &mut Vec<u8>, sent: &mut Vec<(Instant, BytesMut)>) {
        const TRAIN: NonZeroUsize = NonZeroUsize::new(44).unwrap();
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(transmit) = connection.poll_transmit(now, TRAIN, buffer) {
            for datagram in buffer[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                self.free_at = self.free_at.max(now) + ByteCount::new(datagram.len() as u64) / RATE;
                self.packets += 1;
                sent.push((self.free_at + DELAY, BytesMut::from(datagram)));
            }
            buffer.clear();
        }
        self.hear();
    }
}

/// Where an end is.
fn address(end: usize) -> std::net::SocketAddr {
    ([192, 0, 2, 1 + end as u8], 4433).into()
}
