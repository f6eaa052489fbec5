//! HyStart++ [RFC9406]: leaves the first slow start when the round-trip time grows, before the queue
//! overflows. It goes by way of a conservative slow start, which grows a quarter as fast and finds
//! out whether the growth of the round-trip time was only jitter.
//!
//! A round measures the packets of the round before, and the first of them counts. So a queue is
//! found two rounds after it began to form. A queue of less than about a bandwidth-delay product
//! overflows as it does without HyStart++; in a deeper one, less is lost.

use core::time::Duration;

use fairpath_core::Ack;

use crate::rounds::Rounds;

/// MIN_RTT_THRESH and MAX_RTT_THRESH [RFC9406 §4.3]: the round-trip time grew if it did by more than
/// this.
const THRESHOLD_MIN: Duration = Duration::from_millis(4);
const THRESHOLD_MAX: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR [RFC9406 §4.3].
const THRESHOLD_DIVISOR: u32 = 8;
/// N_RTT_SAMPLE [RFC9406 §4.3]: with fewer samples a round says nothing.
const SAMPLES_LEAST: u32 = 8;
/// CSS_GROWTH_DIVISOR [RFC9406 §4.3].
const CONSERVATIVE_DIVISOR: f64 = 4.0;
/// CSS_ROUNDS [RFC9406 §4.3].
const CONSERVATIVE_ROUNDS: u32 = 5;

/// The round-trip times during the first slow start of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyStartPlusPlus {
    rounds: Rounds,
    /// The least round-trip time of the round before, and of this one.
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// The conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The least round-trip time of the round in which it began.
    baseline: Duration,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Takes an acknowledgement; says whether slow start ends with it.
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> bool {
        if let Some(rtt) = self.rounds.sample(ack) {
            self.current_min = Some(self.current_min.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
            self.judge();
        }
        self.rounds.end_with(ack) && self.begin_round()
    }

    /// The window grows by the acknowledged bytes over this.
    pub(crate) fn divisor(&self) -> f64 {
        if self.conservative.is_some() { CONSERVATIVE_DIVISOR } else { 1.0 }
    }

    fn judge(&mut self) {
        let Some(current) = self.current_min.filter(|_| self.samples >= SAMPLES_LEAST) else { return };
        match self.conservative {
            Some(conservative) if current < conservative.baseline => self.conservative = None,
            None if self.last_min.is_some_and(|last| current >= last + threshold(last)) => {
                self.conservative = Some(Conservative { baseline: current, rounds: 0 });
            }
            _ => {}
        }
    }

    fn begin_round(&mut self) -> bool {
        self.last_min = self.current_min.take();
        self.samples = 0;
        match &mut self.conservative {
            Some(conservative) => {
                conservative.rounds += 1;
                conservative.rounds >= CONSERVATIVE_ROUNDS
            }
            None => false,
        }
    }
}

// [RFC9406 §4.2]
//     RttThresh = max( MIN_RTT_THRESH, min( lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH ) )
fn threshold(last_min: Duration) -> Duration {
    (last_min / THRESHOLD_DIVISOR).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
}

#[cfg(test)]
mod tests {
    use fairpath_core::{ByteCount, Timestamp};

    use super::*;
    use crate::testing::*;

    /// One round, which ends at `end_ms`, with this many samples of `rtt_ms`. Says whether slow start
    /// ended.
    fn round(hystart: &mut HyStartPlusPlus, end_ms: u64, samples: u64, rtt_ms: u64) -> bool {
        let mut ended = false;
        for left in (0..samples).rev() {
            let sent_at = if left == 0 { Timestamp::from_millis(end_ms - samples) } else { Timestamp::ZERO };
            ended |= hystart.on_ack(&Ack { sent_at, ..ack(end_ms - left, ByteCount::ZERO, rtt_ms) });
        }
        ended
    }

    fn after_a_round_of(rtt_ms: u64) -> HyStartPlusPlus {
        let mut hystart = HyStartPlusPlus::default();
        // The first acknowledgement begins the first round.
        hystart.on_ack(&Ack { rtt: None, ..ack(1, ByteCount::ZERO, 1) });
        assert!(!round(&mut hystart, 1_000, 8, rtt_ms));
        hystart
    }

    #[test]
    fn the_threshold_is_an_eighth_of_the_round_trip_within_4_and_16_ms() {
        assert_eq!([8, 80, 800].map(|last| threshold(ms(last))), [ms(4), ms(10), ms(16)]);
    }

    #[test]
    fn eight_samples_of_an_eighth_more_slow_the_growth_down() {
        let mut hystart = after_a_round_of(80);
        round(&mut hystart, 2_000, 8, 89);
        assert_eq!(hystart.divisor(), 1.0);
        // Against the 89 ms of the round before: 89 + 11.125
        round(&mut hystart, 3_000, 8, 101);
        assert_eq!(hystart.divisor(), 4.0);
    }

    #[test]
    fn seven_samples_say_nothing() {
        let mut hystart = after_a_round_of(80);
        round(&mut hystart, 2_000, 7, 200);
        assert_eq!(hystart.divisor(), 1.0);
    }

    #[test]
    fn the_least_sample_of_the_round_counts() {
        let mut hystart = after_a_round_of(80);
        hystart.on_ack(&Ack { sent_at: Timestamp::ZERO, ..ack(1_500, ByteCount::ZERO, 85) });
        round(&mut hystart, 2_000, 8, 200);
        assert_eq!(hystart.divisor(), 1.0);
    }

    #[test]
    fn slow_start_ends_after_five_rounds_of_slow_growth() {
        let mut hystart = after_a_round_of(80);
        // The round in which it was found out counts.
        let ended: Vec<bool> = (2..7).map(|second| round(&mut hystart, second * 1_000, 8, 100)).collect();
        assert_eq!(ended, [false, false, false, false, true]);
    }

    #[test]
    fn a_round_trip_below_the_baseline_resumes_slow_start() {
        let mut hystart = after_a_round_of(80);
        round(&mut hystart, 2_000, 8, 100);
        round(&mut hystart, 3_000, 8, 100);
        assert_eq!(hystart.divisor(), 4.0);
        round(&mut hystart, 4_000, 8, 99);
        assert_eq!(hystart.divisor(), 1.0);
    }

    #[test]
    fn without_round_trip_samples_slow_start_goes_on() {
        let mut hystart = HyStartPlusPlus::default();
        for now_ms in 0..1_000 {
            assert!(!hystart.on_ack(&Ack { rtt: None, ..ack(now_ms * 10, ByteCount::ZERO, 10) }));
        }
        assert_eq!(hystart.divisor(), 1.0);
    }
}
