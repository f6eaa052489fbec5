//! Packets of UDP between the two ends: each is cut into datagrams of the connection and put together again.
//!
//! ```text
//! association  4 bytes   the number that the near end gave it
//! packet       4 bytes   its number, which wraps around
//! piece        1 byte    the place of this piece, from 0, in the lower six bits; above them the bits of ECN
//! pieces       1 byte    how many there are; all but the last are of the same length
//! part of      a target in SOCKS5's form, and the data of the packet
//! ```
//!
//! Small packets that are there at once travel together ([`bundle`]): they have one number.
//!
//! A datagram that waits for long would be dropped. Where its packet's sender wants to hear of that by a mark (ECN), it is marked
//! instead, and so is the packet.
//!
//! A datagram is lost or late as a packet of UDP may be: nothing is sent again, and a packet of which a piece is missing is
//! given up. Packets that took ways of different length are put into order, where that is worth its time ([`Order`]). All that
//! waits on a connection, in pieces or whole, takes bounded memory.

mod assembly;
mod budget;
mod bundle;
mod order;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf as _, Bytes};
use fairpath::{Connection, internal};
use fairpath_quic::CongestionMark;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::target::Target;
use crate::udp::{Burst, Ecn, PACKET_MAX, Room, Udp};
use assembly::{Assembly, Head};
pub(crate) use budget::{Budget, Held};
use bundle::Bundle;
use order::Order;

/// The most of a packet that goes into a datagram: every path carries as much before it was measured.
const PIECE: usize = 1_100;

const HEAD: usize = 10;

/// The byte of a datagram that has the place of its piece, and where the bits of ECN begin in it.
const PLACE: usize = 8;
const ECN_SHIFT: u32 = 6;

/// The mark of a datagram that had to wait.
const MARK: CongestionMark = CongestionMark { at: PLACE, bits: Ecn::CE.bits() << ECN_SHIFT };

/// The packets of an association that wait for its reader: in number, and their memory in bytes.
const WAITING: usize = 1_024;
const ASSOCIATION_MEMORY: usize = 1 << 20;

/// The memory for all whole packets of a connection that wait, in bytes.
const CONNECTION_MEMORY: usize = 4 << 20;

/// The associations of a connection.
const ASSOCIATIONS_MAX: usize = 256;

/// The first number that the far end gives.
const FAR: u32 = 1 << 31;

/// All associations of a connection.
#[derive(Debug)]
pub(crate) struct Packets {
    connection: Connection,
    readers: Mutex<BTreeMap<u32, Reader>>,
    assembly: Mutex<Assembly>,
    memory: Budget,
    /// The numbers that each opener may give next. One that was just free may still be in use at the other end.
    next: [AtomicU32; 2],
    /// Packets are read of their socket into this, and copied: an association that is still holds no buffer.
    room: Mutex<Room>,
}

#[derive(Debug)]
struct Reader {
    to: mpsc::Sender<Arrived>,
    memory: Budget,
    opened: Instant,
    standing: Arc<Standing>,
}

/// The claim of an association to its place. One that is over has none, and one without an answer less than others.
#[derive(Debug, Default)]
struct Standing {
    has_sent: AtomicBool,
    has_heard: AtomicBool,
    is_over: AtomicBool,
}

impl Standing {
    /// How weak the claim is; `None` where the place is the association's for good.
    fn claim(&self) -> Option<u8> {
        let [is_over, has_sent, has_heard] =
            [&self.is_over, &self.has_sent, &self.has_heard].map(|one| one.load(Ordering::Relaxed));
        match (is_over, has_sent && has_heard) {
            (true, _) => Some(0),
            (false, false) => Some(1),
            (false, true) => None,
        }
    }
}

/// A whole packet, or several that travelled together, with the host that they are for or come from.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) target: Target,
    pub(crate) data: Burst,
    pub(crate) ecn: Ecn,
    /// The memory that it takes as long as it waits.
    pub(crate) held: Held,
}

/// A packet that waits for its reader.
#[derive(Debug)]
struct Arrived {
    number: u32,
    at: Instant,
    packet: Packet,
}

/// Packets that came, on their way to their reader.
#[derive(Debug)]
struct Incoming {
    whole: mpsc::Receiver<Arrived>,
    order: Order<Packet>,
}

/// The end that gives an association its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    Near,
    Far,
}

/// Packets from and to one program.
#[derive(Debug)]
pub(crate) struct Association {
    id: u32,
    packets: Arc<Packets>,
    incoming: tokio::sync::Mutex<Incoming>,
    number: AtomicU32,
    standing: Arc<Standing>,
}

impl Packets {
    /// Takes the datagrams of a connection from now on.
    pub(crate) fn begin(connection: Connection) -> Arc<Self> {
        let packets = Arc::new(Self {
            connection,
            readers: Mutex::default(),
            assembly: Mutex::default(),
            memory: Budget::new(CONNECTION_MEMORY),
            next: [AtomicU32::new(0), AtomicU32::new(FAR)],
            room: Mutex::new(Room::new()),
        });
        tokio::spawn(packets.clone().take());
        packets
    }

    async fn take(self: Arc<Self>) {
        while let Ok(datagram) = self.connection.recv_datagram().await {
            self.arrived(datagram);
        }
        // Readers see the end.
        self.readers().clear();
    }

    /// Takes a datagram. Nothing of it is kept where it belongs to no association or does not fit.
    fn arrived(&self, mut datagram: Bytes) {
        if datagram.len() < HEAD {
            return;
        }
        let (association, number) = (datagram.get_u32(), datagram.get_u32());
        let head = Head::read(association, number, [datagram.get_u8(), datagram.get_u8()]);
        let readers = self.readers();
        let Some(reader) = readers.get(&association) else { return };
        reader.standing.has_heard.store(true, Ordering::Relaxed);
        let at = Instant::now();
        let whole = match head.is_of_bundle() {
            true => bundle::read(datagram).map(|(target, data)| (target, data, head.ecn)),
            false if head.fits(datagram.len()) => self.assembly().take(head, &datagram, at).and_then(packet),
            false => None,
        };
        // A reader that is late loses packets, as that of a socket does.
        if let Some((target, data, ecn)) = whole
            && let Some(held) = reader.memory.hold(data.bytes())
        {
            let _ = reader.to.try_send(Arrived { number, at, packet: Packet { target, data, ecn, held } });
        }
    }

    fn readers(&self) -> MutexGuard<'_, BTreeMap<u32, Reader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn assembly(&self) -> MutexGuard<'_, Assembly> {
        self.assembly.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An association with a number that is free, in the place of one without a claim where there are too many. `None` where
    /// all have one.
    pub(crate) fn open_new(self: &Arc<Self>, opener: Opener) -> Option<Association> {
        let [near, far] = &self.next;
        let (numbers, next) = match opener {
            Opener::Near => (0..=FAR - 1, near),
            Opener::Far => (FAR..=u32::MAX, far),
        };
        let mut readers = self.readers();
        let mut free = (next.load(Ordering::Relaxed)..=*numbers.end()).chain(numbers.clone());
        let id = free.find(|id| !readers.contains_key(id))?;
        next.store(if id == *numbers.end() { *numbers.start() } else { id + 1 }, Ordering::Relaxed);
        self.open(&mut readers, id)
    }

    /// The same with the number that the peer gave it. `None` also where the number is taken.
    pub(crate) fn open_given(self: &Arc<Self>, id: u32) -> Option<Association> {
        self.open(&mut self.readers(), id)
    }

    fn open(self: &Arc<Self>, readers: &mut BTreeMap<u32, Reader>, id: u32) -> Option<Association> {
        if readers.contains_key(&id) {
            return None;
        }
        if readers.len() >= ASSOCIATIONS_MAX {
            let without =
                readers.iter().filter_map(|(id, reader)| Some((reader.standing.claim()?, reader.opened, *id)));
            let (.., left) = without.min()?;
            // Its reader sees the end.
            readers.remove(&left);
            self.assembly().forget(left);
        }
        let (to, whole) = mpsc::channel(WAITING);
        let (memory, standing) = (self.memory.part(ASSOCIATION_MEMORY), Arc::<Standing>::default());
        readers.insert(id, Reader { to, memory, opened: Instant::now(), standing: standing.clone() });
        let incoming = Incoming { whole, order: Order::default() };
        Some(Association { id, packets: self.clone(), incoming: incoming.into(), number: AtomicU32::new(0), standing })
    }
}

impl Incoming {
    async fn next(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = self.order.pop(Instant::now()) {
                return Some(packet);
            }
            let arrived = match self.order.due() {
                None => self.whole.recv().await,
                Some(due) => match timeout_at(due, self.whole.recv()).await {
                    Ok(arrived) => arrived,
                    Err(_) => continue,
                },
            };
            match arrived {
                Some(Arrived { number, at, packet }) => self.order.take(number, packet, at),
                None => return self.order.pop_any(),
            }
        }
    }
}

impl Association {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// It ends soon: another may have its place meanwhile.
    pub(crate) fn end_soon(&self) {
        self.standing.is_over.store(true, Ordering::Relaxed);
    }

    /// Sends packets, with the host that they are for or come from. Those are dropped for which too much waits already.
    pub(crate) fn send<'a>(&self, target: &Target, packets: impl IntoIterator<Item = &'a [u8]>, ecn: Ecn) {
        self.standing.has_sent.store(true, Ordering::Relaxed);
        let mut bundle = Bundle::new(target);
        for packet in packets {
            if !bundle.takes(packet) {
                self.send_bundle(target, &mut bundle, ecn);
            }
            bundle.push(packet);
        }
        self.send_bundle(target, &mut bundle, ecn);
    }

    fn send_bundle(&self, target: &Target, bundle: &mut Bundle, ecn: Ecn) {
        let number = self.number.load(Ordering::Relaxed);
        let datagrams = match bundle.single() {
            Some(packet) => cut((self.id, number), target, packet, ecn),
            None => bundle.datagram((self.id, number), ecn).into_iter().collect(),
        };
        bundle.clear();
        for (at, datagram) in datagrams.into_iter().enumerate() {
            let connection = &self.packets.connection;
            let sent = match ecn.is_markable() {
                true => internal::connection(connection).send_markable_datagram(&datagram, MARK),
                false => connection.send_datagram(&datagram).is_ok(),
            };
            if !sent {
                return;
            }
            if at == 0 {
                // A datagram that was refused leaves no gap in the numbers, for which the other end would wait.
                self.number.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The next packet that is whole; `None` after the end of the connection.
    ///
    /// Cancellation safety: no packet is lost where this is given up before it is ready.
    pub(crate) async fn recv(&self) -> Option<Packet> {
        self.incoming.lock().await.next().await
    }

    /// The next packets at a socket, if there is one, each burst with the host that it is from.
    ///
    /// Cancellation safety: no packet is lost where this is given up before it is ready.
    pub(crate) async fn read(&self, socket: Option<&Udp>) -> Vec<(SocketAddr, Burst, Ecn)> {
        let Some(socket) = socket else { return std::future::pending().await };
        loop {
            // An error is that of a packet that was sent before.
            if socket.readable().await.is_err() {
                continue;
            }
            let read = self.read_now(socket);
            if !read.is_empty() {
                return read;
            }
        }
    }

    /// The next packets at a socket that are there already.
    pub(crate) fn read_now(&self, socket: &Udp) -> Vec<(SocketAddr, Burst, Ecn)> {
        let mut room = self.packets.room.lock().unwrap_or_else(PoisonError::into_inner);
        match socket.try_recv(&mut room) {
            Ok(()) => room.bursts().map(|(head, burst)| (head.from, burst, head.ecn)).collect(),
            Err(_) => Vec::new(),
        }
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        let mut readers = self.packets.readers();
        // Another may have its number by now.
        if readers.get(&self.id).is_some_and(|reader| Arc::ptr_eq(&reader.standing, &self.standing)) {
            readers.remove(&self.id);
            self.packets.assembly().forget(self.id);
        }
    }
}

/// The datagrams of a packet.
fn cut((id, number): (u32, u32), target: &Target, data: &[u8], ecn: Ecn) -> Vec<Vec<u8>> {
    let mut whole = Vec::with_capacity(data.len() + 32);
    target.encode(&mut whole);
    whole.extend(&data[..data.len().min(PACKET_MAX)]);
    let pieces = whole.chunks(PIECE);
    let count = pieces.len() as u8;
    let datagram = |(at, piece): (u8, &[u8])| {
        [&id.to_be_bytes()[..], &number.to_be_bytes(), &[at | ecn.bits() << ECN_SHIFT, count], piece].concat()
    };
    (0..).zip(pieces).map(datagram).collect()
}

/// The target and the data of a packet.
fn packet((mut whole, ecn): (Bytes, Ecn)) -> Option<(Target, Burst, Ecn)> {
    let (target, length) = Target::decode(&whole).ok().flatten()?;
    whole.advance(length);
    Some((target, Burst::single(whole), ecn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_every_size_survive_in_any_order() {
        let target: Target = "example.com:51820".parse().unwrap();
        for length in [0, 1, PIECE - 19, PIECE, 1_400, 9_000, PACKET_MAX] {
            let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut assembly = Assembly::default();
            let mut pieces = cut((7, 1), &target, &data, Ecn::default());
            pieces.reverse();
            let whole: Vec<_> = put_together(&mut assembly, &pieces).filter_map(packet).collect();
            assert!(whole == [(target.clone(), Burst::from(&data[..]), Ecn::default())], "{length}");
        }
    }

    /// The packets that are whole with each of these datagrams.
    fn put_together(assembly: &mut Assembly, datagrams: &[Vec<u8>]) -> impl Iterator<Item = (Bytes, Ecn)> {
        datagrams.iter().filter_map(|datagram| {
            let head = Head::read(7, 1, [datagram[PLACE], datagram[PLACE + 1]]);
            assert!(head.fits(datagram.len() - HEAD));
            assembly.take(head, &datagram[HEAD..], Instant::now())
        })
    }

    #[test]
    fn a_mark_of_congestion_on_any_piece_is_one_on_the_packet() {
        let target: Target = "example.com:51820".parse().unwrap();
        for bits in 0..4 {
            for length in [100, 9_000] {
                let ecn = Ecn::of_bits(bits);
                let mut pieces = cut((7, 1), &target, &vec![1; length], ecn);
                let mut assembly = Assembly::default();
                assert_eq!(put_together(&mut assembly, &pieces).next().unwrap().1, ecn, "{length}");
                // As the queue does it.
                pieces[0][PLACE] |= Ecn::CE.bits() << ECN_SHIFT;
                assert_eq!(put_together(&mut assembly, &pieces).next().unwrap().1, Ecn::CE, "{length}");
            }
        }
    }
}
