//! Unit types. Only dimensional operators exist: `ByteCount / Bitrate = Duration`, and so on.
//! A raw number enters through a named constructor and leaves through a named getter.
//!
//! All arithmetic saturates: a result that is too large is the largest one, and one that would be
//! negative is zero. It is the same in every build, and no number of a peer or of a file can make it
//! panic or wrap.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// An amount of data, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ByteCount(u64);

impl ByteCount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount; stands for "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kilobytes` × 1,000 bytes.
    pub const fn from_kilobytes(kilobytes: u64) -> Self {
        Self(kilobytes.saturating_mul(1_000))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as `f64`, for window arithmetic.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// `bytes` rounded down; negative numbers and NaN give zero, and what is too large [`ByteCount::MAX`].
    pub const fn from_f64(bytes: f64) -> Self {
        Self(bytes as u64)
    }

    /// The difference, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, at most [`ByteCount::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The rate that moves this amount in `time`; `None` where `time` is zero.
    pub fn per(self, time: Duration) -> Option<Bitrate> {
        let bits = u128::from(self.0) * 8 * NANOS_PER_SECOND;
        checked_div(bits, time.as_nanos()).map(Bitrate)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Sizes of packets are told whole. What would be rounded to 1000 has the next unit.
            b if b < 10_000 => write!(f, "{b} B"),
            b if b < 999_950 => write!(f, "{:.1} kB", b as f64 / 1e3),
            b if b < 999_950_000 => write!(f, "{:.1} MB", b as f64 / 1e6),
            b => write!(f, "{:.2} GB", b as f64 / 1e9),
        }
    }
}

impl Add for ByteCount {
    type Output = Self;
    /// The sum, at most [`ByteCount::MAX`].
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    /// The difference, or zero where `other` is larger.
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for ByteCount {
    type Output = Self;
    /// The product, at most [`ByteCount::MAX`].
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div for ByteCount {
    type Output = u64;
    /// How many times `other` fits in; [`u64::MAX`] where that is nothing.
    fn div(self, other: Self) -> u64 {
        self.0.checked_div(other.0).unwrap_or(u64::MAX)
    }
}

/// The quotient, at most [`u64::MAX`]; `None` where the divisor is zero. A division of 128 bits costs
/// several times one of 64, which nearly always does, and this is every packet.
fn checked_div(dividend: u128, divisor: u128) -> Option<u64> {
    match (u64::try_from(dividend), u64::try_from(divisor)) {
        (Ok(dividend), Ok(divisor)) => dividend.checked_div(divisor),
        _ => dividend.checked_div(divisor).map(|quotient| u64::try_from(quotient).unwrap_or(u64::MAX)),
    }
}

impl Div<Bitrate> for ByteCount {
    type Output = Duration;
    /// The time to serialise this amount at `rate`, to the nanosecond below. A rate of zero gives
    /// [`Duration::MAX`].
    fn div(self, rate: Bitrate) -> Duration {
        let bits = u128::from(self.0) * 8 * NANOS_PER_SECOND;
        checked_div(bits, u128::from(rate.0)).map_or(Duration::MAX, Duration::from_nanos)
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// A rate, in bits per second (decimal: 1 Mbit/s is 1,000,000 bits per second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bitrate(u64);

impl Bitrate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `kilobits` × 1,000 bits per second.
    pub const fn from_kbps(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1_000))
    }

    /// `megabits` × 1,000,000 bits per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits per second.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Bytes per second, rounded down.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// This rate times `factor`; negative and NaN give zero, and what is too large the largest rate.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b < 1_000 => write!(f, "{b} bit/s"),
            b if b < 999_950 => write!(f, "{:.1} kbit/s", b as f64 / 1e3),
            b if b < 999_950_000 => write!(f, "{:.1} Mbit/s", b as f64 / 1e6),
            b => write!(f, "{:.2} Gbit/s", b as f64 / 1e9),
        }
    }
}

impl Add for Bitrate {
    type Output = Self;
    /// The sum, at most the largest rate.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Bitrate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Add::add)
    }
}

impl Mul<Duration> for Bitrate {
    type Output = ByteCount;
    /// The amount that this rate moves in `time`, rounded down to whole bytes.
    fn mul(self, time: Duration) -> ByteCount {
        let bits = u128::from(self.0).saturating_mul(time.as_nanos()) / NANOS_PER_SECOND;
        ByteCount(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

/// A point in time: nanoseconds since the start of the run. Where that start lies is the host's
/// affair; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `seconds` seconds after the start.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`, or zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        duration(self.nanos_since(earlier))
    }

    /// The same in nanoseconds. A [`Duration`] is seconds and nanoseconds, which takes a division to make and
    /// two comparisons to compare: too much for what is asked at every packet.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A time of so many nanoseconds. One below a second, as nearly all times of packets are, needs no division.
#[inline]
pub(crate) const fn duration(nanos: u64) -> Duration {
    if nanos < 1_000_000_000 { Duration::new(0, nanos as u32) } else { Duration::from_nanos(nanos) }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    /// The point `time` later, at most [`Timestamp::MAX`].
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    /// The point `time` earlier, at least [`Timestamp::ZERO`].
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialising_1500_bytes_at_10_megabits_takes_1200_microseconds() {
        // 1500 · 8 / 10^7 = 0.0012 s
        assert_eq!(ByteCount::new(1500) / Bitrate::from_mbps(10), Duration::from_micros(1200));
    }

    #[test]
    fn a_rate_of_zero_never_finishes() {
        assert_eq!(ByteCount::new(1) / Bitrate::ZERO, Duration::MAX);
        assert_eq!(Timestamp::from_secs(1) + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn rate_times_time_is_the_bandwidth_delay_product() {
        // 30 Mbit/s · 100 ms = 375,000 B
        let bdp = Bitrate::from_mbps(30) * Duration::from_millis(100);
        assert_eq!(bdp, ByteCount::new(375_000));
        assert_eq!(bdp.per(Duration::from_millis(100)), Some(Bitrate::from_mbps(30)));
        assert_eq!(bdp.per(Duration::ZERO), None);
    }

    #[test]
    fn amounts_whose_bits_times_nanoseconds_do_not_fit_64_bits_are_divided_as_exactly() {
        // 10 GB · 8 · 10^9 = 8 · 10^19 is more than 2^64.
        let amount = ByteCount::new(10_000_000_000);
        assert_eq!(amount.per(Duration::from_secs(8)), Some(Bitrate::from_mbps(10_000)));
        assert_eq!(amount / Bitrate::from_mbps(10_000), Duration::from_secs(8));
        assert_eq!(ByteCount::MAX.per(Duration::from_nanos(1)), Some(Bitrate::from_bps(u64::MAX)));
        assert_eq!(ByteCount::MAX / Bitrate::from_bps(1), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn display_carries_the_unit() {
        assert_eq!(Bitrate::from_mbps(20).to_string(), "20.0 Mbit/s");
        assert_eq!(ByteCount::new(200_000_000).to_string(), "200.0 MB");
        assert_eq!(ByteCount::new(1452).to_string(), "1452 B");
        assert_eq!(
            [5_242_880, 999_949, 999_950].map(|n| ByteCount::new(n).to_string()),
            ["5.2 MB", "999.9 kB", "1.0 MB"]
        );
        assert_eq!([999_950_000, 4_000_000_000].map(|n| ByteCount::new(n).to_string()), ["1.00 GB", "4.00 GB"]);
        assert_eq!([999_949, 999_950].map(|n| Bitrate::from_bps(n).to_string()), ["999.9 kbit/s", "1.0 Mbit/s"]);
        assert_eq!(Bitrate::from_mbps(1_250).to_string(), "1.25 Gbit/s");
    }

    #[test]
    fn window_arithmetic_that_went_wrong_becomes_zero_not_garbage() {
        assert_eq!(ByteCount::from_f64(-1.0), ByteCount::ZERO);
        assert_eq!(ByteCount::from_f64(f64::NAN), ByteCount::ZERO);
    }
}
