//! Sockets for packets of programs: each packet comes with the address of this machine that it was sent to, from which its
//! answer has to leave, and with what its header says of congestion.
//!
//! Packets are read and sent many at a time where the system can: a call for each small one would cost more than all else.

mod burst;
mod raw;
#[cfg_attr(target_os = "linux", path = "udp/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "udp/other.rs")]
mod system;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::UdpSocket;

pub(crate) use burst::{Burst, PACKET_MAX, Room};
pub(crate) use raw::RawUdp;

/// The most that a socket holds until it is read, in bytes, where the system allows it. Small packets take ten times their size there.
const BUFFER: usize = 4 << 20;

/// A socket for packets.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    /// Whether the system takes many packets of one size at once (GSO).
    takes_many: AtomicBool,
}

/// The head of a packet that was read, or of several that the system gave as one (GRO): where they came from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Where their data is, and the bytes of all.
    place: usize,
    length: usize,
    /// The length of each packet. The last may be shorter.
    each: usize,
    pub(crate) from: SocketAddr,
    pub(crate) here: Option<Here>,
    /// Where it was going before rules of the system led it here, where the socket asks for that.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) ecn: Ecn,
}

/// An address of this machine, and the number of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Here {
    address: IpAddr,
    interface: u32,
}

/// The congestion field of a packet's header: two bits (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ecn(u8);

impl Ecn {
    /// The packet met congestion.
    pub(crate) const CE: Self = Self(0b11);

    /// The last two bits of these.
    pub(crate) fn of_bits(bits: u8) -> Self {
        Self(bits & Self::CE.0)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the sender wants to hear of congestion by a mark.
    pub(crate) fn is_markable(self) -> bool {
        self.0 != 0
    }

    /// The field of a packet whose pieces have these two: one that met congestion tells for all.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Udp {
    /// Reads and sends all of it where the system can. Elsewhere the system chooses the address of answers, and no packet says
    /// anything of congestion.
    pub(crate) fn new(socket: UdpSocket) -> Self {
        system::prepare(&socket);
        Self { socket, takes_many: true.into() }
    }

    /// A socket to which rules of the system lead packets, and that may send from any address. It takes the rights of root.
    pub(crate) fn transparent(socket: UdpSocket) -> io::Result<Self> {
        system::make_transparent(&socket)?;
        Ok(Self::new(socket))
    }

    /// Reads the packets that are there; waits for one.
    ///
    /// Cancellation safety: no packet is lost where this is given up before it is ready.
    pub(crate) async fn recv(&self, room: &mut Room) -> io::Result<()> {
        loop {
            self.readable().await?;
            match self.try_recv(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Reads the packets that are there already.
    pub(crate) fn try_recv(&self, room: &mut Room) -> io::Result<()> {
        system::try_recv(&self.socket, room)
    }

    /// Waits until there may be a packet.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Sends packets from this address of the machine, or from the one that the system chooses. One that the system does not
    /// take is lost, as others are.
    pub(crate) async fn send(&self, packets: &Burst, to: SocketAddr, from: Option<Here>, ecn: Ecn) {
        for (alike, length) in packets.alike() {
            let count = alike.len().div_ceil(length.max(1)).max(1);
            if count > 1 && self.takes_many.load(Ordering::Relaxed) {
                match system::send(&self.socket, alike, Some(length), (to, from, ecn)).await {
                    Ok(()) => continue,
                    Err(error) if system::cannot_take_many(&error) => self.takes_many.store(false, Ordering::Relaxed),
                    // It may be the error of a packet that was sent before.
                    Err(_) => {}
                }
            }
            for at in 0..count {
                let packet = &alike[at * length..alike.len().min((at + 1) * length)];
                let _ = system::send(&self.socket, packet, None, (to, from, ecn)).await;
            }
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The only host that it sends to and hears of, where it is connected.
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.peer_addr()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// All of 127.0.0.0/8 is this machine's. The system would answer from 127.0.0.1 whatever was asked.
    #[tokio::test]
    async fn an_answer_leaves_from_the_address_that_was_asked() {
        for (everywhere, asked, asker) in [
            ("0.0.0.0:0", "127.9.8.7", "127.0.0.1:0"),
            ("[::]:0", "::ffff:127.9.8.7", "[::]:0"),
            ("[::]:0", "::1", "[::1]:0"),
        ] {
            // Not every machine has IPv6.
            let Ok(socket) = UdpSocket::bind(everywhere).await else { continue };
            let at = SocketAddr::new(asked.parse().unwrap(), socket.local_addr().unwrap().port());
            let (socket, program) = (Udp::new(socket), UdpSocket::bind(asker).await.unwrap());
            program.send_to(b"question", at).await.unwrap();
            let (mut room, mut buffer) = (Room::new(), [0; 64]);
            socket.recv(&mut room).await.unwrap();
            let (came, question) = room.bursts().next().unwrap();
            assert_eq!(question, Burst::from(&b"question"[..]), "{asked}");
            socket.send(&b"answer"[..].into(), came.from, came.here, Ecn::default()).await;
            let (length, from) = program.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], from), (&b"answer"[..], at));
        }
    }

    #[tokio::test]
    async fn congestion_is_told_and_heard_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let (Ok(one), Ok(two)) = (UdpSocket::bind(address).await, UdpSocket::bind(address).await) else { continue };
            let to = match address {
                // An address of IPv4, of a socket that has both families.
                "[::]:0" => SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), two.local_addr().unwrap().port()),
                _ => two.local_addr().unwrap(),
            };
            let (one, two) = (Udp::new(one), Udp::new(two));
            for bits in 0..4 {
                one.send(&b"packet"[..].into(), to, None, Ecn::of_bits(bits)).await;
                let mut room = Room::new();
                two.recv(&mut room).await.unwrap();
                let (came, packet) = room.bursts().next().unwrap();
                assert_eq!((came.ecn.bits(), packet), (bits, b"packet"[..].into()), "{address}");
            }
        }
    }

    #[tokio::test]
    async fn packets_that_the_system_gives_as_one_are_taken_apart() {
        let (one, two) = (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let to = two.local_addr().unwrap();
        let (one, two, mut room) = (Udp::new(one), Udp::new(two), Room::new());
        let sent = numbered(&[100; 40]);
        one.send(&sent, to, None, Ecn::default()).await;
        two.recv(&mut room).await.unwrap();
        let (head, came) = room.bursts().next().unwrap();
        // One head tells of all forty.
        assert_eq!((room.came.len(), head.length, head.each), (1, 4_000, 100));
        assert!(came.packets().eq(sent.packets()));
    }

    /// Packets of these lengths, each with its number.
    fn numbered(lengths: &[usize]) -> Burst {
        let packets: Vec<Vec<u8>> = (0..).zip(lengths).map(|(number, length)| vec![number; *length]).collect();
        packets.iter().map(Vec::as_slice).collect()
    }

    #[tokio::test]
    async fn packets_of_every_size_leave_and_come_many_at_a_time_in_their_order() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (Ok(one), Ok(two)) = (UdpSocket::bind(address).await, UdpSocket::bind(address).await) else { continue };
            let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
            let (one, two, mut room) = (Udp::new(one), Udp::new(two), Room::new());
            for lengths in [&[64; 20][..], &[9, 9, 4, 9, 0, 0, 7, 8, 8], &[1_000; 70], &[60_000, 60_000], &[0]] {
                let sent = numbered(lengths);
                one.send(&sent, to, None, Ecn::default()).await;
                let mut came: Vec<Vec<u8>> = Vec::new();
                while came.len() < lengths.len() {
                    two.recv(&mut room).await.unwrap();
                    for (head, burst) in room.bursts() {
                        assert_eq!(head.from, from);
                        came.extend(burst.packets().map(<[u8]>::to_vec));
                    }
                }
                assert!(came.iter().map(Vec::as_slice).eq(sent.packets()), "{address}: {lengths:?}");
            }
        }
    }
}
