//! Checksums that a host leaves to its device, and that a cable between two hosts never had computed.

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Fills in the checksum of a TCP segment or UDP datagram in a whole packet of IPv4; leaves other
/// packets as they are.
pub(crate) fn complete(packet: &mut [u8]) {
    let Some(&[version, _, high, low, _, _, fragment, rest, _, protocol]) = packet.first_chunk() else { return };
    let (header, length) = (usize::from(version & 0xf) * 4, usize::from(u16::from_be_bytes([high, low])));
    let at = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return,
    };
    // Fragments have one only when they are together again.
    let is_whole = version >> 4 == 4 && u16::from_be_bytes([fragment & 0x3f, rest]) == 0;
    if !is_whole || header < 20 || packet.len() < length || length < header + at + 2 {
        return;
    }
    let addresses = sum(&packet[12..20]);
    let segment = &mut packet[header..length];
    segment[at..at + 2].fill(0);
    let pseudo = addresses + u64::from(protocol) + segment.len() as u64;
    let mut folded = pseudo + sum(segment);
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    let checksum = match !(folded as u16) {
        // For UDP zero means that there is none.
        0 if protocol == UDP => 0xffff,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of the words of 16 bits; half a word at the end is filled up with zero.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |last| u64::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10.0.0.1:1 to 10.0.0.2:2, "ab" and a third byte: 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 0x0011 + 0x000b
    /// + 0x0001 + 0x0002 + 0x000b + 0x6162 + 0x6300 = 0xd88f, whose complement is 0x2770.
    #[test]
    fn a_datagram_gets_its_checksum_whatever_stood_there() {
        let mut packet = vec![0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 1, 0, 2, 0, 11, 0xde, 0xad, b'a', b'b', b'c']);
        // Ethernet fills short frames up.
        packet.extend([0xff; 9]);
        let before = packet.clone();
        complete(&mut packet);
        assert_eq!(packet[26..28], 0x2770_u16.to_be_bytes());
        packet[26..28].copy_from_slice(&before[26..28]);
        assert_eq!(packet, before, "nothing else has changed");
    }

    #[test]
    fn fragments_and_other_packets_stay_as_they_are() {
        let fragment = [&[0x45, 0, 0, 28, 0, 0, 0x20, 0, 64, UDP][..], &[7; 18]].concat();
        let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat();
        for packet in [fragment, arp, vec![0x45; 3], Vec::new(), vec![0x45, 0, 0, 200, 0, 0, 0, 0, 1, TCP, 0, 0]] {
            let mut completed = packet.clone();
            complete(&mut completed);
            assert_eq!(completed, packet);
        }
    }
}
