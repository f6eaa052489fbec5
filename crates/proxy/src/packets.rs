//! Packets of UDP between the two ends: each is cut into datagrams of the connection and put together again.
//!
//! ```text
//! association  4 bytes   the number that the near end gave it
//! packet       2 bytes   its number, which wraps around
//! piece        1 byte    the place of this piece, from 0
//! pieces       1 byte    how many there are
//! part of      a target in SOCKS5's form, and the data of the packet
//! ```
//!
//! A datagram is lost or late as a packet of UDP may be: nothing is sent again, and a packet of which a piece is missing is
//! given up when newer ones need its place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf as _, Bytes, BytesMut};
use fairpath::Connection;
use tokio::sync::mpsc;

use crate::target::Target;

/// The most of a packet that goes into a datagram: every path carries as much before it was measured.
const PIECE: usize = 1_100;

/// The largest packet of UDP, in bytes.
pub(crate) const PACKET_MAX: usize = 65_507;

const HEAD: usize = 8;

/// The packets of an association that wait for its reader, and those that are put together at once.
const WAITING: usize = 256;
const PARTS: usize = 16;

/// The associations of a connection.
const ASSOCIATIONS_MAX: usize = 256;

/// All associations of a connection.
#[derive(Debug)]
pub(crate) struct Packets {
    connection: Connection,
    readers: Mutex<BTreeMap<u32, mpsc::Sender<Bytes>>>,
}

/// Packets from and to one program.
#[derive(Debug)]
pub(crate) struct Association {
    id: u32,
    packets: Arc<Packets>,
    pieces: mpsc::Receiver<Bytes>,
    assembly: Assembly,
    number: AtomicU16,
}

impl Packets {
    /// Takes the datagrams of a connection from now on.
    pub(crate) fn begin(connection: Connection) -> Arc<Self> {
        let packets = Arc::new(Self { connection, readers: Mutex::default() });
        tokio::spawn(packets.clone().take());
        packets
    }

    async fn take(self: Arc<Self>) {
        while let Ok(mut datagram) = self.connection.recv_datagram().await {
            if datagram.len() < HEAD {
                continue;
            }
            let id = datagram.get_u32();
            if let Some(reader) = self.readers().get(&id) {
                // A reader that is late loses packets, as that of a socket does.
                let _ = reader.try_send(datagram);
            }
        }
        // Readers see the end.
        self.readers().clear();
    }

    fn readers(&self) -> MutexGuard<'_, BTreeMap<u32, mpsc::Sender<Bytes>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An association of this number; of a number that is free where none is given. `None` where there are too many, or the
    /// number is taken.
    pub(crate) fn open(self: &Arc<Self>, id: Option<u32>) -> Option<Association> {
        let (to, pieces) = mpsc::channel(WAITING);
        let mut readers = self.readers();
        let next = readers.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
        let id = id.or_else(|| (next..=u32::MAX).chain(0..next).find(|id| !readers.contains_key(id)))?;
        if readers.len() >= ASSOCIATIONS_MAX || readers.contains_key(&id) {
            return None;
        }
        readers.insert(id, to);
        drop(readers);
        let number = AtomicU16::new(0);
        Some(Association { id, packets: self.clone(), pieces, assembly: Assembly::default(), number })
    }
}

impl Association {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Sends a packet, with the host that it is for or comes from. It is dropped where too much waits already.
    pub(crate) fn send(&self, target: &Target, data: &[u8]) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        for datagram in cut(self.id, number, target, data) {
            if self.packets.connection.send_datagram(&datagram).is_err() {
                return;
            }
        }
    }

    /// The next packet that is whole; `None` after the end of the connection.
    ///
    /// Cancellation safety: no packet is lost where this is given up before it is ready.
    pub(crate) async fn recv(&mut self) -> Option<(Target, Bytes)> {
        loop {
            let piece = self.pieces.recv().await?;
            if let Some(packet) = self.assembly.take(piece) {
                return Some(packet);
            }
        }
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        self.packets.readers().remove(&self.id);
    }
}

/// The datagrams of a packet.
fn cut(id: u32, number: u16, target: &Target, data: &[u8]) -> Vec<Vec<u8>> {
    let mut whole = Vec::with_capacity(data.len() + 32);
    target.encode(&mut whole);
    whole.extend(&data[..data.len().min(PACKET_MAX)]);
    let pieces = whole.chunks(PIECE);
    let count = pieces.len() as u8;
    let datagram =
        |(at, piece): (u8, &[u8])| [&id.to_be_bytes()[..], &number.to_be_bytes(), &[at, count], piece].concat();
    (0..).zip(pieces).map(datagram).collect()
}

/// Packets of which pieces have come, the oldest first.
#[derive(Debug, Default)]
struct Assembly(VecDeque<Part>);

/// A packet of which pieces have come.
#[derive(Debug)]
struct Part {
    number: u16,
    pieces: Vec<Option<Bytes>>,
    missing: usize,
}

impl Assembly {
    /// Takes what follows the number of the association; the packet, where it is whole now.
    fn take(&mut self, mut piece: Bytes) -> Option<(Target, Bytes)> {
        const COUNT_MAX: usize = (PACKET_MAX + crate::target::TARGET_MAX).div_ceil(PIECE);
        if piece.len() < HEAD - 4 {
            return None;
        }
        let (number, at, count) = (piece.get_u16(), usize::from(piece.get_u8()), usize::from(piece.get_u8()));
        if at >= count || count > COUNT_MAX || piece.len() > PIECE {
            return None;
        }
        if count == 1 {
            return packet(piece);
        }
        let known = self.0.iter().position(|part| part.number == number && part.pieces.len() == count);
        let known = known.unwrap_or_else(|| {
            if self.0.len() >= PARTS {
                self.0.pop_front();
            }
            self.0.push_back(Part { number, pieces: vec![None; count], missing: count });
            self.0.len() - 1
        });
        let part = &mut self.0[known];
        if part.pieces[at].replace(piece).is_none() {
            part.missing -= 1;
        }
        if part.missing > 0 {
            return None;
        }
        let part = self.0.remove(known)?;
        let mut whole = BytesMut::new();
        part.pieces.into_iter().flatten().for_each(|piece| whole.extend_from_slice(&piece));
        packet(whole.freeze())
    }
}

/// The target and the data of a packet.
fn packet(mut whole: Bytes) -> Option<(Target, Bytes)> {
    let (target, length) = Target::decode(&whole).ok().flatten()?;
    whole.advance(length);
    Some((target, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        "example.com:51820".parse().unwrap()
    }

    fn pieces(number: u16, data: &[u8]) -> Vec<Bytes> {
        cut(7, number, &target(), data).into_iter().map(|one| Bytes::from(one).slice(4..)).collect()
    }

    #[test]
    fn packets_of_every_size_survive_in_any_order() {
        for length in [0, 1, PIECE - 19, PIECE, 1_400, 9_000, PACKET_MAX] {
            let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut assembly = Assembly::default();
            let mut whole: Vec<_> =
                pieces(1, &data).into_iter().rev().filter_map(|piece| assembly.take(piece)).collect();
            assert_eq!(whole.len(), 1, "{length}");
            assert!(whole.remove(0) == (target(), Bytes::from(data)), "{length}");
            assert!(assembly.0.is_empty());
        }
    }

    #[test]
    fn a_piece_that_is_lost_costs_its_packet_and_memory_stays_bounded() {
        let mut assembly = Assembly::default();
        for number in 0..1_000 {
            let mut pieces = pieces(number, &[0; 3_000]);
            pieces.pop();
            assert!(pieces.into_iter().all(|piece| assembly.take(piece).is_none()));
            assert!(assembly.0.len() <= PARTS);
        }
        let whole: Vec<_> = pieces(5, &[1; 3_000]).into_iter().filter_map(|piece| assembly.take(piece)).collect();
        assert_eq!(whole.len(), 1, "the number of one that was given up is used again");
    }

    #[test]
    fn pieces_that_cannot_be_are_left_out() {
        let mut assembly = Assembly::default();
        for piece in
            [&b""[..], b"\0\x01\x01", b"\0\x01\x01\x01x", b"\0\x01\0\xffx", b"\0\x01\0\0x", b"\0\x01\0\x01\x09x"]
        {
            assert_eq!(assembly.take(Bytes::copy_from_slice(piece)), None, "{piece:?}");
        }
        assert_eq!(assembly.take([&b"\0\x01\0\x02"[..], &[0; PIECE + 1]].concat().into()), None);
        assert!(assembly.0.is_empty());
    }
}
