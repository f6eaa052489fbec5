//! Failed attempts to connect to an end that listens, told so that no stranger can fill the screen.

use std::time::{Duration, Instant};

use fairpath_quic::AcceptStats;
use fairpath_transfer::AdmissionError;
use serde::Serialize;

/// How long after one line the next is told, if anything has come; it doubles each time, up to the longest.
const NEXT: Duration = Duration::from_secs(10);
const NEXT_MAX: Duration = Duration::from_secs(600);

/// Attempts that led to nothing, by their reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FailedAttempts {
    /// Refused for load, before any work was done.
    refused: u64,
    /// Without a whole handshake.
    no_handshake: u64,
    /// Without a proof in time.
    no_proof: u64,
    wrong_secret: u64,
    /// For another command, in another version or protocol.
    wrong_kind: u64,
    /// With the ticket, while another sender used it, or after that was done.
    ticket_in_use: u64,
}

impl FailedAttempts {
    fn total(&self) -> u64 {
        let Self { refused, no_handshake, no_proof, wrong_secret, wrong_kind, ticket_in_use } = self;
        refused + no_handshake + no_proof + wrong_secret + wrong_kind + ticket_in_use
    }

    /// One sentence, where there is anything to tell.
    pub(crate) fn sentence(&self) -> Option<String> {
        let reasons: Vec<String> = [
            (self.wrong_secret, "with a wrong secret"),
            (self.ticket_in_use, "while the ticket was in use, or after"),
            (self.wrong_kind, "with the ticket of another command or version"),
            (self.no_proof, "without a proof of the secret"),
            (self.no_handshake, "without a whole handshake"),
            (self.refused, "refused for load"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
        let attempts = if self.total() == 1 { "1 attempt".to_owned() } else { format!("{} attempts", self.total()) };
        (!reasons.is_empty()).then(|| format!("{attempts} to connect failed: {}", reasons.join(", ")))
    }
}

/// Counts, and says so now and then.
#[derive(Debug, Default)]
pub(crate) struct AttemptReporter {
    counted: FailedAttempts,
    /// The last report, when it was made, and how long it stands.
    said: Option<(FailedAttempts, Instant, Duration)>,
}

impl AttemptReporter {
    /// A peer was not admitted.
    pub(crate) fn rang(&mut self, why: &AdmissionError) {
        let count = match why {
            AdmissionError::WrongSecret => &mut self.counted.wrong_secret,
            // It waits for its turn, and comes again.
            AdmissionError::Busy => return,
            AdmissionError::Used | AdmissionError::Taken => &mut self.counted.ticket_in_use,
            AdmissionError::WrongPurpose | AdmissionError::Version(_) | AdmissionError::NotOurs => {
                &mut self.counted.wrong_kind
            }
            AdmissionError::Late | AdmissionError::NoKeyingMaterial => &mut self.counted.no_proof,
            // A sender that tries several connections at a time drops those that it does not need; who had to
            // make room is counted by the listener.
            AdmissionError::Gone(_) => return,
        };
        *count += 1;
    }

    /// All there were, with those that the listener has counted.
    pub(crate) fn total(&self, stats: AcceptStats) -> FailedAttempts {
        FailedAttempts { refused: stats.refused, no_handshake: stats.unfinished, ..self.counted }
    }

    /// A line to be shown now. The first is told at once, since it may be a person with a wrong ticket.
    pub(crate) fn news(&mut self, stats: AcceptStats, now: Instant) -> Option<String> {
        let total = self.total(stats);
        let next = match self.said {
            None => NEXT,
            Some((said, at, lasts)) if said != total && now >= at + lasts => (lasts * 2).min(NEXT_MAX),
            Some(_) => return None,
        };
        let sentence = total.sentence()?;
        self.said = Some((total, now, next));
        Some(format!("{sentence}; still waiting"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_without_number_fill_few_lines() {
        let (mut bell, begun) = (AttemptReporter::default(), Instant::now());
        let mut lines = Vec::new();
        for second in 0..3600 {
            for _ in 0..100 {
                bell.rang(&AdmissionError::WrongSecret);
            }
            lines.extend(bell.news(AcceptStats::default(), begun + Duration::from_secs(second)));
        }
        // After 0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430 and 3030 s.
        assert_eq!(lines.len(), 11, "{lines:#?}");
        assert_eq!(lines[0], "100 attempts to connect failed: 100 with a wrong secret; still waiting");
    }

    #[test]
    fn every_reason_is_told_and_nothing_is_told_of_nothing() {
        let mut bell = AttemptReporter::default();
        let stats = AcceptStats { refused: 1000, unfinished: 2, asked_again: 5 };
        assert_eq!(bell.news(AcceptStats { asked_again: 5, ..AcceptStats::default() }, Instant::now()), None);
        bell.rang(&AdmissionError::Taken);
        let expected = "1003 attempts to connect failed: 1 while the ticket was in use, or after, \
            2 without a whole handshake, 1000 refused for load";
        assert_eq!(bell.total(stats).sentence().as_deref(), Some(expected));
    }
}
