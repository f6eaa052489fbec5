//! The datagrams that are sampled, with the times when they left and came.
//!
//! A report has room for about a hundred. If there are more, both ends must choose the same ones
//! without talking about it. So a mark has a rank: half of all marks have rank 1 or more, a quarter
//! rank 2 or more and so on, and the highest ranks are reported. The sender notes those that it expects
//! in reports, by its own rate, and a few times more, because the ends see different rates.

use std::collections::{BTreeMap, VecDeque};
use web_time::{Duration, Instant};

use fairpath_engine::PathId;

/// The least rank that is noted: of a quarter of all datagrams, at 5 Mbit/s of more than a hundred in a second.
const RANK_MIN: u32 = 2;

/// How many departures are noted in a second at most, and half as many at least where more datagrams leave than that:
/// three times what is reported ([`super::report::ENTRIES_MAX`]), or more.
const DEPARTURES_PER_SECOND: u64 = 16_384;

/// How many departures are kept: those of a second or two.
const DEPARTURES_MAX: usize = 16_384;

/// How often it is counted how much leaves.
const COUNT_EVERY: Duration = Duration::from_millis(50);

/// How many arrivals wait for their report.
const ARRIVALS_MAX: usize = 4_096;

/// The name of a datagram: its last eight bytes, which look random and are the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark(pub(super) u64);

impl Mark {
    /// The name of a datagram that is to be noted.
    pub(crate) fn of(datagram: &[u8]) -> Option<Self> {
        let mark = Self(u64::from_be_bytes(*datagram.last_chunk()?));
        (mark.rank() >= RANK_MIN).then_some(mark)
    }

    /// Each rank has half as many marks as the one below it.
    pub(super) fn rank(self) -> u32 {
        self.0.trailing_zeros()
    }
}

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(super) at: Instant,
    pub(super) path: PathId,
}

/// Datagrams that left and were not reported to have arrived.
#[derive(Debug)]
pub(crate) struct Departures {
    departures: BTreeMap<Mark, Departure>,
    /// In order of leaving; some are taken already.
    order: VecDeque<Mark>,
    /// The least rank that is noted now.
    rank: u32,
    /// How many datagrams have left since it was last chosen, and when that was.
    count: u64,
    since: Instant,
}

impl Departures {
    /// None, at the beginning of a connection.
    pub(super) fn new(now: Instant) -> Self {
        Self { departures: BTreeMap::new(), order: VecDeque::new(), rank: RANK_MIN, count: 0, since: now }
    }

    /// Notes a datagram.
    pub(super) fn note(&mut self, datagram: &[u8], path: PathId, at: Instant) {
        self.count += 1;
        if at >= self.since + COUNT_EVERY {
            self.choose(at);
        }
        let Some(mark) = Mark::of(datagram).filter(|mark| mark.rank() >= self.rank) else { return };
        if self.order.len() >= DEPARTURES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.departures.remove(&oldest);
        }
        self.order.push_back(mark);
        self.departures.insert(mark, Departure { at, path });
    }

    /// A datagram that was noted left at this time; `None` where nobody knows.
    pub(super) fn correct(&mut self, mark: Mark, left: Option<Instant>) {
        match (left, self.departures.get_mut(&mark)) {
            (Some(at), Some(departure)) => departure.at = at,
            (None, Some(_)) => _ = self.departures.remove(&mark),
            (_, None) => {}
        }
    }

    /// Chooses, by the rate of departures, the share of them to note from now on.
    fn choose(&mut self, now: Instant) {
        let took = now.saturating_duration_since(self.since).as_micros().max(1);
        let per_second = u128::from(self.count) * 1_000_000 / took;
        let share = per_second / u128::from(DEPARTURES_PER_SECOND);
        // 2^rank is more than the share by twofold at most.
        self.rank = (u128::BITS - share.leading_zeros()).max(RANK_MIN);
        (self.count, self.since) = (0, now);
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

/// Datagrams that arrived and were not reported yet.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    arrivals: VecDeque<Arrival>,
    /// The least rank that is noted.
    rank: u32,
}

impl Arrivals {
    /// Notes a datagram by its name.
    pub(super) fn note(&mut self, mark: Mark, at: Instant) {
        if mark.rank() < self.rank {
            return;
        }
        while self.arrivals.len() >= ARRIVALS_MAX {
            self.rank = self.rank.max(RANK_MIN) + 1;
            let rank = self.rank;
            self.arrivals.retain(|arrival| arrival.mark.rank() >= rank);
        }
        self.arrivals.push_back(Arrival { mark, at });
    }

    /// Takes what came, in order of coming.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Arrival> {
        self.rank = RANK_MIN;
        self.arrivals.drain(..)
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
        let now = Instant::now();
        let (mut departures, mut arrivals) = (Departures::new(now), Arrivals::default());
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
        let now = Instant::now();
        let (mut departures, mut arrivals) = (Departures::new(now), Arrivals::default());
        for datagram in datagrams((0..DEPARTURES_MAX as u64 + 10).map(|number| number << 40)) {
            departures.note(&datagram, PathId::new(0), now);
            Mark::of(&datagram).into_iter().for_each(|mark| arrivals.note(mark, now));
        }
        assert_eq!(departures.take(Mark(9 << 40)), None, "the oldest are forgotten");
        assert!(departures.take(Mark(10 << 40)).is_some());
        let kept = arrivals.take().count();
        assert!((1..=ARRIVALS_MAX).contains(&kept), "{kept}");
    }

    /// Datagrams leave `per_second` for a second and arrive 400 ms later; a report of at most
    /// `entries` goes every 50 ms.
    /// Returns for each report its number of entries, and how many of them the sender knows.
    fn reported(per_second: u64, entries: usize) -> Vec<(usize, usize)> {
        let begun = Instant::now();
        let (mut departures, mut arrivals) = (Departures::new(begun), Arrivals::default());
        let mut random = 1_u64;
        let mut under_way = VecDeque::new();
        let mut reports = Vec::new();
        let tick = Duration::from_millis(1);
        for milli in 0..1_500_u64 {
            let now = begun + tick * milli as u32;
            let leaving = if milli < 1_000 { per_second * (milli + 1) / 1_000 - per_second * milli / 1_000 } else { 0 };
            for _ in 0..leaving {
                // Numbers that look random [an odd multiplier, and the high half folded in].
                random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                let datagram = [[0; 8], (random ^ (random >> 32)).to_be_bytes()].concat();
                departures.note(&datagram, PathId::new(0), now);
                under_way.push_back((milli + 400, Mark::of(&datagram)));
            }
            while under_way.front().is_some_and(|(comes, _)| *comes <= milli) {
                let (_, mark) = under_way.pop_front().expect("it was there");
                mark.into_iter().for_each(|mark| arrivals.note(mark, now));
            }
            if milli % 50 == 49 {
                let came = arrivals.take().map(|arrival| (arrival.mark, 0)).collect();
                let Some(report) = super::super::report::Report::new(0, came, 13 + 12 * entries) else { continue };
                let known = report.came.iter().filter(|(mark, _)| departures.take(*mark).is_some()).count();
                reports.push((report.came.len(), known));
            }
        }
        reports
    }

    #[test]
    fn at_any_rate_the_sender_knows_what_is_reported() {
        for per_second in [400, 4_000, 20_000, 100_000, 1_000_000] {
            let reports = reported(per_second, 91);
            assert!(reports.len() >= 19, "{per_second}: {}", reports.len());
            for (at, (reported, known)) in reports.into_iter().enumerate() {
                let least = (per_second / 20 / 4).min(91) as usize / 3;
                assert!(reported >= least, "{per_second} in a second: {reported} in report {at}");
                // In the first 50 ms it was not known how much would leave, and too much of it noted.
                let least = if at == 0 { reported / 2 } else { reported };
                assert!(known >= least, "{per_second} in a second: {known} of {reported} in report {at}");
            }
        }
    }
}
