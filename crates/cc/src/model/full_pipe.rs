//! Whether sending faster still brings more [BBRv3 §5.3.1.2].

use fairpath_core::Bitrate;

/// Growth by less than this is none [BBRv3 §5.3.1.2].
const GROWTH: f64 = 1.25;

/// The number of rounds without growth after which the pipe is full [BBRv3 §5.3.1.2].
const ROUNDS: u32 = 3;

/// Estimates whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullPipe {
    baseline: Bitrate,
    rounds: u32,
}

impl FullPipe {
    /// Starts anew, from `baseline`.
    pub(crate) fn reset(&mut self, baseline: Bitrate) {
        *self = Self { baseline, rounds: 0 };
    }

    /// Takes the bandwidth of a round that the application did not limit, and says whether the pipe
    /// is full.
    pub(crate) fn observe(&mut self, bandwidth: Bitrate) -> bool {
        if bandwidth >= self.baseline.scaled(GROWTH) {
            self.reset(bandwidth);
        } else {
            self.rounds += 1;
        }
        self.is_full()
    }

    /// Whether the pipe is full.
    pub(crate) fn is_full(&self) -> bool {
        self.rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_with_less_than_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        // 10 → 20 → 25 is growth (25 = 1.25 · 20); 31 is less than 1.25 · 25 = 31.25
        let full = [10, 20, 25, 31, 31, 30].map(|mbps| pipe.observe(Bitrate::from_mbps(mbps)));
        assert_eq!(full, [false, false, false, false, false, true]);
        pipe.reset(Bitrate::from_mbps(30));
        assert!(!pipe.is_full());
    }

    #[test]
    fn growth_begins_the_count_anew() {
        let mut pipe = FullPipe::default();
        let full = [10, 11, 11, 20, 21, 21, 21].map(|mbps| pipe.observe(Bitrate::from_mbps(mbps)));
        assert_eq!(full, [false, false, false, false, false, false, true]);
    }
}
