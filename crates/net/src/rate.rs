//! How fast a link transmits: a fixed rate, a table of rates over time, or a recorded trace.

mod fixed;
mod mahimahi;
mod table;

use std::sync::Arc;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use fixed::Fixed;
use mahimahi::Opportunities;
use table::Stepped;

pub use mahimahi::{MahimahiError, MahimahiTrace};
pub use table::{RateTable, RateTableEnd, RateTableError};

/// The most characters of a line that are quoted: a file may be one long line.
const QUOTED: usize = 40;

/// The beginning of what a file says, for a message about it.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The rate of a link. Tables and traces are shared, not copied.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Transmission takes no time.
    Unlimited,
    /// Always the same. With a rate of zero everything waits.
    Fixed(Bitrate),
    /// A step function of time.
    Table(Arc<RateTable>),
    /// A recorded sequence of opportunities to transmit \[Mahimahi\].
    Mahimahi(Arc<MahimahiTrace>),
}

impl Rate {
    /// The rate in the long run: that of one period where it repeats, the last where it does not.
    /// `None` where it is unlimited.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Fixed(rate) => Some(*rate),
            Self::Table(table) => Some(table.mean()),
            Self::Mahimahi(trace) => Some(trace.mean()),
        }
    }
}

impl From<Bitrate> for Rate {
    fn from(rate: Bitrate) -> Self {
        Self::Fixed(rate)
    }
}

impl From<RateTable> for Rate {
    fn from(table: RateTable) -> Self {
        Self::Table(Arc::new(table))
    }
}

impl From<MahimahiTrace> for Rate {
    fn from(trace: MahimahiTrace) -> Self {
        Self::Mahimahi(Arc::new(trace))
    }
}

/// One bit, in the unit in which work is counted: 10^-9 bit, so that work divided by a rate in
/// bits per second is nanoseconds, and what the division leaves can be carried over exactly.
const BIT: u64 = 1_000_000_000;

/// The work of transmitting `size`. Sizes above 2.3 GB count as 2.3 GB.
fn work(size: ByteCount) -> u64 {
    size.get().saturating_mul(8 * BIT)
}

/// A transmitter: takes one packet after the other and says when each begins and ends.
#[derive(Debug)]
pub(crate) enum Transmitter {
    /// From this time on, transmission takes no time.
    Unlimited(Timestamp),
    Fixed(Fixed),
    Stepped(Stepped),
    Opportunities(Opportunities),
}

impl Transmitter {
    /// A transmitter of `rate` that is free from `free_at`.
    pub(crate) fn new(rate: &Rate, free_at: Timestamp) -> Self {
        match rate {
            Rate::Unlimited => Self::Unlimited(free_at),
            Rate::Fixed(rate) => Self::Fixed(Fixed::new(*rate, free_at)),
            Rate::Table(table) => Self::Stepped(Stepped::new(table.clone(), free_at)),
            Rate::Mahimahi(trace) => Self::Opportunities(Opportunities::new(trace.clone(), free_at)),
        }
    }

    /// When the transmission of the next packet begins, given that it came at `arrival` and that
    /// arrivals do not go back in time.
    #[inline]
    pub(crate) fn next_start(&mut self, arrival: Timestamp) -> Timestamp {
        match self {
            Self::Unlimited(free_at) => arrival.max(*free_at),
            Self::Fixed(fixed) => fixed.next_start(arrival),
            Self::Stepped(stepped) => stepped.next_start(arrival),
            Self::Opportunities(opportunities) => opportunities.next_start(arrival),
        }
    }

    /// Transmits `size` from `start`, which `next_start` has just said, and gives the end.
    #[inline]
    pub(crate) fn transmit(&mut self, start: Timestamp, size: ByteCount) -> Timestamp {
        match self {
            Self::Unlimited(_) => start,
            Self::Fixed(fixed) => fixed.transmit(start, size),
            Self::Stepped(stepped) => stepped.transmit(start, size),
            Self::Opportunities(opportunities) => opportunities.transmit(size),
        }
    }

    /// When the transmission under way ends.
    pub(crate) fn free_at(&self) -> Timestamp {
        match self {
            Self::Unlimited(free_at) => *free_at,
            Self::Fixed(fixed) => fixed.free_at(),
            Self::Stepped(stepped) => stepped.free_at(),
            Self::Opportunities(opportunities) => opportunities.free_at(),
        }
    }

    /// The rate in the long run; `None` where it is unlimited.
    pub(crate) fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Unlimited(_) => None,
            Self::Fixed(fixed) => Some(fixed.rate()),
            Self::Stepped(stepped) => Some(stepped.mean()),
            Self::Opportunities(opportunities) => Some(opportunities.mean()),
        }
    }

    /// The rate at `now`, for a trace its mean; `None` where it is unlimited.
    #[inline]
    pub(crate) fn rate_at(&mut self, now: Timestamp) -> Option<Bitrate> {
        match self {
            Self::Unlimited(_) => None,
            Self::Fixed(fixed) => Some(fixed.rate()),
            Self::Stepped(stepped) => Some(stepped.rate_at(now)),
            Self::Opportunities(opportunities) => Some(opportunities.mean()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_of_a_recording_is_short() {
        let line = "x\u{1b}é".repeat(10_000);
        let table = |text: &str| RateTable::parse(text, RateTableEnd::Hold).unwrap_err().to_string();
        for said in [
            MahimahiTrace::parse(&line).unwrap_err().to_string(),
            table(&line),
            table(&format!("time_s,rate_bps\n{line}")),
            table(&format!("time_s,rate_bps\n0,{line}")),
        ] {
            assert!(said.len() < 500 && said.contains('…') && !said.contains('\u{1b}'), "{said:.600}");
        }
    }
}
