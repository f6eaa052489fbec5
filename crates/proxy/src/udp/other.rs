//! Other systems: a call for each packet.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Socket};
use tokio::net::UdpSocket;

use super::{Came, Ecn, Here, Room};

pub(super) fn prepare(_socket: &UdpSocket) {}

pub(super) fn make_transparent(_socket: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn raw(_domain: Domain) -> io::Result<Socket> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn try_recv(socket: &UdpSocket, room: &mut Room) -> io::Result<()> {
    let mut came = std::mem::take(&mut room.came);
    came.clear();
    let mut read = Ok(());
    for (place, memory) in room.places().enumerate() {
        match socket.try_recv_from(memory) {
            Ok((length, from)) => {
                let ecn = Ecn::default();
                came.push(Came { place, length, each: length, from, here: None, to: None, ecn });
            }
            Err(_) if !came.is_empty() => break,
            Err(error) => {
                read = Err(error);
                break;
            }
        }
    }
    room.came = came;
    read
}

/// Packets are sent one by one.
pub(super) fn cannot_take_many(_error: &io::Error) -> bool {
    true
}

pub(super) async fn send(
    socket: &UdpSocket,
    data: &[u8],
    length: Option<usize>,
    (to, _from, _ecn): (SocketAddr, Option<Here>, Ecn),
) -> io::Result<()> {
    if length.is_some() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    match socket.peer_addr() {
        Ok(_) => socket.send(data).await.map(drop),
        Err(_) => socket.send_to(data, to).await.map(drop),
    }
}
