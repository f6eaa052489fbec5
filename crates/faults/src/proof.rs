//! Whether an end sends data only where its peer has shown that it is, seen from outside.
//!
//! An end may know that its peer receives at an address once something has come of which the peer could not know
//! had it not received what was sent there. Before, there go only handshakes and probes, and from an end that has
//! been connected to no more than three times what came from there [RFC9000 §8]. In its handshake the stack lets one
//! datagram more leave: it sends a whole one where anything is left of what may leave. And other ports of a host that is
//! proved are asked in one datagram a second, whatever came from there: the peer's address translator gives out new
//! ports. Whoever else forges that host's address hits nobody but the peer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairpath_quic_sim::Side;

/// The largest handshake, challenge or sign of life, in bytes of UDP payload [RFC9000 §8.2.1,
/// §14.1].
pub(crate) const PROBE_MAX: usize = 1_200;

/// The bytes that may leave to an unproved address, for each byte that came from it.
const AMPLIFICATION: usize = 3;

/// How far apart questions are that leave beyond that to a host. They are a second apart, and each may wait for its socket
/// for some 20 ms (`quic-sim`'s hosts that are late).
const QUESTIONS_APART: Duration = Duration::from_millis(900);

/// The bytes exchanged with an address, and whether it is proved.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    came: usize,
    left: usize,
    /// Questions that left although too little had come, in bytes, and when the last did by the clock of the end.
    beyond: usize,
    asked_at: Option<Instant>,
    /// When the peer first got something that was sent there.
    reached: Option<Instant>,
    is_proved: bool,
}

/// The proofs that one end has of the addresses it sends to.
#[derive(Debug)]
pub(crate) struct Proofs {
    side: Side,
    known: BTreeMap<SocketAddr, Known>,
}

impl Proofs {
    pub(crate) fn new(side: Side) -> Self {
        Self { side, known: BTreeMap::new() }
    }

    /// A datagram from there came. Where it is the peer's, it left the peer at `left`.
    pub(crate) fn on_arrival(&mut self, from: SocketAddr, length: usize, left: Option<Instant>) {
        let known = self.known.entry(from).or_default();
        known.came += length;
        let Some(left) = left else { return };
        for known in self.known.values_mut() {
            known.is_proved |= known.reached.is_some_and(|reached| reached <= left);
        }
    }

    /// The peer got what was sent there.
    pub(crate) fn on_reached(&mut self, to: SocketAddr, now: Instant) {
        self.known.entry(to).or_default().reached.get_or_insert(now);
    }

    /// A datagram leaves, at `shown` by the clock of the end. What is wrong with that, if anything.
    pub(crate) fn on_departure(&mut self, to: SocketAddr, length: usize, shown: Instant) -> Option<String> {
        let known = self.known.entry(to).or_default();
        known.left += length;
        let Known { came, left, beyond, is_proved, .. } = *known;
        if is_proved {
            return None;
        }
        if length > PROBE_MAX {
            return Some(format!("{length} bytes left to {to}, where the peer has not shown to be"));
        }
        let allowed = AMPLIFICATION * came + if came < PROBE_MAX { 0 } else { PROBE_MAX };
        if self.side == Side::Client || left <= allowed + beyond {
            return None;
        }
        if self.may_ask(to, shown) {
            let known = self.known.entry(to).or_default();
            (known.beyond, known.asked_at) = (left - allowed, Some(shown));
            return None;
        }
        Some(format!("{left} bytes left to {to}, which is not proved, for {came} that came from there"))
    }

    /// Whether a question may leave whatever came, to a port of a host that has proved another, now and then.
    fn may_ask(&self, to: SocketAddr, shown: Instant) -> bool {
        let mut of_host = self.known.iter().filter(|(address, _)| address.ip() == to.ip()).map(|(_, known)| known);
        let last = of_host.clone().filter_map(|known| known.asked_at).max();
        let is_time = last.is_none_or(|at| shown.saturating_duration_since(at) >= QUESTIONS_APART);
        is_time && of_host.any(|known| known.is_proved)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests need an instant to begin at")]
mod tests {
    use super::*;

    fn address() -> SocketAddr {
        "192.0.2.66:6666".parse().expect("an address")
    }

    #[test]
    fn data_to_an_address_is_a_fault_until_what_was_sent_there_is_answered() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut proofs = Proofs::new(Side::Client);
        assert_eq!(proofs.on_departure(address(), PROBE_MAX, start), None);
        assert!(proofs.on_departure(address(), PROBE_MAX + 1, start).is_some());
        proofs.on_arrival(address(), 100, Some(at(5)));
        assert!(
            proofs.on_departure(address(), PROBE_MAX + 1, start).is_some(),
            "it came of nothing that was sent there"
        );
        proofs.on_reached(address(), at(10));
        proofs.on_arrival(address(), 100, Some(at(9)));
        proofs.on_arrival(address(), 100, None);
        assert!(
            proofs.on_departure(address(), PROBE_MAX + 1, start).is_some(),
            "it left before, or is somebody else's"
        );
        proofs.on_arrival("192.0.2.1:1".parse().expect("an address"), 100, Some(at(10)));
        assert_eq!(proofs.on_departure(address(), PROBE_MAX + 1, start), None);
    }

    #[test]
    fn more_than_three_times_what_came_is_a_fault_of_who_was_connected_to() {
        let (start, mut server) = (Instant::now(), Proofs::new(Side::Server));
        server.on_arrival(address(), 400, None);
        assert_eq!(server.on_departure(address(), 1_200, start), None);
        assert!(server.on_departure(address(), 1, start).is_some());
        let mut handshake = Proofs::new(Side::Server);
        handshake.on_arrival(address(), 1_200, None);
        (0..4).for_each(|_| assert_eq!(handshake.on_departure(address(), 1_200, start), None));
        assert!(handshake.on_departure(address(), 1, start).is_some());
        let mut client = Proofs::new(Side::Client);
        (0..10).for_each(|_| assert_eq!(client.on_departure(address(), 1_200, start), None));
    }

    #[test]
    fn a_question_a_second_to_other_ports_of_a_proved_host_is_no_fault() {
        let (start, mut server) = (Instant::now(), Proofs::new(Side::Server));
        let (at, port) = (|ms| start + Duration::from_millis(ms), |port| SocketAddr::new(address().ip(), port));
        server.on_reached(address(), start);
        server.on_arrival(address(), 1_200, Some(start));
        assert_eq!(server.on_departure(port(1), PROBE_MAX, at(0)), None);
        assert!(server.on_departure(port(2), 1, at(800)).is_some(), "another within a second");
        assert_eq!(server.on_departure(port(3), PROBE_MAX, at(1_000)), None);
        let other = "192.0.2.1:1".parse().expect("an address");
        assert!(server.on_departure(other, 1, at(5_000)).is_some(), "another host");
    }
}
