//! The state of one path. `liveness` says whether it answers, `usage` what limits it, `recovery`
//! which packets are lost, and `path_use` whether it carries data, and if not, why.

mod liveness;
mod path_use;
mod recovery;
mod usage;

use fairpath_core::{Ack, ByteCount, DeliveryRate, OneWayEstimator, RttEstimator, Timestamp};
use fairpath_sched::Terms;

pub use self::liveness::Liveness;
use self::liveness::{Answers, patience};
pub use self::path_use::{BackupReason, PathUse, ShutReason, UseState};
pub use self::recovery::{LossBatch, LossDetector, Tracked, probe_timeout};
use self::usage::Usage;

use crate::pacer::Pacer;
use crate::sent_packets::SentPackets;

/// The state of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) max_datagram: ByteCount,
    pub(crate) packets: SentPackets,
    pub(crate) rtt: RttEstimator,
    pub(crate) one_way: OneWayEstimator,
    pub(crate) rate: DeliveryRate,
    pub(crate) pacer: Pacer,
    /// The use that its host makes of it.
    pub(crate) host_use: PathUse,
    /// This end's terms, and the peer's.
    pub(crate) own_terms: Terms,
    pub(crate) peer_terms: Terms,
    pub(crate) lost: ByteCount,
    /// Whether it answers.
    pub(crate) answers: Answers,
    /// How much of its allowance the path uses.
    pub(crate) usage: Usage,
    /// When the detector last heard a delay of it, or the path was opened.
    pub(crate) told_at: Timestamp,
    /// The packets of the acknowledgement being read. Their round-trip time is added at its end,
    /// since only its newest packet gives one.
    pub(crate) acked: Vec<Ack>,
    /// The newest packet of the acknowledgement being read: number and time of sending.
    pub(crate) newest_acked: Option<(u64, Timestamp)>,
    /// Whether that packet left before the path fell silent.
    pub(crate) is_newest_bygone: bool,
    /// The largest packet number acknowledged so far.
    pub(crate) largest_acked: Option<u64>,
    /// Losses since the last congestion event: the bytes in flight before them, and the bytes lost.
    pub(crate) losing: Option<(ByteCount, ByteCount)>,
    /// The time until which the scheduler's view holds, if nothing happens; zero after an event.
    pub(crate) seen_until: Timestamp,
}

impl Path {
    pub(crate) fn new(max_datagram: ByteCount, burst_datagrams: u64, now: Timestamp) -> Self {
        Self {
            max_datagram,
            packets: SentPackets::default(),
            rtt: RttEstimator::new(),
            one_way: OneWayEstimator::new(),
            rate: DeliveryRate::new(),
            pacer: Pacer::with_burst(max_datagram * burst_datagrams),
            host_use: PathUse::Shut(ShutReason::Opening),
            own_terms: Terms::default(),
            peer_terms: Terms::default(),
            lost: ByteCount::ZERO,
            answers: Answers::new(now),
            usage: Usage::new(now),
            told_at: now,
            acked: Vec::new(),
            newest_acked: None,
            is_newest_bygone: false,
            largest_acked: None,
            losing: None,
            seen_until: Timestamp::ZERO,
        }
    }

    /// The bytes in flight.
    pub(crate) fn in_flight(&self) -> ByteCount {
        self.packets.in_flight()
    }

    /// The use of the path, by its host and by the terms of both ends.
    #[inline]
    pub(crate) fn path_use(&self) -> PathUse {
        match self.host_use {
            PathUse::Open | PathUse::Backup(_) if self.own_terms.quota == Some(ByteCount::ZERO) => {
                PathUse::Shut(ShutReason::UsedUp)
            }
            PathUse::Open if self.own_terms.backup => PathUse::Backup(BackupReason::Asked),
            PathUse::Open if self.peer_terms.backup => PathUse::Backup(BackupReason::Declined),
            by_host => by_host,
        }
    }

    /// Whether it can carry data.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        !matches!(self.path_use(), PathUse::Shut(_))
    }

    /// Whether it is for emergencies only.
    pub(crate) fn is_backup(&self) -> bool {
        matches!(self.path_use(), PathUse::Backup(_))
    }

    /// Charges these bytes to the quota; without any left the path is no longer usable.
    #[inline]
    pub(crate) fn take_of_quota(&mut self, bytes: ByteCount) {
        if let Some(left) = &mut self.own_terms.quota {
            *left = left.saturating_sub(bytes);
        }
    }

    /// The terms of both ends together.
    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        self.own_terms.heeding(self.peer_terms)
    }

    /// The packets in flight will not be accounted for.
    pub(crate) fn forget_in_flight(&mut self) {
        self.packets = SentPackets::default();
    }

    /// Since when something is in flight.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.packets.oldest()
    }

    /// The bytes in flight that have waited longer than an answer takes.
    pub(crate) fn overdue(&self, now: Timestamp) -> ByteCount {
        self.packets.sent_before(now - patience(&self.rtt))
    }

    /// Forgets packets that no answer is expected for: they left too long before packet `number`,
    /// which was acknowledged.
    pub(crate) fn forget_stale(&mut self, number: u64, now: Timestamp) {
        self.packets.forget_stale(number, now - patience(&self.rtt));
    }

    /// Whether nothing but its window may keep a full datagram from leaving now.
    #[inline]
    pub(crate) fn is_free(&self, now: Timestamp) -> bool {
        self.is_usable() && self.pacer.may_send(now) && !self.is_silent(now)
    }

    /// Whether it answers.
    pub(crate) fn liveness(&self, now: Timestamp) -> Liveness {
        self.answers.liveness(self.oldest(), &self.rtt, now)
    }

    /// Whether it owes an answer for more than two probe timeouts.
    #[inline]
    pub(crate) fn is_silent(&self, now: Timestamp) -> bool {
        self.answers.is_silent(self.oldest(), &self.rtt, now)
    }

    /// Since when nothing was heard of it, where a packet sent at `sent_at` left before that was known.
    #[inline]
    pub(crate) fn fell_silent(&self, sent_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.answers.fell_silent(sent_at, &self.rtt, now)
    }

    /// The earliest time at which its pacer or a silence changes what it may do, if nothing
    /// happens.
    pub(crate) fn same_until(&self, now: Timestamp) -> Timestamp {
        let free_at = Some(self.pacer.free_at()).filter(|at| *at > now);
        let silent_at = self.answers.silent_at(self.oldest(), &self.rtt, now);
        free_at.into_iter().chain(silent_at).min().unwrap_or(Timestamp::MAX)
    }

    /// Called before anything is taken off the bytes in flight. Whether the path has carried less
    /// than it could for a while.
    pub(crate) fn judge_use(&mut self, now: Timestamp, window: ByteCount) -> bool {
        if self.in_flight() + self.max_datagram > window {
            let unchanged_since = self.answers.sent_at.max(self.answers.heard_at);
            self.usage.on_found_full(unchanged_since, &self.rtt, now);
            return false;
        }
        self.usage.on_found_free(self.pacer.free_at().max(self.answers.sent_at), now)
    }

    /// A packet filled the window (`window`), or used all that is allowed now (`all_used`).
    pub(crate) fn on_filled(&mut self, window: bool, all_used: bool, now: Timestamp) {
        self.usage.on_filled(window, all_used, &self.rtt, now);
    }

    /// Whether a delay measured now tells of the network.
    pub(crate) fn tells_of_the_network(&self, now: Timestamp) -> bool {
        self.usage.tells_of_the_network(&self.rtt, now)
    }

    /// Whether a delay measured now is that of a path that used all it was allowed.
    pub(crate) fn is_network_limited(&self, now: Timestamp) -> bool {
        self.usage.is_network_limited(&self.rtt, now)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::sent_packets::SentPacket;

    const MTU: ByteCount = ByteCount::new(1200);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A path with a round trip of 100 ms and `datagrams` in flight, which filled its window as
    /// they left.
    fn filled(datagrams: u64) -> Path {
        let mut path = Path::new(MTU, 10, ms(0));
        path.rtt.on_sample(ms(0), Duration::from_millis(100), Duration::ZERO);
        fill(&mut path, 0..datagrams, ms(0));
        path
    }

    /// Datagrams leave from this number on and fill the window.
    fn fill(path: &mut Path, numbers: core::ops::Range<u64>, now: Timestamp) {
        for number in numbers {
            let sent_state = path.rate.on_sent(now, path.in_flight());
            path.packets.insert(number, SentPacket::new(MTU, sent_state));
        }
        path.on_filled(true, true, now);
        path.answers.sent_at = now;
    }

    /// An acknowledgement takes a datagram off what is in flight.
    fn acknowledge(path: &mut Path, window: ByteCount, now: Timestamp) {
        path.judge_use(now, window);
        let number = path.largest_acked.map_or(0, |number| number + 1);
        path.packets.take(number);
        path.largest_acked = Some(number);
        path.answers.heard_at = now;
    }

    #[test]
    fn a_window_that_is_full_for_rounds_after_a_loss_is_used_all_the_time() {
        // Ten in flight, and a window of two after the loss: nothing leaves for 400 ms.
        let mut path = filled(10);
        (1..=8).for_each(|n| acknowledge(&mut path, MTU * 2, ms(50 * n)));
        assert!(path.tells_of_the_network(ms(400)));
    }

    #[test]
    fn a_window_of_which_two_acknowledgements_are_read_at_once_is_used_all_the_time() {
        let mut path = filled(10);
        for round in 1..=10 {
            let now = ms(50 * round);
            (0..2).for_each(|_| acknowledge(&mut path, MTU * 10, now));
            fill(&mut path, 8 + 2 * round..10 + 2 * round, now);
        }
        assert!(path.tells_of_the_network(ms(500)));
    }

    #[test]
    fn a_window_with_room_that_is_not_used_tells_of_the_application() {
        let mut path = filled(10);
        (1..=4).for_each(|n| acknowledge(&mut path, MTU * 10, ms(50 * n)));
        assert!(!path.tells_of_the_network(ms(200)));
    }

    #[test]
    fn a_window_that_comes_to_be_full_without_a_packet_tells_two_rounds_later() {
        let mut path = filled(10);
        (1..=4).for_each(|n| acknowledge(&mut path, MTU * 20, ms(300 * n)));
        // A loss leaves a window of four of the six in flight.
        acknowledge(&mut path, MTU * 4, ms(1300));
        assert!(!path.tells_of_the_network(ms(1350)));
        acknowledge(&mut path, MTU * 4, ms(1390));
        acknowledge(&mut path, MTU * 4, ms(1480));
        acknowledge(&mut path, MTU * 2, ms(1550));
        assert!(path.tells_of_the_network(ms(1550)));
    }
}
