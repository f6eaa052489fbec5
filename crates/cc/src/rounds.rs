//! Round trips as acknowledgements show them, and the round-trip times measured within.

use core::time::Duration;

use fairpath_core::{Ack, Timestamp};

/// Divides a path's life into round trips: one ends when a packet is acknowledged that was sent
/// after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    began: Option<Timestamp>,
    sampled: Option<Timestamp>,
}

impl Rounds {
    /// Whether a round trip ends with this acknowledgement. The next one begins then; the first
    /// begins with the first acknowledgement.
    pub(crate) fn end_with(&mut self, ack: &Ack) -> bool {
        let ends = self.began.is_some_and(|began| ack.sent_at >= began);
        if ends || self.began.is_none() {
            self.began = Some(ack.now);
        }
        ends
    }

    /// The round-trip time that this acknowledgement brings. Packets acknowledged at the same moment
    /// share one sample, which only the first of them counts.
    pub(crate) fn sample(&mut self, ack: &Ack) -> Option<Duration> {
        let rtt = ack.rtt?;
        let fresh = self.sampled.replace(ack.now) != Some(ack.now);
        fresh.then_some(rtt.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn a_round_ends_with_the_first_packet_sent_after_it_began() {
        let mut rounds = Rounds::default();
        // Sent at 0 and acknowledged at 100: the first round begins at 100.
        assert!(!rounds.end_with(&ack(100, PACKET, 100)));
        assert!(!rounds.end_with(&ack(150, PACKET, 100)));
        assert!(rounds.end_with(&ack(200, PACKET, 100)));
        assert!(!rounds.end_with(&ack(299, PACKET, 100)));
        assert!(rounds.end_with(&ack(305, PACKET, 100)));
    }

    #[test]
    fn packets_acknowledged_together_are_one_sample() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.sample(&ack(100, PACKET, 40)), Some(ms(40)));
        assert_eq!(rounds.sample(&ack(100, PACKET, 40)), None);
        assert_eq!(rounds.sample(&ack(101, PACKET, 40)), Some(ms(40)));
        assert_eq!(rounds.sample(&Ack { rtt: None, ..ack(102, PACKET, 40) }), None);
    }
}
