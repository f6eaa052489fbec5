//! The packets of one path that are neither acknowledged nor lost, by packet number.

use std::collections::VecDeque;

use fairpath_core::{Bytes, SentState, Timestamp};

/// More packets than any window holds (131,072 · 1,200 B = 157 MB): beyond it the oldest is
/// forgotten, so that a host which never accounts for a packet cannot grow this without limit.
const PACKETS_MAX: usize = 1 << 17;

/// What is remembered of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) at: Timestamp,
    pub(crate) bytes: Bytes,
    pub(crate) state: SentState,
}

/// A ring of packets. Numbers only rise; a host may leave some out.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPackets {
    first: u64,
    packets: VecDeque<Option<SentPacket>>,
    in_flight: Bytes,
}

impl SentPackets {
    /// Adds the packet `number`. A number not above all others is ignored.
    pub(crate) fn insert(&mut self, number: u64, packet: SentPacket) {
        if self.packets.is_empty() {
            self.first = number;
        }
        let Some(at) = number.checked_sub(self.first) else { return };
        if at < self.packets.len() as u64 {
            return;
        }
        let skipped = at - self.packets.len() as u64;
        if skipped >= PACKETS_MAX as u64 {
            // Nothing of the past can be told apart from a mistake of the host any more.
            *self = Self::default();
            self.first = number;
        } else if skipped > 0 {
            self.packets.extend((0..skipped).map(|_| None));
        }
        self.packets.push_back(Some(packet));
        self.in_flight += packet.bytes;
        while self.packets.len() > PACKETS_MAX {
            if let Some(Some(forgotten)) = self.packets.pop_front() {
                self.in_flight -= forgotten.bytes;
            }
            self.first += 1;
        }
    }

    /// Takes out the packet `number`; `None` where it was never sent or is accounted for.
    pub(crate) fn take(&mut self, number: u64) -> Option<SentPacket> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let packet = self.packets.get_mut(at)?.take()?;
        self.in_flight -= packet.bytes;
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
        Some(packet)
    }

    /// When the oldest packet was sent.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.packets.front().and_then(|packet| packet.map(|packet| packet.at))
    }

    /// How much of it was sent before `before`. Packets leave in the order of their numbers.
    pub(crate) fn sent_before(&self, before: Timestamp) -> Bytes {
        let old = self.packets.iter().flatten().take_while(|packet| packet.at < before);
        old.map(|packet| packet.bytes).sum()
    }

    /// Forgets the packets with numbers below `number` that were sent before `before`, from the oldest
    /// on, up to the first that is none of these.
    pub(crate) fn forget_stale(&mut self, number: u64, before: Timestamp) {
        while self.first < number {
            match self.packets.front() {
                Some(Some(packet)) if packet.at >= before => return,
                Some(_) => {}
                None => return,
            }
            if let Some(Some(forgotten)) = self.packets.pop_front() {
                self.in_flight -= forgotten.bytes;
            }
            self.first += 1;
        }
    }

    /// The packet `number`, where it is neither acknowledged nor lost.
    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?.as_ref()
    }

    /// The sum of the sizes.
    pub(crate) fn in_flight(&self) -> Bytes {
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpath_core::DeliveryRate;

    fn packet(millis: u64) -> SentPacket {
        let at = Timestamp::from_millis(millis);
        SentPacket { at, bytes: Bytes::new(1000), state: DeliveryRate::new().on_sent(at, Bytes::ZERO) }
    }

    #[test]
    fn what_is_in_flight_is_what_was_sent_and_not_taken() {
        let mut packets = SentPackets::default();
        for number in [5, 6, 9, 10] {
            packets.insert(number, packet(number));
        }
        assert_eq!(packets.in_flight(), Bytes::new(4000));
        assert!(packets.take(7).is_none(), "7 was left out");
        assert!(packets.take(5).is_some());
        assert!(packets.take(5).is_none(), "taken once");
        assert_eq!(packets.oldest(), Some(Timestamp::from_millis(6)));
        assert!(packets.take(6).is_some());
        assert_eq!(packets.oldest(), Some(Timestamp::from_millis(9)));
        assert_eq!(packets.in_flight(), Bytes::new(2000));
    }

    #[test]
    fn a_host_that_accounts_for_nothing_fills_only_the_ring() {
        let mut packets = SentPackets::default();
        for number in 0..PACKETS_MAX as u64 + 10 {
            packets.insert(number, packet(0));
        }
        assert_eq!(packets.in_flight(), Bytes::new(1000) * PACKETS_MAX as u64);
        packets.insert(u64::MAX, packet(1));
        assert_eq!(packets.in_flight(), Bytes::new(1000));
    }
}
