//! Which datagrams are noted, when they left and when they came.

use std::collections::{BTreeMap, VecDeque};
use web_time::Instant;

use fairpath_engine::PathId;

/// One of so many datagrams is noted: at 5 Mbit/s more than a hundred in a second.
const ONE_OF: u64 = 4;

/// How many departures are kept: what leaves at 1 Gbit/s in 0.8 s.
const DEPARTURES_MAX: usize = 16_384;

/// How many arrivals wait for their report: what comes at 1 Gbit/s in 0.2 s.
const ARRIVALS_MAX: usize = 4_096;

/// The name of a datagram: its last eight bytes, which look random and are the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark(pub(super) u64);

impl Mark {
    /// The name of a datagram that is to be noted.
    pub(crate) fn of(datagram: &[u8]) -> Option<Self> {
        let mark = u64::from_be_bytes(*datagram.last_chunk()?);
        mark.is_multiple_of(ONE_OF).then_some(Self(mark))
    }
}

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(super) at: Instant,
    pub(super) path: PathId,
}

/// What left, and is not yet reported to have come.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    departures: BTreeMap<Mark, Departure>,
    /// In order of leaving; some are taken already.
    order: VecDeque<Mark>,
}

impl Departures {
    /// Notes a datagram.
    pub(super) fn note(&mut self, datagram: &[u8], path: PathId, at: Instant) {
        let Some(mark) = Mark::of(datagram) else { return };
        if self.order.len() >= DEPARTURES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.departures.remove(&oldest);
        }
        self.order.push_back(mark);
        self.departures.insert(mark, Departure { at, path });
    }

    /// The datagram of this name, once.
    pub(super) fn take(&mut self, mark: Mark) -> Option<Departure> {
        self.departures.remove(&mark)
    }
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(super) mark: Mark,
    pub(super) at: Instant,
}

/// What came, and is not yet reported.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(VecDeque<Arrival>);

impl Arrivals {
    /// Notes a datagram by its name.
    pub(super) fn note(&mut self, mark: Mark, at: Instant) {
        if self.0.len() >= ARRIVALS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Arrival { mark, at });
    }

    /// Takes what came, in order of coming.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Arrival> {
        self.0.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 100 bytes that end in these numbers.
    fn datagrams(ends: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
        ends.into_iter().map(|end| [vec![0; 92], end.to_be_bytes().to_vec()].concat()).collect()
    }

    #[test]
    fn both_ends_note_the_same_datagrams() {
        let (mut departures, mut arrivals, now) = (Departures::default(), Arrivals::default(), Instant::now());
        for datagram in datagrams(0..20) {
            departures.note(&datagram, PathId::new(3), now);
            Mark::of(&datagram).into_iter().for_each(|mark| arrivals.note(mark, now));
        }
        let marks: Vec<u64> = arrivals.take().map(|arrival| arrival.mark.0).collect();
        assert_eq!(marks, [0, 4, 8, 12, 16]);
        for mark in marks {
            assert_eq!(departures.take(Mark(mark)), Some(Departure { at: now, path: PathId::new(3) }));
        }
        assert_eq!(departures.take(Mark(4)), None, "each once");
        assert_eq!(arrivals.take().count(), 0, "reported once");
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut departures, mut arrivals, now) = (Departures::default(), Arrivals::default(), Instant::now());
        for datagram in datagrams((0..DEPARTURES_MAX as u64 + 10).map(|number| ONE_OF * number)) {
            departures.note(&datagram, PathId::new(0), now);
            Mark::of(&datagram).into_iter().for_each(|mark| arrivals.note(mark, now));
        }
        assert_eq!(departures.take(Mark(9 * ONE_OF)), None, "the oldest are forgotten");
        assert!(departures.take(Mark(10 * ONE_OF)).is_some());
        assert_eq!(arrivals.take().count(), ARRIVALS_MAX);
    }
}
