//! Hosts that send packets to a port of this machine: each has an association of its own.
//!
//! A host that is not answered has no claim to a place: where places are short, the oldest of these goes first, and one
//! client has a part of them only.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairpath::RecvStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::packets::{Association, Budget, Held, Packet};
use crate::relay::{Meter, Side, pass};
use crate::still::Stillness;
use crate::target::Target;
use crate::udp::{Burst, Came, Ecn, Here, Room, Udp};

/// The hosts of one port at once.
const HOSTS_MAX: usize = 1024;

/// Those of one client, a machine, that are not answered: enough for all questions of a page of the Web at once.
const UNANSWERED_MAX: usize = 64;

/// The memory for packets that wait for the connection: of one port, and of one host that sends to it, in bytes.
const MEMORY: usize = 4 << 20;
const HOST_MEMORY: usize = 512 << 10;

/// How long a host may be still before it is forgotten (RFC 4787, requirement 5).
pub(crate) const STILL: Duration = Duration::from_secs(5 * 60);

/// The same for a host outside to which nothing was sent, as connection tracking of Linux has it: anybody may send one packet.
const UNANSWERED: Duration = Duration::from_secs(30);

/// The port of resolvers, whose programs take another port for each question.
const NAMES: u16 = 53;

/// How long a question for a name may wait (RFC 4787, requirement 5a, allows less for ports with an own rule).
const NAMES_STILL: Duration = Duration::from_secs(10);

/// Packets that wait for the connection.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) packets: Burst,
    /// Where they were going, where rules of the system led them here.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) ecn: Ecn,
    _held: Held,
}

/// A host that sends to a port.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    /// The address of this machine that it sends to.
    here: Option<Here>,
    /// The socket of the port.
    socket: Arc<Udp>,
    pub(crate) packets: mpsc::Receiver<Waiting>,
    is_answered: Arc<AtomicBool>,
}

/// An address, and that of this machine which it sends to.
type Name = (SocketAddr, Option<Here>);

/// A host, as its port knows it.
#[derive(Debug)]
struct Known {
    packets: mpsc::Sender<Waiting>,
    memory: Budget,
    is_answered: Arc<AtomicBool>,
    /// How many came before.
    number: u64,
    carried: AbortHandle,
}

impl Known {
    fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }
}

/// It gives its place back at once.
impl Drop for Known {
    fn drop(&mut self) {
        self.carried.abort();
    }
}

/// The hosts of a port.
#[derive(Debug)]
struct Hosts {
    memory: Budget,
    known: BTreeMap<Name, Known>,
    count: u64,
}

impl Hosts {
    /// Takes a host in, whose packets `begin` has carried; in the place of one that is not answered, where there are too
    /// many. Nothing comes of it where all are answered.
    fn take_in(&mut self, name: Name, begin: impl FnOnce(mpsc::Receiver<Waiting>, Arc<AtomicBool>) -> AbortHandle) {
        self.known.retain(|_, host| !host.packets.is_closed());
        let client = name.0.ip();
        let of_client = |(from, _): &Name| from.ip() == client;
        let unanswered = self.known.iter().filter(|(name, host)| of_client(name) && !host.is_answered()).count();
        let left = match () {
            () if unanswered >= UNANSWERED_MAX => self.oldest_unanswered(of_client),
            () if self.known.len() >= HOSTS_MAX => match self.oldest_unanswered(|_| true) {
                None => return,
                oldest => oldest,
            },
            () => None,
        };
        if let Some(left) = left {
            self.known.remove(&left);
        }
        let ((to, packets), is_answered) = (mpsc::channel(1024), Arc::<AtomicBool>::default());
        let carried = begin(packets, is_answered.clone());
        self.count += 1;
        let memory = self.memory.part(HOST_MEMORY);
        self.known.insert(name, Known { packets: to, memory, is_answered, number: self.count, carried });
    }

    fn oldest_unanswered(&self, is_meant: impl Fn(&Name) -> bool) -> Option<Name> {
        let unanswered = self.known.iter().filter(|(name, host)| is_meant(name) && !host.is_answered());
        unanswered.min_by_key(|(_, host)| host.number).map(|(name, _)| *name)
    }
}

/// Has `carry` carry the packets of each host that sends to this port. It ends when this is dropped.
pub(crate) async fn serve<F>(socket: Udp, carry: impl Fn(Host) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let socket = Arc::new(socket);
    let mut hosts = Hosts { memory: Budget::new(MEMORY), known: BTreeMap::new(), count: 0 };
    let mut carried = JoinSet::new();
    let mut room = Room::new();
    loop {
        while carried.try_join_next().is_some() {}
        // An error is that of a packet that was sent before.
        if socket.recv(&mut room).await.is_err() {
            continue;
        }
        for (Came { from, here, to, ecn, .. }, packets) in room.bursts() {
            // A host that was led here sends to many, and has one association for all of them.
            let here = here.filter(|_| to.is_none());
            let name = (from, here);
            if hosts.known.get(&name).is_none_or(|host| host.packets.is_closed()) {
                hosts.take_in(name, |packets, is_answered| {
                    carried.spawn(carry(Host { address: from, here, socket: socket.clone(), packets, is_answered }))
                });
            }
            // One that is late loses packets.
            if let Some(host) = hosts.known.get(&name)
                && let Some(_held) = host.memory.hold(packets.bytes())
            {
                let _ = host.packets.try_send(Waiting { packets, to, ecn, _held });
            }
        }
    }
}

impl Host {
    /// Somebody has answered it.
    pub(crate) fn note_answer(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Carries packets between the host and an association, until the stream of that ends, or none has passed for long.
    /// `side` says whose end the host is.
    pub(crate) async fn carry(
        mut self,
        target: &Target,
        (association, mut recv): (Association, RecvStream),
        side: Side,
        meter: &impl Meter,
    ) {
        let is_name = target.port == NAMES;
        let mut questions = 0_usize;
        let mut stillness = Stillness::new();
        loop {
            let still = still(is_name, side, self.is_answered.load(Ordering::Relaxed));
            tokio::select! {
                packets = self.packets.recv() => match packets {
                    Some(Waiting { packets, ecn, _held, .. }) => {
                        questions += packets.packets().count();
                        pass(meter, side, packets.bytes()).await;
                        association.send(target, packets.packets(), ecn);
                    }
                    None => return,
                },
                packet = association.recv() => match packet {
                    Some(Packet { data, ecn, held: _held, .. }) => {
                        self.note_answer();
                        pass(meter, side.other(), data.bytes()).await;
                        self.socket.send(&data, self.address, self.here, ecn).await;
                        questions = questions.saturating_sub(data.packets().count());
                        // Each question has a host of its own: all places would soon be taken by answered ones.
                        if is_name && questions == 0 && self.packets.is_empty() {
                            return;
                        }
                    }
                    None => return,
                },
                // Nothing more is said there; its end is that of the association.
                more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
                () = stillness.lasts(still) => return,
            }
            stillness.note();
        }
    }
}

/// How long a host may be still.
fn still(is_name: bool, side: Side, is_answered: bool) -> Duration {
    match (is_name, side) {
        (true, _) => NAMES_STILL,
        // Its target may be to answer late, and has to find the address that it knows.
        (false, Side::Target) if !is_answered => UNANSWERED,
        (false, _) => STILL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_one_packet_from_outside_takes_a_place_for_a_short_time() {
        assert_eq!(still(false, Side::Target, false), Duration::from_secs(30));
        assert_eq!(still(false, Side::Target, true), STILL);
        assert_eq!(still(false, Side::Program, false), STILL);
        assert_eq!(still(true, Side::Program, true), NAMES_STILL);
    }
}
