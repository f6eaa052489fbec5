//! Whether an end sends data only where its peer has shown that it is, seen from outside.
//!
//! An end may know that its peer receives at an address once something has come of which the peer could not know
//! had it not received what was sent there. Before, there go only handshakes and probes, and from an end that has
//! been connected to no more than three times what came from there [RFC9000 §8], and a few challenges.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use fairpath_quic_sim::Side;

/// What handshakes, challenges and signs of life may measure, in bytes of UDP payload [RFC9000 §8.2.1, §14.1].
pub(crate) const PROBE_MAX: usize = 1_200;

/// By how much more than it gets an end may send to an address that is not proved.
const AMPLIFICATION: usize = 3;

/// How many challenges leave to an address beyond that for a packet that came from there, each a datagram of [`PROBE_MAX`]: where anything is left of
/// what may leave the stack sends a whole one, and when the peer is back where it was, it asks there up to three times
/// more, however small it was.
const CHALLENGES: usize = 4;

/// What is known of an address, in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    packets: usize,
    came: usize,
    left: usize,
    /// When the peer first got something that was sent there.
    reached: Option<Instant>,
    is_proved: bool,
}

/// What one end may know of the addresses that it sends to.
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
        known.packets += 1;
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

    /// A datagram leaves. What is wrong with that, if anything.
    pub(crate) fn on_departure(&mut self, to: SocketAddr, length: usize) -> Option<String> {
        let known = self.known.entry(to).or_default();
        known.left += length;
        let Known { packets, came, left, is_proved, .. } = *known;
        if is_proved {
            return None;
        }
        if length > PROBE_MAX {
            return Some(format!("{length} bytes left to {to}, where the peer has not shown to be"));
        }
        let is_too_much = self.side == Side::Server && left > AMPLIFICATION * came + CHALLENGES * packets * PROBE_MAX;
        is_too_much.then(|| format!("{left} bytes left to {to}, which is not proved, for {came} that came from there"))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests need an instant to begin at")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address() -> SocketAddr {
        "192.0.2.66:6666".parse().expect("an address")
    }

    #[test]
    fn data_to_an_address_is_a_fault_until_what_was_sent_there_is_answered() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut proofs = Proofs::new(Side::Client);
        assert_eq!(proofs.on_departure(address(), PROBE_MAX), None);
        assert!(proofs.on_departure(address(), PROBE_MAX + 1).is_some());
        proofs.on_arrival(address(), 100, Some(at(5)));
        assert!(proofs.on_departure(address(), PROBE_MAX + 1).is_some(), "it came of nothing that was sent there");
        proofs.on_reached(address(), at(10));
        proofs.on_arrival(address(), 100, Some(at(9)));
        proofs.on_arrival(address(), 100, None);
        assert!(proofs.on_departure(address(), PROBE_MAX + 1).is_some(), "it left before, or is somebody else's");
        proofs.on_arrival("192.0.2.1:1".parse().expect("an address"), 100, Some(at(10)));
        assert_eq!(proofs.on_departure(address(), PROBE_MAX + 1), None);
    }

    #[test]
    fn more_than_three_times_what_came_and_four_challenges_is_a_fault_of_who_was_connected_to() {
        let mut server = Proofs::new(Side::Server);
        server.on_arrival(address(), 400, None);
        (0..5).for_each(|_| assert_eq!(server.on_departure(address(), 1_200), None));
        assert!(server.on_departure(address(), 1).is_some());
        let mut client = Proofs::new(Side::Client);
        (0..10).for_each(|_| assert_eq!(client.on_departure(address(), 1_200), None));
    }
}
