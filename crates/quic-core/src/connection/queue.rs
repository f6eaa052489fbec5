//! The stack's queue of datagrams: its content, and the packet in which each datagram left.
//!
//! The stack says neither. It takes datagrams in order, as many as a packet has room for; so what the queue has
//! become shorter by left in the packets that were made meanwhile. The division is certain in three cases only.
//! There was one packet. Or each packet was filled here as far as it goes, and nothing else was put in. Or the sizes
//! of the packets leave only one way to divide the datagrams among them. Where it is not certain, the sender is told
//! that nothing left: the other end knows a copy, but data that is wrongly thought to have arrived would be lost.

use std::collections::VecDeque;

use super::lanes::Load;
use crate::adapter::Left;

/// The least that a packet takes beside its frames: a byte of flags, one of its number, and the tag
/// [RFC9001 §5.3].
const PACKET_MIN: usize = 18;

/// The most by which overheads of packets differ that were filled in the same way. The packet number
/// has up to four bytes, and padding makes up for it. This is less than the smallest frame of a
/// fragment.
const SPREAD_MAX: usize = 8;

/// The owner of a datagram, which is told how it left.
#[derive(Debug)]
pub(super) enum Queued {
    Load(Load),
    /// A packet of an application's flow.
    Flow(fairpath_live::Cargo),
    /// Nobody asks what becomes of it.
    Other,
}

#[derive(Debug)]
struct Entry {
    queued: Queued,
    bytes: usize,
    /// Whether the next one is for another packet.
    fills_packet: bool,
}

/// The queue as it should be.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// The total size of the datagrams, in bytes.
    bytes: usize,
    /// Bytes in the stack's queue whose owners are not known.
    unknown: usize,
}

/// The state of the stack's queue after it was asked for packets, and these packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome<'a> {
    /// The bytes that its queue still has.
    pub(super) left_over: usize,
    /// The packets that left.
    pub(super) packets: &'a [Left],
    /// The frames that left; `None` where they are not known.
    pub(super) frames: Option<Frames>,
}

/// The frames that left between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frames {
    /// How many of them were DATAGRAM frames.
    pub(super) datagrams: u64,
    /// Whether there were no others.
    pub(super) are_alone: bool,
}

/// How the datagrams that left are divided among the packets.
enum Division {
    Unknown,
    /// All are in the first packet.
    One,
    /// As they were put in: each packet ends where it was filled.
    AsFilled,
    /// The packet of each datagram, in their order.
    BySize(Vec<usize>),
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.unknown == 0
    }

    /// Notes that a datagram was put at the end.
    pub(super) fn push(&mut self, queued: Queued, bytes: usize) {
        self.bytes += bytes;
        self.entries.push_back(Entry { queued, bytes, fills_packet: false });
    }

    /// Ends the packet: the next datagram begins another.
    pub(super) fn end_packet(&mut self) {
        if let Some(last) = self.entries.back_mut() {
            last.fills_packet = true;
        }
    }

    /// Takes out what is not there any more; `each` gets it with the packet that it left in. Where there is none,
    /// it did not leave, or it is not known in which.
    pub(super) fn settle(&mut self, outcome: Outcome<'_>, mut each: impl FnMut(Queued, Option<Left>)) {
        if self.unknown > 0 {
            self.unknown = outcome.left_over;
            return;
        }
        let (mut gone, mut bytes) = (0, self.bytes);
        while bytes > outcome.left_over {
            bytes -= self.entries[gone].bytes;
            gone += 1;
        }
        if bytes != outcome.left_over {
            // The stack dropped some that have become too large for a path, not in order.
            return self.disown(outcome.left_over, |queued| each(queued, None));
        }
        self.bytes = bytes;
        let division = self.division(gone, outcome);
        let mut filled = 0;
        for (at, entry) in self.entries.drain(..gone).enumerate() {
            let packet = match &division {
                Division::Unknown => None,
                Division::One => Some(0),
                Division::AsFilled => Some(filled),
                Division::BySize(packets) => packets.get(at).copied(),
            };
            filled += usize::from(entry.fills_packet);
            each(entry.queued, packet.and_then(|packet| outcome.packets.get(packet)).copied());
        }
    }

    /// Forgets what should lie there, because `left_over` bytes of something else do; `each` gets it.
    pub(super) fn disown(&mut self, left_over: usize, mut each: impl FnMut(Queued)) {
        self.entries.drain(..).for_each(|entry| each(entry.queued));
        (self.bytes, self.unknown) = (0, left_over);
    }

    /// How the first `gone` are divided among the packets.
    fn division(&self, gone: usize, outcome: Outcome<'_>) -> Division {
        let Outcome { packets, frames, .. } = outcome;
        if let [packet] = packets {
            let bytes: usize = self.entries.range(..gone).map(|entry| entry.bytes).sum();
            return if bytes + PACKET_MIN <= packet.bytes.into() { Division::One } else { Division::Unknown };
        }
        let Some(frames) = frames.filter(|frames| frames.datagrams == gone as u64) else { return Division::Unknown };
        if frames.are_alone && self.left_as_filled(gone, packets) {
            return Division::AsFilled;
        }
        self.only_division(gone, packets).map_or(Division::Unknown, Division::BySize)
    }

    /// Whether the first `gone` left in the packets that they were put in for, with no frames
    /// beside them. Then the packets' overheads differ by little.
    fn left_as_filled(&self, gone: usize, packets: &[Left]) -> bool {
        let entries = || self.entries.range(..gone);
        if !entries().last().is_some_and(|last| last.fills_packet) {
            return false;
        }
        let (mut left, mut frames) = (packets.iter(), 0);
        // The smallest and the largest overhead of the packets.
        let (mut least, mut most) = (usize::MAX, 0);
        for entry in entries() {
            frames += frame(entry.bytes);
            if entry.fills_packet {
                let rest = left.next().and_then(|packet| usize::from(packet.bytes).checked_sub(frames));
                let Some(rest) = rest else { return false };
                (least, most, frames) = (least.min(rest), most.max(rest), 0);
            }
        }
        left.next().is_none() && most - least <= SPREAD_MAX
    }

    /// The packet of each of the first `gone`, where packets of these sizes leave only one way to divide them in
    /// their order. Then the earliest packet that each can be in is also the latest. The packets may carry other
    /// frames too: a train in which an acknowledgement left stays known.
    fn only_division(&self, gone: usize, packets: &[Left]) -> Option<Vec<usize>> {
        let bytes: Vec<usize> = self.entries.range(..gone).map(|entry| entry.bytes).collect();
        let rooms: Vec<usize> =
            packets.iter().map(|packet| usize::from(packet.bytes).saturating_sub(PACKET_MIN)).collect();
        let early = earliest(bytes.iter().copied(), rooms.iter().copied())?;
        let mut late = earliest(bytes.iter().rev().copied(), rooms.iter().rev().copied())?;
        late.iter_mut().for_each(|packet| *packet = rooms.len() - 1 - *packet);
        late.reverse();
        (early == late).then_some(early)
    }
}

/// The packet of each datagram where each goes into the first that has room for it and comes after none of a later
/// datagram. `None` where there is not room for all.
fn earliest(datagrams: impl Iterator<Item = usize>, mut rooms: impl Iterator<Item = usize>) -> Option<Vec<usize>> {
    let (mut packet, mut room) = (0, rooms.next()?);
    let mut found = Vec::new();
    for bytes in datagrams {
        // The last frame of a packet may go without its length.
        let least = 1 + bytes;
        while room < least {
            (packet, room) = (packet + 1, rooms.next()?);
        }
        room -= least;
        found.push(packet);
    }
    Some(found)
}

/// The size of a DATAGRAM frame with this payload, with its type and its length (RFC 9221, section
/// 4).
pub(super) fn frame(bytes: usize) -> usize {
    let length = if bytes < 64 { 1 } else { 2 };
    1 + length + bytes
}

#[cfg(test)]
mod tests {
    use fairpath_engine::PathId;
    use proptest::prelude::*;

    use super::*;

    /// The room for frames in a packet, in bytes.
    const SPACE: usize = 1_420;

    /// Models a stack that fills packets from its queue. The first packet has `first` bytes less room for
    /// frames. Returns the packets, each with the indices of its datagrams.
    fn stack(sizes: &mut Vec<usize>, packets_max: usize, first: usize, number: u64) -> Vec<(Vec<usize>, Left)> {
        let (mut made, mut taken) = (Vec::new(), 0);
        while made.len() < packets_max && !sizes.is_empty() {
            let other = if made.is_empty() { first } else { 0 };
            let (mut space, mut has) = (SPACE - other, Vec::new());
            while sizes.first().is_some_and(|bytes| frame(*bytes) <= space) {
                space -= frame(sizes.remove(0));
                has.push(taken);
                taken += 1;
            }
            if has.is_empty() && other == 0 {
                break;
            }
            let (number, bytes) = (number + made.len() as u64, (30 + SPACE - space) as u16);
            made.push((has, Left { path: PathId::new(0), number, bytes }));
        }
        made
    }

    /// Notes datagrams of these sizes, by packet, as they are put in.
    fn queue(packets: &[Vec<usize>]) -> Queue {
        let mut queue = Queue::default();
        for packet in packets {
            packet.iter().for_each(|bytes| queue.push(Queued::Other, *bytes));
            queue.end_packet();
        }
        queue
    }

    fn settled(queue: &mut Queue, outcome: Outcome<'_>) -> Vec<Option<u64>> {
        let mut found = Vec::new();
        queue.settle(outcome, |_, left| found.push(left.map(|left| left.number)));
        found
    }

    /// A packet that is filled: one fragment, or the end of a record and the beginning of the next.
    fn full() -> impl Strategy<Value = Vec<usize>> {
        const ROOM: usize = SPACE - 12;
        let two = (64..ROOM - 80).prop_map(|end| vec![end, ROOM - frame(end)]);
        prop_oneof![Just(vec![ROOM]), two]
    }

    /// This number of DATAGRAM frames, and no others.
    fn alone(datagrams: u64) -> Option<Frames> {
        Some(Frames { datagrams, are_alone: true })
    }

    #[test]
    fn full_packets_are_known_where_an_acknowledgement_left_before_them_or_with_a_short_one() {
        let left = |number, bytes| Left { path: PathId::new(0), number, bytes };
        let mut queue = queue(&[vec![1_400], vec![1_400], vec![700]]);
        let packets = [left(7, 60), left(8, 1_430), left(9, 1_430), left(10, 790)];
        let frames = |datagrams| Some(Frames { datagrams, are_alone: false });
        let outcome = Outcome { left_over: 0, packets: &packets, frames: frames(3) };
        assert_eq!(settled(&mut queue, outcome), [Some(8), Some(9), Some(10)]);
        // Nobody can tell in which of these a short one left.
        let mut queue = super::tests::queue(&[vec![1_400], vec![700]]);
        let packets = [left(7, 1_430), left(8, 1_430), left(9, 790)];
        let outcome = Outcome { left_over: 0, packets: &packets, frames: frames(2) };
        assert_eq!(settled(&mut queue, outcome), [None, None]);
    }

    #[test]
    fn what_left_in_one_packet_left_in_that_one() {
        let mut queue = queue(&[vec![700, 600], vec![1_300]]);
        let packets = [Left { path: PathId::new(0), number: 7, bytes: 1_400 }];
        let outcome = Outcome { left_over: 1_300, packets: &packets, frames: None };
        assert_eq!(settled(&mut queue, outcome), [Some(7), Some(7)]);
        assert!(!queue.is_empty());
        let outcome = Outcome { left_over: 0, packets: &[], frames: None };
        assert_eq!(settled(&mut queue, outcome), [None], "dropped");
        assert!(queue.is_empty());
    }

    #[test]
    fn what_the_stack_dropped_out_of_order_is_not_known_to_have_left() {
        let mut queue = queue(&[vec![1_300], vec![200], vec![1_300]]);
        let packets = [Left { path: PathId::new(0), number: 7, bytes: 250 }];
        // The large ones are gone, and the small one left: the sum does not fit the packet.
        let outcome = Outcome { left_over: 0, packets: &packets, frames: alone(1) };
        assert_eq!(settled(&mut queue, outcome), [None; 3]);
        let mut queue = super::tests::queue(&[vec![1_300], vec![200], vec![1_300]]);
        let outcome = Outcome { left_over: 200, packets: &[], frames: None };
        assert_eq!(settled(&mut queue, outcome), [None; 3]);
        assert!(!queue.is_empty(), "one is still there");
        assert_eq!(settled(&mut queue, Outcome { left_over: 0, ..outcome }), []);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn full_packets_are_known_one_by_one(
            packets in prop::collection::vec(full(), 2..40), end in 20..1_200_usize, taken in 2..60_usize,
        ) {
            let packets: Vec<Vec<usize>> = packets.into_iter().chain([vec![end]]).collect();
            let mut queue = queue(&packets);
            let mut sizes: Vec<usize> = packets.concat();
            let made = stack(&mut sizes, taken, 0, 100);
            let left: Vec<Left> = made.iter().map(|(_, left)| *left).collect();
            let datagrams = made.iter().map(|(has, _)| has.len() as u64).sum();
            let outcome =
                Outcome { left_over: sizes.iter().sum(), packets: &left, frames: alone(datagrams) };
            let expected: Vec<_> =
                made.iter().flat_map(|(has, left)| has.iter().map(|_| Some(left.number))).collect();
            prop_assert_eq!(settled(&mut queue, outcome), expected);
        }

        #[test]
        fn nothing_is_said_to_have_left_in_a_packet_that_it_did_not_leave_in(
            packets in prop::collection::vec(prop_oneof![full(), prop::collection::vec(12..1_400_usize, 1..3)], 1..12),
            first in prop_oneof![Just(0_usize), 1..1_400_usize], taken in 1..14_usize, known in any::<bool>(),
        ) {
            let mut queue = queue(&packets);
            let mut sizes: Vec<usize> = packets.concat();
            let made = stack(&mut sizes, taken, first, 100);
            let left: Vec<Left> = made.iter().map(|(_, left)| *left).collect();
            let datagrams = made.iter().map(|(has, _)| has.len() as u64).sum();
            let frames = known.then_some(Frames { datagrams, are_alone: first == 0 });
            let outcome = Outcome { left_over: sizes.iter().sum(), packets: &left, frames };
            let truth: Vec<_> = made.iter().flat_map(|(has, left)| has.iter().map(|_| left.number)).collect();
            let found = settled(&mut queue, outcome);
            prop_assert_eq!(found.len(), truth.len());
            for (found, truth) in found.into_iter().zip(truth) {
                prop_assert!(found.is_none_or(|found| found == truth), "{:?} is {}", found, truth);
            }
        }
    }
}
