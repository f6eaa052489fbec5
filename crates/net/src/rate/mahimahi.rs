//! Recorded traces of opportunities to transmit, in the format and with the semantics of
//! Mahimahi's link queue [Mahimahi].

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::quoted;

/// The bytes that one opportunity carries: a packet of 1500 bytes and the 4-byte header of the TUN device
/// through which Mahimahi sees it [Mahimahi].
const OPPORTUNITY: ByteCount = ByteCount::new(1504);

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// A trace: the milliseconds at which 1504 bytes may be transmitted.
///
/// The file has one whole number of milliseconds per line, not falling, the last above 0. Each
/// line is one opportunity; a line twice is two of them. The schedule starts over at the last
/// number, which is thus the period.
///
/// Bytes are counted inside an opportunity: small packets share one, a large one spans several.
/// Unused opportunities are lost. An opportunity serves what arrived before it; a packet that arrives
/// at the very instant is too late for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MahimahiTrace {
    at_ms: Vec<u64>,
}

/// Why a trace is refused. The fault is the file's, at the line named, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MahimahiError {
    /// A line is not a whole number of milliseconds.
    #[error("line {line}: {value:?} is not a whole number of milliseconds")]
    NotMilliseconds {
        /// The line.
        line: usize,
        /// The text there, cut where it is long.
        value: String,
    },
    /// A time is before the one above it.
    #[error("line {line}: {value} ms is before {previous} ms in the line above")]
    Falling {
        /// The line.
        line: usize,
        /// The time in milliseconds.
        value: u64,
        /// The time in the line above, in milliseconds.
        previous: u64,
    },
    /// There are no lines.
    #[error("the trace has no lines")]
    Empty,
    /// The last time is 0, so the trace has no period.
    #[error("line {line}: the last time is 0 ms, so the trace has no period")]
    NoPeriod {
        /// The last line.
        line: usize,
    },
}

impl MahimahiTrace {
    /// The opportunities at these milliseconds.
    ///
    /// # Errors
    ///
    /// Where they fall, or there is no period; the lines are the positions, from 1.
    pub fn new(at_ms: Vec<u64>) -> Result<Self, MahimahiError> {
        if let Some(index) = at_ms.windows(2).position(|pair| pair[1] < pair[0]) {
            let (previous, value) = (at_ms[index], at_ms[index + 1]);
            return Err(MahimahiError::Falling { line: index + 2, value, previous });
        }
        match at_ms.last() {
            None => Err(MahimahiError::Empty),
            Some(0) => Err(MahimahiError::NoPeriod { line: at_ms.len() }),
            Some(_) => Ok(Self { at_ms }),
        }
    }

    /// Reads a trace file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line and value.
    pub fn parse(text: &str) -> Result<Self, MahimahiError> {
        let longest = u64::MAX / NANOS_PER_MILLISECOND;
        let parse = |(index, line): (usize, &str)| match line.trim_end().parse() {
            Ok(at) if at <= longest && line.starts_with(|first: char| first.is_ascii_digit()) => Ok(at),
            _ => Err(MahimahiError::NotMilliseconds { line: index + 1, value: quoted(line) }),
        };
        Self::new(text.lines().enumerate().map(parse).collect::<Result<_, _>>()?)
    }

    /// The milliseconds of the opportunities.
    pub fn at_ms(&self) -> &[u64] {
        &self.at_ms
    }

    /// After how long the trace starts over.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.at_ms[self.at_ms.len() - 1])
    }

    /// The same trace from `start` on, and then what came before: it begins after the first opportunity that is no
    /// earlier than that. Whole periods are left out.
    pub fn starting(&self, start: Duration) -> Self {
        let period = self.period().as_millis() as u64;
        let start = (start.as_millis() % u128::from(period)) as u64;
        // The last opportunity of the period before is at 0.
        let begins = if start == 0 { 0 } else { self.at_ms[self.at_ms.partition_point(|at| *at < start)] };
        let (before, after) = self.at_ms.split_at(self.at_ms.partition_point(|at| *at <= begins));
        let after = after.iter().map(|at| at - begins);
        Self { at_ms: after.chain(before.iter().map(|at| at + period - begins)).collect() }
    }

    /// The rate of all opportunities together, used or not.
    pub fn mean(&self) -> Bitrate {
        (OPPORTUNITY * self.at_ms.len() as u64).per(self.period()).unwrap_or(Bitrate::ZERO)
    }
}

/// Transmits in the opportunities of a trace.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Arc<MahimahiTrace>,
    mean: Bitrate,
    /// The next opportunity, and the start of its repetition.
    next: usize,
    base: Timestamp,
    /// The opportunity in use, and what is left in it.
    current: Timestamp,
    left: ByteCount,
}

impl Opportunities {
    pub(crate) fn new(trace: Arc<MahimahiTrace>, free_at: Timestamp) -> Self {
        let mean = trace.mean();
        let mut opportunities =
            Self { trace, mean, next: 0, base: Timestamp::ZERO, current: Timestamp::ZERO, left: ByteCount::ZERO };
        if free_at > Timestamp::ZERO {
            opportunities.skip_until_after(free_at);
        }
        opportunities
    }

    /// The opportunity in which the next packet begins.
    pub(crate) fn next_start(&mut self, arrival: Timestamp) -> Timestamp {
        if self.left > ByteCount::ZERO && arrival < self.current {
            return self.current;
        }
        // The rest came before the packet: it is lost.
        self.left = ByteCount::ZERO;
        self.skip_until_after(arrival);
        self.next_at()
    }

    /// Transmits `size`, in as many opportunities as it takes, and gives the last of them.
    pub(crate) fn transmit(&mut self, size: ByteCount) -> Timestamp {
        if self.left == ByteCount::ZERO {
            self.take_next();
        }
        let mut unsent = size;
        while unsent > self.left {
            unsent -= self.left;
            self.take_next();
        }
        self.left -= unsent;
        self.current
    }

    pub(crate) fn free_at(&self) -> Timestamp {
        self.current
    }

    pub(crate) fn mean(&self) -> Bitrate {
        self.mean
    }

    fn next_at(&self) -> Timestamp {
        self.base + Duration::from_millis(self.trace.at_ms[self.next])
    }

    fn take_next(&mut self) {
        self.current = self.next_at();
        self.left = OPPORTUNITY;
        self.next += 1;
        if self.next == self.trace.at_ms.len() {
            self.next = 0;
            self.base = self.base + self.trace.period();
        }
    }

    /// Passes over every opportunity up to and including `at`.
    fn skip_until_after(&mut self, at: Timestamp) {
        if self.next_at() > at {
            return;
        }
        let period = self.trace.period().as_nanos() as u64;
        let repetitions = at.since(self.base).as_nanos() as u64 / period;
        self.base = self.base + Duration::from_nanos(repetitions * period);
        let within = at.since(self.base).as_nanos() as u64;
        // `within` is less than the period, so the last opportunity at least comes after it.
        self.next = self.trace.at_ms.partition_point(|at_ms| at_ms * NANOS_PER_MILLISECOND <= within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_starts_later_has_the_same_opportunities_and_period() {
        let trace = MahimahiTrace::new(vec![2, 5, 5, 9]).unwrap();
        let from = |ms| trace.starting(Duration::from_millis(ms)).at_ms;
        // After the two at 5: those at 9, 11 (2), 14 (5) and 14 (5).
        assert_eq!(from(3), [4, 6, 9, 9]);
        assert_eq!(from(9), [2, 5, 5, 9], "whole periods");
        assert_eq!(from(9), from(0));
        assert_eq!(from(3 + 9 * 7), from(3));
        assert_eq!(trace.starting(Duration::from_millis(3)).period(), trace.period());
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Sends packets of (arrival in ms, size) and gives the milliseconds of their ends.
    fn ends(trace: &[u64], packets: &[(u64, u64)]) -> Vec<u64> {
        let trace = MahimahiTrace::new(trace.to_vec()).unwrap();
        let mut opportunities = Opportunities::new(Arc::new(trace), Timestamp::ZERO);
        let mut send = |(arrival, size): &(u64, u64)| {
            opportunities.next_start(ms(*arrival));
            opportunities.transmit(ByteCount::new(*size)).as_nanos() / NANOS_PER_MILLISECOND
        };
        packets.iter().map(&mut send).collect()
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_several() {
        // 752 + 752 fill the one at 5 ms; 1000 + 504 that at 7; 1505 takes 1 byte of that at 9.
        let packets = [(0, 752), (0, 752), (0, 1_000), (0, 504), (0, 1_505), (0, 1_503)];
        assert_eq!(ends(&[5, 7, 8, 9], &packets), [5, 5, 7, 7, 9, 9]);
        // 4 · 1504 B
        assert_eq!(ends(&[1, 1, 3, 4], &[(0, 6_016), (0, 1)]), [4, 5]);
    }

    #[test]
    fn what_is_not_used_is_lost() {
        // Opportunities at 1, 2, 3 pass before the packet comes; the rest of that at 4 too.
        assert_eq!(ends(&[1, 2, 3, 4, 10], &[(3, 100), (5, 100)]), [4, 10]);
    }

    #[test]
    fn a_packet_that_comes_with_an_opportunity_is_too_late_for_it() {
        assert_eq!(ends(&[1, 2, 6], &[(2, 100), (6, 100)]), [6, 7]);
        assert_eq!(ends(&[0, 4], &[(0, 100)]), [4]);
    }

    #[test]
    fn the_schedule_repeats_with_the_last_number_as_period() {
        assert_eq!(ends(&[0, 3, 10], &[(1, 1_504), (1, 1_504), (1, 1_504), (1, 1_504)]), [3, 10, 10, 13]);
        // 1,234 periods later.
        assert_eq!(ends(&[0, 3, 10], &[(12_340, 1_504), (12_344, 1_504)]), [12_343, 12_350]);
    }

    #[test]
    fn the_mean_counts_every_opportunity_over_the_period() {
        // 5 · 1504 · 8 bits in 10 ms = 6.016 Mbit/s
        let trace = MahimahiTrace::parse("1\n1\n5\n9\n10\n").unwrap();
        assert_eq!(trace.mean(), Bitrate::from_kbps(6_016));
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.at_ms(), [1, 1, 5, 9, 10]);
    }

    #[test]
    fn errors_name_the_line_and_the_value() {
        let error = |text: &str| MahimahiTrace::parse(text).unwrap_err();
        assert_eq!(error(""), MahimahiError::Empty);
        assert_eq!(error("0\n0\n"), MahimahiError::NoPeriod { line: 2 });
        assert_eq!(error("1\n5\n4\n"), MahimahiError::Falling { line: 3, value: 4, previous: 5 });
        for wrong in ["x", "", "1.5", "-1", "+1", " 1", "99999999999999999"] {
            let expected = MahimahiError::NotMilliseconds { line: 2, value: wrong.to_owned() };
            assert_eq!(error(&format!("1\n{wrong}\n3\n")), expected);
        }
    }
}
