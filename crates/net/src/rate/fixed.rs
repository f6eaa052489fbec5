//! A transmitter that never changes its rate.

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::work;

/// Transmits at one rate. Ends are rounded down to the nanosecond and what that leaves undone is
/// added to the next packet, so that nothing is gained or lost in the long run.
#[derive(Debug)]
pub(crate) struct Fixed {
    rate: Bitrate,
    free_at: Timestamp,
    /// The remainder of the rounding, in 10^-9 bit; less than a nanosecond's worth.
    undone: u64,
    /// The last size, the nanoseconds it takes and the work that these leave: most packets of a
    /// link have one size, and a comparison is cheaper than a division.
    last: (ByteCount, u64, u64),
}

impl Fixed {
    pub(crate) fn new(rate: Bitrate, free_at: Timestamp) -> Self {
        Self { rate, free_at, undone: 0, last: (ByteCount::ZERO, 0, 0) }
    }

    #[inline]
    pub(crate) fn next_start(&self, arrival: Timestamp) -> Timestamp {
        if self.rate == Bitrate::ZERO { Timestamp::MAX } else { self.free_at.max(arrival) }
    }

    #[inline]
    pub(crate) fn transmit(&mut self, start: Timestamp, size: ByteCount) -> Timestamp {
        let rate = self.rate.as_bps();
        if size != self.last.0 {
            let work = work(size);
            self.last = (size, work / rate, work % rate);
        }
        let (_, mut nanos, left) = self.last;
        let mut undone = if start == self.free_at { self.undone } else { 0 };
        undone += left;
        if undone >= rate {
            undone -= rate;
            nanos += 1;
        }
        self.undone = undone;
        self.free_at = Timestamp::from_nanos(start.as_nanos().saturating_add(nanos));
        self.free_at
    }

    pub(crate) fn free_at(&self) -> Timestamp {
        self.free_at
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// When `packets` of `size` in a row are through.
    fn end_of(rate: Bitrate, size: u64, packets: u64) -> Timestamp {
        let mut fixed = Fixed::new(rate, Timestamp::ZERO);
        let mut end = Timestamp::ZERO;
        for _ in 0..packets {
            let start = fixed.next_start(Timestamp::ZERO);
            assert_eq!(start, end);
            end = fixed.transmit(start, ByteCount::new(size));
        }
        end
    }

    #[test]
    fn the_remainder_is_carried_so_that_no_rate_drifts() {
        // 1500 B at 1 Gbit/s: 12 µs each. 1,000,000 of them: 12 s.
        assert_eq!(end_of(Bitrate::from_mbps(1_000), 1_500, 1_000_000), Timestamp::from_secs(12));
        // 1500 B at 7 Mbit/s: 1,714,285.71 ns each. 7,000 of them: 12 s, to the nanosecond.
        assert_eq!(end_of(Bitrate::from_mbps(7), 1_500, 7_000), Timestamp::from_secs(12));
        // 1 B at 3 Gbit/s: 2.67 ns each; rounded down it would be a third too fast.
        assert_eq!(end_of(Bitrate::from_mbps(3_000), 1, 3_000_000), Timestamp::from_millis(8));
    }

    #[test]
    fn a_pause_forgets_the_remainder() {
        let mut fixed = Fixed::new(Bitrate::from_mbps(7), Timestamp::ZERO);
        fixed.transmit(Timestamp::ZERO, ByteCount::new(1_500));
        let late = Timestamp::from_secs(1);
        let start = fixed.next_start(late);
        assert_eq!(start, late);
        assert_eq!(fixed.transmit(start, ByteCount::new(1_500)), late + Duration::from_nanos(1_714_285));
    }
}
