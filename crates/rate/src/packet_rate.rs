//! Rates in packets.

use core::fmt;

/// Packets in a second, of whatever size a flow has.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PacketRate(f64);

/// A number that is no rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{value} packets/s on path {path} is no rate; it must be finite and not below zero")]
pub struct NotARate {
    /// The path, counted from 0.
    pub path: usize,
    /// The number.
    pub value: f64,
}

impl PacketRate {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);

    /// A rate in packets a second.
    pub const fn new(per_second: f64) -> Self {
        Self(per_second)
    }

    /// How many in a second.
    pub const fn per_second(self) -> f64 {
        self.0
    }

    /// Whether it is finite and not below zero.
    pub fn is_rate(self) -> bool {
        self.0.is_finite() && self.0 >= 0.0
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} packets/s", self.0)
    }
}

/// The sum.
pub(crate) fn total(rates: &[PacketRate]) -> f64 {
    rates.iter().map(|rate| rate.0).sum()
}

/// The numbers, or the first that is no rate.
pub(crate) fn checked(rates: &[PacketRate]) -> Result<(), NotARate> {
    match rates.iter().position(|rate| !rate.is_rate()) {
        Some(path) => Err(NotARate { path, value: rates[path].0 }),
        None => Ok(()),
    }
}
