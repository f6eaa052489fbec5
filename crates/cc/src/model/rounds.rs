//! Round trips counted by packets [BBRv3 §5.5.1]: a round ends when a packet is acknowledged that
//! was sent after the round began.

use fairpath_core::ByteCount;

/// Counts round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    count: u64,
    /// A packet that is sent after this much was delivered belongs to the next round.
    next: ByteCount,
    starts: bool,
}

impl Rounds {
    /// Takes an acknowledgement: `prior_delivered` had been delivered when its newest packet was
    /// sent, where that is known, and `delivered` has been now.
    pub(crate) fn update(&mut self, prior_delivered: Option<ByteCount>, delivered: ByteCount) {
        self.starts = prior_delivered.is_some_and(|prior| prior >= self.next);
        if self.starts {
            self.restart(delivered);
            self.count += 1;
        }
    }

    /// Begins a round now.
    pub(crate) fn restart(&mut self, delivered: ByteCount) {
        self.next = delivered;
    }

    /// Whether the newest acknowledgement began a round.
    pub(crate) fn starts(&self) -> bool {
        self.starts
    }

    /// How many rounds have begun.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_a_packet_that_was_sent_after_it_began() {
        let mut rounds = Rounds::default();
        let mut starts = |prior, delivered| {
            rounds.update(Some(ByteCount::new(prior)), ByteCount::new(delivered));
            (rounds.starts(), rounds.count())
        };
        assert_eq!(starts(0, 1), (true, 1));
        // Sent before anything was delivered: still the first round.
        assert_eq!(starts(0, 2), (false, 1));
        assert_eq!(starts(1, 3), (true, 2));
        assert_eq!(starts(2, 4), (false, 2));
        assert_eq!(starts(3, 5), (true, 3));
    }
}
