//! The largest delivery rate of this cycle of probes and the one before [BBRv3 §5.5.3, §5.5.6].

use fairpath_core::Bitrate;

/// The two slots of the filter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: Bitrate,
    current: Bitrate,
}

impl MaxBandwidth {
    /// Takes a sample.
    pub(super) fn update(&mut self, bandwidth: Bitrate) {
        self.current = self.current.max(bandwidth);
    }

    /// A cycle is over. One without samples does not count.
    pub(super) fn advance(&mut self) {
        if self.current > Bitrate::ZERO {
            self.previous = core::mem::take(&mut self.current);
        }
    }

    /// That of the cycle before this.
    pub(super) fn previous(&self) -> Bitrate {
        self.previous
    }

    /// Takes what was measured elsewhere, in the cycle before this, and the largest of both.
    pub(super) fn restore(&mut self, previous: Bitrate, largest: Bitrate) {
        *self = Self { previous, current: largest };
    }

    /// The largest; zero before the first sample.
    pub(super) fn get(&self) -> Bitrate {
        self.previous.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_in_its_cycle_and_the_next() {
        let mut max = MaxBandwidth::default();
        let mbps = Bitrate::from_mbps;
        max.update(mbps(9));
        max.update(mbps(5));
        assert_eq!(max.get(), mbps(9));
        max.advance();
        max.update(mbps(4));
        assert_eq!(max.get(), mbps(9));
        max.advance();
        assert_eq!(max.get(), mbps(4));
        max.advance();
        assert_eq!(max.get(), mbps(4), "a cycle without samples forgets nothing");
    }
}
