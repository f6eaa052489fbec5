//! Packets that are handled together.

use bytes::Bytes;

use super::Came;

/// The largest packet of UDP, in bytes.
pub(crate) const PACKET_MAX: usize = 65_507;

/// The packets that are read with one call.
const PLACES: usize = 32;

/// The room of each, in bytes. The system gives memory for as much of it as packets ever took.
const PLACE: usize = PACKET_MAX + 1;

/// The most packets that the system sends at once (`UDP_MAX_SEGMENTS`), and their bytes.
const ALIKE_MAX: usize = 64;

/// Packets of one host in the order in which they were sent, alike in all but their data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The length of each packet; empty where the data is that of a single one.
    lengths: Vec<u16>,
    data: Bytes,
}

/// One packet.
impl From<&[u8]> for Burst {
    fn from(packet: &[u8]) -> Self {
        Self::single(Bytes::copy_from_slice(packet))
    }
}

impl<'a> FromIterator<&'a [u8]> for Burst {
    fn from_iter<T: IntoIterator<Item = &'a [u8]>>(packets: T) -> Self {
        let (mut lengths, mut data) = (Vec::new(), Vec::new());
        for packet in packets {
            lengths.push(packet.len() as u16);
            data.extend_from_slice(packet);
        }
        Self { lengths, data: data.into() }
    }
}

impl Burst {
    /// One packet.
    pub(crate) fn single(packet: Bytes) -> Self {
        Self { lengths: Vec::new(), data: packet }
    }

    /// Packets of these lengths, one behind the other in `data`.
    pub(crate) fn joined(lengths: Vec<u16>, data: Bytes) -> Self {
        debug_assert_eq!(lengths.iter().copied().map(usize::from).sum::<usize>(), data.len());
        Self { lengths, data }
    }

    /// All their bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let single = self.lengths.is_empty().then_some(&self.data[..]);
        let mut rest = &self.data[..];
        single.into_iter().chain(self.lengths.iter().map(move |length| {
            let (packet, behind) = rest.split_at(usize::from(*length));
            rest = behind;
            packet
        }))
    }

    /// Parts of equal length, of which the last may be shorter, with that length: the system sends
    /// these at once.
    pub(super) fn alike(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let single = self.lengths.is_empty().then_some((&self.data[..], self.data.len()));
        let (mut lengths, mut rest) = (&self.lengths[..], &self.data[..]);
        single.into_iter().chain(std::iter::from_fn(move || {
            let length = usize::from(*lengths.first()?);
            let most = (PACKET_MAX / length.max(1)).min(ALIKE_MAX);
            let same = lengths.iter().take(most).take_while(|other| usize::from(**other) == length).count();
            let shorter = lengths.get(same).filter(|last| same < most && (1..length).contains(&usize::from(**last)));
            let (count, bytes) = match (length, shorter) {
                // An empty packet leaves alone.
                (0, _) => (1, 0),
                (_, Some(last)) => (same + 1, same * length + usize::from(*last)),
                (_, None) => (same, same * length),
            };
            let (alike, behind) = rest.split_at(bytes);
            (lengths, rest) = (&lengths[count..], behind);
            Some((alike, length))
        }))
    }
}

/// Room for packets that are read with one call, and those that were.
#[derive(Debug)]
pub(crate) struct Room {
    pub(super) memory: Vec<u8>,
    pub(super) came: Vec<Came>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { memory: vec![0; PLACES * PLACE], came: Vec::with_capacity(PLACES) }
    }

    /// The places of the packets to be read.
    pub(super) fn places(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.memory.chunks_mut(PLACE)
    }

    /// The packets that were read: those that came one after the other from one host, with the head of the first.
    pub(crate) fn bursts(&self) -> impl Iterator<Item = (Came, Burst)> {
        let is_alike = |a: &Came, b: &Came| (a.from, a.here, a.to, a.ecn) == (b.from, b.here, b.to, b.ecn);
        let data = |head: &Came| &self.memory[head.place * PLACE..][..head.length];
        let packets = move |head: &Came| {
            let (data, each) = (data(head), head.each.max(1));
            // An empty packet is one, too.
            (0..head.length.div_ceil(each).max(1)).map(move |at| &data[at * each..data.len().min((at + 1) * each)])
        };
        self.came.chunk_by(is_alike).map(move |alike| {
            let burst = match alike {
                [head] if head.each >= head.length => data(head).into(),
                _ => alike.iter().flat_map(packets).collect(),
            };
            (alike[0], burst)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_of_one_length_leave_together_and_a_shorter_one_behind_them() {
        let alike = |lengths: &[usize]| -> Vec<(usize, usize)> {
            let packets: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; *length]).collect();
            let burst: Burst = packets.iter().map(Vec::as_slice).collect();
            burst.alike().map(|(data, length)| (data.len(), length)).collect()
        };
        assert_eq!(alike(&[10, 10, 10, 4, 10]), [(34, 10), (10, 10)]);
        assert_eq!(alike(&[4, 10, 0, 0, 5]), [(4, 4), (10, 10), (0, 0), (0, 0), (5, 5)]);
        assert_eq!(alike(&[1; 130]), [(64, 1), (64, 1), (2, 1)]);
        assert_eq!(alike(&[40_000, 40_000]), [(40_000, 40_000); 2]);
        assert_eq!(Burst::from(&b"one"[..]).alike().collect::<Vec<_>>(), [(&b"one"[..], 3)]);
    }
}
