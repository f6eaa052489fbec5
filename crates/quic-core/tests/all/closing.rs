//! Connections that are closed in the midst of their handshakes.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::{Endpoint, Identity, Received, ReceivedDatagram, Trust};
use noq_proto::ConnectionHandle;

use crate::common::{HERE, PORT, THERE, admit, call, endpoint, start};

/// A close in each of the spaces that a handshake has, and what else was to be said.
const LAST_WORDS_MAX: usize = 8;

/// Two ends, with what is on the way between them.
struct Pair {
    ends: [Endpoint; 2],
    handles: [Option<ConnectionHandle>; 2],
    packets_max: NonZeroUsize,
    now: Instant,
}

impl Pair {
    fn new(packets_max: usize, start: Instant) -> Self {
        let identity = Identity::generate().expect("an identity");
        let mut client = endpoint(None);
        let handle = call(&mut client, &identity, start);
        Self {
            ends: [client, endpoint(Some(identity))],
            handles: [Some(handle), None],
            packets_max: NonZeroUsize::new(packets_max).expect("not zero"),
            now: start,
        }
    }

    /// The datagrams that leave next at an end; none where there is nothing to be sent.
    fn leave(&mut self, end: usize) -> Vec<Bytes> {
        let mut buffer = Vec::new();
        let Some((_, transmit)) = self.ends[end].poll_transmit(self.now, self.packets_max, &mut buffer) else {
            return Vec::new();
        };
        let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
        buffer[..transmit.size].chunks(size).map(Bytes::copy_from_slice).collect()
    }

    fn arrive(&mut self, end: usize, datagram: &[u8]) {
        let (way, mut answer) =
            ([(SocketAddr::new(THERE, PORT), HERE), (SocketAddr::new(HERE, 1), THERE)][end], Vec::new());
        let datagram = ReceivedDatagram::new(way, BytesMut::from(datagram), self.now);
        let received = self.ends[end].handle_datagram(datagram, self.now, &mut answer);
        if let Some(Received::New(incoming)) = received {
            self.handles[end] = admit(&mut self.ends[end], *incoming, Trust::Full, self.now);
        }
    }

    /// Lets this many datagrams arrive, in turns of everything that the ends have to send. A
    /// quarter of the last one may be damaged, so that some of several packets in it are good.
    fn exchange(&mut self, datagrams: usize, damaged: Option<usize>) {
        let mut arrived = 0;
        for turn in 0..20 {
            self.now += Duration::from_millis(10);
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            let (from, to) = (turn % 2, 1 - turn % 2);
            for datagram in std::iter::from_fn(|| Some(self.leave(from)).filter(|left| !left.is_empty()))
                .take(50)
                .flatten()
                .collect::<Vec<_>>()
            {
                if arrived == datagrams {
                    return;
                }
                arrived += 1;
                let mut datagram = datagram.to_vec();
                if let Some(quarter) = damaged.filter(|_| arrived == datagrams) {
                    let at = datagram.len() * quarter / 4;
                    datagram[at] ^= 1;
                }
                self.arrive(to, &datagram);
            }
        }
    }
}

/// The loser of the race of handshakes is closed at any moment, and the peer may not hear of it.
#[test]
fn an_end_that_closes_in_its_handshake_says_so_and_falls_silent() {
    let start = start();
    for (packets_max, end) in [(1, 0), (1, 1), (40, 0), (40, 1)] {
        for (datagrams, damaged) in
            (0..12).flat_map(|datagrams| [None, Some(1), Some(2), Some(3)].map(|damaged| (datagrams, damaged)))
        {
            let mut pair = Pair::new(packets_max, start);
            pair.exchange(datagrams, damaged);
            let Some(handle) = pair.handles[end] else { continue };
            let Some(connection) = pair.ends[end].connection(handle) else { continue };
            connection.close(7, Bytes::from_static(b"enough"), pair.now);
            let mut said = 0;
            loop {
                let left = pair.leave(end);
                said += left.len();
                let many = format!(
                    "{said} datagrams at once from end {end}, closed after {datagrams}, {packets_max} at a time"
                );
                assert!(said <= LAST_WORDS_MAX, "{many}");
                if left.is_empty() {
                    break;
                }
            }
        }
    }
}
