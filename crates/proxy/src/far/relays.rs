//! Further ports of a far end: what comes there goes on to its first one, and answers go back.
//!
//! To a device each port is an address of its own, and so a path of its own: where a network blocks or slows one down, the
//! others carry the connection. A connection at the first port takes no detour.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The peers of one port at once.
const PEERS_MAX: usize = 1_024;

/// A peer that was heard of within this time is not given up for another.
const ACTIVE: Duration = Duration::from_secs(5);

/// How long a peer may be still before it is forgotten.
const STILL: Duration = Duration::from_secs(120);

/// How long a datagram to this machine itself may take.
const LOOPED: Duration = Duration::from_secs(1);

/// The largest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// The peers that stand behind addresses of this machine, as the first port sees them.
#[derive(Debug, Default)]
pub(crate) struct Behind(Mutex<BTreeMap<SocketAddr, SocketAddr>>);

impl Behind {
    /// The peer as it reaches this machine.
    pub(crate) fn peer(&self, seen: SocketAddr) -> SocketAddr {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&seen).copied().unwrap_or(seen)
    }

    fn set(&self, inside: SocketAddr, peer: Option<SocketAddr>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match peer {
            Some(peer) => all.insert(inside, peer),
            None => all.remove(&inside),
        };
    }
}

/// All further ports.
#[derive(Debug)]
pub(super) struct Relays {
    listens: Vec<SocketAddr>,
    /// The addresses where they are open.
    open: Arc<Mutex<BTreeSet<SocketAddr>>>,
    behind: Arc<Behind>,
    tasks: JoinSet<()>,
}

impl Relays {
    /// Opens them, for a far end with these addresses.
    ///
    /// # Errors
    ///
    /// An address where none of the wanted ports could be had, with the system's error.
    pub(super) fn open(listens: Vec<SocketAddr>, own: &[SocketAddr]) -> Result<Self, (SocketAddr, io::Error)> {
        let (open, behind) = (Arc::default(), Arc::default());
        let mut relays = Self { listens, open, behind, tasks: JoinSet::new() };
        let failed = relays.look(own);
        let is_open = |relays: &Self, listen: SocketAddr| relays.addresses().iter().any(|at| is_of(listen, *at));
        match failed.into_iter().find(|(listen, _)| !is_open(&relays, *listen)) {
            Some(failure) => Err(failure),
            None => Ok(relays),
        }
    }

    /// Opens them at addresses that are new; those where that failed.
    pub(super) fn look(&mut self, own: &[SocketAddr]) -> Vec<(SocketAddr, io::Error)> {
        while self.tasks.try_join_next().is_some() {}
        let mut failed = Vec::new();
        for listen in self.listens.clone() {
            for first in own.iter().filter(|first| is_of(listen, SocketAddr::new(first.ip(), listen.port()))) {
                let at = SocketAddr::new(first.ip(), listen.port());
                if at == *first || self.addresses().contains(&at) {
                    continue;
                }
                match bind(at) {
                    Ok(socket) => self.begin(socket, at, *first),
                    Err(error) => failed.push((listen, error)),
                }
            }
        }
        failed
    }

    fn begin(&mut self, socket: UdpSocket, at: SocketAddr, first: SocketAddr) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(at);
        let (open, behind) = (self.open.clone(), self.behind.clone());
        self.tasks.spawn(async move {
            // It ends where the socket is broken, as where its address is gone: then it may be opened anew.
            relay(Arc::new(socket), first, &behind).await;
            open.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
        });
    }

    /// The peers behind them.
    pub(super) fn behind(&self) -> Arc<Behind> {
        self.behind.clone()
    }

    /// Whether all that comes to them can reach the first one: what a machine sends to itself goes by its loopback, whatever
    /// the addresses.
    pub(super) async fn are_joined(&self) -> bool {
        let Some(at) = self.addresses().first().map(SocketAddr::ip) else { return true };
        let trial = async {
            let [one, two] = [bind(SocketAddr::new(at, 0))?, bind(SocketAddr::new(at, 0))?];
            one.send_to(&[0], two.local_addr()?).await?;
            two.recv_from(&mut [0]).await
        };
        tokio::time::timeout(LOOPED, trial).await.is_ok_and(|trial| trial.is_ok())
    }

    /// The addresses where they are open.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Whether an address is among those that are meant by one to listen at.
fn is_of(listen: SocketAddr, at: SocketAddr) -> bool {
    listen.port() == at.port()
        && match listen.ip() {
            ip if ip.is_unspecified() => ip.is_ipv4() == at.is_ipv4(),
            ip => ip == at.ip(),
        }
}

fn bind(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// A peer of a port.
struct Peer {
    /// Its socket towards the first port, which tells its answers from those of others.
    inside: Arc<UdpSocket>,
    heard: Instant,
    _listed: Listed,
    /// Carries the answers, as long as it is here.
    _answers: JoinSet<()>,
}

/// The entry of a peer, which goes with it.
struct Listed(Arc<Behind>, SocketAddr);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.set(self.1, None);
    }
}

/// Passes on what comes to a port, until its socket is broken.
async fn relay(outside: Arc<UdpSocket>, first: SocketAddr, behind: &Arc<Behind>) {
    let mut peers: BTreeMap<SocketAddr, Peer> = BTreeMap::new();
    let mut datagram = vec![0; DATAGRAM_MAX];
    let mut looked = Instant::now();
    loop {
        let (length, from) = match outside.recv_from(&mut datagram).await {
            Ok(came) => came,
            // That of a datagram which was sent before.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(_) => return,
        };
        let now = Instant::now();
        if now.saturating_duration_since(looked) > ACTIVE {
            looked = now;
            peers.retain(|_, peer| now.saturating_duration_since(peer.heard) < STILL);
        }
        let inside = match peers.get_mut(&from) {
            Some(peer) => {
                peer.heard = now;
                peer.inside.clone()
            }
            None => {
                let Some(peer) = take_in(&mut peers, &outside, from, (first, now, behind)).await else { continue };
                peer
            }
        };
        // Datagrams that the first port does not take are lost, as on any way.
        let _ = inside.send(&datagram[..length]).await;
    }
}

/// Takes a new peer in, in the place of one that is still where there are too many.
async fn take_in(
    peers: &mut BTreeMap<SocketAddr, Peer>,
    outside: &Arc<UdpSocket>,
    from: SocketAddr,
    (first, now, behind): (SocketAddr, Instant, &Arc<Behind>),
) -> Option<Arc<UdpSocket>> {
    if peers.len() >= PEERS_MAX {
        let (stillest, peer) = peers.iter().min_by_key(|(_, peer)| peer.heard)?;
        if now.saturating_duration_since(peer.heard) < ACTIVE {
            return None;
        }
        let stillest = *stillest;
        peers.remove(&stillest);
    }
    let inside = Arc::new(bind(SocketAddr::new(first.ip(), 0)).ok()?);
    inside.connect(first).await.ok()?;
    let mut answers = JoinSet::new();
    answers.spawn(answer(inside.clone(), outside.clone(), from));
    let here = inside.local_addr().ok()?;
    behind.set(here, Some(from));
    let listed = Listed(behind.clone(), here);
    peers.insert(from, Peer { inside: inside.clone(), heard: now, _listed: listed, _answers: answers });
    Some(inside)
}

/// Passes on what the first port says to a peer.
async fn answer(inside: Arc<UdpSocket>, outside: Arc<UdpSocket>, to: SocketAddr) {
    let mut datagram = vec![0; DATAGRAM_MAX];
    loop {
        match inside.recv(&mut datagram).await {
            Ok(length) => drop(outside.send_to(&datagram[..length], to).await),
            // The far end is ending, or its address is gone.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_go_back_to_the_peer_that_asked_from_the_port_that_it_asked() {
        let first = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = [first.local_addr().unwrap()];
        let free = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let relays = Relays::open(vec![SocketAddr::from(([0, 0, 0, 0], free))], &own).unwrap();
        let at = SocketAddr::from(([127, 0, 0, 1], free));
        assert_eq!(relays.addresses(), [at]);
        let peers = [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.2:0").await.unwrap()];
        let mut buffer = [0; 16];
        for (peer, word) in peers.iter().zip([b"one", b"two"]) {
            peer.send_to(word, at).await.unwrap();
            let came = tokio::time::timeout(ACTIVE, first.recv_from(&mut buffer)).await;
            let (length, from) = came.expect("it is passed on").unwrap();
            assert_eq!(&buffer[..length], word);
            assert_eq!(relays.behind.peer(from), peer.local_addr().unwrap());
            first.send_to(&buffer[..length], from).await.unwrap();
        }
        for (peer, word) in peers.iter().zip([b"one", b"two"]) {
            let came = tokio::time::timeout(ACTIVE, peer.recv_from(&mut buffer)).await;
            let (length, from) = came.expect("an answer comes").unwrap();
            assert_eq!((&buffer[..length], from), (&word[..], at));
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named_and_the_first_one_is_no_further_one() {
        let taken = UdpSocket::bind("127.0.0.1:0").await.unwrap().into_std().unwrap();
        let port = taken.local_addr().unwrap().port();
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let own = |port| [SocketAddr::from(([127, 0, 0, 1], port))];
        let (address, error) = Relays::open(vec![listen], &own(port ^ 1)).unwrap_err();
        assert_eq!((address, error.kind()), (listen, io::ErrorKind::AddrInUse));
        assert_eq!(Relays::open(vec![listen], &own(port)).unwrap().addresses(), []);
    }
}
