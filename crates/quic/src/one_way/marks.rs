//! Which datagrams are noted, when they left and when they came.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One of so many datagrams is noted: at 5 Mbit/s more than a hundred in a second.
const ONE_OF: u64 = 4;

/// How many departures are kept: what leaves at 1 Gbit/s in 0.8 s.
const DEPARTURES_MAX: usize = 16_384;

/// How many arrivals wait for their report: what comes at 1 Gbit/s in 0.2 s.
const ARRIVALS_MAX: usize = 4_096;

/// Nothing waits longer for this process; where it seems to, the system's clock was set.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The name of a datagram: its last eight bytes, which look random and are the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark(pub(super) u64);

impl Mark {
    /// The name of a datagram that is to be noted.
    fn of(datagram: &[u8]) -> Option<Self> {
        let mark = u64::from_be_bytes(*datagram.last_chunk()?);
        mark.is_multiple_of(ONE_OF).then_some(Self(mark))
    }
}

/// A datagram that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(super) at: Instant,
    pub(super) local: IpAddr,
    pub(super) remote: SocketAddr,
}

/// What left through an endpoint, and is not yet reported to have come.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    is_watched: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    departures: BTreeMap<Mark, Departure>,
    /// In order of leaving; some are taken already.
    order: VecDeque<Mark>,
}

impl Departures {
    /// From now on departures are noted.
    pub(super) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Notes datagrams of `segment` bytes, or one of any size.
    pub(crate) fn note(&self, contents: &[u8], segment: Option<usize>, local: IpAddr, remote: SocketAddr) {
        if !self.is_watched.load(Ordering::Relaxed) {
            return;
        }
        let at = Instant::now();
        let mut noted = self.lock();
        for mark in contents.chunks(segment.unwrap_or(contents.len()).max(1)).filter_map(Mark::of) {
            if noted.order.len() >= DEPARTURES_MAX
                && let Some(oldest) = noted.order.pop_front()
            {
                noted.departures.remove(&oldest);
            }
            noted.order.push_back(mark);
            noted.departures.insert(mark, Departure { at, local, remote });
        }
    }

    /// The datagram of this name, once.
    pub(super) fn take(&self, mark: Mark) -> Option<Departure> {
        self.lock().departures.remove(&mark)
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(super) mark: Mark,
    pub(super) at: Instant,
    local: IpAddr,
    remote: SocketAddr,
}

/// What came to an endpoint, and is not yet reported.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    is_watched: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    arrivals: VecDeque<Arrival>,
    until: Option<Instant>,
}

impl Arrivals {
    /// Arrivals are noted until then.
    pub(crate) fn watch(&self, until: Instant) {
        let mut waiting = self.lock();
        waiting.until = waiting.until.max(Some(until));
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Notes datagrams of `stride` bytes each. `came` is when they did, since the beginning of 1970,
    /// where the system says so: this process may not have run since.
    pub(crate) fn note(
        &self,
        contents: &[u8],
        stride: usize,
        came: Option<Duration>,
        local: IpAddr,
        remote: SocketAddr,
    ) {
        if !self.is_watched.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = came.map_or(Duration::ZERO, |came| clock.saturating_sub(came)).min(AGE_MAX);
        let at = now.checked_sub(age).unwrap_or(now);
        let mut waiting = self.lock();
        if waiting.until.is_none_or(|until| now >= until) {
            self.is_watched.store(false, Ordering::Relaxed);
            waiting.arrivals.clear();
            return;
        }
        for mark in contents.chunks(stride.max(1)).filter_map(Mark::of) {
            if waiting.arrivals.len() >= ARRIVALS_MAX {
                waiting.arrivals.pop_front();
            }
            waiting.arrivals.push_back(Arrival { mark, at, local, remote });
        }
    }

    /// Takes what came between the addresses that `ours` is true of, in order of coming.
    pub(super) fn take(&self, ours: impl Fn(IpAddr, SocketAddr) -> bool) -> Vec<Arrival> {
        let mut taken = Vec::new();
        self.lock().arrivals.retain(|arrival| {
            let is_ours = ours(arrival.local, arrival.remote);
            if is_ours {
                taken.push(*arrival);
            }
            !is_ours
        });
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::new(LOCAL, port)
    }

    /// Datagrams of 100 bytes that end in these numbers.
    fn train(ends: impl IntoIterator<Item = u64>) -> Vec<u8> {
        ends.into_iter().flat_map(|end| [vec![0; 92], end.to_be_bytes().to_vec()].concat()).collect()
    }

    #[test]
    fn both_ends_note_the_same_datagrams_of_a_train() {
        let (departures, arrivals) = (Departures::default(), Arrivals::default());
        departures.watch();
        arrivals.watch(Instant::now() + Duration::from_secs(60));
        let train = train(0..20);
        departures.note(&train, Some(100), LOCAL, remote(1));
        arrivals.note(&train, 100, None, LOCAL, remote(2));
        let came = arrivals.take(|_, from| from == remote(2));
        let marks: Vec<u64> = came.iter().map(|arrival| arrival.mark.0).collect();
        assert_eq!(marks, [0, 4, 8, 12, 16]);
        assert!(came.iter().all(|arrival| departures.take(arrival.mark).is_some_and(|left| left.remote == remote(1))));
        assert!(departures.take(Mark(4)).is_none(), "each once");
        assert!(arrivals.take(|_, _| true).is_empty(), "reported once");
    }

    #[test]
    fn what_nobody_asked_for_is_not_noted() {
        let (departures, arrivals) = (Departures::default(), Arrivals::default());
        departures.note(&train([0]), None, LOCAL, remote(1));
        arrivals.note(&train([0]), 100, None, LOCAL, remote(1));
        assert!(departures.take(Mark(0)).is_none() && arrivals.take(|_, _| true).is_empty());
        arrivals.watch(Instant::now());
        arrivals.note(&train([0]), 100, None, LOCAL, remote(1));
        assert!(arrivals.take(|_, _| true).is_empty(), "nor what comes later than asked for");
    }

    #[test]
    fn the_memory_is_bounded() {
        let (departures, arrivals) = (Departures::default(), Arrivals::default());
        departures.watch();
        arrivals.watch(Instant::now() + Duration::from_secs(60));
        let train = train((0..DEPARTURES_MAX as u64 + 10).map(|number| ONE_OF * number));
        departures.note(&train, Some(100), LOCAL, remote(1));
        arrivals.note(&train, 100, None, LOCAL, remote(1));
        assert!(departures.take(Mark(9 * ONE_OF)).is_none(), "the oldest are forgotten");
        assert!(departures.take(Mark(10 * ONE_OF)).is_some());
        assert_eq!(arrivals.take(|_, _| true).len(), ARRIVALS_MAX);
    }
}
