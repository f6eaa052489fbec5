//! SOCKS5's UDP ASSOCIATE: a socket for one program, as long as its TCP connection is open (RFC 1928, section 7).

use std::net::{IpAddr, SocketAddr};

use fairpath::RecvStream;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::packets::{Association, Packet};
use crate::snapshot::Entry;
use crate::target::Target;
use crate::udp::{Burst, Ecn, PACKET_MAX, Udp};

/// The first bytes of a packet: two that mean nothing, and the number of a fragment, which is 0.
const HEAD: [u8; 3] = [0; 3];

/// How often it is looked for packets of a program that has left.
const LAST_MAX: usize = 1_024;

/// Packets of one program.
pub(super) struct Entrance {
    pub(super) entry: Entry,
    pub(super) socket: Udp,
    /// The address of the program, which no other can use.
    pub(super) program: IpAddr,
    /// The port of the program, where it said so or has sent from it.
    pub(super) port: Option<u16>,
}

impl Entrance {
    /// Carries packets until the program's connection or the association ends.
    pub(super) async fn carry(mut self, mut tcp: TcpStream, association: Association, mut recv: RecvStream) {
        let mut more = [0; 64];
        loop {
            tokio::select! {
                read = association.read(Some(&self.socket)) => self.take(&read, &association),
                packet = association.recv() => match packet {
                    Some(Packet { target, data, ecn, held: _held }) => self.hand_out(&target, &data, ecn).await,
                    None => return,
                },
                read = tcp.read(&mut more) => if !matches!(read, Ok(1..)) {
                    // Packets that it sent before it left still go out.
                    for _ in 0..LAST_MAX {
                        let read = association.read_now(&self.socket);
                        if read.is_empty() {
                            break;
                        }
                        self.take(&read, &association);
                    }
                    return;
                },
                read = recv.read_chunk(64) => if !matches!(read, Ok(Some(_))) { return },
            }
        }
    }

    /// Sends packets on, where they come from the program.
    fn take(&mut self, read: &[(SocketAddr, Burst, Ecn)], association: &Association) {
        for (from, burst, ecn) in read {
            if !self.is_program(*from) {
                continue;
            }
            let packets: Vec<(Target, &[u8])> = burst.packets().filter_map(packet).collect();
            for for_one in packets.chunk_by(|a, b| a.0 == b.0) {
                let data = for_one.iter().map(|(_, data)| *data);
                self.entry.count(data.clone().map(<[u8]>::len).sum(), 0);
                association.send(&for_one[0].0, data, *ecn);
            }
        }
    }

    /// Whether a packet comes from the program. The first one says its port, where it did not.
    fn is_program(&mut self, from: SocketAddr) -> bool {
        from.ip() == self.program && *self.port.get_or_insert(from.port()) == from.port()
    }

    async fn hand_out(&self, from: &Target, data: &Burst, ecn: Ecn) {
        let Some(port) = self.port else { return };
        self.entry.count(0, data.bytes());
        if let Some(packets) = headed(from, data) {
            self.socket.send(&packets, (self.program, port).into(), None, ecn).await;
        }
    }
}

/// The packets as a program gets them, each behind a head. Those are left out that are too large for UDP then; `None` where
/// none is left.
fn headed(from: &Target, data: &Burst) -> Option<Burst> {
    let mut head = HEAD.to_vec();
    from.encode(&mut head);
    let packets: Vec<Vec<u8>> = data
        .packets()
        .filter(|data| head.len() + data.len() <= PACKET_MAX)
        .map(|data| [&head, data].concat())
        .collect();
    (!packets.is_empty()).then(|| packets.iter().map(Vec::as_slice).collect())
}

/// The target and the data of a packet. Fragments are not put together, which a server need not do.
fn packet(bytes: &[u8]) -> Option<(Target, &[u8])> {
    let rest = bytes.strip_prefix(&HEAD[..])?;
    let (target, length) = Target::decode(rest).ok().flatten()?;
    Some((target, &rest[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A far end may say what it likes: names of 255 letters, and packets as large as they may be.
    #[test]
    fn what_is_too_large_behind_its_head_is_left_out_and_the_rest_is_whole() {
        let from: Target = format!("{}:1", "a".repeat(250)).parse().unwrap();
        let [large, small] = [vec![1; PACKET_MAX], vec![2; 10]];
        let lengths = |packets: &[&[u8]]| {
            let headed = headed(&from, &packets.iter().copied().collect());
            headed.map(|burst| burst.packets().map(<[u8]>::len).collect::<Vec<_>>())
        };
        let head = HEAD.len() + 1 + 1 + 250 + 2;
        assert_eq!(lengths(&[&small, &large, &small]), Some(vec![head + 10; 2]));
        assert_eq!(lengths(&[&large]), None);
    }

    #[test]
    fn packets_are_read_and_fragments_are_not() {
        let whole = b"\0\0\0\x01\x01\x02\x03\x04\0\x35data";
        assert_eq!(packet(whole), Some(("1.2.3.4:53".parse().unwrap(), &b"data"[..])));
        assert_eq!(packet(b"\0\0\x01\x01\x01\x02\x03\x04\0\x35data"), None);
        assert!((0..10).all(|length| packet(&whole[..length]).is_none()));
    }
}
