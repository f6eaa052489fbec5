//! A server sends to an address that has not shown that it receives there at most three times what came from it
//! [RFC9000 §9.3].
//!
//! The stack moves a path to the source address of the newest packet, and validates that address. A
//! challenge is a datagram of 1,200 bytes, which leaves as soon as a single byte may: one copied
//! packet of 33 bytes drew two of them. So datagrams beyond the limit are kept from leaving here.
//! The first of them waits until enough has come.
//!
//! There is one exception. The network translates the addresses of most clients, and gives them
//! another port now and then. A client that receives more than it sends would not be found again
//! for seconds, or not before the stack has given up. So other ports of a host at which the peer
//! receives are challenged without this limit, in one datagram a second. A forger of that host's
//! address draws no more than this, and to nobody but the peer.

use std::net::{IpAddr, SocketAddr};

use noq_proto::Transmit;
use web_time::{Duration, Instant};

/// Addresses of the peer that have shown that it receives there, at most; older ones are forgotten.
const PROVED_MAX: usize = 32;

/// The same of those that have not.
const UNPROVED_MAX: usize = 8;

/// Bytes that may be sent for each that came.
const FACTOR: u64 = 3;

/// A datagram in which an address is asked whether the peer is there, in bytes [RFC9000 §8.2.1].
const QUESTION: u64 = 1_200;

/// How often other ports of a proved host are asked whatever came from them.
const QUESTIONS_APART: Duration = Duration::from_secs(1);

/// An address at which the peer receives.
#[derive(Debug)]
struct Proved {
    remote: SocketAddr,
    /// When another port of the same host was last asked on the strength of this one.
    asked_at: Option<Instant>,
}

/// Bytes that came from an address, and went there.
#[derive(Debug)]
struct Unproved {
    remote: SocketAddr,
    received: u64,
    sent: u64,
    /// Bytes that may be sent beyond those that came allow.
    allowance: u64,
    /// The first datagram that was too much, and what is in it.
    waiting: Option<(Transmit, Vec<u8>)>,
}

impl Unproved {
    fn may_send(&self, bytes: u64) -> bool {
        self.sent + bytes <= self.allowance + FACTOR * self.received
    }
}

/// The addresses that a client sends from.
#[derive(Debug, Default)]
pub(super) struct Amplification {
    /// The one heard of last comes last.
    proved: Vec<Proved>,
    unproved: Vec<Unproved>,
}

impl Amplification {
    /// The peer receives there.
    pub(super) fn prove(&mut self, remote: SocketAddr) {
        let known = self.proved.iter().position(|known| known.remote == remote).map(|at| self.proved.remove(at));
        if self.proved.len() == PROVED_MAX {
            self.proved.remove(0);
        }
        self.proved.push(known.unwrap_or(Proved { remote, asked_at: None }));
        self.unproved.retain(|one| one.remote != remote || one.waiting.is_some());
        if let Some(one) = self.unproved.iter_mut().find(|one| one.remote == remote) {
            // The datagram that waits is not lost.
            one.allowance = u64::MAX / 2;
        }
    }

    /// A datagram of the peer came from there.
    pub(super) fn on_datagram(&mut self, remote: SocketAddr, bytes: usize) {
        match self.unproved.iter_mut().find(|one| one.remote == remote) {
            Some(one) => one.received += bytes as u64,
            None => {
                if self.unproved.len() == UNPROVED_MAX {
                    self.unproved.remove(0);
                }
                self.unproved.push(Unproved { remote, received: bytes as u64, sent: 0, allowance: 0, waiting: None });
            }
        }
    }

    /// The peer has answered a question from there. One that was never asked there proves nothing.
    pub(super) fn on_answer(&mut self, remote: SocketAddr) {
        if self.unproved.iter().any(|one| one.remote == remote && one.sent > 0) {
            self.prove(remote);
        }
    }

    /// Whether a datagram may leave now. Where not, it waits, or is lost as if the network had lost it.
    pub(super) fn admits(&mut self, transmit: &Transmit, contents: &[u8], now: Instant) -> bool {
        let Self { proved, unproved } = self;
        let remote = transmit.destination;
        if is_proved(proved, remote) {
            return true;
        }
        // From an address that is forgotten nothing came lately.
        let Some(one) = unproved.iter_mut().find(|one| one.remote == remote) else { return false };
        if admit(one, proved, transmit.size as u64, now) {
            return true;
        }
        if one.waiting.is_none() {
            let Transmit { destination, ecn, size, segment_size, src_ip } = *transmit;
            let waiting = Transmit { destination, ecn, size, segment_size, src_ip };
            one.waiting = Some((waiting, contents[..size].to_vec()));
        }
        false
    }

    /// A datagram that waited, and may leave by now; its contents take the place of those of `buffer`.
    pub(super) fn take_waiting(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        let Self { proved, unproved } = self;
        let one = unproved.iter_mut().find_map(|one| {
            let bytes = one.waiting.as_ref()?.0.size as u64;
            admit(one, proved, bytes, now).then_some(one)
        })?;
        let (transmit, contents) = one.waiting.take()?;
        *buffer = contents;
        unproved.retain(|one| one.waiting.is_some() || !is_proved(proved, one.remote));
        Some(transmit)
    }

    /// Whether the peer has shown that it receives there.
    pub(super) fn is_proved(&self, remote: SocketAddr) -> bool {
        is_proved(&self.proved, remote)
    }
}

fn is_proved(proved: &[Proved], remote: SocketAddr) -> bool {
    // The last one first: mostly there is no other.
    proved.iter().rev().any(|known| known.remote == remote)
}

/// Takes note of a datagram that leaves, if it may.
fn admit(one: &mut Unproved, proved: &mut [Proved], bytes: u64, now: Instant) -> bool {
    if !one.may_send(bytes) {
        if bytes > QUESTION || !may_ask(one.remote.ip(), proved, now) {
            return false;
        }
        // The part of it that bytes pay for is not given once more.
        one.allowance = (one.sent + bytes).saturating_sub(FACTOR * one.received);
    }
    one.sent += bytes;
    true
}

/// Whether another port of a host may be asked whatever came from there. It is, where it may.
fn may_ask(host: IpAddr, proved: &mut [Proved], now: Instant) -> bool {
    let is_recent = |at: Instant| now.saturating_duration_since(at) < QUESTIONS_APART;
    let mut of_host: Vec<_> = proved.iter_mut().filter(|known| known.remote.ip() == host).collect();
    let may_ask = !of_host.iter().any(|known| known.asked_at.is_some_and(is_recent));
    let Some(known) = of_host.last_mut().filter(|_| may_ask) else { return false };
    known.asked_at = Some(now);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 4433))
    }

    #[expect(clippy::disallowed_methods, reason = "tests need an instant to begin at")]
    fn start() -> Instant {
        Instant::now()
    }

    fn to(remote: SocketAddr, size: usize) -> Transmit {
        Transmit { destination: remote, ecn: None, size, segment_size: None, src_ip: None }
    }

    #[test]
    fn an_address_that_proved_nothing_gets_three_times_what_it_sent() {
        let (mut amplification, now) = (Amplification::default(), start());
        let (own, other) = (address(1), address(2));
        amplification.prove(own);
        assert!(amplification.admits(&to(own, 1_200), &[0; 1_200], now));
        assert!(!amplification.admits(&to(other, 1), &[0], now), "nothing came from there");
        amplification.on_datagram(other, 33);
        assert!(amplification.admits(&to(other, 60), &[0; 60], now));
        // 99 bytes may be sent in all.
        assert!(!amplification.admits(&to(other, 40), &[7; 40], now));
        assert!(!amplification.admits(&to(other, 1_200), &[0; 1_200], now), "it is lost");
        assert!(amplification.take_waiting(&mut Vec::new(), now).is_none());
        amplification.on_datagram(other, 1);
        let mut buffer = Vec::new();
        assert_eq!(amplification.take_waiting(&mut buffer, now).map(|one| one.size), Some(40));
        assert_eq!(buffer, [7; 40]);
        assert!(amplification.take_waiting(&mut buffer, now).is_none());
    }

    #[test]
    fn an_answer_proves_an_address_only_where_a_question_was_sent() {
        let (mut amplification, now) = (Amplification::default(), start());
        let other = address(2);
        amplification.on_datagram(other, 1_200);
        amplification.on_answer(other);
        assert!(!amplification.admits(&to(other, 3_601), &[0; 3_601], now));
        assert!(amplification.admits(&to(other, 1_200), &[0; 1_200], now));
        amplification.on_answer(other);
        assert!(amplification.admits(&to(other, 10_000), &[0; 10_000], now));
        let mut buffer = Vec::new();
        assert_eq!(amplification.take_waiting(&mut buffer, now).map(|one| one.size), Some(3_601), "it had waited");
        assert!(amplification.unproved.is_empty());
    }

    #[test]
    fn other_ports_of_a_proved_host_are_asked_once_a_second_whatever_came() {
        let (mut amplification, own, start) = (Amplification::default(), address(1), start());
        let (at, port) = (|ms| start + Duration::from_millis(ms), |port| SocketAddr::new(own.ip(), port));
        amplification.prove(own);
        let asks = |amplification: &mut Amplification, remote, ms| {
            amplification.on_datagram(remote, 33);
            amplification.admits(&to(remote, 1_200), &[0; 1_200], at(ms))
        };
        assert!(!asks(&mut amplification, address(2), 0), "another host");
        assert!(asks(&mut amplification, port(1), 0));
        assert!(!asks(&mut amplification, port(1), 999) && !asks(&mut amplification, port(2), 999));
        amplification.on_answer(port(1));
        assert!(!asks(&mut amplification, port(3), 999), "however many ports are proved");
        assert!(asks(&mut amplification, port(4), 1_000));
        assert!(!amplification.admits(&to(port(4), 1_300), &[0; 1_300], at(5_000)), "that is no question");
        let mut waited = || amplification.take_waiting(&mut Vec::new(), at(5_000)).map(|one| one.destination);
        assert_eq!((waited(), waited(), waited()), (Some(port(1)), Some(port(2)), None), "proved, and asked now");
    }

    #[test]
    fn a_question_that_was_paid_for_in_part_leaves_no_more_to_be_sent() {
        let (mut amplification, own, now) = (Amplification::default(), address(1), start());
        let port = SocketAddr::new(own.ip(), 1);
        let question = |amplification: &mut Amplification| amplification.admits(&to(port, 1_200), &[0; 1_200], now);
        amplification.prove(own);
        amplification.on_datagram(port, 152);
        assert!(question(&mut amplification));
        amplification.on_datagram(port, 257);
        // The first one took 456 bytes that were paid for and 744 that are given, which makes 1,971 for all.
        assert!(!question(&mut amplification));
        amplification.on_datagram(port, 143);
        assert!(amplification.take_waiting(&mut Vec::new(), now).is_some(), "2,400 are paid for");
    }

    #[test]
    fn addresses_without_number_are_not_remembered() {
        let (mut amplification, now) = (Amplification::default(), start());
        for number in 0..=255 {
            amplification.on_datagram(address(number), 1_200);
            assert!(amplification.admits(&to(address(number), 3_600), &[0; 3_600], now));
            assert!(!amplification.admits(&to(address(number), 1_200), &[0; 1_200], now));
            amplification.prove(address(number));
            amplification.on_datagram(SocketAddr::from(([198, 51, 100, number], 1)), 1_200);
        }
        assert!(amplification.proved.len() == PROVED_MAX && amplification.unproved.len() <= UNPROVED_MAX);
    }
}
