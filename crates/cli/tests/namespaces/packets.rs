//! Programs that send packets of UDP, and those that answer or hear them at the far machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::kernel::inside;
use crate::network::{End, Network, TWINS, run};

/// An address of the far machine. Others have a route to it, which only leaks need.
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(11, 0, 0, 1);
pub(crate) const PUBLIC6: Ipv6Addr = Ipv6Addr::new(0x2600, 0x11, 0, 0, 0, 0, 0, 1);

/// Asks a host in packets of UDP, as programs do that know of nothing, and prints who answers how many bytes.
const ASK: &str = "
import socket, sys
host, port, length, own, device = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(0.5)
    asking.bind(('', own))
    if device:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    question = bytes(index % 251 for index in range(length))
    for attempt in range(20):
        try:
            asking.sendto(question, (host, port))
            answer, by = asking.recvfrom(1 << 16)
        except (TimeoutError, PermissionError):
            continue
        print(by[0], by[1], len(answer) if answer == question else 'other bytes')
        break
";

/// A question to a host.
pub(crate) struct Ask {
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    pub(crate) length: usize,
    /// The port of the program that asks, at all of its machine's addresses; 0: any.
    pub(crate) own: u16,
    /// The interface that the program chooses by itself; empty: none.
    pub(crate) device: &'static str,
}

impl Ask {
    pub(crate) fn new(host: impl Into<IpAddr>, port: u16) -> Self {
        Self { host: host.into(), port, length: 5, own: 0, device: "" }
    }

    /// Has a program in a namespace ask: the host that answers, its port, and how many bytes. Empty where none does.
    pub(crate) fn in_namespace(&self, namespace: &str) -> String {
        let words = [self.host.to_string(), self.port.to_string(), self.length.to_string(), self.own.to_string()];
        let program = ["ip", "netns", "exec", namespace, "python3", "-c", ASK];
        let words: Vec<&str> = words.iter().map(String::as_str).chain([self.device]).collect();
        run(&[&program[..], &words].concat()).unwrap()
    }
}

/// Gives the far machine its address of IPv6, and the near one a way to it.
pub(crate) fn add_public6(network: &Network) {
    network.ip(End::Sender, &format!("addr add fd77:1::1/64 dev {} nodad", TWINS[0].name));
    network.ip(End::Receiver, &format!("addr add fd77:1::2/64 dev {} nodad", TWINS[0].name));
    network.ip(End::Receiver, &format!("addr add {PUBLIC6}/128 dev lo"));
    network.ip(End::Sender, &format!("route add {PUBLIC6}/128 via fd77:1::2"));
}

/// A socket in a namespace that hears what comes to it.
pub(crate) fn ear(namespace: &str, at: &str) -> UdpSocket {
    let address: SocketAddr = at.parse().unwrap();
    let socket = inside(namespace, move || UdpSocket::bind(address)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

pub(crate) fn hears(socket: &UdpSocket) -> bool {
    socket.recv(&mut [0; 64]).is_ok()
}

/// Whether it hears from the far machine itself, from where all leaves that is carried.
pub(crate) fn hears_carried(socket: &UdpSocket) -> bool {
    socket.recv_from(&mut [0; 64]).is_ok_and(|(_, from)| from.ip() == PUBLIC)
}

/// Sends packets back at an address of a namespace. The thread ends with the test program.
pub(crate) fn echo(namespace: &str, at: impl Into<IpAddr>) -> u16 {
    let socket = ear(namespace, &SocketAddr::new(at.into(), 0).to_string());
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut packet = vec![0; 1 << 16];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
            let _ = socket.send_to(&packet[..length], from);
        }
    });
    port
}

/// Answers every question for an address with the public one, at port 53 of it. The thread ends with the test program.
pub(crate) fn resolver(namespace: &str) {
    let socket = ear(namespace, &format!("{PUBLIC}:53"));
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
            // A program may say anything.
            let Some(question) = packet[..length].get(12..).filter(|question| question.len() > 4) else { continue };
            // The name, and the kind behind it.
            let end = question.iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_v4 = question[end - 4..end - 2] == [0, 1];
            let mut answer =
                [&packet[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0], &question[..end]].concat();
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]);
                answer.extend(PUBLIC.octets());
            }
            let _ = socket.send_to(&answer, from);
        }
    });
}
