//! The baseline of a stream: packets on one link or on all of them at once, without repair and
//! retransmission.
//!
//! Each packet is numbered and handed out once, with the gaps at which it was sent. The deadline is
//! that of `fairpath stream`: later packets are of no use to either.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of a packet and when it left, in nanoseconds.
const HEAD: usize = 16;

/// How long a socket waits before it looks whether all is over.
const LOOK: Duration = Duration::from_millis(1);

/// Both ends, until it is dropped.
pub(crate) struct Plain {
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Plain {
    /// Takes packets at `from` and sends them to all of these relays; what comes at `server` goes to `to`.
    pub(crate) fn start(
        from: UdpSocket,
        relays: Vec<SocketAddr>,
        server: UdpSocket,
        to: SocketAddr,
        deadline: Duration,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        for socket in [&from, &server] {
            socket.set_read_timeout(Some(LOOK)).unwrap();
        }
        let begun = Instant::now();
        let over = [is_over.clone(), is_over.clone()];
        let [over_there, over_here] = over;
        let send = std::thread::spawn(move || send(&from, &relays, begun, &over_there));
        let hand_out = std::thread::spawn(move || hand_out(&server, to, begun, deadline, &over_here));
        Self { is_over, tasks: vec![send, hand_out] }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.tasks.drain(..).for_each(|task| task.join().unwrap());
    }
}

fn send(from: &UdpSocket, relays: &[SocketAddr], begun: Instant, is_over: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut number, mut packet) = (0_u64, [0; 2_000]);
    while !is_over.load(Ordering::Relaxed) {
        let Ok((length, _)) = from.recv_from(&mut packet[HEAD..]) else { continue };
        packet[..8].copy_from_slice(&number.to_be_bytes());
        packet[8..HEAD].copy_from_slice(&(begun.elapsed().as_nanos() as u64).to_be_bytes());
        number += 1;
        for relay in relays {
            // A full buffer of the system is a loss like any other.
            let _ = socket.send_to(&packet[..HEAD + length], relay);
        }
    }
}

fn hand_out(server: &UdpSocket, to: SocketAddr, begun: Instant, deadline: Duration, is_over: &AtomicBool) {
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    // By when they are due and by their numbers, which are in the same order.
    let mut waiting: BTreeMap<u64, (Duration, Vec<u8>)> = BTreeMap::new();
    let (mut next, mut packet) = (0, [0; 2_000]);
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, _)) = server.recv_from(&mut packet) {
            let word = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().unwrap());
            let (number, due) = (word(0), Duration::from_nanos(word(8)) + deadline);
            if number >= next && begun.elapsed() <= due {
                waiting.insert(number, (due, packet[HEAD..length].to_vec()));
            }
        }
        while let Some(entry) = waiting.first_entry()
            && entry.get().0 <= begun.elapsed()
        {
            next = entry.key() + 1;
            let _ = player.send_to(&entry.remove().1, to);
        }
    }
}
