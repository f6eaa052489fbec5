//! Asks whether anything that speaks QUIC answers at an address, and opens nothing.
//!
//! A path that is opened in vain uses up for good one of the path ids that the peer allows. A peer that
//! never saw the path does not answer its end, and allows no other in its place. So if there is a
//! choice between pairs, they are asked first. A packet of an unknown version makes a QUIC server list
//! the versions it speaks [RFC8999 §6], and keep no state. It leaves through a connected socket of its
//! own, because only such a socket reports that a host or a router refused.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairpath_quic_core::pairs::{Pair, WhyNot};
use tokio::task::JoinSet;

use crate::interfaces::Interface;
use crate::machine::Machine;
use crate::socket::Asking;

/// One of the versions that are reserved for this [RFC9000 §15].
const VERSION: u32 = 0x1a2a_3a4a;

/// Servers need not answer to a smaller datagram of a version that they do not know [RFC9000 §6.1]
/// [RFC9000 §14.1].
const SIZE: usize = 1200;

/// The connection id of each side, in bytes: as many as servers have to accept [RFC9000 §7.2].
const ID: usize = 8;

/// A question that is small enough for every network. Our own end answers it all the same: where it does so and did not
/// answer to a larger one, larger ones do not pass. It leaves beside the last of the others.
const SIZE_SMALL: usize = 60;

/// How long to wait for an answer after each packet. Together as long as a way over a satellite and a
/// full queue may take, and with packets enough for one that loses half.
const WAITS: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(750), Duration::from_millis(1000)];

/// Questions on their way.
#[derive(Debug)]
pub(crate) struct Questions {
    machine: Machine,
    tasks: JoinSet<(Key, Result<(), WhyNot>)>,
    asked: BTreeSet<Key>,
}

type Key = (IpAddr, SocketAddr);

impl Questions {
    /// None yet; they are asked from `machine`.
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, tasks: JoinSet::new(), asked: BTreeSet::new() }
    }

    /// Asks what is not being asked already. Must be called within a tokio runtime.
    pub(crate) fn ask(&mut self, pairs: impl IntoIterator<Item = Pair>) {
        for Pair { local, remote } in pairs {
            let key = (local.local(), remote);
            if self.asked.insert(key) {
                let machine = self.machine.clone();
                self.tasks.spawn(async move { (key, ask(&machine, &local, remote).await) });
            }
        }
    }

    /// The next answer; `None` when nothing is being asked.
    pub(crate) async fn answer(&mut self) -> Option<(Key, Result<(), WhyNot>)> {
        let answer = self.tasks.join_next().await?.ok()?;
        self.asked.remove(&answer.0);
        Some(answer)
    }
}

/// Whether anything that speaks QUIC answers at `remote`.
async fn ask(machine: &Machine, from: &Interface, remote: SocketAddr) -> Result<(), WhyNot> {
    let refused = |error: std::io::Error| match noq_udp::is_msg_size_err(&error) {
        true => WhyNot::TooSmall,
        false => WhyNot::of(&error),
    };
    let socket = Asking::open(machine, from, remote).map_err(refused)?;
    // Guessable ids would only let somebody say that an address answers.
    let mut ids = [[0; 2 * ID]; 2];
    ids.iter_mut().for_each(|id| machine.fill(id));
    let [large, small] = ids.map(question);
    let our_ids = ids.each_ref().map(|id| &id[ID..]);
    let mut passes_small = false;
    socket.keep_whole();
    for (at, wait) in WAITS.into_iter().enumerate() {
        socket.send(&large).await.map_err(refused)?;
        if at + 1 == WAITS.len() {
            socket.send(&small[..SIZE_SMALL]).await.map_err(refused)?;
        }
        let until = tokio::time::Instant::now() + wait;
        while let Ok(answer) = tokio::time::timeout_at(until, answered(&socket, our_ids)).await {
            match answer.map_err(refused)? {
                0 => return Ok(()),
                _ => passes_small = true,
            }
        }
    }
    Err(if passes_small { WhyNot::TooSmall } else { WhyNot::Silent })
}

/// The index of the id that the next answer is for.
async fn answered(socket: &Asking, our_ids: [&[u8]; 2]) -> std::io::Result<usize> {
    let mut datagram = [0; SIZE];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(at) = our_ids.iter().position(|id| is_answer(&datagram[..length], id)) {
            return Ok(at);
        }
    }
}

/// A long header of a version that nobody speaks [RFC8999 §5.1]: the peer's connection id, then ours.
fn question(ids: [u8; 2 * ID]) -> Vec<u8> {
    // The highest bit says that the header is long, the next is set in all packets [RFC9000 §17.2].
    let mut datagram = vec![0xc0];
    datagram.extend(VERSION.to_be_bytes());
    for id in ids.chunks(ID) {
        datagram.push(ID as u8);
        datagram.extend(id);
    }
    datagram.resize(SIZE, 0);
    datagram
}

/// Whether it names the versions that a server speaks [RFC8999 §6], in answer to our connection id.
fn is_answer(datagram: &[u8], our_id: &[u8]) -> bool {
    let Some((head, rest)) = datagram.split_at_checked(6) else { return false };
    let is_long = head[0] & 0x80 != 0;
    is_long && head[1..5] == [0; 4] && usize::from(head[5]) == our_id.len() && rest.starts_with(our_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Interface {
        Interface { name: "lo".into(), address: "127.0.0.1".parse().unwrap(), twin: 0, prefix_bits: 8, unusable: None }
    }

    #[test]
    fn only_the_versions_in_answer_to_us_are_an_answer() {
        let asked = question(*b"theirs..ours....");
        assert_eq!(asked.len(), SIZE);
        assert!(!is_answer(&asked, b"ours...."), "a question is none");
        let answer = b"\xff\0\0\0\0\x08ours....\x08theirs..\0\0\0\x01";
        assert!(is_answer(answer, b"ours...."));
        assert!(!is_answer(answer, b"another."));
        for length in 0..14 {
            assert!(!is_answer(&answer[..length], b"ours...."), "cut after {length} bytes");
        }
    }

    #[tokio::test]
    async fn a_listener_answers_and_a_closed_port_refuses_at_once() {
        let listener = crate::Listener::bind(crate::ListenConfig {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            ..crate::ListenConfig::new().unwrap()
        });
        let listener = listener.unwrap();
        let answers = listener.addresses()[0];
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mute = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let silent = mute.local_addr().unwrap();
        let mut questions = Questions::new(Machine::default());
        let pair = |remote| Pair { local: loopback(), remote };
        questions.ask([answers, closed, silent].map(pair));
        questions.ask([pair(silent)]);
        let mut said = Vec::new();
        while let Some(((_, remote), answer)) = questions.answer().await {
            said.push((remote, answer));
        }
        assert_eq!(said.len(), 3, "nothing is asked twice: {said:?}");
        assert!(said.contains(&(answers, Ok(()))), "{said:?}");
        assert!(said.contains(&(closed, Err(WhyNot::Refused))), "{said:?}");
        assert_eq!(said.last(), Some(&(silent, Err(WhyNot::Silent))), "the others did not wait: {said:?}");
    }
}
