//! Opportunistic retransmission and penalisation, for a receive window that is full. The path that
//! holds the oldest data is slowed down, and a much faster path sends that data again.
//!
//! # Source
//! [Raiciu2012]; as in Linux MPTCP 0.95 (`mptcp_sched.c`), by description. The receive buffer optimisation of
//! [Luebben2019, slide 8].
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! No window falls below the minimum of the congestion control, two datagrams, where Linux leaves one segment.

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, PathMap, Timestamp};

/// Windows of at most this many datagrams hold little, so their data is sent again (Linux MPTCP
/// 0.95).
const SMALL_DATAGRAMS: u64 = 4;

/// Data is sent again if its holder's round trip is longer than this many of ours (Linux MPTCP
/// 0.95).
const MUCH_SLOWER: u32 = 4;

/// The path that holds the oldest data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) smoothed: Duration,
    pub(super) window: ByteCount,
    pub(super) max_datagram: ByteCount,
    /// Whether it recovers from losses: then it is slower than it seems, and was reduced already.
    pub(super) recovers: bool,
}

/// When each path last had another one penalised.
#[derive(Debug, Default)]
pub(super) struct Penalty(PathMap<Timestamp>);

impl Penalty {
    /// Whether the window of `holder` is to be halved because of `free`, whose smoothed round-trip time is `own`.
    pub(super) fn is_due(&mut self, free: PathId, own: Duration, holder: &Holder, now: Timestamp) -> bool {
        let lately = self.0.get(free).is_some_and(|at| now.since(*at) < own);
        if lately || holder.smoothed <= own || holder.recovers {
            return false;
        }
        self.0.insert(free, now);
        true
    }
}

/// Whether what `holder` holds is sent again on a path whose smoothed round-trip time is `own`.
pub(super) fn sends_again(own: Duration, holder: &Holder) -> bool {
    holder.window <= holder.max_datagram * SMALL_DATAGRAMS || own * MUCH_SLOWER < holder.smoothed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(smoothed_ms: u64, datagrams: u64) -> Holder {
        let datagram = ByteCount::new(1_200);
        Holder {
            smoothed: Duration::from_millis(smoothed_ms),
            window: datagram * datagrams,
            max_datagram: datagram,
            recovers: false,
        }
    }

    #[test]
    fn what_is_much_slower_or_holds_little_is_sent_again() {
        let own = Duration::from_millis(20);
        assert!(!sends_again(own, &holder(80, 5)));
        assert!(sends_again(own, &holder(81, 5)));
        assert!(sends_again(own, &holder(30, 4)));
    }

    #[test]
    fn only_a_slower_path_that_does_not_recover_is_penalised_and_once_in_a_round_trip() {
        let (mut penalty, own) = (Penalty::default(), Duration::from_millis(20));
        let mut due = |path: u32, holder: &Holder, now: u64| {
            penalty.is_due(PathId::new(path), own, holder, Timestamp::from_millis(now))
        };
        assert!(!due(0, &holder(20, 9), 100));
        assert!(!due(0, &Holder { recovers: true, ..holder(80, 9) }, 100));
        assert!(due(0, &holder(80, 9), 100));
        assert!(!due(0, &holder(80, 9), 119));
        assert!(due(2, &holder(80, 9), 119), "another path");
        assert!(due(0, &holder(80, 9), 120));
    }
}
