//! Loss recovery of one path of a simulated host: its acknowledgements, and when to probe [RFC9002 §6]. Which packets are
//! lost is the engine's to say ([`LossDetector`]).

use core::time::Duration;

use fairpath_core::{Rtt, Timestamp};
use fairpath_engine::{LossBatch, LossDetector, Tracked, probe_timeout};

use crate::packet::{AckFrame, Chunk};

/// Limit on the doublings of a probe timeout: 2^10 of 100 ms are 102 s.
const DOUBLINGS_MAX: u32 = 10;

/// The packets of one path.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    packets: LossDetector<Chunk>,
    /// The largest packet that an acknowledgement has named, and which of the 63 before it others have.
    newest_acked: Option<u64>,
    seen: u64,
    probes: u32,
}

impl Recovery {
    /// A packet leaves; its number.
    #[inline]
    pub(crate) fn on_sent(&mut self, chunk: Chunk, now: Timestamp) -> u64 {
        let number = self.packets.next();
        self.packets.on_sent(number, chunk, now);
        number
    }

    /// The newest packet that is acknowledged.
    pub(crate) fn newest_acked(&self) -> Option<u64> {
        self.newest_acked
    }

    /// For how many packets there is an entry.
    pub(crate) fn entries(&self) -> usize {
        self.packets.entries()
    }

    /// Packets in flight, oldest first.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &Tracked<Chunk>> {
        self.packets.outstanding()
    }

    /// Hands each packet that this acknowledges for the first time to `acked`, oldest first, those that were
    /// declared lost included.
    #[inline]
    pub(crate) fn on_ack(&mut self, frame: &AckFrame, mut acked: impl FnMut(&Tracked<Chunk>)) {
        let mut fresh = self.note(frame);
        if fresh != 0 {
            self.probes = 0;
        }
        // Bit i stands for packet `largest` − i.
        while fresh != 0 {
            let age = 63 - u64::from(fresh.leading_zeros());
            fresh &= !(1 << age);
            let number = frame.largest.checked_sub(age);
            if let Some(packet) = number.and_then(|number| self.packets.on_acked(number, None)) {
                acked(&packet);
            }
        }
    }

    /// Notes what this acknowledges, and gives what of it is new: bit i for packet `largest` − i. A packet that was
    /// overtaken by more than 64 is not noted, and may seem new again.
    #[inline]
    fn note(&mut self, frame: &AckFrame) -> u64 {
        let Some(newest) = self.newest_acked else {
            (self.newest_acked, self.seen) = (Some(frame.largest), frame.seen);
            return frame.seen;
        };
        if frame.largest < newest {
            let behind = newest - frame.largest;
            let known = shift_right(self.seen, behind);
            self.seen |= shift_left(frame.seen, behind);
            return frame.seen & !known;
        }
        let known = shift_left(self.seen, frame.largest - newest);
        (self.newest_acked, self.seen) = (Some(frame.largest), known | frame.seen);
        frame.seen & !known
    }

    /// An acknowledgement has been read whole: whether the newest episode of congestion has been none, since all that
    /// was declared lost in it has arrived.
    #[inline]
    pub(crate) fn on_ack_end(&mut self, rtt: impl FnOnce() -> Option<Rtt>, now: Timestamp) -> bool {
        self.packets.has_late() && self.packets.on_ack_end(rtt(), now)
    }

    /// Whether [`Recovery::deadline`] may have come nearer with the acknowledgement that is read
    /// next: it ends probing, or brings the first round-trip time.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.probes > 0 || self.newest_acked.is_none()
    }

    /// Whether something older than what has arrived is still missing.
    pub(crate) fn has_gap(&self) -> bool {
        self.packets.has_gap()
    }

    /// Hands each packet that must be taken for lost by now to `lost`, oldest first.
    pub(crate) fn find_lost(
        &mut self,
        rtt: Option<Rtt>,
        ack_delay_max: Duration,
        now: Timestamp,
        mut lost: impl FnMut(&Tracked<Chunk>),
    ) -> LossBatch {
        self.packets.find_lost(rtt, ack_delay_max, now, |packet, _| lost(packet))
    }

    /// Whether packets are due to be given up, not probed for.
    pub(crate) fn loss_is_due(&self, now: Timestamp) -> bool {
        self.packets.due().is_some_and(|at| at <= now)
    }

    /// When something must be done though no acknowledgement comes [RFC9002 §6.2.1].
    pub(crate) fn deadline(&self, rtt: Option<Rtt>, ack_delay_max: Duration) -> Timestamp {
        if let Some(at) = self.packets.due() {
            return at;
        }
        if self.packets.is_idle() {
            return Timestamp::MAX;
        }
        self.packets.last_sent_at() + probe_timeout(rtt, ack_delay_max) * (1 << self.probes.min(DOUBLINGS_MAX))
    }

    /// The probe timeout has passed: how often in a row.
    pub(crate) fn on_probe_timeout(&mut self) -> u32 {
        self.probes += 1;
        self.probes
    }

    /// The time between probes grows no further: somebody waits for the path to come back.
    pub(crate) fn keep_probing(&mut self) {
        self.probes = self.probes.min(1);
    }
}

fn shift_left(bits: u64, by: u64) -> u64 {
    if by < 64 { bits << by } else { 0 }
}

fn shift_right(bits: u64, by: u64) -> u64 {
    if by < 64 { bits >> by } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: u64) -> Chunk {
        Chunk { number, bytes: 1448, last: false }
    }

    fn frame(largest: u64, seen: u64) -> AckFrame {
        AckFrame { largest, seen, delay_ns: 0, expected: 0, marked: 0 }
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rtt_ms(millis: u64) -> Option<Rtt> {
        let rtt = Duration::from_millis(millis);
        Some(Rtt::steady(rtt))
    }

    fn sent(count: u64) -> Recovery {
        let mut recovery = Recovery::default();
        for number in 0..count {
            assert_eq!(recovery.on_sent(chunk(number), ms(number)), number);
        }
        recovery
    }

    /// The packets that an acknowledgement names for the first time, and whether each was declared lost.
    fn acked(recovery: &mut Recovery, frame: AckFrame) -> Vec<(u64, bool)> {
        let mut numbers = Vec::new();
        recovery.on_ack(&frame, |packet| numbers.push((packet.number, packet.was_lost())));
        numbers
    }

    fn in_time(numbers: &[u64]) -> Vec<(u64, bool)> {
        numbers.iter().map(|number| (*number, false)).collect()
    }

    fn lost(recovery: &mut Recovery, now: Timestamp) -> Vec<u64> {
        let mut numbers = Vec::new();
        recovery.find_lost(rtt_ms(100), Duration::ZERO, now, |packet| numbers.push(packet.number));
        numbers
    }

    #[test]
    fn each_packet_is_acknowledged_once() {
        let mut recovery = sent(6);
        assert_eq!(acked(&mut recovery, frame(1, 0b11)), in_time(&[0, 1]));
        assert!(acked(&mut recovery, frame(1, 0b11)).is_empty());
        assert_eq!(acked(&mut recovery, frame(4, 0b11011)), in_time(&[3, 4]), "0 and 1 are known, 2 is missing");
        assert_eq!(acked(&mut recovery, frame(4, 0b11111)), in_time(&[2]));
        assert!(acked(&mut recovery, frame(3, 0b1)).is_empty(), "an old one that came late");
    }

    #[test]
    fn what_is_overtaken_by_more_than_an_acknowledgement_names_is_acknowledged_alone() {
        let mut recovery = sent(100);
        acked(&mut recovery, frame(99, u64::MAX));
        assert_eq!(lost(&mut recovery, ms(200)), (0..36).collect::<Vec<_>>());
        assert_eq!(acked(&mut recovery, frame(5, 0b1)), [(5, true)]);
        assert_eq!(recovery.newest_acked(), Some(99));
    }

    #[test]
    fn an_acknowledgement_that_was_overtaken_is_no_news() {
        let mut recovery = sent(8);
        assert_eq!(acked(&mut recovery, frame(5, 0b10_1111)), in_time(&[0, 2, 3, 4, 5]));
        assert!(acked(&mut recovery, frame(4, 0b1)).is_empty());
        // Only a late acknowledgement named packet 1; a second mention is not new.
        assert_eq!(acked(&mut recovery, frame(1, 0b11)), in_time(&[1]));
        assert!(acked(&mut recovery, frame(5, 0b11_1111)).is_empty());
    }

    #[test]
    fn what_waits_to_be_given_up_is_not_probed_for() {
        let mut recovery = sent(2);
        acked(&mut recovery, frame(1, 0b1));
        assert!(lost(&mut recovery, ms(100)).is_empty());
        // Sent at 0: 9/8 · 100 ms.
        assert_eq!(recovery.deadline(rtt_ms(100), Duration::ZERO), Timestamp::from_micros(112_500));
        assert!(recovery.loss_is_due(ms(113)));
        assert_eq!(lost(&mut recovery, ms(113)), [0]);
        assert_eq!(recovery.deadline(rtt_ms(100), Duration::ZERO), Timestamp::MAX, "nothing is under way");
    }

    #[test]
    fn probe_timeouts_double_until_something_arrives() {
        let mut recovery = sent(1);
        // 100 + max(4 · 0, 1) = 101 ms, and 25 for the peer's waiting.
        let delay = Duration::from_millis(25);
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(126));
        assert_eq!(recovery.on_probe_timeout(), 1);
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(252));
        recovery.on_sent(chunk(0), ms(126));
        acked(&mut recovery, frame(1, 0b1));
        lost(&mut recovery, ms(230));
        recovery.on_sent(chunk(1), ms(300));
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(426));
    }
}
