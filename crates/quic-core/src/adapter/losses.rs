//! Loss detection for paths that reorder, in place of noq's.
//!
//! noq declares a packet lost when three later ones were acknowledged, or an eighth of a round trip too
//! late, and forgets it. It reports no single packet that arrives after all, and a spurious loss only
//! once all packets declared lost have arrived. On a path that reorders all the time that never
//! happens, and the window stays at its minimum: 0.8 of 50 Mbit/s with 20 ms of jitter. noq's
//! thresholds are fixed for a connection, and fixed thresholds that tolerate reordering would be slow
//! on every other path. So noq is configured to wait ([`GIVEN_UP_AFTER`]) and keeps its packets known.
//! The engine's [`LossDetector`] finds the losses here. It starts at RFC 9002's thresholds, raises them
//! on a path that reorders, and takes spurious losses back [RFC9438 §4.9].
//!
//! While noq waits it sends no probe of its own, though the newest packets may be lost, too. So a probe
//! is sent from here after a probe timeout [RFC9002 §6.2].
//!
//! A loss that noq declares in the end is final. A handshake has three packet number spaces with the
//! same numbers, and its losses are left to noq.

use web_time::Duration;

use fairpath_engine::{CongestionSignal, LossDetector, PathId, Rtt, Timestamp, Tracked};

use super::{Fate, Shared};

/// How many round trips noq waits for an overtaken packet where losses are found here. This is longer
/// than the usual eighth, so that a packet that arrives meanwhile is known to have been late. The
/// detector here may wait longer still on a path that reorders, but noq retransmits its own frames only
/// after this time. With 6, two links of 50 Mbit/s with 20 ms of jitter carry 25 Mbit/s in place of 8,
/// and a lost packet of a set-up over 300 ms is retransmitted a second later.
pub(crate) const GIVEN_UP_AFTER: f32 = 3.0;

/// How many later packets must have arrived then. noq's receiver takes one that more than 128 have overtaken for one that
/// came before, and drops it.
pub(crate) const GIVEN_UP_BEHIND: u32 = 129;

/// A peer may hold an acknowledgement back for this long [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// The packets of one path that may be lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    packets: LossDetector<()>,
    /// The newest packet that the path was asked after.
    asked_after: Option<u64>,
}

impl Losses {
    /// When to ask for an answer to the newest packet, where noq does not, since it waits for one that was taken for
    /// lost here.
    fn probe_due(&self, rtt: Option<Rtt>) -> Option<Timestamp> {
        let rtt = rtt?;
        let newest = self.packets.newest().filter(|newest| self.packets.newest_acked() < Some(newest.number))?;
        let suspect = self.packets.newest_declared()?;
        let due = newest.at + rtt.probe_timeout() + ACK_DELAY_MAX;
        let is_held = due < suspect.at + rtt.smoothed.max(rtt.latest).mul_f32(GIVEN_UP_AFTER);
        (is_held && self.asked_after < Some(newest.number)).then_some(due)
    }

    /// Whether the packet was taken for lost here.
    pub(super) fn is_suspect(&self, number: u64) -> bool {
        self.packets.is_declared(number)
    }
}

impl Shared {
    /// A packet left; whose loss says nothing of congestion, as `newest_question` has it.
    pub(super) fn watch(&mut self, path: PathId, number: u64, newest_question: Option<u64>, at: Timestamp) {
        if let Some(losses) = self.losses.get_mut(path).filter(|_| self.finds_losses) {
            losses.packets.exempt_up_to(newest_question);
            losses.packets.on_sent(number, (), at);
        }
    }

    /// Forgets the packets in flight on the path: they will be neither acknowledged nor lost.
    pub(super) fn unwatch(&mut self, path: PathId) {
        if let Some(losses) = self.losses.get_mut(path) {
            *losses = Losses::default();
        }
    }

    /// The packets of an acknowledgement that came on the path now, with the times of their sending, in no order.
    pub(super) fn note_acked(&mut self, path: PathId, acked: &[(u64, Timestamp)], now: Timestamp) {
        let Some(losses) = self.losses.get_mut(path) else { return };
        for (number, at) in acked {
            losses.packets.on_acked(*number, Some(*at));
        }
        if losses.packets.has_late() && losses.packets.on_ack_end(self.engine.rtt(path), now) {
            self.engine.on_spurious_congestion(path, now);
        }
    }

    /// noq has given up a packet. Whether it was taken for lost here before.
    pub(super) fn note_given_up(&mut self, path: PathId, number: u64, sent: Option<Timestamp>) -> bool {
        let Some(losses) = self.losses.get_mut(path) else { return false };
        if let Some(at) = sent {
            losses.packets.on_given_up(number, Some(at));
        }
        losses.is_suspect(number)
    }

    /// Gives up what of the path must be taken for lost by now.
    pub(super) fn find_lost(&mut self, path: PathId, now: Timestamp) {
        let Self { losses, engine, fates, lost, .. } = self;
        let Some(losses) = losses.get_mut(path) else { return };
        let noted = |packet: &Tracked<()>, counts: bool| lost.push((packet.number, counts));
        let batch = losses.packets.find_lost(engine.rtt(path), ACK_DELAY_MAX, now, noted);
        let is_usable = engine.is_usable(path);
        for (number, counts) in lost.drain(..) {
            fates.push(Fate::Lost(path, number));
            match is_usable && counts {
                true => engine.on_lost(path, number, now),
                false => engine.on_discarded(path, number),
            }
        }
        if let Some(sent_at) = batch.newest.filter(|_| is_usable) {
            engine.on_congestion(path, CongestionSignal::Loss, sent_at, false, now);
        }
    }

    /// When the first packet is late enough to be taken for lost.
    pub(super) fn loss_due(&self) -> Option<Timestamp> {
        self.losses.values().filter_map(|losses| losses.packets.due()).min()
    }

    /// When a path is to be asked for an answer, and which.
    pub(super) fn probe_due(&self) -> Option<(Timestamp, PathId)> {
        let due = |(path, losses): (PathId, &Losses)| Some((losses.probe_due(self.engine.rtt(path))?, path));
        self.losses.iter().filter_map(due).min()
    }

    /// The path is being asked.
    pub(super) fn note_probe(&mut self, path: PathId) {
        if let Some(losses) = self.losses.get_mut(path) {
            losses.asked_after = losses.packets.newest().map(|newest| newest.number);
        }
    }

    /// Gives up what is late on all paths.
    pub(super) fn find_all_lost(&mut self, now: Timestamp) {
        let is_due = |losses: &Losses| losses.packets.due().is_some_and(|at| at <= now);
        let due: Vec<PathId> = self.losses.iter().filter(|(_, losses)| is_due(losses)).map(|(path, _)| path).collect();
        due.iter().for_each(|path| self.find_lost(*path, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rtt_ms(millis: u64) -> Option<Rtt> {
        let rtt = Duration::from_millis(millis);
        Some(Rtt::steady(rtt))
    }

    #[test]
    fn the_path_is_asked_after_its_newest_packets_while_the_stack_waits_for_an_older_one() {
        let mut losses = Losses::default();
        (0..6).for_each(|number| losses.packets.on_sent(number, (), ms(number)));
        losses.packets.on_acked(3, None);
        let due = |losses: &Losses| losses.probe_due(rtt_ms(100));
        assert_eq!(due(&losses), None, "the stack asks by itself");
        losses.packets.find_lost(rtt_ms(100), ACK_DELAY_MAX, ms(103), |_, _| {});
        assert!(losses.is_suspect(0) && !losses.is_suspect(1));
        // The newest left at 5 ms: a round trip, a millisecond for the timer, and 25 for the peer.
        assert_eq!(due(&losses), Some(ms(131)));
        losses.asked_after = Some(5);
        assert_eq!(due(&losses), None);
        losses.packets.on_sent(6, (), ms(131));
        assert_eq!(due(&losses), Some(ms(257)));
        losses.packets.on_sent(7, (), ms(200));
        assert_eq!(due(&losses), None, "by then the stack has given up and asks");
    }
}
