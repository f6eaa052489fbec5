//! What the engine knows of one path.

use core::time::Duration;

use fairpath_core::{Ack, Bytes, DeliveryRate, OneWayEstimator, RttEstimator, Timestamp};

use fairpath_sched::Terms;

use crate::pacer::Pacer;
use crate::sent_packets::SentPackets;
use crate::steady::Steadiness;

/// A path that was silent for less did not fall silent: delays that vary have such answers among them, and to leave
/// these out makes a path seem quicker than it is. One sample so long makes no patience of 2 s out of one of 0.2.
const SILENCE: Duration = Duration::from_millis(500);

/// A peer may hold an acknowledgement back for this long [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// Before the first sample a path is given this long [RFC9002 §6.2.2, kInitialRtt · 3].
const FIRST_ANSWER: Duration = Duration::from_millis(999);

/// A path that may send and does not for this long lacks data, or the scheduler keeps data off it.
/// Timers of hosts and their bursts make gaps that are shorter. In nanoseconds: 5 ms.
const STARVED_NS: u64 = 5_000_000;

/// The state of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) max_datagram: Bytes,
    pub(crate) packets: SentPackets,
    pub(crate) rtt: RttEstimator,
    pub(crate) one_way: OneWayEstimator,
    pub(crate) rate: DeliveryRate,
    pub(crate) pacer: Pacer,
    pub(crate) usable: bool,
    pub(crate) backup: bool,
    pub(crate) terms: Terms,
    pub(crate) lost: Bytes,
    /// When the newest packet left.
    pub(crate) sent_at: Timestamp,
    /// When the first packet left after the newest acknowledgement.
    asked_at: Timestamp,
    /// When the newest acknowledgement came that tells of how the path is.
    pub(crate) heard_at: Timestamp,
    /// When the newest packet that was acknowledged had been sent.
    pub(crate) proven_at: Option<Timestamp>,
    /// When the window was last full.
    full_at: Option<Timestamp>,
    /// When the path was last sent on as much as was allowed.
    used_at: Option<Timestamp>,
    /// When it was last found that it had been sent on less than that for a while.
    pub(crate) slack_at: Timestamp,
    /// When the detector last heard a delay of it, or the path was opened.
    pub(crate) told_at: Timestamp,
    /// How steadily it is sent on.
    pub(crate) steadiness: Steadiness,
    /// What the acknowledgement being read tells, packet by packet, but for the round-trip time, which only
    /// its newest packet gives.
    pub(crate) acked: Vec<Ack>,
    /// The newest packet of the acknowledgement being read: number and time of sending.
    pub(crate) newest_acked: Option<(u64, Timestamp)>,
    /// Whether that left before the path fell silent.
    pub(crate) is_newest_bygone: bool,
    /// The largest packet number acknowledged so far.
    pub(crate) largest_acked: Option<u64>,
    /// Losses reported since the last congestion event: what was in flight before them, and how much.
    pub(crate) losing: Option<(Bytes, Bytes)>,
    /// Until when the scheduler's view of it holds, if nothing happens; zero where something has.
    pub(crate) seen_until: Timestamp,
}

impl Path {
    pub(crate) fn new(max_datagram: Bytes, burst_datagrams: u64, now: Timestamp) -> Self {
        Self {
            max_datagram,
            packets: SentPackets::default(),
            rtt: RttEstimator::new(),
            one_way: OneWayEstimator::new(),
            rate: DeliveryRate::new(),
            pacer: Pacer::with_burst(max_datagram * burst_datagrams),
            usable: false,
            backup: false,
            terms: Terms::default(),
            lost: Bytes::ZERO,
            sent_at: now,
            asked_at: now,
            heard_at: now,
            proven_at: None,
            full_at: None,
            used_at: None,
            slack_at: now,
            told_at: now,
            steadiness: Steadiness::default(),
            acked: Vec::new(),
            newest_acked: None,
            is_newest_bygone: false,
            largest_acked: None,
            losing: None,
            seen_until: Timestamp::ZERO,
        }
    }

    /// What is in flight.
    pub(crate) fn in_flight(&self) -> Bytes {
        self.packets.in_flight()
    }

    /// A packet left.
    #[inline]
    pub(crate) fn on_left(&mut self, now: Timestamp) {
        self.sent_at = now;
        if self.asked_at <= self.heard_at {
            self.asked_at = now;
        }
    }

    /// So many bytes left: with the last of its quota the path is not usable any more.
    #[inline]
    pub(crate) fn take_of_quota(&mut self, bytes: Bytes) {
        if let Some(left) = &mut self.terms.quota {
            *left = left.saturating_sub(bytes);
            self.usable &= *left > Bytes::ZERO;
        }
    }

    /// Whether it is for emergencies only.
    pub(crate) fn is_backup(&self) -> bool {
        self.backup || self.terms.backup
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.terms.quota == Some(Bytes::ZERO)
    }

    /// Nothing of what is in flight will be heard of.
    pub(crate) fn forget_in_flight(&mut self) {
        self.packets = SentPackets::default();
    }

    /// Since when something is in flight.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.packets.oldest()
    }

    /// How much of what is in flight has waited for an answer for longer than one takes.
    pub(crate) fn overdue(&self, now: Timestamp) -> Bytes {
        self.packets.sent_before(now - self.patience())
    }

    /// Whether nothing but its window may keep a full datagram from leaving now.
    #[inline]
    pub(crate) fn is_free(&self, now: Timestamp) -> bool {
        self.usable && self.pacer.may_send(now) && !self.suspected(now)
    }

    /// Whether the path seems dead: packets wait for an answer for more than two probe timeouts,
    /// and nothing was heard in that time. An old, good round-trip time counts for nothing here.
    #[inline]
    pub(crate) fn suspected(&self, now: Timestamp) -> bool {
        let Some(oldest) = self.oldest() else { return false };
        let waited_ns = now.nanos_since(oldest.max(self.heard_at));
        // Shorter than any patience: the usual case, and this is asked for every packet.
        waited_ns > 2 * ACK_DELAY_MAX.as_nanos() as u64 && Duration::from_nanos(waited_ns) > self.patience()
    }

    /// Whether an answer is late: packets wait for it for more than one probe timeout, half of what makes the path
    /// suspected, and nothing was heard in that time.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        self.oldest().is_some_and(|oldest| now.since(oldest.max(self.heard_at)) > self.patience() / 2)
    }

    /// Since when nothing was heard of the path, if it was silent for longer than an answer takes, and a packet
    /// sent at `sent_at`, which is acknowledged now, left before that was known.
    #[inline]
    pub(crate) fn fell_silent(&self, sent_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let since = self.asked_at.max(self.heard_at);
        if now.nanos_since(since) <= SILENCE.as_nanos() as u64 {
            return None;
        }
        let patience = self.patience();
        (now.since(since) > patience && sent_at < since + patience).then_some(since)
    }

    /// Until when at least neither its pacer nor a suspicion changes what it may do, if nothing happens.
    pub(crate) fn same_until(&self, now: Timestamp) -> Timestamp {
        let free_at = Some(self.pacer.free_at()).filter(|at| *at > now);
        let silent = self.oldest().map(|oldest| {
            let since = oldest.max(self.heard_at);
            // As in `suspected`: mostly this much is enough, and it is cheap.
            let soon = since + 2 * ACK_DELAY_MAX;
            if now < soon { soon } else { since + self.patience() }
        });
        let silent = silent.filter(|at| *at >= now);
        free_at.into_iter().chain(silent).min().unwrap_or(Timestamp::MAX)
    }

    /// How long an answer may take before it counts as missing.
    #[inline(never)]
    pub(crate) fn patience(&self) -> Duration {
        self.rtt.get().map_or(FIRST_ANSWER, |rtt| 2 * (rtt.probe_timeout() + ACK_DELAY_MAX))
    }

    /// Before anything is taken off what is in flight: whether the path has carried less than it could for a
    /// while, so that what it delivers now says nothing of what it can deliver [BBRv3 §4.1.2.4]. Where no datagram
    /// has room it has carried all it may, though nothing left: what was lost keeps a window full for many
    /// round trips.
    pub(crate) fn judge_use(&mut self, now: Timestamp, window: Bytes) -> bool {
        if self.in_flight() + self.max_datagram > window {
            let unchanged_since = self.sent_at.max(self.heard_at);
            if self.used_at.is_none_or(|used_at| used_at < unchanged_since) && !self.within_a_round(self.used_at, now) {
                self.slack_at = now;
            }
            self.used_at = Some(now);
            return false;
        }
        let idle = now.nanos_since(self.pacer.free_at().max(self.sent_at)) > STARVED_NS;
        if idle {
            self.slack_at = now;
        }
        idle
    }

    /// A packet left: whether it filled the window, and whether another may not follow it.
    pub(crate) fn on_filled(&mut self, window: bool, all_used: bool, now: Timestamp) {
        if window {
            self.full_at = Some(now);
        }
        if all_used {
            self.steadiness.on_full();
            if !self.within_a_round(self.used_at, now) {
                self.slack_at = now;
            }
            self.used_at = Some(now);
        }
    }

    /// Whether a delay measured now says what the network does, and not what the application does: the path
    /// was sent on as much as it was allowed, or at a steady rate far below that, all the time in which the
    /// packet and those ahead of it left. An application that pauses lets the queues of all paths fall at once and
    /// fills them again, shared or not.
    pub(crate) fn tells_of_the_network(&self, now: Timestamp) -> bool {
        self.network_limited(now) || self.steadiness.is_steady(now)
    }

    fn network_limited(&self, now: Timestamp) -> bool {
        self.within_a_round(self.used_at, now) && now.nanos_since(self.slack_at) > 2 * self.rtt.smoothed_nanos()
    }

    /// Whether the window was full at some time since a packet that was sent at `sent_at` left: in the one
    /// round trip that its acknowledgement tells of, whatever the smoothed round-trip time is. Where the
    /// window is a single burst, that is the moment of the burst itself.
    pub(crate) fn window_was_full(&self, sent_at: Timestamp) -> bool {
        self.full_at.is_some_and(|full_at| full_at >= sent_at)
    }

    fn within_a_round(&self, at: Option<Timestamp>, now: Timestamp) -> bool {
        at.is_some_and(|at| now.nanos_since(at) <= self.rtt.smoothed_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent_packets::SentPacket;

    const MTU: Bytes = Bytes::new(1200);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A path with a round trip of 100 ms and so many datagrams in flight, which filled its window as they left.
    fn filled(datagrams: u64) -> Path {
        let mut path = Path::new(MTU, 10, ms(0));
        path.rtt.on_sample(ms(0), Duration::from_millis(100), Duration::ZERO);
        for number in 0..datagrams {
            let sent_state = path.rate.on_sent(ms(0), path.in_flight());
            path.packets.insert(number, SentPacket::new(MTU, sent_state));
        }
        path.on_filled(true, true, ms(0));
        path
    }

    /// An acknowledgement takes a datagram off what is in flight.
    fn acknowledge(path: &mut Path, window: Bytes, now: Timestamp) {
        path.judge_use(now, window);
        let number = path.largest_acked.map_or(0, |number| number + 1);
        path.packets.take(number);
        path.largest_acked = Some(number);
        path.heard_at = now;
    }

    #[test]
    fn a_window_that_is_full_for_rounds_after_a_loss_is_used_all_the_time() {
        // Ten in flight, and a window of two after the loss: nothing leaves for 400 ms.
        let mut path = filled(10);
        (1..=8).for_each(|n| acknowledge(&mut path, MTU * 2, ms(50 * n)));
        assert!(path.tells_of_the_network(ms(400)));
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
