//! The packets of one path that are neither acknowledged nor lost, by packet number.

use std::collections::VecDeque;

use fairpath_core::{ByteCount, SentState, Timestamp};

/// More packets than any window holds (131,072 · 1,200 B = 157 MB): beyond it the oldest is
/// forgotten, so that a host which never accounts for a packet cannot grow this without limit.
const PACKETS_MAX: usize = 1 << 17;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    /// Its size. The highest bit marks it as accounted for, or never sent. An `Option` around the
    /// whole would move more of it on removal, and a separate field would exceed one cache line.
    size: u64,
    pub(crate) state: SentState,
}

const GONE: u64 = 1 << 63;

impl SentPacket {
    pub(crate) fn new(bytes: ByteCount, state: SentState) -> Self {
        Self { size: bytes.get().min(GONE - 1), state }
    }

    fn gone(self) -> Self {
        Self { size: self.size | GONE, ..self }
    }

    fn is_gone(&self) -> bool {
        self.size & GONE != 0
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.size & !GONE)
    }

    /// When it left.
    pub(crate) fn at(&self) -> Timestamp {
        self.state.sent_at()
    }
}

/// A ring of packets, the first of which is in flight. Numbers only rise; a host may leave some out.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPackets {
    first: u64,
    packets: VecDeque<SentPacket>,
    in_flight: ByteCount,
}

impl SentPackets {
    /// Adds the packet `number`. A number not above all others is ignored.
    #[inline]
    pub(crate) fn insert(&mut self, number: u64, packet: SentPacket) {
        let length = self.packets.len();
        if length == 0 || length >= PACKETS_MAX || number != self.first + length as u64 {
            return self.insert_apart(number, packet);
        }
        // The usual case: it follows the one before.
        self.packets.push_back(packet);
        self.in_flight += packet.bytes();
    }

    #[inline(never)]
    fn insert_apart(&mut self, number: u64, packet: SentPacket) {
        if self.packets.is_empty() {
            self.first = number;
        }
        let Some(at) = number.checked_sub(self.first) else { return };
        if at < self.packets.len() as u64 {
            return;
        }
        let skipped = at - self.packets.len() as u64;
        if skipped >= PACKETS_MAX as u64 {
            // After such a gap the past cannot be told apart from a mistake of the host.
            *self = Self::default();
            self.first = number;
        } else if skipped > 0 {
            self.packets.extend((0..skipped).map(|_| packet.gone()));
        }
        self.packets.push_back(packet);
        self.in_flight += packet.bytes();
        while self.packets.len() > PACKETS_MAX {
            self.forget_oldest();
        }
        self.forget_gone();
    }

    fn forget_oldest(&mut self) {
        if let Some(forgotten) = self.packets.pop_front()
            && !forgotten.is_gone()
        {
            self.in_flight -= forgotten.bytes();
        }
        self.first += 1;
    }

    /// Removes the packet `number`; `None` if it was never sent or is accounted for.
    #[inline]
    pub(crate) fn take(&mut self, number: u64) -> Option<SentPacket> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let entry = self.packets.get_mut(at).filter(|packet| !packet.is_gone())?;
        let packet = *entry;
        entry.size |= GONE;
        self.in_flight -= packet.bytes();
        self.forget_gone();
        Some(packet)
    }

    /// Makes the first packet the oldest in flight.
    #[inline]
    fn forget_gone(&mut self) {
        while self.packets.front().is_some_and(SentPacket::is_gone) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// When the oldest packet was sent.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.packets.front().map(SentPacket::at)
    }

    /// The bytes in flight that left before `before`. Packets leave in the order of their numbers.
    pub(crate) fn sent_before(&self, before: Timestamp) -> ByteCount {
        let sent = self.packets.iter().filter(|packet| !packet.is_gone());
        sent.take_while(|packet| packet.at() < before).map(SentPacket::bytes).sum()
    }

    /// Forgets packets below `number` that were sent before `before`, from the oldest on, up to the
    /// first that does not match.
    pub(crate) fn forget_stale(&mut self, number: u64, before: Timestamp) {
        while self.first < number && self.packets.front().is_some_and(|packet| packet.at() < before) {
            self.forget_oldest();
            self.forget_gone();
        }
    }

    /// Whether there is a packet with a number below `number`.
    #[inline]
    pub(crate) fn has_below(&self, number: u64) -> bool {
        self.first < number && !self.packets.is_empty()
    }

    /// The packet `number`, while it is in flight.
    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.packets.get(at).filter(|packet| !packet.is_gone())
    }

    /// The sum of the sizes.
    pub(crate) fn in_flight(&self) -> ByteCount {
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairpath_core::DeliveryRate;
    use proptest::prelude::*;

    use super::*;

    fn packet(millis: u64) -> SentPacket {
        let at = Timestamp::from_millis(millis);
        SentPacket::new(ByteCount::new(1000), DeliveryRate::new().on_sent(at, ByteCount::ZERO))
    }

    #[test]
    fn what_is_in_flight_is_what_was_sent_and_not_taken() {
        let mut packets = SentPackets::default();
        for number in [5, 6, 9, 10] {
            packets.insert(number, packet(number));
        }
        assert_eq!(packets.in_flight(), ByteCount::new(4000));
        assert!(packets.take(7).is_none(), "7 was left out");
        assert!(packets.take(5).is_some());
        assert!(packets.take(5).is_none(), "taken once");
        assert_eq!(packets.oldest(), Some(Timestamp::from_millis(6)));
        assert!(packets.take(6).is_some());
        assert_eq!(packets.oldest(), Some(Timestamp::from_millis(9)));
        assert_eq!(packets.in_flight(), ByteCount::new(2000));
    }

    #[test]
    fn a_host_that_accounts_for_nothing_fills_only_the_ring() {
        let mut packets = SentPackets::default();
        for number in 0..PACKETS_MAX as u64 + 10 {
            packets.insert(number, packet(0));
        }
        assert_eq!(packets.in_flight(), ByteCount::new(1000) * PACKETS_MAX as u64);
        packets.insert(u64::MAX, packet(1));
        assert_eq!(packets.in_flight(), ByteCount::new(1000));
    }

    /// A step of a host.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A packet leaves, with a number this far after the last; the clock moves on by some
        /// milliseconds.
        Send(u64, u64),
        /// The packet this many numbers before the last is accounted for.
        Take(u64),
        /// Forgets packets before the one this many numbers back that left at least this many
        /// milliseconds ago.
        Forget(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (prop_oneof![4 => Just(1), 1 => 2..5_u64], 0..3_u64).prop_map(|(ahead, wait)| Step::Send(ahead, wait)),
            3 => (0..12_u64).prop_map(Step::Take),
            1 => (0..12_u64, 0..20_u64).prop_map(|(back, age)| Step::Forget(back, age)),
        ]
    }

    proptest! {
        #[test]
        fn the_ring_knows_what_a_map_of_all_packets_knows(steps in prop::collection::vec(step(), 1..120)) {
            let (mut packets, mut model) = (SentPackets::default(), BTreeMap::new());
            let (mut last, mut now) = (100, 1_000);
            for step in steps {
                match step {
                    Step::Send(ahead, wait) => {
                        (last, now) = (last + ahead, now + wait);
                        packets.insert(last, packet(now));
                        model.insert(last, now);
                    }
                    Step::Take(back) => {
                        let taken = packets.take(last - back).map(|packet| packet.at());
                        prop_assert_eq!(taken, model.remove(&(last - back)).map(Timestamp::from_millis));
                    }
                    Step::Forget(back, age) => {
                        let (number, before) = (last - back, now - age);
                        packets.forget_stale(number, Timestamp::from_millis(before));
                        while let Some((&first, &at)) = model.first_key_value()
                            && first < number
                            && at < before
                        {
                            model.remove(&first);
                        }
                    }
                }
                prop_assert_eq!(packets.in_flight(), ByteCount::new(1_000 * model.len() as u64));
                prop_assert_eq!(packets.oldest(), model.values().next().copied().map(Timestamp::from_millis));
                let all = packets.sent_before(Timestamp::from_millis(now + 1));
                prop_assert_eq!(all, packets.in_flight());
            }
        }
    }
}
